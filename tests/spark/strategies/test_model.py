"""The strategies compared with a model in plain Python, on slices that nobody chose."""

from __future__ import annotations

import itertools
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.model.strategies import Model, Record, Row
from tests.spark.strategies.bench import SmallLake, counts_of, entity, hours, pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = [
    ("id", pa.int64()),
    ("name", pa.string()),
    ("size", pa.float64()),
    ("part", pa.string()),
    ("mark", pa.int32()),
    ("dlf_deleted", pa.bool_()),
]
NUMBERS = itertools.count()

# More of them find more: LAKEWRIGHT_EXAMPLES=200 is for a night.
EXAMPLES = int(os.environ.get("LAKEWRIGHT_EXAMPLES", "12"))

VALUES = st.tuples(
    st.sampled_from([None, "", "a", "b"]),
    st.sampled_from([None, 0.0, 1.5]),
    st.sampled_from([None, "p", "q"]),
)
RECORDS = st.builds(
    Record,
    key=st.integers(0, 30),
    values=VALUES,
    mark=st.one_of(st.none(), st.integers(0, 9)),
    deleted=st.sampled_from([None, False, False, True]),
)
SLICES = st.lists(RECORDS, max_size=25, unique_by=lambda record: record.key)


def declared(strategy: str, *, is_partitioned: bool, **more: Any) -> dict[str, Any]:
    part = [{"name": "part", "fieldroles": ["partition"]}] if is_partitioned else []
    return {
        "processtype": strategy,
        "name": f"model{next(NUMBERS)}",
        "columns": [{"name": "id", "fieldroles": ["businesskey"]}, *part],
        **more,
    }


def as_rows(records: list[Record]) -> list[dict[str, Any]]:
    return [
        {
            "id": record.key,
            "name": record.values[0],
            "size": record.values[1],
            "part": record.values[2],
            "mark": record.mark,
            "dlf_deleted": record.deleted,
        }
        for record in records
    ]


def as_tuple(row: Row, *, is_historic: bool) -> tuple[Any, ...]:
    times = (row.valid_from, row.valid_to, row.is_current) if is_historic else ()
    return (row.key, *row.values, row.mark, row.deleted, row.seen, *times)


@pytest.mark.parametrize("strategy", ["merge", "historic"])
@settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(
    slices=st.lists(SLICES, min_size=2, max_size=4),
    scope=st.sampled_from([None, "closed", "open", "full"]),
    last_seen=st.sampled_from(["column", "on_change"]),
    is_partitioned=st.booleans(),
)
def test_table_and_metrics_are_those_of_the_model(
    *,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    strategy: str,
    slices: list[list[Record]],
    scope: str | None,
    last_seen: str,
    is_partitioned: bool,
) -> None:
    """`processing-strategies.md`, "Merge Strategy" and "Historic Strategy": behaviour and metrics."""
    lake = SmallLake(spark, Path(tmp_path_factory.mktemp("lake")))
    inference = {} if scope is None else {"delete_missing": True, "delete_scope": scope}
    watermark = [{"column_name": "mark", "operation": "and", "expression": "'${last_value}'"}]
    things = entity(
        **declared(strategy, is_partitioned=is_partitioned),
        watermark=watermark,
        settings={"last_seen": last_seen, **inference},
    )
    model = Model(scope=scope, last_seen=last_seen)
    for number, records in enumerate(slices, start=1):
        at = 10 * number
        expected = getattr(model, strategy)(records, at)
        found = lake.load(
            things, f"s{number}", as_rows(records), SCHEMA, processing_time=hours(at).isoformat()
        )
        assert counts_of(found) == asdict(expected)
    check_rows(lake, things, model, is_historic=strategy == "historic")


@settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(slices=st.lists(SLICES.filter(bool), min_size=2, max_size=3))
def test_full_leaves_the_rows_of_the_last_slice(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, slices: list[list[Record]]
) -> None:
    """`processing-strategies.md`, "Full Strategy": a complete overwrite."""
    lake = SmallLake(spark, Path(tmp_path_factory.mktemp("lake")))
    things = entity(**declared("full", is_partitioned=False))
    model = Model()
    for number, records in enumerate(slices, start=1):
        at = 10 * number
        expected = model.full(records, at)
        found = lake.load(
            things, f"s{number}", as_rows(records), SCHEMA, processing_time=hours(at).isoformat()
        )
        assert counts_of(found) == asdict(expected)
    check_rows(lake, things, model, is_historic=False)


def check_rows(lake: SmallLake, things: Any, model: Model, *, is_historic: bool) -> None:
    columns = ["id", "name", "size", "part", "mark", "dlf_deleted", "dlf_lastSeen"]
    times = ["dlf_ValidFrom", "dlf_ValidTo", "dlf_IsCurrent"] if is_historic else []
    model_rows = [as_tuple(row, is_historic=is_historic) for row in model.rows]
    found = lake.rows(things, *columns, *times)
    assert sorted(map(plain, found)) == sorted(map(plain, model_rows))


def plain(row: tuple[Any, ...]) -> tuple[str, ...]:
    """The row with all numbers written alike, in a form that sorts."""
    return tuple(
        str(float(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else repr(value)
        for value in row
    )
