"""Rehearsal: the effect of one slice in full, and nothing written."""

from __future__ import annotations

from shutil import copytree
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from tests.acceptance.lake import SmallLake

from lakewright import Project
from lakewright.lake.commit_lock import commit_lock
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST, SECOND, THIRD = "2022-01-01", "2022-02-01", "2022-03-01"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> SmallLake:
    """A lake whose entities infer deletes; nothing is processed."""
    lake = SmallLake.make(tmp_path_factory.mktemp("rehearsal") / "small", spark)
    model = lake.folder / "model" / "model.yml"
    strict = "settings: {delete_missing: true, delete_scope: full, max_delete_ratio: 0.4, delete_floor: 0}"
    text = model.read_text()
    for kind in ("merge", "historic"):
        text = text.replace(f"    processtype: {kind}\n", f"    processtype: {kind}\n    {strict}\n")
    model.write_text(text)
    for entity in ("customers", "prices", "countries"):
        lake.slice(entity, FIRST, [{"id": n, "v": "a"} for n in (1, 2, 3)])
    return lake


def everything(lake: SmallLake) -> dict[str, bytes]:
    """Return every file and folder below the project, but for the clock of locks."""
    found = sorted(lake.folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


def test_a_story_of_rehearsals(lake: SmallLake, spark: SparkSession) -> None:
    """The first slice without a table, in Python; the next one; the brake; one that was killed."""
    before = everything(lake)
    first = Project.load(lake.folder, spark=spark).entity("customers").rehearse(f"{FIRST}.parquet", rows=1)
    assert (first.state, first.version, first.counts) == ("ready", None, {"inserted": 3})
    assert (first.error, first.notes, len(first.rows)) == (None, (), 1)
    assert everything(lake) == before

    before = with_next_slices(lake, "prices")
    silver = lake.folder / "lake" / "silver"
    copytree(silver / "prices", silver / "prices__rehearsal")  # what a killed rehearsal leaves
    assert "belongs to a rehearsal" in lake.run("doctor", "prices").out
    found = rehearsed_second(lake, "prices")
    assert everything(lake) == before

    typed = ("process", "prices", f"{THIRD}.parquet", "--rehearse", "-n", "1")
    shown = lake.run(*typed, "--processing-time", "2062-03-01")
    assert (shown.code, "2 of the 3 rows" in shown.err) == (1, True), shown.all
    for said in (
        "1 slice before it",
        "2 deleted",
        "but the slice would fail",
        "1 record more",
        "2062-03-01T00:00:00+00:00 is in the future: new versions begin then",
        "Nothing was",
    ):
        assert said in shown.out, shown.out
    assert everything(lake) == before

    done = lake.json("process", "prices", f"{SECOND}.parquet", "--processing-time", SECOND)
    assert done["slices"][0]["inferred_deletes"] == 1
    really = lake.json("history", "diff", "prices", f"{SECOND}.parquet")
    assert (really["counts"], really["rows"]) == (found["counts"], found["rows"])


def with_next_slices(lake: SmallLake, entity: str) -> dict[str, bytes]:
    """Process the first slice of an entity and put two more; return everything of the lake."""
    assert lake.run("process", entity, "--processing-time", FIRST).code == 0
    lake.slice(entity, SECOND, [{"id": 1, "v": "a"}, {"id": 2, "v": "B"}, {"id": 4, "v": "d"}])
    lake.slice(entity, THIRD, [{"id": 1, "v": "a"}])
    return everything(lake)


@pytest.fixture
def second(lake: SmallLake) -> SmallLake:
    """The lake after the first two slices of prices; the story leaves it like this, too."""
    if not (lake.folder / "lake" / "silver" / "prices").exists():
        with_next_slices(lake, "prices")
        lake.json("process", "prices", f"{SECOND}.parquet", "--processing-time", SECOND)
    return lake


def rehearsed_second(lake: SmallLake, entity: str) -> dict[str, Any]:
    """Return the rehearsal of the second slice, whose effect is the same under Merge and Historic."""
    found: dict[str, Any] = lake.json(
        *("process", entity, f"{SECOND}.parquet", "--rehearse", "--processing-time", SECOND)
    )
    assert found["counts"] == {"inserted": 1, "updated": 1, "deleted": 1}
    by_key = {row["key"]["id"]: row for row in found["rows"]}
    assert (by_key[2]["before"], by_key[2]["after"]) == ({"v": "a"}, {"v": "B"})
    assert (by_key[3]["before"]["v"], by_key[3]["after"]) == ("a", None)
    deletes = found["deletes"]
    assert (deletes["inferred"], deletes["expected"], deletes["refused"]) == (1, 3, False)
    assert found["metrics"]["inferred_deletes"] == 1
    return found


@pytest.mark.nightly
def test_a_slice_of_merge_is_rehearsed(lake: SmallLake) -> None:
    before = with_next_slices(lake, "customers")
    rehearsed_second(lake, "customers")
    assert everything(lake) == before


@pytest.mark.nightly
def test_a_processed_and_a_failed_slice_are_rehearsed_on_the_table_as_it_is(second: SmallLake) -> None:
    lake = second
    before = everything(lake)
    again = lake.json("process", "prices", f"{SECOND}.parquet", "--rehearse")
    assert (again["state"], again["counts"]) == ("processed", {})
    assert "it is processed already" in again["notes"][0]
    assert everything(lake) == before

    assert lake.run("process", "prices", f"{THIRD}.parquet").code == 1
    before = everything(lake)
    failed = lake.run("process", "prices", f"{THIRD}.parquet", "--rehearse", "-o", "json")
    assert (failed.code, '"state": "failed"' in failed.out, "it has failed before" in failed.out) == (
        1,
        True,
        True,
    )
    assert everything(lake) == before


@pytest.mark.nightly
def test_a_late_slice_shows_its_effect_and_the_refusal(second: SmallLake) -> None:
    lake = second
    lake.slice("prices", "2022-01-15", [{"id": 1, "v": "late"}, {"id": 2, "v": "B"}, {"id": 4, "v": "d"}])
    before = everything(lake)
    late = lake.run("process", "prices", "2022-01-15.parquet", "--rehearse")
    assert (late.code, "which is already processed" in late.err) == (
        1,
        True,
    ), late.all
    assert "`lakewright decide prices/2022-01-15.parquet place`" in " ".join(late.err.split())
    assert "updated id=1: v: a → late" in late.out
    early = lake.run(
        "process", "prices", "2022-01-15.parquet", "--rehearse", "--late", "--processing-time", "2022-01-15"
    )
    assert (early.code, "is not later than" in early.err) == (1, True), early.all
    assert everything(lake) == before


def test_a_slice_that_does_not_fit_says_so_by_the_name_of_the_table(lake: SmallLake) -> None:
    path = lake.slice("prices", "2022-05-01", [{"other": 1}])
    before = everything(lake)
    found = lake.run("process", "prices", "2022-05-01.parquet", "--rehearse")
    assert (found.code, "it can't be applied" in found.out) == (1, True), found.all
    assert "__rehearsal" not in found.all
    assert everything(lake) == before
    path.unlink()


@pytest.mark.nightly
def test_full_shows_its_metrics_and_bad_rows_are_not_put_aside(lake: SmallLake) -> None:
    model = lake.folder / "model" / "model.yml"
    model.write_text(
        model.read_text().replace("delete_floor: 0}", "delete_floor: 0, on_bad_rows: quarantine}")
    )
    path = lake.slice("customers", "2022-06-01", [{"id": 1, "v": "z"}])
    pd.DataFrame({"id": pd.array([1, None], dtype="Int64"), "v": ["z", "n"]}).to_parquet(path, index=False)
    before = everything(lake)
    bad = lake.json("process", "customers", "2022-06-01.parquet", "--rehearse")
    assert (bad["metrics"]["quarantined"], bad["counts"]) == (1, {"updated": 1})
    assert "1 bad row would be put aside" in bad["warnings"][0]
    found = lake.json("process", "countries", f"{FIRST}.parquet", "--rehearse")
    assert (found["counts"], found["metrics"]["inserted"]) == (None, 3)
    assert "has no business key" in found["notes"][0]
    assert everything(lake) == before


def test_what_cannot_be_rehearsed_is_refused(lake: SmallLake) -> None:
    missing = lake.run("process", "prices", "2022-02-0.parquet", "--rehearse")
    assert (missing.code, f"{SECOND}.parquet" in missing.err) == (2, True), missing.all
    assert lake.run("process", "prices", "--rehearse").code == 2
    assert lake.run("process", "prices", f"{SECOND}.parquet", "--rehearse", "--wait").code == 2
    turn = Address(location=str(lake.folder / "lake" / "silver" / "prices__rehearsal_turn"))
    with commit_lock(turn, "another process"):
        held = lake.run("process", "prices", f"{SECOND}.parquet", "--rehearse")
    assert "another process is rehearsing a slice of prices" in held.err


@pytest.mark.nightly
def test_python_is_told_of_the_brake(lake: SmallLake, spark: SparkSession) -> None:
    entity = Project.load(lake.folder, spark=spark).entity("prices")
    found = entity.rehearse(f"{THIRD}.parquet", rows=1)
    assert found.error is not None
    assert (found.error.code, len(found.rows)) == ("delete_brake", 1)
