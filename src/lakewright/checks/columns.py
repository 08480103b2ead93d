"""Columns that a mapping must have: the `columns` and `schema` assertions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import Field as Declared
from pydantic import field_validator

from lakewright.checks.check import MappingAssertion, check_not_empty
from lakewright.schema.diff import Change, Difference, DiffRules, Named, diff
from lakewright.schema.types import Type
from lakewright.schemas.schema import DeclaredColumns
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import Texts
from lakewright.spec.models.fields import parse_type

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


_RULE = re.compile(
    r"\s*(?P<name>`[^`]+`|\S+)\s+is\s+(?:(?P<present>present)|(?P<absent>absent)|of\s+type\s+(?P<types>.+?))\s*",
    re.IGNORECASE | re.DOTALL,
)


class ColumnsAssertion(MappingAssertion):
    """Holds if all rules hold: `x IS PRESENT`, `IS ABSENT`, `IS OF TYPE int`, `IS OF TYPE (int, bigint)`."""

    expected: Texts = Declared(description="Rules about columns; the case of names is ignored.")

    @field_validator("expected")
    @classmethod
    def _check_rules(cls, rules: tuple[str, ...]) -> tuple[str, ...]:
        check_not_empty(rules)
        for rule in rules:
            found = _RULE.fullmatch(rule)
            if found is None and not has_expression(rule):
                raise ValueError(
                    f"{rule!r} is not a rule: write `x IS PRESENT`, `IS ABSENT` or `IS OF TYPE int`"
                )
            if found is not None and found["types"] and not has_expression(rule):
                _types(found["types"])
        return rules

    def check(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the rules that do not hold."""
        present = {field.name.lower(): field.type for field in workspace.fields(self.mapping)}
        return tuple(failure for rule in self.expected if (failure := _failure(rule, present)))


def _failure(rule: str, present: dict[str, Type]) -> str | None:
    found = _RULE.fullmatch(rule)
    if found is None:
        return f"{rule!r} is not a rule"
    name = found["name"].strip("`")
    actual = present.get(name.lower())
    if found["absent"]:
        return f"column {name} exists" if actual is not None else None
    if actual is None:
        return f"column {name} does not exist"
    if found["types"] and actual not in _types(found["types"]):
        return f"column {name} is of type {actual.ddl}, not {found['types'].strip('()')}"
    return None


def _types(text: str) -> list[Type]:
    if not (text.startswith("(") and text.endswith(")")):
        return [parse_type(text)]
    # A comma inside brackets belongs to a type, as in decimal(10,2).
    parts = re.split(r",(?![^(<]*[)>])", text[1:-1])
    return [parse_type(part) for part in parts]


class SchemaAssertion(DeclaredColumns, MappingAssertion):
    """Holds if names, types, nullability and order are as declared; some differences can be ignored."""

    ignore_types: bool = Declared(default=False, description="Compare column names only.")
    ignore_nullability: bool = Declared(default=False, description="Ignore whether columns may be null.")
    ignore_case: bool = Declared(default=False, description="Ignore the case of column names.")
    ignore_order: bool = Declared(default=False, description="Ignore the order of columns.")

    def check(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the differences between the mapping's columns and the declared ones."""
        rules = DiffRules(
            types=not self.ignore_types,
            # A map of names to types says nothing about nulls.
            nullability=not (self.ignore_nullability or self.ignore_types) and self.columns is None,
            case=not self.ignore_case,
            order=not self.ignore_order,
        )
        return difference_texts(workspace.fields(self.mapping), self.fields(workspace), rules)


def difference_texts(actual: Iterable[Named], expected: Iterable[Named], rules: DiffRules) -> tuple[str, ...]:
    """Return a text for each difference of the actual columns from the expected ones."""
    return tuple(map(_text, diff(actual, expected, rules)))


def _text(difference: Difference) -> str:
    own, wanted = (None if each is None else each.ddl for each in (difference.actual, difference.expected))
    texts = {
        Change.MISSING: f"column {difference.path} is missing",
        Change.NEW: f"column {difference.path} is not expected",
        Change.RETYPED: f"column {difference.path} is of type {own}, not {wanted}",
        Change.NULLABLE: f"column {difference.path} {'may' if difference.may_be_null else 'may not'} be null",
        Change.MOVED: f"the columns are in another order: {difference.path}",
    }
    return texts[difference.change]
