"""Tables that something else made, and that an entity goes on from.

`processing-strategies.md`, "Historic Strategy (SCD Type 2)" and "Merge Strategy": the rules hold from the
first slice on, and nothing that didn't change becomes a new version.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, pa

from lakewright.errors import MigrationError
from lakewright.lake.observation import observe_table
from lakewright.spec.models.entity import Entity
from lakewright.strategies.adoption import adopted_columns
from lakewright.targets.entity.table_rules import ExaminedTable, find_violations
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = ("2023-01-01", "2023-02-01", "2023-02-15", "2023-03-01", "2999-12-31")


def make(lake: SmallLake, things: Entity, rows: str, *columns: str, partition: str = "") -> None:
    """Make the table as another tool would: rows in SQL, the columns' names."""
    silver = things.places(lake.lake.settings).silver
    rows = rows.format(*(f"timestamp'{day}'" for day in DAYS))
    frame = lake.spark.sql(f"select * from values {rows} as t({', '.join(columns)})")
    writer = frame.write.format("delta")
    (writer.partitionBy(partition) if partition else writer).save(silver.location)


def broken(lake: SmallLake, things: Entity) -> tuple[str, ...]:
    state = observe_table(lake.lake, things.places(lake.lake.settings).silver)
    table = ExaminedTable.of(lake.lake, things, lake.spark, state)
    return tuple(finding.words for finding in find_violations(table))


def refusal(lake: SmallLake, things: Entity, rows: list[dict[str, Any]] | None = None) -> str:
    before = lake.version(things)
    error = lake.fail(things, "s1", rows or [{"id": 1, "city": "Rome"}])
    assert isinstance(error, MigrationError)
    assert lake.version(things) == before
    return f"{error.message} {error.remedy}"


def test_a_dbt_snapshot_is_gone_on_from(lake: SmallLake) -> None:
    things = entity("historic", settings={"adopt": "dbt_snapshot"})
    make(
        lake,
        things,
        """(1, 'Rome', 1.50, 'a', {0}, {0}, {1}, 'False'), (1, 'Paris', 1.50, 'b', {1}, {1}, null, 'False'),
        (2, 'Oslo', null, 'c', {0}, {0}, {3}, 'False'), (2, 'Oslo', null, 'd', {3}, {3}, null, 'True'),
        (3, 'Bern', 2.00, 'e', {0}, {0}, {1}, null), (3, 'Bern', 3.00, 'f', {2}, {2}, null, 'False')""",
        *("id", "city", "price", "dbt_scd_id", "dbt_updated_at"),
        *("dbt_valid_from", "dbt_valid_to", "dbt_is_deleted"),
    )
    system = SystemColumns("dlf_", "things")
    state = observe_table(lake.lake, things.places(lake.lake.settings).silver)
    assert list(adopted_columns(things, state, system).changes(system, state.rows)) == [
        "adopt the table of at most 6 rows: each row gets its key and hash, all in one commit",
        "rename column dbt_valid_from to dlf_ValidFrom",
        "rename column dbt_valid_to to dlf_ValidTo",
        "rename column dbt_is_deleted to dlf_deleted",
        "rename column dbt_updated_at to dlf_lastSeen",
        "add column dlf_SourceHash",
        "add column dlf_IsCurrent",
        "add column PK_things",
        "drop column dbt_scd_id",
    ]

    rows = [
        {"id": 1, "city": "Paris", "price": Decimal("1.5")},
        {"id": 2, "city": "Oslo"},
        {"id": 3, "city": "Bern", "price": Decimal(4)},
    ]
    schema = [("id", pa.int32()), ("city", pa.string()), ("price", pa.decimal128(3, 2))]
    summary = lake.load(things, "s1", rows, schema)

    assert (summary.inserted, summary.updated, summary.unchanged) == (1, 1, 1)
    versions = lake.table(things).selectExpr(
        "id", "city", "date(dlf_ValidFrom)", "date(dlf_ValidTo)", "dlf_IsCurrent", "dlf_deleted"
    )
    first, feb, march = date(2023, 1, 1), date(2023, 2, 1), date(2023, 3, 1)
    today = date(2024, 1, 1)
    assert sorted(map(tuple, versions.collect()), key=lambda row: (row[0], row[2])) == [
        (1, "Rome", first, feb, False, False),
        (1, "Paris", feb, None, True, False),
        (2, "Oslo", first, march, False, True),
        (2, "Oslo", today, None, True, False),
        (3, "Bern", first, feb, False, True),
        (3, "Bern", date(2023, 2, 15), today, False, False),
        (3, "Bern", today, None, True, False),
    ]
    assert broken(lake, things) == ()
    assert lake.version(things) == 2
    assert lake.load(things, "s2", rows, schema).delta_version is None
    history = lake.spark.sql(f"describe history delta.`{lake.folder(things)}`")
    (commit,) = history.where("version = 1").collect()
    assert '"adopted": {"current": 2' in commit["userMetadata"]


SCD2 = ("id", "city", "start", "stop", "current_flag")


@pytest.mark.nightly
def test_a_hand_written_history_is_gone_on_from(lake: SmallLake) -> None:
    """Sentinels, inclusive ends, other names, texts in the source that are numbers in the table."""
    adopt = {
        "valid_from": "start",
        "valid_to": "stop",
        "is_current": "current_flag",
        "sentinel": "9999-12-31",
        "ends": "inclusive",
        "columns": {"code": "id"},
    }
    things = entity(
        "historic",
        columns=[{"name": "no", "newname": "code", "datatype": "integer", "fieldroles": ["businesskey"]}],
        settings={"adopt": adopt, "silver_path": "dwh/scd2"},
    )
    make(
        lake,
        things,
        """(7, 'Rome', date'2023-01-01', date'2023-01-31', 'N'),
        (7, 'Paris', date'2023-02-01', date'9999-12-31', 'Y'),
        (8, 'Oslo', date'2023-01-01', date'2023-01-15', 'N'),
        (9, 'Bern', date'2023-01-01', date'9999-12-31', 'Y')""",
        *SCD2,
        partition="city",
    )
    assert observe_table(lake.lake, things.places(lake.lake.settings).silver).partition_columns == ("city",)

    summary = lake.load(things, "s1", [{"no": "007", "city": "Paris"}, {"no": "9", "city": "Bonn"}])

    assert (summary.inserted, summary.updated, summary.unchanged) == (0, 1, 1)
    found = lake.table(things).selectExpr("code", "city", "date(dlf_ValidTo)", "dlf_deleted").collect()
    assert sorted(map(tuple, found), key=repr) == [
        (7, "Paris", None, False),
        (7, "Rome", date(2023, 2, 1), False),
        (8, "Oslo", date(2023, 1, 16), True),
        (9, "Bern", date(2024, 1, 1), False),
        (9, "Bonn", None, False),
    ]
    assert broken(lake, things) == ()
    assert observe_table(lake.lake, things.places(lake.lake.settings).silver).partition_columns == ("city",)


def test_days_as_text_end_in_the_time_zone_of_the_lake(spark: SparkSession, tmp_path: Path) -> None:
    """The last day of version `a` has 25 hours, and an instant of the zone stands for no end."""
    lake = SmallLake(spark, tmp_path, settings={"timezone": "Europe/Berlin"})
    days = {"valid_from": "start", "valid_to": "stop", "sentinel": "9999-12-31", "ends": "inclusive"}
    things = entity("historic", settings={"adopt": days})
    rows = "(1, 'a', '2023-01-01', '2023-10-29'), (1, 'b', '2023-10-30', '9999-12-31')"
    make(lake, things, f"{rows}, (2, 'c', '2023-01-01', '2023-03-26')", "id", "city", "start", "stop")
    lake.load(things, "s1", [{"id": 1, "city": "b"}])
    ends = "string(dlf_ValidTo)"
    found = lake.table(things).selectExpr("city", ends, "dlf_deleted").collect()
    assert sorted(map(tuple, found)) == [
        ("a", "2023-10-29 23:00:00", False),
        ("b", None, False),
        ("c", "2023-03-26 22:00:00", True),
    ]

    instants = entity("historic", "instants", settings={"adopt": {**days, "ends": "exclusive"}})
    open_ = "(1, 'a', timestamp'2022-12-31 23:00:00', timestamp'9999-12-30 23:00:00')"
    make(lake, instants, open_, "id", "city", "start", "stop")
    lake.load(instants, "s1", [{"id": 1, "city": "a"}])
    assert lake.rows(instants, "city", "dlf_ValidTo") == [("a", None)]


@pytest.mark.nightly
def test_a_table_of_current_rows_is_gone_on_from(lake: SmallLake) -> None:
    adopt = {"deleted": "gone", "last_seen": "loaded_at", "drop": ["loaded_by"]}
    things = entity(settings={"adopt": adopt, "last_seen": "on_change"})
    make(
        lake,
        things,
        """(1, 'Rome', 0, timestamp'2023-01-01', 'me'), (2, 'Oslo', 1, timestamp'2023-01-01', 'me'),
        (3, 'Bern', null, null, 'me')""",
        *("id", "city", "gone", "loaded_at", "loaded_by"),
    )

    rows = [{"id": 1, "city": "Rome"}, {"id": 2, "city": "Oslo"}, {"id": 4, "city": "Bonn"}]
    summary = lake.load(things, "s1", rows)

    assert (summary.inserted, summary.updated, summary.changed) == (1, 2, 1)
    assert lake.rows(things, "id", "city", "dlf_deleted") == [
        (1, "Rome", False),
        (2, "Oslo", False),
        (3, "Bern", False),
        (4, "Bonn", False),
    ]
    assert "loaded_by" not in lake.table(things).columns


@pytest.mark.nightly
def test_a_table_of_datalake_foundation_is_gone_on_from(lake: SmallLake) -> None:
    """Its hashes and its last instant are others; rows that were deleted stay closed."""
    things = entity("historic", settings={"adopt": {"like": "datalake_foundation"}})
    make(
        lake,
        things,
        """(1, 'Rome', 'x', {0}, {1}, false, 's0', 'k', false, {0}),
        (1, 'Paris', 'y', {1}, {4}, true, 's1', 'k', false, {1}),
        (2, 'Oslo', 'z', {1}, {4}, true, 's1', 'l', true, {3})""",
        *("id", "city", "dlf_SourceHash", "dlf_ValidFrom", "dlf_ValidTo", "dlf_IsCurrent"),
        *("dlf_source_filename", "PK_things", "dlf_deleted", "dlf_lastSeen"),
    )

    summary = lake.load(things, "s2", [{"id": 1, "city": "Paris"}])

    assert (summary.inserted, summary.updated, summary.unchanged) == (0, 0, 1)
    found = lake.table(things).selectExpr("city", "date(dlf_ValidTo)", "dlf_deleted", "dlf_source_filename")
    assert sorted(map(tuple, found.collect()), key=repr) == [
        ("Oslo", date(2023, 3, 1), True, "s1"),
        ("Paris", None, False, "s1"),
        ("Rome", date(2023, 2, 1), False, "s0"),
    ]
    assert broken(lake, things) == ()


UNCLEAR = [
    (
        "(1, 'a', {1}, null), (1, 'b', {2}, null)",
        "1 version is current although a later one has the same key (id=1)",
    ),
    ("(1, 'a', {0}, {3}), (1, 'b', {1}, null)", "1 version overlaps the one before (id=1)"),
    ("(1, 'a', {3}, {2})", "1 version ends before beginning (id=1)"),
    ("(1, 'a', null, null)", "1 version has no beginning (id=1)"),
    ("(1, 'a', {1}, timestamp'9999-12-31')", "declare it as `sentinel` in `adopt`"),
    (
        "(1, 'a', {1}, {2}), (1, 'b', {1}, null)",
        "1 version begins when another one of the same key begins (id=1)",
    ),
]


FEW = [UNCLEAR[1], UNCLEAR[-1]]


@pytest.mark.nightly
def test_values_are_compared_in_whatever_type_a_slice_brings_them(lake: SmallLake) -> None:
    """Whole numbers as decimals are the same keys; nulls of a column without a type are changes."""
    things = entity("merge", settings={"adopt": {}, "last_seen": "on_change"})
    make(lake, things, "(1, 'Rome'), (10, 'Oslo'), (100, null)", "id", "city")

    keys = [Decimal("1.00"), Decimal("10.00"), Decimal("100.00")]
    schema = [("id", pa.decimal128(10, 2)), ("city", pa.null())]
    summary = lake.load(things, "s1", [{"id": key} for key in keys], schema)

    assert (summary.inserted, summary.changed) == (0, 2)
    found = lake.table(things).selectExpr("cast(id as int)", "city").collect()
    assert sorted(map(tuple, found)) == [(1, None), (10, None), (100, None)]


def test_a_version_that_is_not_current_needs_an_end(lake: SmallLake) -> None:
    things = entity("historic", settings={"adopt": {"valid_from": "start", "is_current": "latest"}})
    rows = "(1, 'a', {0}, null), (1, 'b', {1}, true), (2, 'c', {0}, false), (3, 'd', {0}, null)"
    make(lake, things, rows, "id", "city", "start", "latest")
    assert "2 versions are not current" in refusal(lake, things)


@pytest.mark.parametrize("cases", [FEW, pytest.param(UNCLEAR, marks=pytest.mark.nightly, id="all")])
def test_what_is_not_clear_is_refused_with_samples(lake: SmallLake, cases: list[tuple[str, str]]) -> None:
    for number, (rows, why) in enumerate(cases):
        things = entity(
            "historic", f"things{number}", settings={"adopt": {"valid_from": "start", "valid_to": "stop"}}
        )
        make(lake, things, rows, "id", "city", "start", "stop")
        assert why in refusal(lake, things)


WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("merge", {}, "2 rows share their key with another one (id=1; id=1)", "(1, 'a'), (1, 'b')"),
    ("historic", {"valid_from": "begin"}, "lacks 'begin'; it has 'id', 'city'", "(1, 'a')"),
    ("merge", {"columns": {"id": "no"}}, "lacks 'no'", "(1, 'a')"),
    ("merge", {"columns": {"dlf_ValidTo": "city"}}, "would be 'dlf_ValidTo'", "(1, 'a')"),
    ("merge", {"deleted": "city"}, "can't be read", "(1, 'perhaps')"),
]


@pytest.mark.parametrize("wrong", [WRONG[:1], pytest.param(WRONG[1:], marks=pytest.mark.nightly)])
def test_names_that_are_wrong_are_refused(
    lake: SmallLake, wrong: list[tuple[str, dict[str, Any], str, str]]
) -> None:
    for number, (strategy, adopt, why, rows) in enumerate(wrong):
        things = entity(strategy, f"wrong{number}", settings={"adopt": adopt})
        make(lake, things, rows, "id", "city")
        assert why in refusal(lake, things)


@pytest.mark.nightly
def test_partitions_that_the_table_does_not_have_are_refused(lake: SmallLake) -> None:
    columns = [
        {"name": "id", "fieldroles": ["businesskey"]},
        {"name": "city", "newname": "Home Town", "fieldroles": ["partition"]},
    ]
    things = entity("merge", columns=columns, settings={"adopt": {}})
    make(lake, things, "(1, 'Rome')", "id", "city", partition="city")
    told = refusal(lake, things)
    assert "the table is partitioned by city, the entity by HomeTown" in told
    assert "`adopt: columns`" in told

    adopt = {"columns": {"Home Town": "city"}}
    named = entity("merge", "named", columns=columns, settings={"adopt": adopt})
    make(lake, named, "(1, 'Rome')", "id", "city", partition="city")
    lake.load(named, "s2", [{"id": 1, "city": "Rome"}])
    assert lake.rows(named, "id", "HomeTown") == [(1, "Rome")]


@pytest.mark.nightly
def test_an_interrupted_adoption_is_done_once(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakewright.strategies import adoption

    things = entity("historic", settings={"adopt": {"valid_from": "start"}})
    make(lake, things, "(1, 'Rome', timestamp'2023-01-01')", "id", "city", "start")

    def die(name: str) -> None:
        if name == "after_adopt":
            raise KeyboardInterrupt

    monkeypatch.setattr(adoption, "reach_failpoint", die)
    with pytest.raises(KeyboardInterrupt):
        lake.load(things, "s1", [{"id": 1, "city": "Rome"}])
    monkeypatch.undo()

    assert lake.version(things) == 1
    result = lake.process(things)
    assert result.slices[0].summary.unchanged == 1
    assert lake.version(things) == 1
    assert lake.folder(things).is_dir()
    assert lake.rows(things, "id", "dlf_ValidTo") == [(1, None)]
