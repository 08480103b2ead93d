"""`lakewright manifest resolve`, `release`, `skip`, `unskip`, `requeue`, `accept`: each appends records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lakewright.cli.call import Call
from lakewright.cli.completion import names_of
from lakewright.cli.group import command
from lakewright.cli.options import despite_faults
from lakewright.cli.page import Span, line
from lakewright.cli.render.words import counted, status
from lakewright.errors import LakewrightError, UsageError
from lakewright.spec.words import first_of

if TYPE_CHECKING:
    from lakewright.usecases.items import Row
    from lakewright.usecases.operate_items import Operated, Requeued

__all__ = [
    "accept",
    "author_option",
    "operator_options",
    "release",
    "requeue",
    "resolve",
    "skip",
    "unskip",
]

MOST_NAMED = 10

F = TypeVar("F", bound=Callable[..., Any])
Act = Callable[[str], "Sequence[Row]"]


def operator_options(function: F) -> F:
    """Add the options by which an operator says who they are and why they act, and `--despite-faults`."""
    for decorate in (
        author_option("Who did it."),
        click.option("--reason", metavar="TEXT", default="none given", help="Why; kept in the record."),
        despite_faults,
    ):
        function = decorate(function)
    return function


def author_option(help: str) -> Callable[[F], F]:
    """Return the option that names the author of a change; an empty name is refused."""
    return click.option(
        "--author",
        metavar="NAME",
        default=_user,
        show_default="your user name",
        callback=_check_author,
        help=help,
    )


def _user() -> str:
    from lakewright.stores.process import user_name

    return user_name()


def _check_author(_context: click.Context, _option: click.Parameter, name: str) -> str:
    if not name.strip():
        raise click.BadParameter("the name is empty.")
    return name


def items_argument(function: F) -> F:
    """Add the argument and the options that say which items an action is for."""
    for decorate in (
        click.option(
            "--yes", "-y", is_flag=True, help="Change what is selected; without it, it is only shown."
        ),
        click.option("--all", "is_all", is_flag=True, help="Select all items that it is meant for."),
        click.option("--state", "states", multiple=True, metavar="WORD", help="Select by verdict or state."),
        click.option(
            "--entity",
            metavar="NAME",
            shell_complete=names_of("entities"),
            help="Select slices of this entity.",
        ),
        click.argument("items", nargs=-1, metavar="[ITEM]..."),
    ):
        function = decorate(function)
    return function


def _chosen(call: Call, action: str, items: tuple[str, ...], given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the items to change; print those that are selected if they are only to be shown.

    Raises:
        UsageError: Items are both named and selected, or neither.
    """
    from lakewright.usecases.operate_items import select_items

    is_selection = bool(given["is_all"] or given["entity"] or given["states"])
    if is_selection == bool(items):
        raise UsageError(
            "items are both named and selected" if items else "no item is named",
            remedy="Name items by ENTITY/SLICE, path or id, or select them with --entity, --state or --all.",
        )
    if items:
        return items
    is_forced = bool(given.get("force"))
    rows = select_items(call.app, action, given["states"], entity=given["entity"], is_forced=is_forced)
    if given["yes"] and rows:
        return tuple(row.item.item_id for row in rows)
    shown = [line(status(row.verdict.value), f" {row.entity or row.application} {row.slice}") for row in rows]
    what = f"would {action} {counted(len(rows), 'item')}"
    end = f"{what}; nothing was changed: add --yes to do it" if rows else "no item is selected"
    call.output.result([row.as_json() for row in rows], [*shown, line(end)])
    return ()


def _operate(call: Call, action: str, items: tuple[str, ...], act: Act, given: Mapping[str, Any]) -> None:
    """Do something with each item, and print their new verdicts; those done before an error are printed.

    A slice in bronze that no run has seen yet can be skipped: it is recorded first.
    """
    chosen = _chosen(call, action, items, given)
    if not chosen:
        return
    from lakewright.usecases.items import find_item, find_or_record_item

    find = find_or_record_item if action == "skip" else find_item
    ids = [find(call.app, text).item_id for text in chosen]
    rows: list[Row] = []
    try:
        for item in dict.fromkeys(ids):
            rows += act(item)
    except LakewrightError:
        if rows:
            call.output.note(f"{counted(len(rows), 'item')} changed before the error")
        raise
    _print(call, rows)


@command(
    name="resolve",
    examples=[
        "lakewright manifest resolve people/2022-01-01.csv --reason 'file sent again'",
        "lakewright manifest resolve --entity people",
        "lakewright manifest resolve --all --yes",
    ],
)
@items_argument
@operator_options
@click.pass_obj
def resolve(call: Call, /, items: tuple[str, ...], *, author: str, reason: str, **given: Any) -> None:
    """Make failed items ready again, with the current content of their slices.

    ITEM is `ENTITY/SLICE`, a path or an id. Selected items are shown first; --yes changes them.
    """
    from lakewright.usecases.operate_items import resolve_item

    def act(item: str) -> Sequence[Row]:
        return resolve_item(call.app, item, author=author, reason=reason)

    _operate(call, "resolve", items, act, given)


@command(
    name="release",
    examples=["lakewright manifest release people/2022-01-01.csv", "lakewright manifest release --all --yes"],
)
@items_argument
@click.option("--force", is_flag=True, help="Remove the lock even if its holder is alive.")
@operator_options
@click.pass_obj
def release(call: Call, /, items: tuple[str, ...], *, author: str, reason: str, **given: Any) -> None:
    """Remove locks whose holders have ended.

    ITEM is `ENTITY/SLICE`, a path or an id. Selected items are shown first; --yes changes them.
    """
    from lakewright.usecases.operate_items import release_item

    def act(item: str) -> Sequence[Row]:
        return release_item(call.app, item, is_forced=given["force"], author=author, reason=reason)

    _operate(call, "release", items, act, given)


@command(
    name="skip",
    examples=[
        "lakewright manifest skip people/2022-01-01.csv --reason 'sent twice'",
        "lakewright manifest skip --entity people --yes",
    ],
)
@items_argument
@click.option("--for", "application", metavar="APP", help="Only for this application; by default for all.")
@operator_options
@click.pass_obj
def skip(call: Call, /, items: tuple[str, ...], *, author: str, reason: str, **given: Any) -> None:
    """Skip items; items that waited for them continue.

    ITEM is `ENTITY/SLICE`, a path or an id. Selected items are shown first; --yes changes them.
    """
    from lakewright.usecases.operate_items import skip_item

    def act(item: str) -> Sequence[Row]:
        done = skip_item(call.app, item, application=given["application"], author=author, reason=reason)
        return _warned(call, done)

    _operate(call, "skip", items, act, given)


@command(name="unskip", examples=["lakewright manifest unskip people/2022-01-01.csv"])
@items_argument
@click.option("--for", "application", metavar="APP", help="Only for this application.")
@operator_options
@click.pass_obj
def unskip(call: Call, /, items: tuple[str, ...], *, author: str, reason: str, **given: Any) -> None:
    """Undo skips: the items are ready again, as new revisions.

    ITEM is `ENTITY/SLICE`, a path or an id. Selected items are shown first; --yes changes them.
    """
    from lakewright.usecases.operate_items import unskip_item

    def act(item: str) -> Sequence[Row]:
        done = unskip_item(call.app, item, application=given["application"], author=author, reason=reason)
        return _warned(call, done)

    _operate(call, "unskip", items, act, given)


@command(
    name="requeue",
    examples=[
        "lakewright manifest requeue people/2022-01-01.csv --reason 'file was corrected'",
        "lakewright manifest requeue people/2022-01-01.csv --cascade",
        "lakewright manifest requeue --entity people --state processed",
    ],
)
@items_argument
@click.option("--cascade", is_flag=True, help="Process later slices again as well, after this one.")
@click.option("--late", is_flag=True, help="Allow it to be applied although later slices are processed.")
@operator_options
@click.pass_obj
def requeue(call: Call, /, items: tuple[str, ...], *, author: str, reason: str, **given: Any) -> None:
    """Requeue items, so that they are processed again with the current content of their slices.

    Rows that later slices have written may then be in doubt; these slices are listed.
    ITEM is `ENTITY/SLICE`, a path or an id. Selected items are shown first; --yes changes them.
    """
    from lakewright.usecases.operate_items import requeue_items

    chosen = _chosen(call, "requeue", items, given)
    if not chosen:
        return
    cascade, late = given["cascade"], given["late"]
    requeued = requeue_items(call.app, chosen, cascade=cascade, late=late, author=author, reason=reason)
    if requeued.later:
        what = "processed again after it" if cascade else "in doubt now"
        call.output.note(f"{what}: {first_of(requeued.later, MOST_NAMED)}")
    _print(call, _warned(call, requeued))


@command(
    name="accept",
    examples=[
        "lakewright manifest accept people/2022-01-01.csv --reason 'only its time has changed'",
        "lakewright manifest accept --entity people",
        "lakewright manifest accept --all --yes --reason 'the lake was copied'",
    ],
)
@items_argument
@operator_options
@click.pass_obj
def accept(call: Call, /, items: tuple[str, ...], *, author: str, reason: str, **given: Any) -> None:
    """Accept the present content of changed slices without processing them again.

    Runs no longer report them as changed. ITEM is `ENTITY/SLICE`, a path or an id. The options select
    processed items whose slices have changed. They are shown first; --yes accepts them.
    """
    from lakewright.usecases.operate_items import accept_item

    def act(item: str) -> Sequence[Row]:
        return accept_item(call.app, item, author=author, reason=reason)

    _operate(call, "accept", items, act, given)


def _warned(call: Call, done: Operated | Requeued) -> tuple[Row, ...]:
    """Print what an operator must know of changed items, and return their rows."""
    call.output.note(*(line(Span("warning: ", "yellow"), note) for note in done.notes))
    return done.rows


def _print(call: Call, rows: Sequence[Row]) -> None:
    call.output.result(
        [row.as_json() for row in rows],
        [line(status(row.verdict.value), f" {row.item.item_id} for {row.application}") for row in rows],
    )
