"""Names whose values a reader gives: those that the project knows, and slips of them."""

from __future__ import annotations

import logging
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pandas as pd
import pytest

from lakewright.api.arguments import Range, values_of
from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.spec.expressions.values import ValueType
from lakewright.usecases.reading import _workspace, check_query, instant_of, partition_texts

MODEL = """
environment: [region=north]
mappings:
  items: {kind: values, columns: {n: int}, records: [[1]]}
  large: {kind: filter, input: items, condition: "n >= ${least} AND n < ${most + 1}"}
jobs:
  daily: {parameters: [{name: day, type: date}], environment: [least=10], targets: []}
"""


@pytest.fixture
def app(tmp_path: Path) -> App:
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\n")
    (tmp_path / "m.yml").write_text(MODEL)
    return App.open(tmp_path, environ={})


@pytest.mark.parametrize("name", ["least", "day", "region", "most"])
def test_a_name_that_a_declaration_has_or_uses_is_taken(
    app: App, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert _workspace(app, {name: 5}).scope.value(name) == 5
    assert not caplog.records


def test_a_slip_is_refused_and_what_nothing_shows_is_warned_of(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    """`read(leest=10)` gave the rows of the declared value."""
    with pytest.raises(UsageError, match="no declaration of the project uses the name 'leest'") as refused:
        _workspace(app, {"leest": 10})
    assert refused.value.remedy == "did you mean 'least'?"
    with caplog.at_level(logging.WARNING):
        _workspace(app, {"zzz": 10})
    assert "uses the name 'zzz'; its value may have no effect" in caplog.text


@pytest.mark.parametrize("value", [[1, 2], {1}, (date(2024, 5, 1),), {"a": 1}])
def test_several_values_of_a_name_are_refused(app: App, value: object) -> None:
    """The text of the list stood in the SQL."""
    with pytest.raises(UsageError, match="has several values, but each name has one"):
        _workspace(app, {"day": value})


@pytest.mark.parametrize(
    "value", [Range(date(2024, 5, 1), date(2024, 5, 2)), pd.date_range("2024-05-01", periods=2)]
)
def test_a_range_of_values_of_a_name_is_refused_as_several(app: App, value: object) -> None:
    """The remedy offered a Range, and a list."""
    with pytest.raises(UsageError, match="has several values, but each name has one"):
        values_of(app.project.jobs.values(), app.project.scope, {"day": value})


def test_a_time_of_day_is_refused_for_a_partition_column_of_type_date() -> None:
    day, noon = datetime(2024, 5, 1), datetime(2024, 5, 1, 12)
    assert partition_texts("day", [day], ValueType.DATE) == ("2024-05-01T00:00",)
    assert partition_texts("at", noon, ValueType.TIMESTAMP) == ("2024-05-01T12:00",)
    with pytest.raises(UsageError, match=r"partition column day is of type date, and .* has a time of day"):
        partition_texts("day", [day, noon], ValueType.DATE)


@pytest.mark.parametrize("text", ["DROP TABLE a", "-- all\n insert into a select 1", "/* x */vacuum a"])
def test_what_writes_is_no_query(text: str) -> None:
    with pytest.raises(UsageError, match=r"a query only reads, and (DROP|INSERT|VACUUM) does not begin one"):
        check_query(text)


@pytest.mark.parametrize("text", ["", " \n ;"])
def test_an_empty_query_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="the query is empty"):
        check_query(text)


@pytest.mark.parametrize(
    "text", ["SELECT 1", "(select 1)", "drops", "SHOW TABLES", "with a as (select 1) from a"]
)
def test_queries_may_begin_in_many_ways(text: str) -> None:
    check_query(text)


@pytest.mark.parametrize("as_of", [pd.NaT, datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "soon"])
def test_what_is_no_time_is_refused_with_what_to_give(app: App, as_of: object) -> None:
    """pandas and Python refused them in words of their own."""
    with pytest.raises(UsageError, match=r"^as_of="):
        instant_of(app, as_of)
