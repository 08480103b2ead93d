"""What a slice may cost: Spark jobs and bytes, which don't depend on the machine.

Headings are those of `processing-strategies.md`. The numbers are bounds, to be lowered when less will do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, in_way, pa

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity

ROWS = 60_000
CHANGED = ROWS // 100


def whole(changed: int = 0, version: int = 0) -> Any:
    keys = range(ROWS)
    texts = [f"{(key * 7919) % 1_000_003:x} and {(key * 104_729) % 999_983:x}" for key in keys]
    numbers = [(key * 31) % 1_009 + (version if key < changed else 0) for key in keys]
    return pa.table({"id": list(keys), "n": numbers, **{f"s{i}": texts[i:] + texts[:i] for i in range(8)}})


def jobs(lake: SmallLake) -> int:
    context: Any = lake.spark.sparkContext
    return int(context._jsc.sc().dagScheduler().nextJobId())


def size(lake: SmallLake, things: Entity) -> int:
    files = (file for file in lake.folder(things).rglob("*") if file.suffix in {".parquet", ".bin"})
    return sum(file.stat().st_size for file in files if "_delta_log" not in file.parts)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("strategy", "most_unchanged", "most_changed"),
    [("merge", 5, 7), ("historic", 5, 8)],
)
def test_cost_follows_change(lake: SmallLake, strategy: str, most_unchanged: int, most_changed: int) -> None:
    """ "Merge Strategy" with `last_seen: on_change`, "Historic Strategy": equal rows cost no byte."""
    things = entity(strategy, settings={"last_seen": "on_change"})
    lake.load(things, "s1", whole())
    filled = size(lake, things)

    before, version = jobs(lake), lake.version(things)
    same = lake.load(things, "s2", whole())
    assert (same.changed, same.delta_version) == (0, None)
    assert (size(lake, things), lake.version(things)) == (filled, version)
    assert jobs(lake) - before <= most_unchanged

    before = jobs(lake)
    assert lake.load(things, "s3", whole(CHANGED, 1)).changed == CHANGED
    written = size(lake, things) - filled
    versions = 2 if strategy == "historic" else 1
    # A file of a few hundred rows is half made of what it tells about itself.
    assert written <= 1.2 * filled * versions / 100 + 30_000
    assert jobs(lake) - before <= most_changed


@pytest.mark.nightly
def test_a_slice_of_changes_alone_costs_no_more(lake: SmallLake) -> None:
    """ "Historic Strategy": keys that are new are appended, without a look at files that can't hold them."""
    things = entity("historic")
    lake.load(things, "s1", whole())
    before, filled = jobs(lake), size(lake, things)
    new = whole().slice(0, CHANGED)
    new = new.set_column(0, "id", pa.array(range(ROWS, ROWS + CHANGED)))
    assert lake.load(things, "s2", new).inserted == CHANGED
    assert jobs(lake) - before <= 5
    assert size(lake, things) - filled <= 1.2 * filled / 100 + 30_000


@pytest.mark.parametrize(
    ("strategy", "way", "most"),
    [
        ("full", "written anew", 4),
        ("merge", "marked", 6),
        ("historic", "written anew", 6),
        ("merge", "merged", 14),
        pytest.param("merge", "written anew", 6, marks=pytest.mark.nightly),
        pytest.param("historic", "marked", 6, marks=pytest.mark.nightly),
    ],
)
def test_the_second_slice_of_a_small_table_takes_few_jobs(
    lake: SmallLake, strategy: str, way: str, most: int
) -> None:
    """ "Full Strategy", "Merge Strategy", "Historic Strategy": three queries are ours, the others Delta's."""
    things = entity(strategy)
    rows = [{"id": key, "v": "a"} for key in range(9)]
    lake.load(things, "s1", rows)
    context: Any = lake.spark.sparkContext
    tag = f"counted {strategy} {way}"
    context.addJobTag(tag)  # other workers have jobs in the same JVM
    try:
        with in_way(way):
            assert lake.load(things, "s2", [{"id": 0, "v": "b"}, *rows[1:]]).records_in_slice == 9
    finally:
        context.removeJobTag(tag)
    assert 0 < len(context._jsc.sc().statusTracker().getJobIdsForTag(tag)) <= most
