"""What doesn't grow: files read with history and partitions, and work with columns.

Headings are those of `processing-strategies.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, hours

from lakewright.strategies import tuning
from lakewright.targets.entity.maintenance import maintain

KEY = {"name": "id", "fieldroles": ["businesskey"]}
METRIC = "number of files read"
ADAPTIVE = "spark.sql.adaptive.enabled"
INDEXES = ("PreparedDeltaFileIndex", "TahoeBatchFileIndex", "TahoeLogFileIndex")


@contextmanager
def files_read(lake: SmallLake) -> Iterator[list[int]]:
    """Give the number of files that each scan of a Delta table reads in the body."""
    spark: Any = lake.spark
    store = spark._jsparkSession.sharedState().statusStore()
    bus = spark.sparkContext._jsc.sc().listenerBus()
    bus.waitUntilEmpty()
    last = next(map(_id, _newest_first(store)), -1)
    found: list[int] = []
    yield found
    bus.waitUntilEmpty()
    for execution in takewhile(lambda execution: _id(execution) > last, _newest_first(store)):
        found += _of_scans(store.planGraph(_id(execution)), store.executionMetrics(_id(execution)))


def _newest_first(store: Any) -> Iterator[Any]:
    executions = store.executionsList()
    return map(executions.apply, reversed(range(executions.size())))


def _id(execution: Any) -> int:
    return int(execution.executionId())


def _of_scans(graph: Any, values: Any) -> Iterator[int]:
    nodes = graph.allNodes()
    for node in map(nodes.apply, range(nodes.size())):
        if any(index in node.desc() for index in INDEXES):
            metrics = node.metrics()
            for metric in map(metrics.apply, range(metrics.size())):
                value = values.get(metric.accumulatorId())
                if metric.name() == METRIC and value.isDefined():
                    yield int(value.get().replace(",", ""))


@pytest.fixture
def _compared_as_large(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of small tables all files are read otherwise; plans stay as small tables have them."""
    monkeypatch.setattr(tuning, "SMALL_SLICE", -1)
    started = str(lake.spark.conf.get(ADAPTIVE))
    lake.spark.conf.set(ADAPTIVE, "false")
    yield
    lake.spark.conf.set(ADAPTIVE, started)


@pytest.mark.usefixtures("_marked_in_files", "_compared_as_large")
@pytest.mark.nightly  # test_merge_looks_only_where_partitions_never_move shows the rows, this one the files
@pytest.mark.parametrize("strategy", ["merge", "historic"])
def test_a_slice_reads_the_files_of_its_partitions_alone(lake: SmallLake, strategy: str) -> None:
    """ "Merge Strategy": partition filters limit the merge's scope, and that of delete inference."""
    days = [{"id": n, "day": day, "v": "a"} for n, day in enumerate("abcde")]
    columns = [KEY, {"name": "day", "fieldroles": ["partition"]}]
    marks = [{"column_name": "day", "expression": "${last_value}"}]
    settings = {"partition_moves": "never"}
    sales = entity(strategy, name="sales", columns=columns, settings=settings)
    lake.load(sales, "s1", days)
    with files_read(lake) as found:
        assert lake.load(sales, "s2", [{"id": 2, "day": "c", "v": "b"}]).changed == 1
    assert max(found) == 1
    deleting = {**settings, "delete_missing": True}
    dated = entity(strategy, name="dated", columns=columns, watermark=marks, settings=deleting)
    lake.load(dated, "s1", days)
    with files_read(lake) as found:
        summary = lake.load(dated, "s2", [{"id": 7, "day": "e", "v": "b"}])
    assert (summary.inserted, summary.inferred_deletes) == (1, 1)
    assert max(found) == 1


@pytest.mark.usefixtures("_marked_in_files")
@pytest.mark.nightly
@pytest.mark.parametrize("slices", [12])
def test_history_costs_no_more_as_it_grows(lake: SmallLake, slices: int) -> None:
    """ "Historic Strategy": with the tool's own upkeep, slices read as few files late as early."""
    keys, most = 50, 6
    things = entity("historic", settings={"maintenance": {"small_files": 4, "marked_rows": 0.5}})
    rows = [{"id": n, "v": 0} for n in range(keys)]
    lake.load(things, "s000", rows)
    reads = []
    for number in range(1, slices + 1):
        for row in rows[number % 10 :: 10]:
            row["v"] = number
        with files_read(lake) as found:
            summary = lake.load(things, f"s{number:03}", rows)
        assert (summary.updated, summary.unchanged) == (keys // 10, keys - keys // 10)
        reads.append(max(found))
        maintain(lake.lake, lake.leases(), things)
    assert max(reads) <= most
    assert max(reads[slices // 2 :]) <= max(reads[: slices // 2])
    versions = sorted(lake.rows(things, "id", "dlf_ValidFrom", "dlf_ValidTo", "dlf_IsCurrent"))
    assert [key for key, _, ends, _ in versions if ends is None] == list(range(keys))
    for version, after in zip(versions, [*versions[1:], None], strict=True):
        begins_next = after[1] if after is not None and after[0] == version[0] else None
        assert version[2] == begins_next
        assert version[3] is (version[2] is None)


@pytest.mark.timeout(600)
@pytest.mark.nightly
@pytest.mark.parametrize("width", [2_000])
def test_two_thousand_columns_are_not_too_many(lake: SmallLake, width: int) -> None:
    """ "Merge Strategy": also where planning is most of the work."""
    wide = entity(settings={"last_seen": "on_change"})
    last = f"c{width - 1:04}"

    def rows(value: str) -> list[dict[str, Any]]:
        cells = {f"c{n:04}": n if n % 2 else f"text {n}" for n in range(width)}
        return [{"id": key, **cells, last: value if key == 1 else "same"} for key in range(3)]

    lake.load(wide, "s1", rows("a"), processing_time=hours(1).isoformat())

    summary = lake.load(wide, "s2", rows("b"), processing_time=hours(2).isoformat())

    assert (summary.updated, summary.changed) == (3, 1)
    assert lake.rows(wide, "id", "c0000", last) == [
        (0, "text 0", "same"),
        (1, "text 0", "b"),
        (2, "text 0", "same"),
    ]
