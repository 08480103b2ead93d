"""Past versions before the first slice, from `history_from`."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import QueryBuilder, write_deltalake
from tests.spark.strategies.bench import entity as declared
from tests.spark.test_rewind import Died, Shop

from lakewright.lake.commit import STRICT
from lakewright.schema.fault import Fault
from lakewright.spec.models.adoption import HistoryFrom
from lakewright.strategies.past_load import CARRIED, past_rows, timed_rows, versions_of
from lakewright.strategies.version_rows import FROM, UNREAD
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = timedelta(days=1)
ZERO = datetime(2020, 1, 1, tzinfo=UTC)
LAST = 12
"""Day of the first slice; rows of the past lie on days 0 to 14."""

SYSTEM = SystemColumns("", "t")


@dataclass(frozen=True)
class PastRow:
    """A row of the past: its key, its value (None for a delete), and the days of its start and its end."""

    key: int
    value: str | None
    start: int
    end: int | None = None


@dataclass(frozen=True)
class Version:
    key: int
    value: str
    start: int
    end: int | None
    is_deleted: bool


def expected_versions(rows: Sequence[PastRow], exports: Sequence[int]) -> set[Version]:
    """Return the versions of one record, by walking through the days; `exports` are days of whole exports."""
    by_start = {row.start: row for row in rows}
    ends = {row.end for row in rows if row.end is not None}
    versions: set[Version] = set()
    begun: tuple[str, int] | None = None
    for day in range(LAST):
        row = by_start.get(day)
        value = row.value if row is not None else (begun[0] if begun else None)
        if row is None and (day in ends or day in exports):
            value = None
        if begun is not None and value != begun[0]:
            versions.add(Version(rows[0].key, begun[0], begun[1], day, value is None))
            begun = None
        if begun is None and value is not None:
            begun = (value, day)
    if begun is not None:
        versions.add(Version(rows[0].key, begun[0], begun[1], None, is_deleted=False))
    return versions


def drawn_rows(rng: random.Random, count: int, *, with_ends: bool) -> list[PastRow]:
    rows = []
    for key in range(count):
        starts = sorted(rng.sample(range(15), rng.randint(1, 6)))
        for start, following in zip(starts, [*starts[1:], None], strict=True):
            value = None if rng.random() < 0.15 else rng.choice("ab")
            end = None
            if with_ends and rng.random() < 0.6:
                end = rng.randint(start + 1, following if following is not None else 16)
            rows.append(PastRow(key, value, start, end))
    return rows


def found_versions(
    spark: SparkSession, rows: Sequence[PastRow], *, are_exports_whole: bool
) -> dict[int, set[Version]]:
    """Return the versions that the frames give, by key."""
    session = spark.newSession()
    for name, value in STRICT.items():
        session.conf.set(name, value)
    columns = (
        "PK_t int, v string, SourceHash string, deleted boolean, lastSeen timestamp, ValidFrom timestamp, "
    )
    columns += "ValidTo timestamp, IsCurrent boolean, source_filename string, "
    columns += f"{CARRIED[0]} timestamp, {CARRIED[1]} timestamp, {CARRIED[2]} boolean, {CARRIED[3]} string"

    def day(number: int | None) -> datetime | None:
        return None if number is None else ZERO + number * DAY

    given = [
        (
            *(row.key, row.value, row.value, row.value is None, None, None, None, True, ""),
            *(day(row.start), day(row.end), False, "exports/x"),
        )
        for row in (*rows, *rows[:3])  # a row that is there twice counts once
    ]
    timed = timed_rows(session.createDataFrame(given, columns), SYSTEM, before=ZERO + LAST * DAY)
    found = versions_of(
        timed, SYSTEM, before=ZERO + LAST * DAY, are_exports_whole=are_exports_whole
    ).collect()
    versions: dict[int, set[Version]] = {}

    def number(instant: datetime | None) -> int | None:
        return None if instant is None else (instant.replace(tzinfo=UTC) - ZERO) // DAY

    for row in found:
        assert row["IsCurrent"] == (row["ValidTo"] is None)
        assert (row["lastSeen"], row["source_filename"]) == (row["ValidFrom"], "exports/x")
        start = number(row["ValidFrom"])
        assert start is not None
        version = Version(row["PK_t"], row["v"], start, number(row["ValidTo"]), row["deleted"])
        versions.setdefault(version.key, set()).add(version)
    assert len(found) == sum(map(len, versions.values()))
    return versions


@pytest.mark.parametrize(
    "kind",
    ["versions", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("exports", "whole exports"))],
)
def test_rows_of_the_past_become_the_versions_of_the_plain_model(spark: SparkSession, kind: str) -> None:
    """200 random records: gaps, equal neighbours, deletes, revivals, rows after the first slice."""
    rows = drawn_rows(random.Random(len(kind)), 200, with_ends=kind == "versions")
    found = found_versions(spark, rows, are_exports_whole=kind == "whole exports")
    exports = {row.start for row in rows} if kind == "whole exports" else set()
    by_key: dict[int, list[PastRow]] = {}
    for row in rows:
        if row.start < LAST:
            by_key.setdefault(row.key, []).append(row)
    expected = {key: expected_versions(own, sorted(exports)) for key, own in by_key.items()}
    assert found == {key: versions for key, versions in expected.items() if versions}


def test_times_of_the_past_without_an_offset_are_in_the_zone_of_the_lake(spark: SparkSession) -> None:
    """Rules of reading, "What fits": as those of slices are."""
    frame = spark.sql(
        "select 1 id, '2024-05-01' day, timestamp_ntz'2024-05-01 10:00' a, '2024-05-01 10:00' b"
    )
    slice_ = spark.sql("select 1 id, timestamp'2024-05-01' a, timestamp'2024-05-01' b").schema
    history = HistoryFrom(folder="exports", valid_from="day")
    past = past_rows(frame, slice_, declared("historic"), history, zone="Europe/Amsterdam", file="''").frame
    (row,) = past.selectExpr("cast(a as string) a", "cast(b as string) b").collect()
    assert (row["a"], row["b"]) == ("2024-05-01 08:00:00",) * 2


def test_a_value_of_the_past_that_does_not_fit_is_named_with_its_export(spark: SparkSession) -> None:
    frame, slice_ = spark.sql("select '1x' id, '2024-05-01' day"), spark.sql("select 1 id").schema
    history = HistoryFrom(folder="exports", valid_from="day")
    past = past_rows(frame, slice_, declared("historic"), history, zone="UTC", file="'exports/a.csv'").frame
    with pytest.raises(Exception, match="1x") as raised:
        past.collect()
    fault = Fault.raised(str(raised.value))
    assert fault is not None
    assert (fault.place, fault.column, fault.value) == ("exports/a.csv", "id", "1x")


STARTS = {
    "'2024-05-01'": "2024-04-30 22:00:00",
    "'2024-05-01 10:00'": "2024-05-01 08:00:00",
    "'2024-05-01T10:00:00+01:00'": "2024-05-01 09:00:00",
    "'2024-05-01 10:00:00 America/New_York'": "2024-05-01 14:00:00",
    "date'2024-05-01'": "2024-04-30 22:00:00",
    "timestamp_ntz'2024-05-01 10:00'": "2024-05-01 08:00:00",
    "timestamp'2024-05-01 10:00:00Z'": "2024-05-01 10:00:00",
    "'10:15'": None,
    "'45352'": None,
    "45352": None,
    "'2024-03-31 02:30'": None,  # clocks were put forward
}
"""Values of `valid_from`, in SQL, and the instants that they are in Amsterdam; None for what is no time."""


def test_starts_of_past_versions_are_read_as_values_of_slices_are(spark: SparkSession) -> None:
    """Rules of reading, "What fits": a time alone, or a number, is no time."""
    found = {}
    for sql in STARTS:
        frame, slice_ = spark.sql(f"select 1 id, {sql} begins"), spark.sql("select 1 id").schema
        history = HistoryFrom(folder="exports", valid_from="begins")
        past = past_rows(frame, slice_, declared("historic"), history, zone="Europe/Amsterdam", file="''")
        (row,) = past.frame.selectExpr(f"cast({FROM} as string) at", UNREAD).collect()
        assert row[UNREAD] is (row["at"] is None)
        found[sql] = row["at"]
    assert found == STARTS


HISTORIC = """
connections:
  shop:
    settings: {bronze_path: "${entity}", silver_path: "${entity}", bronze_format: json}
entities:
  slices:
    id: 1
    connection: shop
    processtype: historic
    columns: [{name: id, fieldroles: [businesskey]}]
    settings: {delete_missing: true, delete_scope: full, max_delete_ratio: 1}
  prices:
    id: 2
    connection: shop
    processtype: historic
    columns: [{name: id, fieldroles: [businesskey]}]
    settings:
      delete_missing: true
      delete_scope: full
      max_delete_ratio: 1
      history_from: {folder: exports, format: csv, valid_from: day}
targets:
  prices: {kind: entity, entity: prices}
jobs: {daily: {targets: [prices]}}
"""
EXPORTS = {
    "2024-01-01": {1: "a", 2: "b"},
    "2024-02-01": {1: "a", 2: "B", 3: "c"},
    "2024-03-01": {1: "a", 3: "c"},
}
SLICES = {
    "2024-04-01": {1: "A", 2: "B"},
    "2024-05-01": {1: "A", 2: "B", 4: "d"},
    "2024-06-01": {1: "A", 2: "C"},
    "2024-07-01": {1: "A", 2: "C", 5: "e"},
}
"""As many as are folded into one commit."""


def shop_with_past(folder: Path, session: SparkSession) -> Shop:
    """Return a project with an entity that gets old exports as slices, and one that has them as its past."""
    shop = Shop.make(folder, session)
    (shop.folder / "model" / "model.yml").write_text(HISTORIC)
    exports = shop.folder / "lake" / "exports"
    exports.mkdir(parents=True)
    for day, records in EXPORTS.items():
        lines = [f"{key},{value},{day},x" for key, value in records.items()]
        (exports / f"{day}.csv").write_text("\n".join(["id,v,day,fax", *lines]) + "\n")
        shop.put("slices", f"{day}.json", [{"id": k, "v": v} for k, v in records.items()])
    for day, records in SLICES.items():
        for entity in ("slices", "prices"):
            shop.put(entity, f"{day}.json", [{"id": k, "v": v} for k, v in records.items()])
    return shop


def without_files(shop: Shop, entity: str) -> list[dict[str, Any]]:
    """Return the rows of a table without the names of keys and slices."""
    found = QueryBuilder().register("t", shop.table(entity)).execute("select * from t").read_all()
    left_out = {"PK_slices", "PK_prices", "source_filename"}
    named = ({n.removeprefix("dlf_"): v for n, v in row.items()} for row in pa.table(found).to_pylist())
    rows = [{n: v for n, v in row.items() if n not in left_out} for row in named]
    return sorted(rows, key=lambda row: (row["id"], row["ValidFrom"]))


def test_a_story_of_a_past_in_exports(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first load and a rebuild have the versions that the exports would have given as slices."""
    shop = shop_with_past(tmp_path / "shop", spark)
    planned = shop.run("plan", "daily", "build")
    assert "past versions from the folder exports are loaded before the first slice" in planned.out
    assert "each export is the whole source" in planned.out

    with monkeypatch.context() as patch:

        def die(name: str) -> None:
            if name == "after_past":
                raise Died(name)

        patch.setattr("lakewright.slices.past_versions.reach_failpoint", die)
        with pytest.raises(Died):
            shop.run("process", "prices", "--processing-time", "${slice.date}")
    assert len(without_files(shop, "prices")) == 4
    done = shop.run("process", "prices", "--processing-time", "${slice.date}")
    assert done.code == 0, done.all
    assert "4 slices, 2024-04-01.json to 2024-07-01.json, were folded" in done.all
    shop.load("slices")
    assert without_files(shop, "prices") == without_files(shop, "slices")

    refused = shop.run("history", "row", "prices", "abc")
    assert (refused.code, "'abc' is no value of the business key" in refused.err) == (2, True), refused.all
    life = shop.json("history", "row", "prices", "2")["versions"]
    assert [(each["slice"], each["origin"]) for each in life] == [
        ("exports/2024-01-01.csv", "history_from"),
        ("exports/2024-02-01.csv", "history_from"),
        ("2024-04-01.json", "slice"),
        ("2024-06-01.json", "slice"),
    ]
    assert life[0]["run_id"] is not None
    assert shop.json("doctor", "prices")["ok"]

    compared = shop.run("rebuild", "prices", "--check", "-o", "json")
    assert "before the first slice, exports gives 4 versions of 3 records" in compared.err
    assert "columns left out, which the slice lacks: fax" in compared.err
    difference = json.loads(compared.out)["difference"]
    assert (difference["rows_equal"], difference["rows_only_before"], difference["rows_only_after"]) == (
        *(len(without_files(shop, "prices")), 0),
        0,
    )

    model = shop.folder / "model" / "model.yml"
    model.write_text(HISTORIC.replace("valid_from: day}", "valid_from: day, columns: {v: fax}}"))
    assert "history_from has changed since the table was built; `lakewright rebuild prices`" in (
        shop.run("plan", "daily", "build").out
    )


@pytest.mark.nightly
def test_a_rebuild_takes_the_past_as_it_is_declared_today(spark: SparkSession, tmp_path: Path) -> None:
    """What `plan` says of a changed `history_from` holds until the rebuild."""
    shop = shop_with_past(tmp_path / "shop", spark)
    assert shop.run("process", "prices", "--processing-time", "${slice.date}").code == 0
    model = shop.folder / "model" / "model.yml"
    model.write_text(HISTORIC.replace("valid_from: day}", "valid_from: day, columns: {v: fax}}"))
    rebuilt = shop.run("rebuild", "prices", "--yes")
    assert rebuilt.code == 0, rebuilt.all
    assert [each["values"]["v"] for each in shop.json("history", "row", "prices", "2")["versions"]] == [
        *("x", "B", "C"),
    ]
    assert "history_from has changed" not in shop.run("plan", "daily", "build").out

    undone = shop.run("undo", "prices", "2024-04-01.json", "--yes")
    assert undone.code == 0, undone.all
    life = shop.json("history", "row", "prices", "2")["versions"]
    assert [(each["slice"], each["values"]["v"]) for each in life] == [
        ("exports/2024-01-01.csv", "x"),
        ("2024-05-01.json", "B"),
        ("2024-06-01.json", "C"),
    ]
    assert "history_from" not in shop.run("plan", "daily", "build").out


def test_a_past_in_a_table_of_versions(spark: SparkSession, tmp_path: Path) -> None:
    """Another tool's versions with ends and sentinels; what can't be is refused, and nothing is written."""
    shop = shop_with_past(tmp_path / "shop", spark)
    table = shop.folder / "lake" / "legacy" / "prices"
    model = shop.folder / "model" / "model.yml"
    versions = "{table: legacy/prices, valid_from: since, valid_to: until, columns: {id: nr}, "
    versions += "sentinel: ['9999-12-31']}"
    model.write_text(HISTORIC.replace("{folder: exports, format: csv, valid_from: day}", versions))
    rows = [
        (1, "a", "2024-01-01", "2024-02-01"),
        (1, "a", "2024-02-01", "9999-12-31"),
        (2, "b", "2024-01-01", "2024-03-01"),
        (5, "e", "2024-01-01", "2024-03-01"),
        (5, "f", "2024-02-01", None),
    ]

    def write(some: Sequence[tuple[Any, ...]]) -> None:
        names = ("nr", "v", "since", "until")
        columns = pa.table(dict(zip(names, map(list, zip(*some, strict=True)), strict=True)))
        write_deltalake(table, columns, mode="overwrite")

    unclear = [(6, "g", "soon", None), *((n, "h", None, None) for n in range(10, 16))]
    write([*rows, *unclear])
    refused = shop.run("process", "prices", "2024-04-01.json", "--processing-time", "2024-04-01")
    assert refused.code == 1, refused.all
    for told in (
        "history_from: legacy/prices can't be loaded: 1 row has a time that can't be read (id=6); 6 rows",
        " …); 1 row ends after the next one of the record begins (id=5)",
    ):
        assert told in refused.err, refused.all
    assert shop.verdicts("prices")["2024-04-01.json"] == "ready"
    assert not (shop.folder / "lake" / "silver" / "prices").exists()

    write(rows[:4])
    done = shop.run("process", "prices", "2024-04-01.json", "--processing-time", "2024-04-01")
    assert done.code == 0, done.all
    found = [
        (r["id"], r["v"], r["ValidFrom"].isoformat()[:7], r["IsCurrent"], r["deleted"])
        for r in without_files(shop, "prices")
    ]
    assert found == [
        (1, "a", "2024-01", False, False),
        (1, "A", "2024-04", True, False),
        (2, "b", "2024-01", False, True),
        (2, "B", "2024-04", True, False),
        (5, "e", "2024-01", False, True),
    ]
