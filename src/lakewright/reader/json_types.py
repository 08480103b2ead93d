"""Types in which Spark's reader of JSON keeps all values, and types that are inferred where none is known.

Both follow from the kinds of the values. Whole numbers are `bigint`. Other numbers are `double` if that holds
all of them exactly, and decimals otherwise. What is of several kinds is a text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakewright.reader.kinds import MIXED, NOTHING, is_nothing, merged, same_names
from lakewright.schema.types import Array, Chars, Decimal, MapOf, Scalar, Struct, StructField, Type

__all__ = ["JsonColumn", "exact_type", "json_columns", "with_doubles"]

_TEXT, _DOUBLE = Scalar("string"), Scalar("double")
_EXACT_DIGITS = 15
"""Decimal digits that a double always keeps."""
_LONG_DIGITS = range(19, 20)
"""Digits of whole numbers above `bigint`; such columns, often of unsigned numbers, get 20 digits."""


@dataclass(frozen=True, slots=True)
class JsonColumn:
    """A column of a JSON slice.

    Attributes:
        name: Its name; that of the first field if names differ only by case.
        raw: The type in which its values are read without loss; `void` if it has none.
        inferred: The type that its values have if nothing is known of it.
        sources: The fields that it is made of.
        is_known: Whether its type is declared or the table's.
        is_sure: Whether the types of all decimals in it are.
    """

    name: str
    raw: Type
    inferred: Type
    sources: tuple[StructField, ...]
    is_known: bool
    is_sure: bool = True

    @property
    def field(self) -> StructField:
        """The column as it is read."""
        return StructField(self.name, self.raw)

    @property
    def is_void(self) -> bool:
        """Whether it has no values."""
        return self.raw == NOTHING


def json_columns(kind: Struct, wanted: Callable[[str], Type | None]) -> tuple[JsonColumn, ...]:
    """Return the columns of records of a kind.

    Args:
        kind: The kind of the records.
        wanted: Returns the type that is declared for a column, or that the table's has; None without one.
    """
    with_values = {fields[0].name: fields for fields in same_names(kind)}
    taken = {field.name for fields in with_values.values() for field in fields}
    lower = {name.lower() for name in with_values}
    columns = []
    for field in kind.fields:
        target = wanted(field.name)
        if field.name in with_values:
            sources = with_values[field.name]
            raw, inferred = _types(merged(each.type for each in sources), target)
            is_sure = not _has_unknown_decimal(raw, target)
            columns.append(JsonColumn(field.name, raw, inferred, sources, target is not None, is_sure))
        elif field.name not in taken and field.name.lower() not in lower:
            lower.add(field.name.lower())
            columns.append(JsonColumn(field.name, NOTHING, NOTHING, (field,), target is not None))
    return tuple(columns)


def _types(kind: Type, target: Type | None) -> tuple[Type, Type]:
    """Return the raw type and the inferred type of what has values."""
    if target == MIXED:
        return MIXED, MIXED
    # A variant would lose digits of numbers that are kept as they are written.
    if _is_text(target) and kind not in (_TEXT, _DOUBLE):
        return MIXED, _types(kind, None)[1]
    inferred = _inferred(kind)
    if isinstance(kind, Struct):
        return _of_map(kind, target) if isinstance(target, MapOf) else _of_struct(kind, target)
    if isinstance(kind, Array):
        raw, inferred = _types(kind.element, target.element if isinstance(target, Array) else None)
        return Array(raw), Array(inferred)
    if isinstance(kind, Decimal):
        exact = Decimal(20, 0) if kind.scale == 0 and kind.precision in _LONG_DIGITS else kind
        return (_DOUBLE if kind.precision <= _EXACT_DIGITS else exact), inferred
    return (_TEXT if kind == _DOUBLE else kind), inferred


def _inferred(kind: Type) -> Type:
    if isinstance(kind, Decimal):
        return _DOUBLE
    return _TEXT if kind == MIXED else kind


def _of_struct(kind: Struct, target: Type | None) -> tuple[Type, Type]:
    inside = {f.name.lower(): f.type for f in target.fields} if isinstance(target, Struct) else {}
    raw, inferred = [], []
    for sources in same_names(kind):
        name = sources[0].name
        types = _types(merged(each.type for each in sources), inside.get(name.lower()))
        raw.append(StructField(name, types[0]))
        inferred.append(StructField(name, types[1]))
    return Struct(tuple(raw)), Struct(tuple(inferred))


def _of_map(kind: Struct, target: MapOf) -> tuple[Type, Type]:
    values = merged(field.type for field in kind.fields)
    if is_nothing(values):
        return MapOf(_TEXT, MIXED), MapOf(_TEXT, _TEXT)  # the keys are values
    raw, inferred = _types(values, target.value)
    return MapOf(_TEXT, raw), MapOf(_TEXT, inferred)


def _has_unknown_decimal(raw: Type, target: Type | None) -> bool:
    if isinstance(raw, Struct):
        inside = {f.name.lower(): f.type for f in target.fields} if isinstance(target, Struct) else {}
        return any(_has_unknown_decimal(each.type, inside.get(each.name.lower())) for each in raw.fields)
    if isinstance(raw, Array):
        return _has_unknown_decimal(raw.element, target.element if isinstance(target, Array) else None)
    if isinstance(raw, MapOf):
        return _has_unknown_decimal(raw.value, target.value if isinstance(target, MapOf) else None)
    return target is None and isinstance(raw, Decimal)


def _is_text(kind: Type | None) -> bool:
    return isinstance(kind, Chars) or (isinstance(kind, Scalar) and kind.name.startswith("string"))


def with_doubles(raw: Type) -> Type:
    """Return a raw type with doubles in place of its decimals."""
    return _DOUBLE if isinstance(raw, Decimal) else _with_parts(raw, with_doubles)


def exact_type(raw: Type, inferred: Type) -> Type:
    """Return an inferred type with the decimals of the raw one."""
    if isinstance(raw, Decimal):
        return raw
    if isinstance(raw, Struct) and isinstance(inferred, Struct):
        both = zip(raw.fields, inferred.fields, strict=True)
        return Struct(tuple(StructField(own.name, exact_type(own.type, each.type)) for own, each in both))
    if isinstance(raw, Array) and isinstance(inferred, Array):
        return Array(exact_type(raw.element, inferred.element))
    if isinstance(raw, MapOf) and isinstance(inferred, MapOf):
        return MapOf(raw.key, exact_type(raw.value, inferred.value))
    return inferred


def _with_parts(kind: Type, changed: Callable[[Type], Type]) -> Type:
    """Return a type whose parts are changed."""
    if isinstance(kind, Struct):
        return Struct(tuple(StructField(each.name, changed(each.type)) for each in kind.fields))
    if isinstance(kind, MapOf):
        return MapOf(kind.key, changed(kind.value))
    return Array(changed(kind.element)) if isinstance(kind, Array) else kind
