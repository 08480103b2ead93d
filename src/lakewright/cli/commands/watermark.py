"""`lakewright watermark`: list, set and reset the watermarks of entities."""

from __future__ import annotations

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import names_of, operator_options
from lakewright.cli.group import LazyGroup
from lakewright.cli.page import line, table_of

TYPES = ("long", "double", "decimal", "date", "timestamp", "string")


@click.group(cls=LazyGroup)
def watermark() -> None:
    """List and set the watermarks of entities: the largest values found in slices.

    Examples:
        lakewright watermark ls
        lakewright watermark reset orders updated_at
    """


@watermark.add("ls")
def list_watermarks(call: Call, /) -> None:
    """List the last watermark of each entity and column.

    Examples:
        lakewright watermark ls -o json
    """
    from lakewright.usecases.watermarks import list_watermarks as find_watermarks

    call.accept_faults()
    rows = [standing.as_json() for standing in find_watermarks(call.app)]
    titles = {"item_id": "brought by", "author": "set by"}
    names = ("entity", "column", "value", "item_id", "author", "at", "reason")
    shown = [{titles.get(name, name): row[name] for name in names} for row in rows]
    call.output.answer(rows, [table_of(shown, "no slice has brought a watermark yet")])


@watermark.add("set")
@click.argument("entity", shell_complete=names_of("entities"))
@click.argument("column")
@click.argument("value")
@click.option(
    "--type",
    "kind",
    type=click.Choice(TYPES),
    help="Needed if there is no watermark yet.",
)
@operator_options
def set_watermark(
    call: Call, /, entity: str, column: str, value: str, *, author: str, reason: str, kind: str | None
) -> None:
    """Set the last watermark of an entity's column to VALUE, even if that is lower.

    Examples:
        lakewright watermark set orders updated_at 2022-01-01T00:00:00Z --type timestamp
    """
    from lakewright.usecases.watermarks import set_watermark as set_it

    change = set_it(call.app, entity, column, value, kind=kind, author=author, reason=reason)
    shown = change.watermark.value if change.watermark is not None else None
    call.output.result(change.as_json(), [line(f"{entity} {column} is {shown}")])


@watermark.add("reset")
@click.argument("entity", shell_complete=names_of("entities"))
@click.argument("column")
@operator_options
def reset_watermark(call: Call, /, entity: str, column: str, *, author: str, reason: str) -> None:
    """Remove the watermark of an entity's column, as if no slice had set one.

    Examples:
        lakewright watermark reset orders updated_at --reason 'the source starts again'
    """
    from lakewright.usecases.watermarks import reset_watermark as reset_it

    change = reset_it(call.app, entity, column, author=author, reason=reason)
    call.output.result(change.as_json(), [line(f"{entity} {column} is reset")])


@watermark.add("history")
@click.argument("entity", required=False, shell_complete=names_of("entities"))
def list_changes(call: Call, /, entity: str | None) -> None:
    """List who set or reset watermarks, newest first.

    Examples:
        lakewright watermark history
        lakewright watermark history orders
    """
    from lakewright.usecases.watermarks import list_watermark_changes

    call.accept_faults()
    rows = [change.as_json() for change in list_watermark_changes(call.app, entity)]
    columns = ("at", "entity", "column", "value", "before", "author", "reason")
    shown = [{name: "none" if row[name] is None else row[name] for name in columns} for row in rows]
    call.output.answer(rows, [table_of(shown, "nobody has set or reset a watermark yet")])
