"""Watermarks: how far an entity's slices were processed, and where the next window starts.

Source: `processing-strategies.md`, "Merge Strategy", Configuration; Datalake Foundation's watermarks.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Any

from pydantic import Field, field_validator

from lakewright.errors import SpecError
from lakewright.spec.expressions.expression import (
    Access,
    Literal,
    Name,
    Node,
    Template,
    names_in,
    parse_expression,
    parts_of,
)
from lakewright.spec.expressions.functions import NAMESPACES, EvaluationContext
from lakewright.spec.expressions.scope import Scope, call_problem
from lakewright.spec.models.base import Lower, SnakeModel, inconsistent

LAST_VALUES = ("last_value", "watermark")
"""Names by which an expression refers to the last value."""

_EXCLUDED_HELPERS = frozenset(("System", "File", "JSON"))


class Operation(StrEnum):
    """How the conditions of several watermarks are combined."""

    AND = "and"
    OR = "or"


_ALLOWED = "only ${last_value} and calls of date helpers are allowed"


class Watermark(SnakeModel):
    """One watermark column of an entity."""

    column_name: str = Field(min_length=1, description="Its name in the source, or its new name.")
    operation: Lower[Operation] = Field(
        default=Operation.AND, description="How its condition is combined with the previous ones."
    )
    operation_group: int = Field(
        default=0,
        description="Consecutive watermarks of one group are in parentheses.",
    )
    expression: str = Field(
        description="Lower end of the next window, such as ${LocalDate.addDays(${last_value}, -3)}."
    )

    @field_validator("expression")
    @classmethod
    def _allowed(cls, text: str) -> str:
        try:
            node = parse_expression(text)
        except SpecError as error:
            raise inconsistent(f"{error.message}; {_ALLOWED}") from None
        if why := _problem(node):
            raise inconsistent(f"{text!r} {why}; {_ALLOWED}")
        return text

    @cached_property
    def node(self) -> Node:
        """The parsed expression. Its names are those of the last value and of helpers."""
        return parse_expression(self.expression)

    def lower_end(self, last_value: Any, context: EvaluationContext | None = None) -> object:
        """Return the lower end of the window after `last_value`, as a typed value, never as SQL text.

        Raises:
            SpecError: A helper cannot process the last value.
        """
        names = dict.fromkeys(LAST_VALUES, last_value)
        return Scope(names, context=context).evaluate_node(self.node)


def _problem(node: Node) -> str | None:
    unknown = sorted(names_in(node) - set(LAST_VALUES) - (set(NAMESPACES) - _EXCLUDED_HELPERS))
    if unknown:
        return f"uses {unknown[0]!r}"
    if isinstance(node, (Literal, Template)):
        return "is text, not an expression"
    if isinstance(node, Name) and node.name not in LAST_VALUES:
        return "is not a value"
    if isinstance(node, Access) and node.arguments is None:
        return f"uses the property {node.member!r}"
    if isinstance(node, Access) and node.target is None:
        return f"uses the function {node.member!r}"
    why = _call_problem(node)
    return why and f"cannot be evaluated: {why}"


def _call_problem(node: Node) -> str | None:
    """Return why a call in an expression fails for every last value, or None."""
    if isinstance(node, Access) and node.arguments is not None:
        helper = node.target.name if isinstance(node.target, Name) else None
        known = helper if helper in NAMESPACES else None
        if why := call_problem(known, node.member, node.arguments):
            return why
    return next(filter(None, map(_call_problem, parts_of(node))), None)
