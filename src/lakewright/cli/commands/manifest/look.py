"""Looking at the manifest: `ls`, `show`, `stats`, `discover`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.manifest.lookup import inventory_of, known_item, listing_of
from lakewright.cli.group import command
from lakewright.cli.items import Choice, Row, choice_of, entity_application, recorded_application
from lakewright.cli.render.items import difference_page, item_page, rows_page, stats_page
from lakewright.manifest.store import Query

if TYPE_CHECKING:
    from lakewright.manifest.record import Application

__all__ = ["discover_slices", "list_items", "show_item", "stats"]


@command(
    name="ls",
    examples=[
        "lakewright manifest ls --entity regions",
        "lakewright manifest ls --state failed --state locked -o json",
        "lakewright manifest ls --stale",
    ],
)
@click.option("--state", "states", multiple=True, metavar="WORD", help="A verdict or a state, in any case.")
@click.option("--application", metavar="NAME", help="Only for this application: name, or name:instance.")
@click.option("--entity", metavar="NAME", help="Only slices of this entity.")
@click.option("--stale", is_flag=True, help="Only locks that nobody stands behind.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@click.pass_obj
def list_items(
    call: Call,
    /,
    *,
    states: tuple[str, ...],
    application: str | None,
    entity: str | None,
    stale: bool,
    limit: int | None,
) -> None:
    """List items with their verdicts: ready, locked, failed, skipped, processed, invalid."""
    choice = choice_of(states)
    only = recorded_application(call.app, application) if application else None
    if entity is not None:
        only = entity_application(call.app, entity)
    found = (
        row for row in _rows(call, _query(only, choice)) if choice.takes(row) and (row.is_stale or not stale)
    )
    rows = list(islice(found, limit))
    call.output.result([row.as_json() for row in rows], rows_page(rows, call.app.store.now()))


@command(
    name="show",
    examples=["lakewright manifest show file:///lake/bronze/regions/2022-01-01"],
)
@click.argument("item")
@click.pass_obj
def show_item(call: Call, /, item: str) -> None:
    """Show every record of one item, and what it is for each application."""
    found = known_item(call, item)
    records = call.app.store.records(found.item_id)
    rows = list(listing_of(call).rows(found))
    document = {
        "item_id": found.item_id,
        "verdicts": {str(row.application): row.verdict.value for row in rows},
        "records": [record.as_json() for record in records],
    }
    call.output.result(document, item_page(found, rows, records, call.at))


@command(
    name="stats",
    examples=["lakewright manifest stats -o json"],
)
@click.pass_obj
def stats(call: Call, /) -> None:
    """Count items by application and verdict."""
    counts: dict[str, dict[str, int]] = {}
    for (application, verdict), count in call.app.store.counts().items():
        counts.setdefault(str(application), {})[verdict.value] = count
    call.output.result(counts, stats_page(counts))


@command(
    name="discover",
    examples=["lakewright manifest discover", "lakewright manifest discover --entity regions"],
)
@click.option("--entity", "entities", multiple=True, metavar="NAME", help="Only slices of this entity.")
@click.pass_obj
def discover_slices(call: Call, /, *, entities: tuple[str, ...]) -> None:
    """Record slices that arrived in bronze, and tell where bronze and the manifest disagree."""
    project = call.app.project
    names = entities or tuple(name for name, entity in project.entities.items() if entity.enabled)
    found = inventory_of(call).differences([project.entity(name) for name in names]).as_json()
    call.output.result(found, difference_page(found, call.at))


def _rows(call: Call, query: Query) -> Iterator[Row]:
    listing = listing_of(call)
    for item in call.app.store.select(query):
        yield from listing.rows(item, query.application)


def _query(only: Application | None, choice: Choice) -> Query:
    from lakewright.manifest.store import Query

    # What is asked of both kinds can't be asked of the store at once: either is enough.
    is_single = not (choice.verdicts and choice.states)
    return Query(
        application=only,
        verdicts=choice.verdicts if is_single else frozenset(),
        states=choice.states if is_single else frozenset(),
    )
