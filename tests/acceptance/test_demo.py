"""The demo's lake against the CSV files it was made of, computed with pandas.

`processing-strategies.md`, "Merge Strategy" and "Historic Strategy (SCD Type 2)"; `lifecycles-and-phases.md`,
"Jobs & Lifecycles"; `processing-manifest.md`, "State".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.acceptance.command import Lakewright
from tests.commands import InProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MONTHS = ["2022-01-01", "2022-02-01", "2022-03-01", "2022-04-01"]


@dataclass(frozen=True)
class Demo(InProcess):
    """The demo's project, with its files."""

    months: tuple[str, ...] = ()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Demo:
    """A lake that a process wrote and the tests' session ran; later commands need no Spark."""
    folder = tmp_path_factory.mktemp("demo") / "lake of airports"
    written = Lakewright(folder.parent).run("demo", str(folder), "--no-run")
    assert written.code == 0, written.all
    made = InProcess(folder.parent, spark).run("demo", str(folder))
    assert made.code == 0, made.all
    assert "frequencies  4 " in made.out
    return Demo(folder, months=tuple(MONTHS))


@pytest.mark.nightly
def test_the_demo_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    made = Lakewright(tmp_path).run("demo")
    assert made.code == 0, made.all
    assert "Nothing is due" in Lakewright(tmp_path).run("demo").all


def snapshot(demo: InProcess, table: str, month: str) -> pd.DataFrame:
    path = demo.folder / "data" / table / f"{month}.csv.gz"
    return pd.read_csv(path, dtype=str, keep_default_na=False).set_index("id")


def silver(demo: InProcess, table: str) -> pd.DataFrame:
    found = DeltaTable(demo.folder / "lake" / "silver" / table)
    rows = QueryBuilder().register("t", found).execute("SELECT * FROM t").read_all()
    frame = pd.DataFrame({name: rows[name].to_pylist() for name in rows.schema.names})
    return frame.assign(id=frame["id"].astype(str))


def changes(demo: Demo, table: str) -> Iterator[tuple[str, set[str], set[str], set[str]]]:
    """Yield for each month after the first the ids inserted, changed and gone since the one before."""
    before = snapshot(demo, table, demo.months[0])
    for month in demo.months[1:]:
        now = snapshot(demo, table, month)
        both = now.index.intersection(before.index)
        differs = (now.loc[both] != before.loc[both]).any(axis=1)
        yield (
            month,
            set(now.index.difference(before.index)),
            set(both[differs]),
            set(before.index.difference(now.index)),
        )
        before = now


def metrics(demo: InProcess, entity: str) -> dict[str, dict[str, Any]]:
    """Return what the manifest says of each slice of an entity, by month."""
    items = demo.json("manifest", "ls", "--entity", entity)
    shown = (demo.json("manifest", "show", item["item_id"]) for item in items)
    processed = (record for each in shown for record in each["records"] if record["state"] == "PROCESSED")
    return {
        record["itemId"].rsplit("/", 1)[-1].removesuffix(".csv.gz"): record["payload"]["data"]["metrics"]
        for record in processed
    }


def test_regions_are_those_of_the_last_file_and_the_gone_ones_are_flagged(demo: Demo) -> None:
    last = snapshot(demo, "regions", demo.months[-1])
    ever = {key for month in demo.months for key in snapshot(demo, "regions", month).index}

    found = silver(demo, "regions")

    current = found[~found["dlf_deleted"]].set_index("id").fillna("")
    assert set(current.index) == set(last.index)
    assert current.loc[last.index, list(last.columns)].astype(str).equals(last)
    assert set(found.loc[found["dlf_deleted"], "id"]) == ever - set(last.index)
    assert found["id"].is_unique


def test_each_month_of_regions_counts_what_pandas_counts(demo: Demo) -> None:
    said = metrics(demo, "regions")

    for month, inserted, changed, gone in changes(demo, "regions"):
        slice_ = said[month]
        assert slice_["recordsInSlice"] == len(snapshot(demo, "regions", month))
        assert slice_["changed"] >= len(changed)
        assert slice_["inserted"] <= len(inserted)
        assert slice_["inserted"] + (slice_["changed"] - len(changed)) == len(inserted)
        assert slice_["inferredDeletes"] == len(gone)
        assert slice_["inserted"] + slice_["updated"] + slice_["deleted"] == slice_["recordsInSlice"]


def test_each_month_of_frequencies_counts_what_pandas_counts(demo: Demo) -> None:
    said = metrics(demo, "frequencies")

    for month, inserted, changed, gone in changes(demo, "airport-frequencies"):
        slice_ = said[month]
        assert slice_["updated"] == len(changed)
        assert slice_["inserted"] == len(inserted)
        assert slice_["deleted"] == len(gone)
        assert slice_["inserted"] + slice_["updated"] + slice_["unchanged"] == slice_["recordsInSlice"]


def test_frequencies_hold_every_version_with_its_interval(demo: Demo) -> None:
    expected: set[tuple[str, str]] = {
        (key, MONTHS[0]) for key in snapshot(demo, "airport-frequencies", MONTHS[0]).index
    }
    for month, inserted, changed, _ in changes(demo, "airport-frequencies"):
        expected |= {(key, month) for key in inserted | changed}

    found = silver(demo, "frequencies").sort_values(["id", "dlf_ValidFrom"])

    starts = found["dlf_ValidFrom"].map(lambda instant: instant.date().isoformat())
    assert set(zip(found["id"], starts, strict=True)) == expected
    assert len(found) == len(expected)
    current = found[found["dlf_IsCurrent"]]
    assert current["id"].is_unique
    assert current["dlf_ValidTo"].isna().all()
    assert set(current["id"]) == set(snapshot(demo, "airport-frequencies", demo.months[-1]).index)
    closed = found[~found["dlf_IsCurrent"]]
    assert (closed["dlf_ValidFrom"] < closed["dlf_ValidTo"]).all()
    following = found.groupby("id")["dlf_ValidFrom"].shift(-1)
    overlaps = following.notna() & (found["dlf_ValidTo"].isna() | (found["dlf_ValidTo"] > following))
    assert not overlaps.any()


def test_gold_is_what_pandas_computes_of_the_last_files(demo: Demo) -> None:
    regions = snapshot(demo, "regions", demo.months[-1])
    table = DeltaTable(demo.folder / "lake" / "gold" / "regions_by_country")
    rows = QueryBuilder().register("t", table).execute("SELECT code, regions FROM t").read_all()
    found = dict(zip(rows["code"].to_pylist(), rows["regions"].to_pylist(), strict=True))

    assert set(found) == set(snapshot(demo, "countries", demo.months[-1])["code"])
    assert {code: count for code, count in found.items() if count} == {
        code: count for code, count in regions["iso_country"].value_counts().items() if code in found
    }


def test_a_second_demo_finds_nothing_due_and_starts_no_spark(demo: Demo) -> None:
    again = InProcess(demo.folder.parent).run("demo", str(demo.folder))

    assert again.code == 0
    assert "Nothing is due" in again.all
    assert again.seconds < 15


def test_the_plan_of_a_second_run_has_no_work(demo: Demo) -> None:
    before = {path: path.stat().st_mtime_ns for path in demo.folder.rglob("*") if path.is_file()}

    planned = demo.run("plan", "--detailed-exitcode", "-o", "json")

    assert planned.code == 0
    assert json.loads(planned.out)["steps"] == []
    assert {path: path.stat().st_mtime_ns for path in demo.folder.rglob("*") if path.is_file()} == before


def test_every_command_that_the_demo_names_works(demo: Demo, session: SparkSession) -> None:
    said = InProcess(demo.folder.parent).run("demo", str(demo.folder))
    named = [line.strip() for line in said.all.splitlines() if line.strip().startswith("lakewright ")]

    assert {line.split()[1] for line in named} == {"sql", "plan", "manifest", "history"}
    for line in named:
        done = InProcess(demo.folder, session).shell(line)
        assert done.code == 0, f"{line}\n{done.all}"


def test_a_changed_slice_is_not_processed_behind_the_operators_back(demo: Demo, tmp_path: Path) -> None:
    """The manifest names a slice whose files are no longer those that were processed."""
    file = demo.folder / "data" / "countries" / f"{MONTHS[0]}.csv.gz"
    whole = file.read_bytes()
    file.write_bytes(whole + b"\0")
    try:
        reported = demo.json("manifest", "discover")
    finally:
        file.write_bytes(whole)
    assert [changed for changed in reported["changed"] if MONTHS[0] in json.dumps(changed)]
