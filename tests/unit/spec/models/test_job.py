"""Parameters of jobs: values, defaults and steps."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast

import pytest

from lakewright.errors import SpecError
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import Duration
from lakewright.spec.loading.references import inherit
from lakewright.spec.models.job import Job, Parameter


@pytest.mark.parametrize(
    ("declared", "text", "value", "step"),
    [
        ({"type": "date", "granularity": "P1M"}, "2022-11-01", date(2022, 11, 1), Duration(months=1)),
        ({"type": "date", "granularity": "2"}, "2022-11-01", date(2022, 11, 1), Duration(days=2)),
        (
            {"type": "Timestamp", "granularity": "PT15M"},
            "2022-11-01T06:00",
            datetime(2022, 11, 1, 6, tzinfo=UTC),
            Duration(microseconds=900_000_000),
        ),
        ({"type": "integer", "granularity": "2"}, "7", 7, 2),
        ({"type": "float", "granularity": "0.5"}, "7", 7.0, Decimal("0.5")),
        ({"type": "duration"}, "P1D", Duration(days=1), None),
        ({}, "0100", "0100", None),
        ({"type": "boolean"}, "NO", False, None),
        ({"type": "date", "granularity": "$size"}, "2022-11-01", date(2022, 11, 1), Duration(days=3)),
    ],
)
def test_a_parameter_reads_values_and_its_step(
    declared: dict[str, str], text: str, value: Any, step: Any
) -> None:
    parameter = Parameter.model_validate({"name": "p", **declared})
    assert parameter.parse(text) == value
    assert parameter.step(Scope({"size": "P3D"})) == step


def test_a_default_may_be_an_expression() -> None:
    parameter = Parameter.model_validate({"name": "p", "type": "date", "default": "$day"})
    assert parameter.default_value(Scope({"day": date(2022, 1, 1)})) == date(2022, 1, 1)
    with pytest.raises(SpecError, match="default of parameter 'p': 'soon' is not a date"):
        parameter.default_value(Scope({"day": "soon"}))
    with pytest.raises(SpecError, match="no default"):
        Parameter(name="p").default_value(Scope())


@pytest.mark.parametrize("text", ["0", "PT0S", "P0D", "x", "PT1H"])
def test_a_step_that_leads_nowhere_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Parameter.model_validate({"name": "p", "type": "date"}).parse_step(text)


def test_jobs_outside_of_a_cycle_inherit_all_the_same() -> None:
    parents = {"a": "b", "b": "a", "c": "d", "d": "e", "e": "nobody"}
    jobs = {name: Job(name=name, extends=(parent,), targets=(name,)) for name, parent in parents.items()}
    found = inherit("job", jobs)
    assert {name: cast("Job", job).targets for name, job in found.items()} == {
        "a": ("a",),
        "b": ("b",),
        "c": ("e", "d", "c"),
        "d": ("e", "d"),
        "e": ("e",),
    }
