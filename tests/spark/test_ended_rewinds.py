"""Undos and rebuilds that the manifest lacks: their process died, or the manifest is an older copy."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.plain.session import is_plain
from tests.spark.test_rewind import HISTORY, SLICES, Shop, _die_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST, SECOND, THIRD = SLICES


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("loaded")


@pytest.fixture
def shop(place: Path, either: SparkSession) -> Shop:
    """Has all slices of `prices` processed."""
    return Shop.loaded(place / type(either).__name__, either, "prices")


def is_sound(shop: Shop) -> bool:
    """Return whether `doctor`, which asks Spark, finds nothing."""
    return is_plain(shop.session) or shop.json("doctor", "prices")["ok"] is True


def is_calm(shop: Shop) -> bool:
    return steps(shop) == []


def steps(shop: Shop) -> list[str]:
    return [each["reason"]["code"] for each in shop.json("status")["steps"]]


def test_an_undo_that_died_after_its_commit_is_recorded_by_the_command_that_is_named(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused, as the log showed no commit of the slice; and the run was told as failed for ever."""
    _die_in(shop, monkeypatch, "after_rewind", "undo", "prices", THIRD)
    assert steps(shop)[0] == "dead_lock"
    dry = shop.run("undo", "prices", THIRD, "--dry-run")
    assert (dry.code, "did not end" in dry.err) == (2, True), dry.all
    done = shop.run("undo", "prices", THIRD)
    assert (done.code, "had done this before its process ended" in done.out) == (0, True), done.all
    assert shop.verdicts("prices") == {FIRST: "processed", SECOND: "processed", THIRD: "skipped"}
    assert is_calm(shop)


def test_a_rebuild_that_died_after_its_commit_is_recorded_by_the_next_run_or_before_an_operator_acts(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run without slices said that it would, and did not; `skip` took a slice that the table holds."""
    assert shop.run("undo", "prices", SECOND, "--yes").code == 0
    assert shop.run("rebuild", "prices", "--include", SECOND, "--yes").code == 2  # it is skipped
    assert shop.run("manifest", "unskip", f"prices/{SECOND}").code == 0
    assert shop.run("rebuild", "prices", "--include", SECOND, "--from", THIRD, "--yes").code == 2
    _die_in(shop, monkeypatch, "after_rewind", "rebuild", "prices", "--include", SECOND)
    assert shop.versions("prices") == HISTORY
    assert steps(shop)[0] == "dead_lock"
    manifest = next(path.parent for path in shop.folder.rglob("manifest.db"))
    shutil.copytree(manifest, tmp_path / "backup")
    planned = shop.run("plan", "daily", "build", "-t", "prices").all
    assert "the rebuild of prices did not end: the run first records what it did" in planned
    run = shop.run("job", "daily", "build", "-t", "prices")
    assert "had changed the table, and is recorded now" in run.all, run.all
    assert (set(shop.verdicts("prices").values()), is_calm(shop)) == ({"processed"}, True)
    assert shop.run("rebuild", "prices", "--include", SECOND, "--yes").code == 2  # it is processed

    shutil.rmtree(manifest)
    shutil.copytree(tmp_path / "backup", manifest)
    skipped = shop.run("manifest", "skip", f"prices/{SECOND}")
    assert "had changed the table, and is recorded now" in skipped.err, skipped.all
    assert (skipped.code, "it was processed before" in skipped.all) == (0, True), skipped.all
    assert "other_order" in steps(shop)
    assert is_sound(shop)


def test_an_undo_that_an_older_manifest_lacks_is_told_and_recorded_by_the_next_run(
    shop: Shop, tmp_path: Path
) -> None:
    """Its slices counted as processed, and nobody said that the table does not hold them."""
    manifest, backup = shop.folder / "lake/.lakewright", tmp_path / "backup"
    manifest = next(path.parent for path in shop.folder.rglob("manifest.db"))
    shutil.copytree(manifest, backup)
    for command in (f"undo prices {THIRD} --yes", f"undo prices {SECOND} --requeue --yes", "process prices"):
        assert shop.run(*command.split()).code == 0
    rows = shop.versions("prices")
    shutil.rmtree(manifest)
    shutil.copytree(backup, manifest)
    assert shop.verdicts("prices")[THIRD] == "processed"
    assert steps(shop) == ["held_unrecorded"]
    assert "the manifest lacks what the table's log shows" in shop.run("plan", "daily", "build").all
    run = shop.run("job", "daily", "build", "-t", "prices")
    assert run.code == 0, run.all
    assert shop.run("manifest", "fsck").code == 0
    assert shop.verdicts("prices") == {FIRST: "processed", SECOND: "processed", THIRD: "skipped"}
    assert (shop.versions("prices"), is_calm(shop)) == (rows, True)
    assert rows != HISTORY
    assert is_sound(shop)
