"""What doesn't grow: files read with history and partitions, and work with columns.

Headings are those of `processing-strategies.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any
from uuid import uuid4

import pytest
from tests.spark.strategies.bench import SmallLake, entity, hours

from lakewright.manifest.lease import Leases
from lakewright.strategies import slice_load
from lakewright.targets.entity.maintenance import maintain

KEY = {"name": "id", "fieldroles": ["businesskey"]}
METRIC = "number of files read"
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


def leases(lake: SmallLake) -> Leases:
    return Leases(lake.store, lake.holder, lambda: str(uuid4()))


@pytest.fixture
def _marked_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables, and those that mostly change, are written anew otherwise."""
    monkeypatch.setattr("lakewright.strategies.write.SMALL_TABLE", 0)
    monkeypatch.setattr("lakewright.strategies.write.REWRITTEN_SHARE", 2.0)


@pytest.fixture
def _compared_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of small tables all files are read otherwise; plans stay as small tables have them."""
    tune = slice_load._tune
    monkeypatch.setattr(slice_load, "_is_small", lambda *_: False)
    monkeypatch.setattr(
        slice_load, "_tune", lambda session, **known: tune(session, **{**known, "is_small": True})
    )


@pytest.mark.usefixtures("_marked_in_files", "_compared_as_large")
def test_a_slice_reads_the_files_of_its_partitions_alone(lake: SmallLake) -> None:
    """ "Merge Strategy": partition filters limit the merge's scope, and that of delete inference."""
    days = [{"id": n, "day": day, "v": "a"} for n, day in enumerate("abcde")]
    columns = [KEY, {"name": "day", "fieldroles": ["partition"]}]
    deleting = {"delete_missing": True}
    marks = [{"column_name": "day", "expression": "${last_value}"}]
    for strategy in ("merge", "historic"):
        settings = {"partition_moves": "never"}
        sales = entity(strategy, name=f"sales_{strategy}", columns=columns, settings=settings)
        lake.load(sales, "s1", days)
        with files_read(lake) as found:
            assert lake.load(sales, "s2", [{"id": 2, "day": "c", "v": "b"}]).changed == 1
        assert max(found) == 1
        dated = entity(
            strategy,
            name=f"dated_{strategy}",
            columns=columns,
            watermark=marks,
            settings={**settings, **deleting},
        )
        lake.load(dated, "s1", days)
        with files_read(lake) as found:
            summary = lake.load(dated, "s2", [{"id": 7, "day": "e", "v": "b"}])
        assert (summary.inserted, summary.inferred_deletes) == (1, 1)
        assert max(found) == 1


@pytest.mark.usefixtures("_marked_in_files")
def test_history_costs_no_more_as_it_grows(lake: SmallLake) -> None:
    """ "Historic Strategy": with the tool's own upkeep, slices read as few files late as early."""
    keys, most = 50, 6
    things = entity("historic", settings={"maintenance": {"small_files": 4, "marked_rows": 0.5}})
    rows = [{"id": n, "v": 0} for n in range(keys)]
    lake.load(things, "s000", rows)
    reads = []
    for number in range(1, 13):
        for row in rows[number % 10 :: 10]:
            row["v"] = number
        with files_read(lake) as found:
            summary = lake.load(things, f"s{number:03}", rows)
        assert (summary.updated, summary.unchanged) == (keys // 10, keys - keys // 10)
        reads.append(max(found))
        maintain(lake.lake, leases(lake), things)
    assert max(reads) <= most
    assert max(reads[6:]) <= max(reads[:6])
    table = lake.table(things)
    assert table.where("dlf_ValidTo is null").groupBy("id").count().where("count > 1").count() == 0
    assert table.where("dlf_ValidTo is null").count() == keys
    follows = table.selectExpr(
        "dlf_ValidTo as ends",
        "lead(dlf_ValidFrom) over (partition by id order by dlf_ValidFrom) as next",
        "dlf_IsCurrent as is_current",
    )
    assert follows.where("not (ends <=> next) or is_current <> (ends is null)").count() == 0


WIDTH = 2_000


@pytest.mark.timeout(600)
def test_two_thousand_columns_are_not_too_many(lake: SmallLake) -> None:
    """ "Merge Strategy": also where planning is most of the work."""
    wide = entity(settings={"last_seen": "on_change"})

    def rows(value: str) -> list[dict[str, Any]]:
        cells = {f"c{n:04}": n if n % 2 else f"text {n}" for n in range(WIDTH)}
        return [{"id": key, **cells, "c1999": value if key == 1 else "same"} for key in range(3)]

    lake.load(wide, "s1", rows("a"), processing_time=hours(1).isoformat())

    summary = lake.load(wide, "s2", rows("b"), processing_time=hours(2).isoformat())

    assert (summary.updated, summary.changed) == (3, 1)
    assert lake.rows(wide, "id", "c0000", "c1999") == [
        (0, "text 0", "same"),
        (1, "text 0", "b"),
        (2, "text 0", "same"),
    ]
