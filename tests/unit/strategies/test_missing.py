"""Conditions of several watermarks, joined as they are declared."""

from __future__ import annotations

import pytest

from lakewright.spec.models.watermark import Watermark
from lakewright.strategies.delete_inference import joined

JOINED = [
    ([("a", "and", 0)], "(a)"),
    ([("a", "and", 0), ("b", "and", 0)], "((a) and (b))"),
    ([("a", "or", 0), ("b", "or", 0)], "((a) or (b))"),
    ([("a", "and", 0), ("b", "or", 0), ("c", "and", 0)], "(((a) or (b)) and (c))"),
    ([("a", "and", 0), ("b", "and", 1), ("c", "or", 1)], "((a) and ((b) or (c)))"),
    ([("a", "and", 0), ("b", "or", 1), ("c", "and", 1)], "((a) or ((b) and (c)))"),
]


@pytest.mark.parametrize(("declared", "expected"), JOINED)
def test_operations_join_and_groups_bracket(declared: list[tuple[str, str, int]], expected: str) -> None:
    conditions = [
        (
            Watermark.model_validate(
                {
                    "column_name": name,
                    "expression": "${last_value}",
                    "operation": operation,
                    "operation_group": group,
                }
            ),
            name,
        )
        for name, operation, group in declared
    ]
    assert joined(conditions) == expected
