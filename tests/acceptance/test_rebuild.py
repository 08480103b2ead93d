"""Removed and built again: `lifecycles-and-phases.md`, "Execution Phases" (DESTROY)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.lake import SmallLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_what_was_destroyed_is_built_again_from_slices_that_landed_anew(
    tmp_path: Path, either: SparkSession
) -> None:
    lake = SmallLake.make(tmp_path / "lake", either)
    rows = [{"id": 1, "name": "Anna"}, {"id": 2, "name": "Ben"}]
    chosen = ("-t", "customers")
    lake.slice("customers", "1", rows[:1])
    gone = lake.slice("customers", "2", rows)
    assert lake.run("job", "daily", "build", *chosen).code == 0

    asked = lake.run("job", "daily", "destroy", *chosen)
    destroyed = lake.run("job", "daily", "destroy", *chosen, "--yes")

    assert asked.code == 2
    assert "--yes" in asked.all
    assert destroyed.code == 0, destroyed.all
    assert lake.silver("customers") == []

    gone.unlink()
    lake.slice("customers", "1", rows)
    rebuilt = lake.run("job", "daily", "build", *chosen)

    assert rebuilt.code == 0, rebuilt.all
    assert sorted(row["name"] for row in lake.silver("customers")) == ["Anna", "Ben"]
