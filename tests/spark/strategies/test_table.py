"""Tables as they are found, made and removed; catalog tables; what a slice costs."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity

from lakewright.errors import MigrationError
from lakewright.lake.delta_log import TableState
from lakewright.lake.observation import last_commit_number, observe_table
from lakewright.lake.table import MigrationStep, alter_table, create_table, drop_table, truncate_table
from lakewright.spec.models.fields import Field, parse_type
from lakewright.spec.models.places import Address
from lakewright.strategies import tuning

COLUMNS = (
    Field(name="the`id", type=parse_type("int"), nullable=False, description="It's the key"),
    Field(name="s", type=parse_type("struct<a: int, `b``c`: array<string>>")),
    Field(name="m", type=parse_type("map<string,decimal(10,2)>")),
)


def state_of(lake: SmallLake, address: Address) -> TableState:
    return observe_table(lake.lake, address)


@pytest.mark.parametrize("place", ["catalog", pytest.param("path", marks=pytest.mark.nightly)])
def test_a_table_is_made_changed_emptied_and_removed(lake: SmallLake, place: str) -> None:
    """Tables at a path are made and changed by the slices of nearly all tests."""
    at_path = Address(location=str(lake.root / "a b%20"))
    for address in (at_path if place == "path" else Address(name="shop.things"),):
        assert state_of(lake, address) == TableState(exists=False, is_empty=True, rows=0)

        properties = {"lakewright.x": "it's ${x}"}
        create_table(lake.lake, address, COLUMNS, properties=properties, partition_columns=["the`id"])
        state = state_of(lake, address)
        assert (state.exists, state.version, state.is_empty, state.partition_columns) == (
            True,
            0,
            True,
            ("the`id",),
        )
        assert [(c.name, c.type, c.description) for c in state.columns] == [
            (c.name, c.type, c.description) for c in COLUMNS
        ]
        assert state.properties["lakewright.x"] == "it's ${x}"

        add = MigrationStep("add column n int", "ADD COLUMNS (`n` int)")
        widen = MigrationStep("widen column n", "ALTER COLUMN `n` TYPE bigint", widens=True)
        alter_table(lake.lake, address, [add, widen])
        added = state_of(lake, address).column("N")
        assert added is not None
        assert added.type.ddl == "bigint"

        lake.spark.sql(f"INSERT INTO {address.sql} VALUES (1, null, null, 5)")
        assert state_of(lake, address).is_empty is not True
        truncate_table(lake.lake, address)
        assert state_of(lake, address).is_empty is True

        drop_table(lake.lake, address)
        assert not state_of(lake, address).exists
        drop_table(lake.lake, address)


def test_what_is_no_delta_table_is_left_alone(lake: SmallLake) -> None:
    folder = lake.root / "silver"
    folder.mkdir()
    (folder / "precious").write_text("x")
    lake.spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    lake.spark.sql("DROP TABLE IF EXISTS shop.plain")
    lake.spark.sql("CREATE TABLE shop.plain (id INT) USING parquet")
    for address in (Address(location=str(folder)), Address(name="shop.plain")):
        for action in (observe_table, drop_table):
            with pytest.raises(MigrationError):
                action(lake.lake, address)
    plain = entity(settings={"silver_table": "shop.plain"})
    lake.put(plain, "s1", [{"id": 1}])
    with pytest.raises(MigrationError):
        lake.process(plain)
    assert (folder / "precious").exists()


PLACES = [
    pytest.param("full", {"silver_table": "shop.${destination}"}, marks=pytest.mark.nightly),
    ("merge", {"silver_table": "spark_catalog.shop.${destination}"}),
    pytest.param("historic", {"silver_table": "shop.${destination}"}, marks=pytest.mark.nightly),
    pytest.param("merge", {"silver_path": "odd %20/${destination}"}, marks=pytest.mark.nightly),
]


@pytest.mark.parametrize(("strategy", "place"), PLACES)
def test_a_table_is_filled_wherever_it_is(lake: SmallLake, strategy: str, place: dict[str, str]) -> None:
    things = entity(strategy, name=f"placed_{strategy}", settings=place)
    silver = things.places(lake.lake.settings).silver
    drop_table(lake.lake, silver)
    assert lake.load(things, "s1", [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]).inserted == 2

    summary = lake.load(things, "s2", [{"id": 1, "v": "c", "w": 1}, {"id": 3, "v": "d", "w": 2}])

    assert summary.delta_version == 1
    assert last_commit_number(lake.lake, silver, str(lake.bench(things).application)) == 2
    kept = {"full": [(1, "c", 1), (3, "d", 2)], "merge": [(1, "c", 1), (2, "b", None), (3, "d", 2)]}
    versions = [(1, "a", None), (1, "c", 1), (2, "b", None), (3, "d", 2)]
    assert lake.rows(things, "id", "v", "w") == kept.get(strategy, versions)


@pytest.mark.nightly  # test_costs shows the same for histories
def test_a_small_change_to_a_large_table_writes_little(lake: SmallLake) -> None:
    """Cost follows change."""
    rows = [{"id": n, "v": f"value {n * 7919}", "w": n / 7} for n in range(60_000)]
    stock = entity(settings={"last_seen": "on_change"})
    lake.load(stock, "s1", rows)
    folder = lake.folder(stock)
    before = lake.files(stock)
    size = sum((folder / name).stat().st_size for name in before)
    for row in rows[::100]:
        row["v"] = "changed"

    summary = lake.load(stock, "s2", rows)

    assert (summary.changed, summary.updated) == (600, 60_000)
    added = sum((folder / name).stat().st_size for name in lake.files(stock) - before)
    assert added < 0.03 * size
    assert lake.load(stock, "s3", rows).delta_version is None


@pytest.mark.parametrize(
    ("strategy", "most"),
    [
        ("full", 6),
        ("historic", 12),
    ],
)
@pytest.mark.nightly  # test_cases counts those of Merge
def test_a_slice_takes_few_spark_jobs(lake: SmallLake, strategy: str, most: int) -> None:
    things = entity(strategy, name=f"jobs_{strategy}")
    lake.load(things, "s1", [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    lake.spark.sparkContext.setJobGroup(things.name, things.name)
    lake.load(things, "s2", [{"id": 1, "v": "c"}, {"id": 3, "v": "d"}])
    jobs = lake.spark.sparkContext.statusTracker().getJobIdsForGroup(things.name)
    lake.spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # null clears it
    assert len(jobs) <= most


@pytest.mark.parametrize("strategy", ["merge", "historic"])
@pytest.mark.nightly  # another worker's queries in the same JVM would count
def test_a_slice_like_the_one_before_compiles_no_java(
    lake: SmallLake, strategy: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Spark compiles a query's Java again if a value in it is another, such as the processing time."""
    monkeypatch.setattr(tuning, "TINY_TABLE", -1)
    compiling = {"spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.codegen.wholeStage": "true"}
    for key, value in compiling.items():
        request.addfinalizer(partial(lake.lake.spark.conf.set, key, lake.lake.spark.conf.get(key) or ""))
        lake.lake.spark.conf.set(key, value)
    metrics: Any = lake.spark._jvm.org.apache.spark.metrics.source  # type: ignore[union-attr]
    compiled = getattr(getattr(metrics, "CodegenMetrics$"), "MODULE$").METRIC_COMPILATION_TIME()
    things = entity(strategy, name=f"compiled_{strategy}")
    counts = []
    for number in range(5):
        lake.load(
            things, f"s{number}", [{"id": n, "v": f"{number if n % 10 == 0 else n}"} for n in range(50)]
        )
        counts.append(compiled.getCount())
    assert counts[0] < counts[-1] == counts[-2]
