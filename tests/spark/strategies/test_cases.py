"""Cases in which others go wrong, beside those that have a file of their own.

Headings are those of `processing-strategies.md`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, hours, pa, pq, table_of
from tests.spark.strategies.rewinding import undo_in

from lakewright.errors import CommitConflict, MigrationError, NullKeyError, SchemaDriftError
from lakewright.manifest.verdict import Verdict
from lakewright.strategies.summary import Summary

KEY = {"name": "id", "fieldroles": ["businesskey"]}
PARTITION = {"name": "part", "fieldroles": ["partition"]}


@pytest.mark.nightly  # the machine of test_model has values that come and go
def test_a_value_that_comes_and_goes_makes_a_version_each_time(lake: SmallLake) -> None:
    """ "Version Lifecycle": a change; null and back; what is closed stays what it was."""
    crm = entity("historic")
    schema = [("id", pa.int64()), ("v", pa.string())]
    values = ["A", "B", None, None, "B"]
    for hour, value in enumerate(values, start=1):
        lake.load(crm, f"s{hour}", [{"id": 1, "v": value}], schema, processing_time=hours(hour).isoformat())

    assert lake.rows(crm, "dlf_ValidFrom", "dlf_ValidTo", "v", "dlf_IsCurrent") == [
        (1.0, 2.0, "A", False),
        (2.0, 3.0, "B", False),
        (3.0, 5.0, None, False),
        (5.0, None, "B", True),
    ]
    versions = lake.rows(crm, "dlf_ValidFrom", "dlf_ValidTo")
    for moment in (1.0, 1.5, 2.0, 2.999, 3.0, 4.0, 5.0, 99.0):
        found = [v for v in versions if v[0] <= moment and (v[1] is None or moment < v[1])]
        assert len(found) == 1, moment


REPLAYED = [
    entity("historic", name="history"),
    entity(name="merged", settings={"last_seen": "on_change"}),
    entity(
        "historic",
        name="pairs",
        columns=[KEY, {"name": "x", "fieldroles": ["businesskey"]}],
        settings={"null_keys": "allow", "delete_missing": True, "delete_scope": "full"},
    ),
]


@pytest.mark.nightly  # test_values_of_all_types_arrive_as_they_are_and_twice_without_change sends one again
def test_a_replayed_slice_makes_no_commit(lake: SmallLake) -> None:
    """ "Historic Strategy", "Merge Strategy": an identical slice is nothing new."""
    for things in REPLAYED:
        rows = [{"id": 1, "x": None, "v": "a"}, {"id": 2, "x": "y", "v": "b"}]
        lake.load(things, "s1", rows)
        version, files = lake.version(things), lake.files(things)
        for number in range(2):
            assert lake.load(things, f"s{2 + number}", rows[::-1]).delta_version is None
        assert (lake.version(things), lake.files(things)) == (version, files)


@pytest.mark.parametrize(
    ("strategies", "times"),
    [(["merge"], 1), pytest.param(["merge", "historic"], 2, marks=pytest.mark.nightly)],
)
def test_a_deleted_record_that_stays_away_is_deleted_once(
    lake: SmallLake, strategies: list[str], times: int
) -> None:
    """Delete inference: flagged once, its values kept, and what it was last seen."""
    settings = {"delete_missing": True, "delete_scope": "full"}
    for strategy in strategies:
        crm = entity(strategy, name=strategy, settings=settings)
        lake.load(crm, "s1", [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], processing_time=hours(1).isoformat())
        found = [
            lake.load(
                crm, f"s{n}", [{"id": 2, "v": "b"}], processing_time=hours(n).isoformat()
            ).inferred_deletes
            for n in range(2, 3 + times)
        ]
        assert found == [1] + [0] * times
        (gone,) = [row for row in lake.rows(crm, "id", "v", "dlf_deleted", "dlf_lastSeen") if row[0] == 1]
        assert gone == (1, "a", True, 1.0)


def test_rows_move_within_and_out_of_the_window(lake: SmallLake) -> None:
    """Delete inference: a row whose watermark moved on is updated; one as old as the last value is seen."""
    orders = entity(
        watermark=[{"column_name": "at", "expression": "${last_value}"}], settings={"delete_missing": True}
    )
    schema = [("id", pa.int64()), ("at", pa.int64())]
    lake.load(orders, "s1", [{"id": 1, "at": 5}, {"id": 2, "at": 10}, {"id": 3, "at": 10}], schema)
    late = lake.load(orders, "s2", [{"id": 2, "at": 20}, {"id": 3, "at": 10}, {"id": 4, "at": 10}], schema)

    assert (late.inserted, late.changed, late.inferred_deletes) == (1, 1, 0)
    assert lake.rows(orders, "id", "at", "dlf_deleted") == [
        (1, 5, False),
        (2, 20, False),
        (3, 10, False),
        (4, 10, False),
    ]


@pytest.mark.nightly  # test_a_table_is_not_written_under_another_declaration has such a table
def test_hashes_of_another_version_are_not_compared(lake: SmallLake) -> None:
    """ "Compute source hash": a new version never makes rows new by itself."""
    crm = entity()
    lake.load(crm, "s1", [{"id": 1}])
    silver = crm.places(lake.lake.settings).silver.sql
    lake.spark.sql(f"ALTER TABLE {silver} SET TBLPROPERTIES ('lakewright.hashVersion' = '0')")

    error = lake.fail(crm, "s2", [{"id": 1}])

    assert isinstance(error, MigrationError)
    assert "version 0" in error.message


@pytest.mark.nightly
def test_the_commit_of_others_is_met_so_often_and_no_longer(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer is always faster: the slice fails whole, and can be tried again."""
    crm = entity(settings={"last_seen": "on_change"})
    lake.load(crm, "s1", [{"id": 1, "v": "a"}])
    silver = crm.places(lake.lake.settings).silver.sql

    def interfere(name: str) -> None:
        if name == "in_guard":
            lake.spark.sql(f"UPDATE {silver} SET v = 'x' WHERE id = 1")

    monkeypatch.setattr("lakewright.strategies.slice_load.reach_failpoint", interfere)
    error = lake.fail(crm, "s2", [{"id": 1, "v": "b"}, {"id": 2, "v": "c"}])
    assert isinstance(error, CommitConflict)
    assert lake.rows(crm, "id", "v") == [(1, "x")]

    monkeypatch.undo()
    for item in lake.items():
        if item.failed is not None:
            lake.ledger.resolve(item.item_id, "they are done")
    assert lake.process(crm).slices[0].summary.inserted == 1


@pytest.mark.nightly
def test_what_changes_by_itself_is_one_value_a_slice(lake: SmallLake) -> None:
    """ "Add calculated columns": the hash that is compared is the hash of what is written."""
    columns = [
        KEY,
        {"name": "loaded", "expression": "current_timestamp()"},
        {"name": "dice", "expression": "uuid()"},
    ]
    crm = entity("historic", columns=columns, settings={"hash_exclude": ["loaded", "dice"]})
    rows = [{"id": n, "v": "a"} for n in range(50)]
    assert lake.load(crm, "s1", rows).inserted == 50
    rows[0]["v"] = "b"
    again = lake.load(crm, "s2", rows)
    assert (again.updated, again.unchanged) == (1, 49)
    current = [loaded for loaded, is_current in lake.rows(crm, "loaded", "dlf_IsCurrent") if is_current]
    assert len(set(current)) == 2


@pytest.mark.nightly
def test_names_and_values_of_any_kind_come_through(lake: SmallLake) -> None:
    """ "Normalize column names"; values are kept to the byte."""
    names = ["n" * 1000, "é", "e\u0301", "שלום", "a:b/c", "😀", "_x", "select", "${HOME}", "x'\"`\\"]
    value = {name: f"{n}" for n, name in enumerate(names)}
    texts = [
        "",
        " a ",
        "x" * 1_000_000,
        "\u0000",
        "a\u0301",
        "${env:HOME}",
        "'; DROP TABLE x",
        "\\n",
        "\ud7ff",
    ]
    crm = entity(columns=[{"name": "שלום", "fieldroles": ["businesskey"]}])
    rows = [{**value, "שלום": str(n), "text": text} for n, text in enumerate(texts)]
    lake.load(crm, "s1", rows)
    rows[0]["x'\"`\\"] = "changed"
    summary = lake.load(crm, "s2", rows)

    assert (summary.updated, summary.changed) == (len(texts), 1)
    assert [text for _, text in sorted(lake.rows(crm, "שלום", "text"))] == texts
    assert lake.rows(crm, "x'\"`\\", "n" * 1000)[0][1] == "0"


@pytest.mark.nightly
def test_names_of_partitions_and_their_values(lake: SmallLake) -> None:
    """ "Partition Handling": dates, numbers, and texts that a folder's name can't hold as they are."""
    parts: dict[str, list[Any]] = {
        "day": [date(2024, 1, 1), None, date(1, 1, 1)],
        "number": [1.5, math.nan, -0.0],
        "text": ["a/b=c%20:d", "..", "__HIVE_DEFAULT_PARTITION__x", "é\u0301 😀", "null"],
        "flag": [True, False],
    }
    sales = entity(columns=[KEY, *({"name": name, "fieldroles": ["partition"]} for name in parts)])
    rows: list[dict[str, Any]] = [
        {"id": n, "v": 0, **dict(zip(parts, values, strict=True))}
        for n, values in enumerate(zip_longest(*parts.values()))
    ]
    lake.load(sales, "s1", rows)
    again = lake.load(sales, "s2", [{**row, "v": 1} for row in rows])
    assert (again.inserted, again.changed) == (0, len(rows))
    same = lake.load(sales, "s3", [{**row, "v": 1} for row in rows])
    assert (same.changed, len(lake.rows(sales))) == (0, len(rows))


def test_what_can_be_no_partition_says_so(lake: SmallLake) -> None:
    for number, part in enumerate(["y" * 300, b"\x00\xff", {"a": 1}, [1]]):
        sales = entity(name=f"sales{number}", columns=[KEY, PARTITION])
        error = lake.fail(sales, "s1", [{"id": 1, "part": part}])
        assert isinstance(error, SchemaDriftError), part
        assert "partition" in error.message
        assert lake.version_or_none(sales) is None


@pytest.mark.nightly
def test_a_prefix_of_the_lakes_own(lake: SmallLake) -> None:
    """ "System Columns": every one has the prefix but the primary key."""
    other = SmallLake(lake.spark, lake.root / "other", settings={"systemfield_prefix": "zz_"})
    crm = entity("historic")
    other.load(crm, "s1", [{"id": 1, "dlf_ValidTo": "mine"}])
    other.load(crm, "s2", [{"id": 1, "dlf_ValidTo": "changed", "zz_deleted": False}])
    assert {name for name in other.table(crm).columns if name not in {"id", "dlf_ValidTo"}} == {
        "PK_things",
        *(
            f"zz_{name}"
            for name in (
                "SourceHash",
                "ValidFrom",
                "ValidTo",
                "IsCurrent",
                "source_filename",
                "deleted",
                "lastSeen",
            )
        ),
    }
    assert other.rows(crm, "dlf_ValidTo", "zz_IsCurrent") == [("changed", True), ("mine", False)]


@pytest.mark.nightly
def test_old_files_of_parquet_are_read_to_the_instant(lake: SmallLake) -> None:
    """ "Reads the source slice": INT96, dates before 1582, local times, codecs."""
    crm = entity("historic")
    folder = lake.put(crm, "s1", [{"id": 0}]).parent
    (folder / "s1").unlink()
    rows: list[dict[str, Any]] = [
        {"id": 1, "at": datetime(1500, 1, 1, 1, 2, 3, 4, tzinfo=UTC), "day": date(1500, 2, 28), "d": -0.0},
        {
            "id": 2,
            "at": datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
            "day": date(9999, 12, 31),
            "d": float("nan"),
        },
    ]
    schema = [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("d", pa.float64()),
    ]
    writes: list[dict[str, Any]] = [
        {"compression": "zstd"},
        {"use_deprecated_int96_timestamps": True, "compression": "snappy"},
        {"compression": "gzip", "data_page_version": "2.0"},
        {"compression": "none", "use_dictionary": False},
    ]
    for number, options in enumerate(writes, start=1):
        pq.write_table(table_of(rows, schema), folder / f"s{number}", **options)
        result = lake.process(crm)
        assert result.error is None, options
        assert result.slices[0].summary.updated == 0, options
    found = lake.table(crm).selectExpr("unix_micros(at)", "cast(day as string)").collect()
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert sorted(tuple(row) for row in found) == sorted(
        ((row["at"] - epoch) // timedelta(microseconds=1), row["day"].isoformat()) for row in rows
    )


@pytest.mark.nightly
def test_times_in_nanoseconds_are_times_as_long_as_nothing_is_lost(lake: SmallLake) -> None:
    """Pandas writes them; two instants 100 ns apart aren't taken for one."""
    crm = entity("historic", watermark=[{"column_name": "at", "expression": "${last_value}"}])
    schema = [("id", pa.int64()), ("at", pa.timestamp("ns", tz="UTC")), ("local", pa.timestamp("ns"))]
    micros = [(name, kind if name == "id" else pa.timestamp("us", tz=kind.tz)) for name, kind in schema]
    row = {"id": 1, "at": datetime(1960, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "local": datetime(2024, 3, 31, 2, 30)}
    lake.load(crm, "s1", [row, {"id": 2}], schema)
    assert lake.load(crm, "s2", [row, {"id": 2}], micros).unchanged == 2
    assert dict(lake.table(crm).dtypes)["at"] == "timestamp"
    assert dict(lake.table(crm).dtypes)["local"] == "timestamp_ntz"

    fine = pa.table({"id": [1], "at": pa.array([1], pa.timestamp("ns", tz="UTC")), "local": [row["local"]]})
    error = lake.fail(crm, "s3", fine)
    assert isinstance(error, SchemaDriftError)
    assert error.details["column"] == "at"


@pytest.mark.nightly
def test_a_folder_of_many_files_is_one_slice(lake: SmallLake) -> None:
    crm = entity()
    folder = lake.put(crm, "s0", [{"id": 0}]).parent
    (folder / "s1").mkdir()
    for number in range(1, 200):
        column = {0: "v", 1: "w"}[number % 2]
        pq.write_table(table_of([{"id": number, column: number}]), folder / "s1" / f"part-{number}")
    result = lake.process(crm)
    assert [done.summary.inserted for done in result.slices] == [1, 199]


def test_types_that_a_table_can_not_hold_say_so(lake: SmallLake) -> None:
    """ "Schema Drift": before anything is written, and with what to do."""
    cases: list[tuple[Any, Any]] = [
        (pa.decimal256(50, 2), Decimal(1)),
        (pa.struct([("a b", pa.int64()), ("ab", pa.int64())]), {"a b": 1, "ab": 2}),
        (pa.list_(pa.struct([("=", pa.int64())])), [{"=": 1}]),
    ]
    for number, (kind, value) in enumerate(cases):
        crm = entity(name=f"odd{number}")
        error = lake.fail(crm, "s1", [{"id": 1, "v": value}], [("id", pa.int64()), ("v", kind)])
        assert isinstance(error, SchemaDriftError), (kind, error)
        assert error.remedy
        assert not lake.files(crm)


def test_a_key_of_nothing_is_refused_whatever_its_type(lake: SmallLake) -> None:
    for kind in (pa.null(), pa.int64(), pa.string()):
        crm = entity(name=f"null_{kind}")
        error = lake.fail(crm, "s1", [{"id": None, "v": 1}], [("id", kind), ("v", pa.int64())])
        assert isinstance(error, NullKeyError)


@pytest.mark.nightly
def test_a_clustered_table_is_merged_into_and_stays_clustered_after_an_undo(lake: SmallLake) -> None:
    crm = entity()
    lake.load(crm, "s1", [{"id": n, "v": "a"} for n in range(9)])
    silver = crm.places(lake.lake.settings).silver.sql
    lake.spark.sql(f"ALTER TABLE {silver} CLUSTER BY (id)")
    assert lake.load(crm, "s2", [{"id": n, "v": "b"} for n in range(5, 12)]).changed == 4
    assert len(lake.rows(crm)) == 12
    lake.load(crm, "s3", [{"id": 20, "v": "c"}])
    for name, count in (("s2", 10), ("s1", 1)):  # by a clone of an earlier version, and from nothing
        undo_in(lake, crm, name)
        assert len(lake.rows(crm)) == count
        assert lake.spark.sql(f"DESCRIBE DETAIL {silver}").collect()[0]["clusteringColumns"] == ["id"]


@pytest.mark.nightly  # test_d21_columns_come_and_go_and_values_fit_as_the_policy_says has one column
def test_values_of_one_slice_that_fit_and_of_the_next_that_do_not(lake: SmallLake) -> None:
    """ "Schema Drift": a text that is a number is one; one that isn't fails the slice and nothing else."""
    crm = entity()
    lake.load(crm, "s1", [{"id": 1, "n": 1, "d": date(2024, 1, 1), "f": 1.5}])
    lake.load(crm, "s2", [{"id": 1, "n": "2", "d": "2024-01-02", "f": "2.5"}])
    assert lake.rows(crm, "n", "d", "f") == [(2, date(2024, 1, 2), 2.5)]
    for number, (column, value) in enumerate([("n", "two"), ("d", "2024-02-30"), ("f", "x")]):
        row = {"id": 1, "n": "3", "d": "2024-01-03", "f": "3.5", column: value}
        error = lake.fail(crm, f"t{number}", [row])
        assert isinstance(error, SchemaDriftError)
        assert error.details["column"] == column
        lake.put_aside()
    assert lake.rows(crm, "n") == [(2,)]


def jobs_of(lake: SmallLake, work: Callable[[], object]) -> int:
    """Return how many Spark jobs some work takes."""
    context = lake.spark.sparkContext
    group = f"group-{datetime.now(UTC).timestamp()}"
    context.setJobGroup(group, group)
    work()
    jobs = context.statusTracker().getJobIdsForGroup(group)
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # null clears it
    return len(jobs)


@pytest.mark.parametrize(
    ("strategy", "settings", "most"),
    [
        pytest.param("merge", {"last_seen": "on_change"}, 6, marks=pytest.mark.nightly),
        pytest.param("historic", {}, 6, marks=pytest.mark.nightly),
    ],
)
def test_a_slice_without_changes_costs_few_jobs_and_no_byte(
    lake: SmallLake, strategy: str, settings: dict[str, Any], most: int
) -> None:
    """The slice is read, compared, and that's it."""
    things = entity(strategy, name=f"quiet_{strategy}", settings=settings)
    rows = [{"id": n, "v": f"v{n}"} for n in range(1000)]
    lake.load(things, "s1", rows)
    lake.load(things, "s2", rows)
    files, version = lake.files(things), lake.version(things)

    found = jobs_of(lake, lambda: lake.load(things, "s3", rows))

    assert found <= most
    assert (lake.files(things), lake.version(things)) == (files, version)


@pytest.mark.jvm
def test_metrics_are_those_of_the_commit_which_takes_few_spark_jobs(lake: SmallLake) -> None:
    """ "Metrics": what the manifest says, the commit says, and it is this run's own; it takes few jobs."""
    crm = entity()
    lake.load(crm, "s1", [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    found: list[Summary] = []
    jobs = jobs_of(
        lake, lambda: found.append(lake.load(crm, "s2", [{"id": 1, "v": "c"}, {"id": 3, "v": "d"}]))
    )
    (summary,) = found
    assert jobs <= 12

    (commit,) = lake.delta(crm).history(1)
    content = json.loads(commit["userMetadata"])
    assert content["metrics"]["recordsInSlice"] == 2
    assert (content["metrics"]["inserted"], content["metrics"]["updated"]) == (
        summary.inserted,
        summary.updated,
    )
    (item,) = [item for item in lake.items() if item.item_id.endswith("s2")]
    assert item.verdict(lake.bench(crm).application) is Verdict.PROCESSED
    kept = lake.store.records(item.item_id)[-1].content["metrics"]
    assert {**kept, "seconds": 0, "deltaVersion": None} == {**content["metrics"], "seconds": 0}


def test_keys_that_look_alike_are_others_and_equal_ones_are_one(lake: SmallLake) -> None:
    """ "Generate primary key": texts to the byte, numbers by value."""
    schema = [("text", pa.string()), ("float", pa.float64()), ("fixed", pa.decimal128(9, 2))]
    crm = entity(columns=[{"name": name, "fieldroles": ["businesskey"]} for name, _ in schema])
    cases: list[tuple[str, list[Any], list[Any]]] = [
        ("text", ["a", "a ", "A", "", "a|b"], ["a", "a ", "A", "", "a|b"]),
        ("float", [math.nan, 0.0, 1.5], [-math.nan, -0.0, 1.5]),
        ("fixed", [Decimal("1.50"), Decimal("2.00"), Decimal("-0.10")], ["1.5", "2", "-0.1"]),
    ]
    others: dict[str, Any] = {"text": "t", "float": 7.5, "fixed": Decimal(7)}
    first = [{**others, name: key, "v": "old"} for name, keys, _ in cases for key in keys]
    lake.load(crm, "s1", first, [*schema, ("v", pa.string())])

    same = [(name, Decimal(key) if name == "fixed" else key) for name, _, keys in cases for key in keys]
    again = [{**others, name: key, "v": f"new {n}"} for n, (name, key) in enumerate(same)]
    narrow = [*schema[:2], ("fixed", pa.decimal128(9, 1)), ("v", pa.string())]
    summary = lake.load(crm, "s2", again, narrow)

    assert (summary.inserted, summary.changed) == (0, len(first))
    assert sorted(lake.rows(crm, "v")) == sorted((row["v"],) for row in again)


@pytest.mark.nightly  # test_a_table_is_not_written_under_another_declaration has such a key
def test_a_key_of_other_columns_is_refused_until_the_table_is_loaded_anew(lake: SmallLake) -> None:
    rows = [{"id": 1, "x": 1, "v": "a"}]
    lake.load(entity("historic"), "s1", rows)
    wider = entity("historic", columns=[KEY, {"name": "x", "fieldroles": ["businesskey"]}])
    error = lake.fail(wider, "s2", rows)
    assert isinstance(error, SchemaDriftError)
    assert "--strategy full --allow-data-loss" in (error.remedy or "")
    assert len(lake.rows(wider)) == 1


@pytest.mark.nightly  # the machine of test_model has slices without a column
def test_a_column_that_goes_ends_versions_that_had_a_value_in_it(lake: SmallLake) -> None:
    """ "Schema Drift": it stays, and is null in new versions; one that changes its case is the same."""
    crm = entity("historic")
    lake.load(crm, "s1", [{"id": 1, "v": "a", "w": 1}, {"id": 2, "v": "b", "w": None}])
    gone = lake.load(crm, "s2", [{"id": 1, "V": "a"}, {"id": 2, "V": "b"}])
    assert (gone.updated, gone.unchanged) == (1, 1)
    found = lake.rows(crm, "id", "v", "w", "dlf_IsCurrent")
    assert found == [(1, "a", 1, False), (1, "a", None, True), (2, "b", None, True)]
    assert [name for name in lake.table(crm).columns if name.lower() == "v"] == ["v"]


@pytest.mark.parametrize(
    ("strategy", "scope"),
    [
        ("historic", "full"),
        pytest.param("merge", "full", marks=pytest.mark.nightly),
        pytest.param("merge", "closed", marks=pytest.mark.nightly),
        pytest.param("historic", "closed", marks=pytest.mark.nightly),
    ],
)
def test_a_slice_without_rows_deletes_nothing_by_inference(
    lake: SmallLake, strategy: str, scope: str
) -> None:
    """Delete inference: an empty slice says nothing of what it lacks; of a full scope, the report says so."""
    schema = [("id", pa.int64()), ("at", pa.int64())]
    watermark = [{"column_name": "at", "expression": "${last_value}"}] if scope == "closed" else []
    settings = {"delete_missing": True, "delete_scope": scope}
    crm = entity(strategy, watermark=watermark, settings=settings)
    lake.load(crm, "s1", [{"id": 1, "at": 1}, {"id": 2, "at": 2}], schema)
    lake.put(crm, "s2", [], schema)
    (done,) = lake.process(crm).slices
    assert (done.summary.inferred_deletes, done.summary.delta_version) == (0, None)
    assert bool(done.warnings) is (scope == "full")
    assert lake.rows(crm, "id", "dlf_deleted") == [(1, False), (2, False)]


@pytest.mark.nightly
def test_the_ways_of_keeping_last_seen_differ_in_nothing_else(lake: SmallLake) -> None:
    """ "Merge Strategy": rows that are the same aren't written with `on_change`, and look the same."""
    flag = "dlf_deleted"
    slices: list[list[dict[str, Any]]] = [
        [{"id": n, "v": "a", flag: None} for n in range(6)],
        [{"id": 0, "v": "a", flag: None}, {"id": 1, "v": "b", flag: None}, {"id": 2, "v": "a", flag: True}],
        [{"id": 2, "v": "a", flag: True}, {"id": 3, "v": "c", flag: None}, {"id": 9, "v": "n", flag: None}],
        [{"id": 2, "v": "a", flag: None}, {"id": 1, "v": "b", flag: None}],
    ]
    schema = [("id", pa.int64()), ("v", pa.string()), (flag, pa.bool_())]
    views, counts = [], []
    for mode in ("column", "on_change"):
        crm = entity(name=f"seen_{mode}", settings={"last_seen": mode})
        summaries = [lake.load(crm, f"s{n}", rows, schema) for n, rows in enumerate(slices)]
        counts.append([(s.inserted, s.updated, s.deleted, s.changed) for s in summaries])
        views.append(lake.rows(crm, "id", "v", flag, "dlf_source_filename", "dlf_SourceHash"))
    assert views[0] == views[1]
    assert counts[0] == counts[1]


def test_an_expression_may_use_a_column_that_is_left_out(lake: SmallLake) -> None:
    raw, shout = {"name": "raw", "omit": True}, {"name": "shout", "expression": "upper(raw)"}
    things = entity(columns=[{"name": "id", "fieldroles": ["businesskey"]}, raw, shout])
    assert lake.load(things, "s1", [{"id": 1, "raw": "a"}]).inserted == 1
    assert "raw" not in lake.arrow(things).column_names
    assert lake.rows(things, "id", "shout") == [(1, "A")]
