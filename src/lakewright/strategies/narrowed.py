"""Columns whose declared type is narrower than that of the table, which keeps its own, or of another kind.

Values of slices are cast to the declared type first, and then to the table's. Rows that no slice changes keep
their values. A wider type of the same kind is none of them: Delta widens the table's.

Source: `processing-strategies.md`, "Common Processing Pipeline" (Cast columns); the note is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakewright.schema.types import Decimal, Scalar, Type
from lakewright.strategies.outdated import rebuild_command

if TYPE_CHECKING:
    from lakewright.lake.table_state import TableState
    from lakewright.spec.models.entity import Entity

__all__ = ["narrowed_columns", "narrowed_reasons"]

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_FLOATS = ("float", "double")
_TIMES = ("timestamp", "timestamp_ntz")
_PARSED = (*_DIGITS, *_FLOATS, *_TIMES, "boolean", "date")
"""Types that not every text has a value of."""


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
        if _is_narrower(column.type, own.type):
            effect = _effect(column.type, own.type, entity)
        elif _is_of_wider_kind(column.type, own.type):
            effect = _effect_of_wider(own.type, entity)
        else:
            continue
        declared, kept = column.type.ddl, own.type.ddl
        yield (
            f"column {column.silver!r} is declared as {declared}, but the table has {kept} and keeps it: "
            f'{effect}; declare `datatype: "{kept}"`'
        )


def _is_narrower(declared: Type, kept: Type) -> bool:
    """Return whether a type does not hold all values of another one; false where a table cannot tell."""
    new, old = _digits(declared), _digits(kept)
    if new is not None and old is not None:
        return new[0] < old[0] or new[1] < old[1]
    if kept.ddl in _FLOATS:
        return new is not None or (declared.ddl, kept.ddl) == _FLOATS
    if kept.ddl == "string":
        return isinstance(declared, Decimal) or declared.ddl in _PARSED
    return kept.ddl in _TIMES and declared.ddl == "date"


def _is_of_wider_kind(declared: Type, kept: Type) -> bool:
    """Return whether a type has values that a table's type of another kind lacks, which stays as it is."""
    new, old = declared.ddl, kept.ddl
    if old in _DIGITS or isinstance(kept, Decimal):
        has_fraction = isinstance(declared, Decimal) and declared.scale > 0 and old in _DIGITS
        return has_fraction or new in (*_FLOATS, "string")
    return old in (*_FLOATS, *_TIMES, "date") and new == "string"


def _effect_of_wider(kept: Type, entity: Entity) -> str:
    """Return what becomes of the values of new slices that the table's type lacks."""
    if entity.settings.schema_drift == "fail":
        return "each slice fails, because of `schema_drift: fail`"
    fate = "is put aside as a bad row" if entity.settings.on_bad_rows == "quarantine" else "fails its slice"
    return f"a value of a new slice that does not fit {kept.ddl} {fate}"


def _digits(kind: Type) -> tuple[int, int] | None:
    """Return the digits before and after the decimal point; None if the type has no fixed number of them."""
    if isinstance(kind, Decimal):
        return kind.precision - kind.scale, kind.scale
    digits = _DIGITS.get(kind.name) if isinstance(kind, Scalar) else None
    return None if digits is None else (digits, 0)


def _effect(declared: Type, kept: Type, entity: Entity) -> str:
    """Return what becomes of the values of new slices."""
    if entity.settings.schema_drift == "fail":
        return "each slice fails, because of `schema_drift: fail`"
    if kept.ddl in _TIMES:
        return "values of new slices lose their time of day"
    fate = "is put aside as a bad row" if entity.settings.on_bad_rows == "quarantine" else "fails its slice"
    told = f"a value of a new slice that does not fit {declared.ddl} {fate}"
    if kept.ddl == "string":
        return f"{told}, and others are stored as {declared.ddl} writes them"
    return f"{told}, and others are rounded to it" if _rounds(declared, kept) else told


def _rounds(declared: Type, kept: Type) -> bool:
    """Return whether a number with more digits than the declared type has is rounded, not refused."""
    new, old = _digits(declared), _digits(kept)
    if new is None:
        return True  # double to float
    return new[1] > 0 and (old is None or new[1] < old[1])
