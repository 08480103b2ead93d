"""Columns that the table keeps in another type than the declared one.

Values of slices are converted to the declared type first, and then to the table's. Rows that no slice changes
keep their values. A wider type of the same kind is none of them: Delta widens the table's.

Source: `processing-strategies.md`, "Common Processing Pipeline" (Cast columns); the note is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakewright.schema.convert import convert
from lakewright.schema.fits import widened
from lakewright.schema.shape import plain_type
from lakewright.schema.types import Type
from lakewright.strategies.outdated import rebuild_command

if TYPE_CHECKING:
    from lakewright.lake.table_state import TableState
    from lakewright.spec.models.entity import Entity

__all__ = ["narrowed_columns", "narrowed_reasons"]


def narrowed_columns(state: TableState, entity: Entity) -> tuple[str, ...]:
    """Return for each column with another type than the table keeps what happens, and what to type."""
    otherwise = f", or build the table again with `{rebuild_command(entity)}`"
    return tuple(f"{reason}{otherwise}" for reason in narrowed_reasons(state, entity))


def narrowed_reasons(state: TableState, entity: Entity) -> Iterator[str]:
    """Yield for each column with another type than the table keeps what happens, and what to declare."""
    for column in entity.columns:
        own = state.column(column.silver)
        if own is None or column.type is None:
            continue
        wanted = plain_type(column.type)  # tables have no texts of bounded length
        if widened(own.type, wanted) == wanted:
            continue
        if _may_fail(own.type, wanted):
            lost = wanted
        elif _may_fail(wanted, own.type):
            lost = own.type
        else:
            continue
        declared, kept = column.type.ddl, own.type.ddl
        yield (
            f"column {column.silver!r} is declared as {declared}, but the table has {kept} and keeps it: "
            f'{_effect(lost, entity)}; declare `datatype: "{kept}"`'
        )


def _may_fail(source: Type, target: Type) -> bool:
    """Return whether a type has values that another one lacks."""
    return convert("v", source, target, column="v").fault is not None


def _effect(lost: Type, entity: Entity) -> str:
    """Return what becomes of values of new slices that do not fit a type."""
    if entity.settings.schema_drift == "fail":
        return "each slice fails, because of `schema_drift: fail`"
    fate = "is put aside as a bad row" if entity.settings.on_bad_rows == "quarantine" else "fails its slice"
    return f"a value of a new slice that does not fit {lost.ddl} {fate}"
