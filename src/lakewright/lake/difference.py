"""How two lists of columns differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakewright.lake.columns import engine_type
from lakewright.spec.types import Field

__all__ = ["SchemaRules", "schema_differences"]


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """What counts as a difference, apart from columns that one side lacks."""

    types: bool = True
    nullability: bool = True
    case: bool = True
    order: bool = True


def schema_differences(
    actual: Sequence[Field], expected: Sequence[Field], rules: SchemaRules
) -> tuple[str, ...]:
    """Return what is different about the actual columns, one text each; none where they are as expected."""
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
