"""The table of functions: each is declared once, and what can be known of a call is known before it runs."""

from __future__ import annotations

from collections import Counter

import pytest

from lakewright.spec.expressions.expression import Access, Name, parse_expression
from lakewright.spec.expressions.functions import ALONE, FUNCTIONS, NAMESPACES, VALUES
from lakewright.spec.expressions.scope import call_problem


def test_each_function_is_declared_once() -> None:
    declared = Counter((each.receiver, each.name) for each in FUNCTIONS)
    assert set(declared.values()) == {1}
    assert {each.receiver for each in FUNCTIONS} == {ALONE, *VALUES, *NAMESPACES}


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("LocalDate.addDays(last_value, -3)", False),
        ("LocalDate.addDays(last_value, '3')", False),
        ("LocalDate.addDays('2024-02-30', last_value)", True),
        ("LocalDate.addDays(last_value, 'three')", True),
        ("LocalDate.addDays(last_value)", True),
        ("LocalDate.addDay(last_value, 1)", True),
        ("last_value.plus('P1D')", False),
        ("last_value.plus('1 day')", True),
        ("last_value.plusDays(1, 2)", True),
        ("last_value.substring(1)", False),
        ("last_value.exit()", True),
    ],
)
def test_a_call_that_always_fails_is_known_before_it_runs(text: str, is_wrong: bool) -> None:
    node = parse_expression(text)
    assert isinstance(node, Access)
    assert isinstance(node.target, Name)
    helper = node.target.name if node.target.name in NAMESPACES else None
    assert (call_problem(helper, node.member, node.arguments or ()) is not None) is is_wrong
