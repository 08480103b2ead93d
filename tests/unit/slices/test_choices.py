"""What is named for late and for changed slices is one decision, which a plan offers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lakewright.due.facts import Effect
from lakewright.slices.deviations import changed_advice, effect_of, late_advice, late_error
from lakewright.slices.discovery import natural_key
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.entity_settings import EntitySettings

ORDERED = {"sequence_by": "changed_at"}


def entity(*partitions: str, **settings: Any) -> Any:
    return SimpleNamespace(
        called="stock", partition_columns=partitions, settings=EntitySettings.model_validate(settings)
    )


@pytest.mark.parametrize(
    ("strategy", "declared", "counts"),
    [
        (Strategy.FULL, entity(), False),
        (Strategy.FULL, entity("day"), True),
        (Strategy.MERGE, entity(), True),
        (Strategy.MERGE, entity(**ORDERED), False),
        (Strategy.MERGE, entity(**ORDERED, delete_missing=True, delete_scope="full"), True),
        (Strategy.MERGE, entity(**ORDERED, delete_missing=True, delete_scope="closed"), False),
        (Strategy.HISTORIC, entity(**ORDERED), True),
    ],
)
def test_a_decision_is_named_only_where_the_order_of_slices_counts(
    strategy: Strategy, declared: Any, counts: bool
) -> None:
    assert (effect_of(declared, strategy) is Effect.IN_ORDER) is counts
    remedy = late_advice(declared, strategy, "a")
    assert ("`lakewright decide stock/a place`, then `lakewright apply`" in remedy) is counts
    assert remedy.startswith("`lakewright apply`") is not counts


def test_the_error_of_a_late_slice_names_the_later_one() -> None:
    error = late_error(entity(), Strategy.MERGE, "2024-05-02", natural_key("2024-05-10"))
    assert error.message == "the slice 2024-05-02 is older than 2024-05-10, which is already processed"
    assert error.details == {"slice": "2024-05-02", "after": "2024-05-10"}


def test_what_the_entity_has_decided_is_not_asked() -> None:
    asked = "Choose `take` or `keep`: `lakewright decide stock/a take`, then `lakewright apply`."
    assert changed_advice(entity(), "a") == asked
    assert changed_advice(entity(changed_slices="take"), "a") == "`lakewright apply` takes it."
