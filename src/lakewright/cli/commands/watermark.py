"""`lakewright watermark`: up to which values slices were processed."""

from __future__ import annotations

import getpass
from typing import Any

import click

from lakewright.cli.call import Call
from lakewright.cli.group import LazyGroup
from lakewright.cli.items import entity_application
from lakewright.cli.page import Table, line
from lakewright.errors import UsageError
from lakewright.manifest.watermark import Standing, Watermark, Watermarks

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
        ("entity", "column", "value", "brought by", "set by"),
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
    "--author", metavar="NAME", default=getpass.getuser, show_default="your user name", help="Who did it."
)
@click.option("--type", "kind", type=click.Choice(TYPES), help="Needed where there is no watermark yet.")
@click.pass_obj
def set_watermark(
    call: Call, /, entity: str, column: str, value: str, *, author: str, kind: str | None
) -> None:
    """Make VALUE the last watermark of an entity's column, also where that is a step back."""
    application = entity_application(call.app, entity)
    watermarks = Watermarks(call.app.store)
    present = watermarks.last(application).get(column)
    if kind is None and present is None:
        raise UsageError(
            f"{entity} has no watermark of {column} yet, so its type isn't known",
            remedy=f"Give --type: {', '.join(TYPES)}.",
        )
    made = Watermark.of(Watermark(kind or (present.type if present else ""), value).python)
    watermarks.set(application, column, made, author=author)
    row = _row(Standing(application, column, made, None, author))
    call.output.result(row, [line(f"{entity} {column} is {made.value}")])


@watermark.add(name="reset", examples=["lakewright watermark reset orders updated_at"])
@click.argument("entity")
@click.argument("column")
@click.pass_obj
def reset_watermark(call: Call, /, entity: str, column: str) -> None:
    """Forget the watermark of an entity's column, as if no slice had brought one."""
    application = entity_application(call.app, entity)
    watermarks = Watermarks(call.app.store)
    known = watermarks.last(application)
    if column not in known:
        there = ", ".join(known) or "none"
        raise UsageError(f"{entity} has no watermark of {column}", remedy=f"It has: {there}.")
    watermarks.reset(application, column)
    call.output.result(
        {"entity": entity, "column": column, "value": None}, [line(f"{entity} {column} is forgotten")]
    )


def _row(standing: Standing) -> dict[str, Any]:
    return {
        "entity": standing.application.name.rpartition("/")[2],
        "column": standing.column,
        "value": standing.watermark.value,
        "item_id": standing.item_id,
        "author": standing.author,
    }
