"""Differences between two lists of columns, and between two types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakewright.lake.columns import engine_type
from lakewright.schema.types import Array, Decimal, MapOf, Scalar, Struct, Type
from lakewright.spec.models.fields import Field

__all__ = ["SchemaRules", "fits", "schema_differences"]


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """The aspects of columns that count as differences. A column that only one side has always counts."""

    types: bool = True
    nullability: bool = True
    case: bool = True
    order: bool = True


def schema_differences(
    actual: Sequence[Field], expected: Sequence[Field], rules: SchemaRules
) -> tuple[str, ...]:
    """Return a text for each difference of the actual columns from the expected ones."""
    present = {_key(field, rules): field for field in actual}
    wanted = {_key(field, rules): field for field in expected}
    found = [f"column {wanted[key].name} is missing" for key in wanted if key not in present]
    found += [f"column {present[key].name} is not expected" for key in present if key not in wanted]
    for key, field in wanted.items():
        if key in present:
            found += _differences(present[key], field, rules)
    if rules.order and not found and list(present) != list(wanted):
        names = ", ".join(field.name for field in actual)
        found.append(f"the columns are in another order: {names}")
    return tuple(found)


def _key(field: Field, rules: SchemaRules) -> str:
    return field.name if rules.case else field.name.lower()


def _differences(actual: Field, expected: Field, rules: SchemaRules) -> list[str]:
    found = []
    if rules.types and engine_type(actual.type) != engine_type(expected.type):
        found.append(f"column {actual.name} is of type {actual.type.ddl}, not {expected.type.ddl}")
    if rules.nullability and actual.nullable != expected.nullable:
        found.append(f"column {actual.name} {'may' if actual.nullable else 'may not'} be null")
    return found


def fits(narrow: Type, wide: Type) -> bool:
    """Return whether a type can hold every value of a narrower one without loss.

    Example:
        >>> fits(Scalar("int"), Scalar("bigint")), fits(Scalar("bigint"), Scalar("int"))
        (True, False)
    """
    narrow, wide = engine_type(narrow), engine_type(wide)
    if narrow == wide:
        return True
    if isinstance(narrow, Array) and isinstance(wide, Array):
        return fits(narrow.element, wide.element)
    if isinstance(narrow, MapOf) and isinstance(wide, MapOf):
        return fits(narrow.key, wide.key) and fits(narrow.value, wide.value)
    if isinstance(narrow, Struct) and isinstance(wide, Struct):
        return _struct_fits(narrow, wide)
    return _scalar_fits(narrow, wide)


_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_ALSO_FIT = {
    ("tinyint", "double"),
    ("smallint", "double"),
    ("int", "double"),
    ("float", "double"),
    ("date", "timestamp_ntz"),
}


def _scalar_fits(narrow: Type, wide: Type) -> bool:
    if isinstance(wide, Decimal):
        whole = wide.precision - wide.scale
        if isinstance(narrow, Decimal):
            return whole >= narrow.precision - narrow.scale and wide.scale >= narrow.scale
        return isinstance(narrow, Scalar) and whole >= _DIGITS.get(narrow.name, whole + 1)
    if not isinstance(narrow, Scalar) or not isinstance(wide, Scalar):
        return False
    if (narrow.name, wide.name) in _ALSO_FIT:
        return True
    return narrow.name in _DIGITS and _DIGITS[narrow.name] < _DIGITS.get(wide.name, 0)


def _struct_fits(narrow: Struct, wide: Struct) -> bool:
    theirs = {field.name.lower(): field.type for field in wide.fields}
    return all(
        field.name.lower() in theirs and fits(field.type, theirs[field.name.lower()])
        for field in narrow.fields
    )
