"""The window of delete inference: `processing-strategies.md`, "Delete Inference"."""

from __future__ import annotations

import pytest

from lakewright.errors import SpecError
from lakewright.spec.expressions.function import EvaluationContext
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.watermark import Watermark
from lakewright.strategies.delete_inference import join_conditions, lower_bound

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
    assert join_conditions(conditions) == expected


def test_an_expression_that_does_not_suit_the_last_value_is_named_with_entity_and_column() -> None:
    mark = Watermark(column_name="weight", expression="${Integer.valueOf(${last_value})}")
    parcels = Entity(id="1", name="parcels", connection="shop", processtype="full", watermark=(mark,))
    assert lower_bound(parcels, mark, 30, EvaluationContext()) == 30
    with pytest.raises(SpecError) as caught:
        lower_bound(parcels, mark, 30.5, EvaluationContext())
    assert caught.value.message == (
        "entity 'parcels': the expression ${Integer.valueOf(${last_value})} of the watermark 'weight' cannot "
        "be evaluated for the last value 30.5: Integer.valueOf: '30.5' is not a whole number"
    )
    assert "Correct the expression" in str(caught.value.remedy)
