"""`lakewright watermark`: up to which values slices were processed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.manifest.lookup import ledger_of
from lakewright.cli.commands.manifest.verbs import operator
from lakewright.cli.group import LazyGroup
from lakewright.cli.items import entity_application
from lakewright.cli.page import Table, line
from lakewright.errors import UsageError
from lakewright.manifest.record import format_instant
from lakewright.manifest.watermark import Watermark
from lakewright.manifest.watermarks import StoredWatermark, WatermarkChange, Watermarks

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity

__all__ = ["watermark"]

TYPES = ("long", "double", "decimal", "date", "timestamp", "string")


@click.group(
    cls=LazyGroup,
    examples=["lakewright watermark ls", "lakewright watermark reset orders updated_at"],
)
def watermark() -> None:
    """See and set the watermarks of entities: the largest values that slices have brought."""


@watermark.add(name="ls", examples=["lakewright watermark ls -o json"])
@click.pass_obj
def list_watermarks(call: Call, /) -> None:
    """List the last watermark of each entity and column."""
    standings = list(Watermarks(call.app.store).all())
    rows = [_row(standing) for standing in standings]
    table = Table(
        ("entity", "column", "value", "brought by", "set by", "at", "reason"),
        tuple(tuple(line(str(value or "")) for value in row.values()) for row in rows),
    )
    call.output.result(rows, [table if rows else line("no slice has brought a watermark yet")])


@watermark.add(
    name="set", examples=["lakewright watermark set orders updated_at 2022-01-01T00:00:00Z --type timestamp"]
)
@click.argument("entity")
@click.argument("column")
@click.argument("value")
@click.option(
    "--type",
    "kind",
    type=click.Choice(TYPES),
    help="Needed where there is no watermark yet; else what that one has.",
)
@operator
@click.pass_obj
def set_watermark(
    call: Call, /, entity: str, column: str, value: str, *, author: str, reason: str, kind: str | None
) -> None:
    """Make VALUE the last watermark of an entity's column, also where that is a step back."""
    application = entity_application(call.app, entity)
    _refuse_undeclared(call.app.project.entity(entity), column)
    present = Watermarks(call.app.store).last(application).get(column)
    made = Watermark.of(Watermark(_type(entity, column, present, kind), value).python)
    change = ledger_of(call, author).set_watermark(application, column, made, reason)
    call.output.result(_change_row(change), [line(f"{entity} {column} is {made.value}")])


@watermark.add(
    name="reset", examples=["lakewright watermark reset orders updated_at --reason 'the source starts anew'"]
)
@click.argument("entity")
@click.argument("column")
@operator
@click.pass_obj
def reset_watermark(call: Call, /, entity: str, column: str, *, author: str, reason: str) -> None:
    """Forget the watermark of an entity's column, as if no slice had brought one."""
    application = entity_application(call.app, entity)
    known = Watermarks(call.app.store).last(application)
    if column not in known:
        there = ", ".join(known) or "none"
        raise UsageError(f"{entity} has no watermark of {column}", remedy=f"It has: {there}.")
    change = ledger_of(call, author).set_watermark(application, column, None, reason)
    call.output.result(_change_row(change), [line(f"{entity} {column} is forgotten")])


@watermark.add(
    name="history", examples=["lakewright watermark history", "lakewright watermark history orders"]
)
@click.argument("entity", required=False)
@click.pass_obj
def list_changes(call: Call, /, entity: str | None) -> None:
    """List who set or reset watermarks, newest first, with the reason and the value before."""
    only = None if entity is None else entity_application(call.app, entity)
    changes = Watermarks(call.app.store).changes()
    rows = [_change_row(change) for change in changes if only is None or change.application == only]
    columns = ("at", "entity", "column", "value", "before", "author", "reason")
    table = Table(columns, tuple(tuple(line(_shown(row[name])) for name in columns) for row in rows))
    call.output.result(rows, [table if rows else line("nobody has set or reset a watermark yet")])


def _type(entity: str, column: str, present: Watermark | None, wanted: str | None) -> str:
    """Return the type of a new last value: that of the present one, or where there is none the wanted one."""
    if wanted is not None and present is not None and wanted != present.type:
        reset = f"`lakewright watermark reset {entity} {shlex.quote(column)}`"
        raise UsageError(
            f"the watermark {column!r} of {entity} is a {present.type}, not a {wanted}",
            remedy=f"Leave --type out. If the column's type has changed, {reset} first.",
        )
    found = wanted if present is None else present.type
    if found is None:
        raise UsageError(
            f"{entity} has no watermark of {column} yet, so its type isn't known",
            remedy=f"Give --type: {', '.join(TYPES)}.",
        )
    return found


def _refuse_undeclared(entity: Entity, column: str) -> None:
    """Return where an entity declares a watermark by this name; by another one nothing would read it."""
    declared = [mark.column_name for mark in entity.watermarks]
    if column in declared:
        return
    meant = [name for name in declared if column.lower() in (name.lower(), entity.silver_name(name).lower())]
    if meant:
        remedy = f"It declares that one as {meant[0]!r}: give that name."
    elif declared:
        remedy = f"It declares {', '.join(declared)}."
    else:
        remedy = "It declares none: add it to the entity's `watermark` first."
    raise UsageError(f"{entity.name} has no watermark {column!r}", remedy=remedy)


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def _change_row(change: WatermarkChange) -> dict[str, Any]:
    return {
        "at": format_instant(change.at),
        "entity": change.application.name.rpartition("/")[2],
        "column": change.column,
        "value": None if change.watermark is None else change.watermark.value,
        "before": None if change.before is None else change.before.value,
        "author": change.author,
        "reason": change.reason,
    }


def _row(standing: StoredWatermark) -> dict[str, Any]:
    return {
        "entity": standing.application.name.rpartition("/")[2],
        "column": standing.column,
        "value": standing.watermark.value,
        "item_id": standing.item_id,
        "author": standing.author,
        "at": None if standing.at is None else format_instant(standing.at),
        "reason": standing.reason,
    }
