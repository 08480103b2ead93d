"""`lakewright manifest ls`, `show`, `stats` and `discover`."""

from __future__ import annotations

import click

from lakewright.cli.call import Call
from lakewright.cli.completion import names_of
from lakewright.cli.faults import FAILED, fault_branch
from lakewright.cli.group import command
from lakewright.cli.options import despite_faults
from lakewright.cli.render.items import difference_page, item_page, rows_page, stats_page
from lakewright.errors import UsageError

__all__ = ["discover", "list_items", "show_item", "stats"]


@command(
    name="ls",
    examples=[
        "lakewright manifest ls --entity regions",
        "lakewright manifest ls --state failed --state locked -o json",
        "lakewright manifest ls --stale",
        "lakewright manifest ls --for acme/loader --after acme/scanner",
    ],
)
@click.option("--state", "states", multiple=True, metavar="WORD", help="A verdict or a state, in any case.")
@click.option("--application", metavar="NAME", help="Only for this application: name, or name:instance.")
@click.option(
    "--for",
    "applicant",
    metavar="APP",
    help="What this application has before it, and what each item waits for.",
)
@click.option("--after", multiple=True, metavar="APP", help="With --for: an application to wait for.")
@click.option(
    "--entity", metavar="NAME", shell_complete=names_of("entities"), help="Only slices of this entity."
)
@click.option("--stale", is_flag=True, help="Only items with a stale lock.")
@click.option("--limit", type=click.IntRange(min=1), help="The largest number of rows.")
@despite_faults
@click.pass_obj
def list_items(
    call: Call,
    /,
    *,
    states: tuple[str, ...],
    application: str | None,
    applicant: str | None,
    after: tuple[str, ...],
    entity: str | None,
    stale: bool,
    limit: int | None,
) -> None:
    """List items with their verdicts: ready, locked, failed, skipped, processed, invalid."""
    from lakewright.usecases.items import list_backlog
    from lakewright.usecases.items import list_items as find_items

    if applicant is not None:
        _check_alone(states, application, entity, stale)
        rows, warnings = list_backlog(call.app, applicant, after, limit=limit)
        for warning in warnings:
            call.output.note(f"warning: {warning}")
        call.output.answer([row.as_json() for row in rows], rows_page(rows, call.app.store.now()))
        return
    if after:
        raise UsageError("--after is given without --for", remedy="Name the application that waits: --for.")
    rows = find_items(call.app, states, application=application, entity=entity, is_stale=stale, limit=limit)
    call.output.answer([row.as_json() for row in rows], rows_page(rows, call.app.store.now()))


def _check_alone(*others: object) -> None:
    """Raise an error if `--for` is given with an option that chooses other rows."""
    if any(others):
        raise UsageError(
            "--for lists what one application has before it, without other choices",
            remedy="Leave out --state, --application, --entity and --stale.",
        )


@command(
    name="show",
    examples=[
        "lakewright manifest show regions/2022-01-01",
        "lakewright manifest show file:///lake/bronze/regions/2022-01-01",
    ],
)
@click.argument("item")
@despite_faults
@click.pass_obj
def show_item(call: Call, /, item: str) -> None:
    """Show every record of one item, and its verdict for each application.

    ITEM is `ENTITY/SLICE`, a path or an id.
    """
    from lakewright.usecases.items import show_item as find_history

    found = find_history(call.app, item)
    call.output.answer(found.as_json(), item_page(found))


@command(
    name="stats",
    examples=["lakewright manifest stats -o json"],
)
@click.pass_obj
def stats(call: Call, /) -> None:
    """Count items by application and verdict."""
    from lakewright.usecases.items import count_items

    counts = count_items(call.app)
    call.output.answer(counts, stats_page(counts))


@command(
    name="discover",
    examples=["lakewright manifest discover", "lakewright manifest discover --entity regions"],
)
@click.option(
    "--entity",
    "entities",
    multiple=True,
    metavar="NAME",
    shell_complete=names_of("entities"),
    help="Only slices of this entity.",
)
@despite_faults
@click.pass_obj
def discover(call: Call, /, *, entities: tuple[str, ...]) -> int:
    """Record new slices in bronze, and list where bronze and silver differ from the manifest.

    A folder or table that can't be read is told, and the command fails once it has looked at the others.
    """
    from lakewright.usecases.items import discover_slices

    found = discover_slices(call.app, entities)
    document = found.as_json()
    call.output.answer(document, difference_page(document))
    call.output.note(*(fault_branch(error.as_fault()) for _, error in found.unreadable))
    return FAILED if found.unreadable else 0
