"""The window of delete inference: `processing-strategies.md`, "Delete Inference"."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from lakewright.errors import SpecError
from lakewright.slices.slice_commit import load_warnings
from lakewright.spec.expressions.functions import EvaluationContext
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.spec.models.watermark import Watermark
from lakewright.strategies.delete_inference import empty_slice_warning, join_conditions, lower_bound

NOW = datetime(2024, 5, 1, tzinfo=UTC)

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


@pytest.mark.parametrize(
    ("strategy", "scope", "records", "is_first", "is_told"),
    [
        (Strategy.MERGE, "full", 0, False, True),
        (Strategy.HISTORIC, "full", 0, False, True),
        (Strategy.FULL, "full", 0, False, False),  # has its own rule, `allow_empty`
        (Strategy.MERGE, "full", 1, False, False),
        (Strategy.MERGE, "full", 0, True, False),  # the table has nothing to delete
        (Strategy.MERGE, "closed", 0, False, False),  # nothing changed since the last watermark
        (Strategy.MERGE, None, 0, False, False),
    ],
)
def test_a_slice_without_rows_that_should_tell_all_records_is_told_to_delete_none(
    strategy: Strategy, scope: str | None, records: int, is_first: bool, is_told: bool
) -> None:
    settings = {} if scope is None else {"delete_missing": True, "delete_scope": scope}
    parcels = Entity.model_validate(
        {"id": "1", "name": "parcels", "connection": "shop", "processtype": "full", "settings": settings}
    )
    found = empty_slice_warning(parcels, strategy, records=records, is_first=is_first)
    assert (found is not None) is is_told
    if found is not None:
        assert found.startswith("the slice has no rows, so no deletes are inferred")


@pytest.mark.parametrize(
    ("records", "is_late", "starts"),
    [
        (2, True, ["the slice is late: with delete_scope: full, a late slice also deletes"]),
        (2, False, []),
        (0, True, ["the slice has no rows, so no deletes are inferred"]),
    ],
)
def test_the_report_says_what_a_late_slice_does_to_records_that_it_lacks(
    records: int, is_late: bool, starts: list[str]
) -> None:
    settings = {"delete_missing": True, "delete_scope": "full"}
    parcels = Entity.model_validate(
        {"id": "1", "name": "parcels", "connection": "shop", "processtype": "full", "settings": settings}
    )
    context: Any = SimpleNamespace(clock=lambda: NOW)
    request = SimpleNamespace(is_late=is_late, at=NOW, strategy=Strategy.MERGE)
    load: Any = SimpleNamespace(bad_rows=[], drift=None, request=request)
    summary: Any = SimpleNamespace(records_in_slice=records, is_first=False)
    told = load_warnings(context, parcels, load, summary)
    assert [text[: len(start)] for text, start in zip(told, starts, strict=True)] == starts
