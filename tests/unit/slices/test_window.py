"""Where delete inference's window begins: `processing-strategies.md`, "Delete Inference"."""

from __future__ import annotations

import pytest

from lakewright.errors import SpecError
from lakewright.spec.expressions.function import EvaluationContext
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.watermark import Watermark
from lakewright.strategies.delete_inference import lower_bound


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
