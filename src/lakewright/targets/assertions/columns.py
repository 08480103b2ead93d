"""The `columns` assertion: checks that columns exist, do not exist, or have a type."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field as Declared
from pydantic import field_validator

from lakewright.schema.types import Type
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import Texts
from lakewright.spec.models.fields import parse_type
from lakewright.targets.assertions.assertion import MappingAssertion, Verdict, check_not_empty

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["ColumnsAssertion"]

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

    def check(self, workspace: Workspace) -> Verdict:
        """Return the rules that do not hold."""
        present = {field.name.lower(): field.type for field in workspace.fields(self.mapping)}
        return Verdict(tuple(failure for rule in self.expected if (failure := _failure(rule, present))))


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
