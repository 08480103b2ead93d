"""Raw values of JSON in the types in which the pipeline compares and converts them.

Lakewright's own, until the pipeline converts raw values itself: then it converts each to the declared type,
the table's or the inferred one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from lakewright.reader.json import INFERRED
from lakewright.reader.kinds import MIXED
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import Array, Decimal, MapOf, Scalar, Struct, StructField, Type
from lakewright.spec.models.entity import EXACT_DIGITS
from lakewright.spec.models.type_text import parse_sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["settled"]

_TEXT, _DOUBLE, _EXACT = Scalar("string"), Scalar("double"), Decimal(38, 18)
_WHOLE = frozenset(map(Scalar, ("tinyint", "smallint", "int", "bigint")))


def settled(frame: DataFrame, wanted: Callable[[str], Type | None], declared: Collection[str]) -> DataFrame:
    """Return raw values as texts where kinds mix, and numbers as one type for all slices.

    Args:
        frame: The raw values.
        wanted: Returns the type of a column that is known.
        declared: Names, in lower case, of columns whose types are declared.
    """
    from pyspark.sql import functions

    columns = {}
    for field in frame.schema.fields:
        raw = type_of(field.dataType)
        told = field.metadata.get(INFERRED)
        inferred = raw if told is None else parse_sql_type(told)
        target, is_declared = wanted(field.name), field.name.lower() in declared
        kind = _settled(raw, inferred, target, is_declared=is_declared)
        if kind != raw:
            columns[field.name] = functions.expr(f"cast({name_sql(field.name)} as {kind.ddl})")
    return frame.withColumns(columns) if columns else frame


def _settled(raw: Type, inferred: Type, target: Type | None, *, is_declared: bool) -> Type:
    if isinstance(raw, Struct) and isinstance(inferred, Struct):
        inside = {f.name.lower(): f.type for f in target.fields} if isinstance(target, Struct) else {}
        both = zip(raw.fields, inferred.fields, strict=True)
        return Struct(
            tuple(
                StructField(
                    own.name,
                    _settled(own.type, each.type, inside.get(own.name.lower()), is_declared=is_declared),
                )
                for own, each in both
            )
        )
    if isinstance(raw, Array) and isinstance(inferred, Array):
        element = target.element if isinstance(target, Array) else None
        return Array(_settled(raw.element, inferred.element, element, is_declared=is_declared))
    if isinstance(raw, MapOf) and isinstance(inferred, MapOf):
        value = target.value if isinstance(target, MapOf) else None
        return MapOf(raw.key, _settled(raw.value, inferred.value, value, is_declared=is_declared))
    return _simple(raw, inferred, target, is_declared=is_declared)


def _simple(raw: Type, inferred: Type, target: Type | None, *, is_declared: bool) -> Type:
    if raw == MIXED:
        return MIXED if target == MIXED else _TEXT
    if not _is_number(inferred):
        return raw
    return _number(raw, inferred, target if target and _is_number(target) else None, is_declared=is_declared)


def _is_number(kind: Type) -> bool:
    return isinstance(kind, Decimal) or kind in _WHOLE or kind in (_DOUBLE, Scalar("float"))


def _number(raw: Type, inferred: Type, target: Type | None, *, is_declared: bool) -> Type:
    """Return the type in which numbers are compared: exact ones for declared decimals."""
    if target is None or (not is_declared and target not in (_DOUBLE, Scalar("float"))):
        return inferred
    if target in _WHOLE:
        return inferred if inferred in _WHOLE else _EXACT
    if not isinstance(target, Decimal) or target.precision <= EXACT_DIGITS:
        return _DOUBLE
    scale = min(max(target.scale, 18), 38 - (target.precision - target.scale))
    return raw if raw == _TEXT else Decimal(38, scale)
