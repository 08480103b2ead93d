"""Asking changes nothing: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (what is active and dirty)."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.acceptance.lake import SmallLake

QUESTIONS = (
    ["plan", "daily", "verify"],
    ["plan", "daily", "destroy"],
    ["job", "daily", "build", "--dry-run"],
)


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    made = SmallLake.make(tmp_path / "small")
    made.slice("customers", "2022-01-01", [{"id": 1, "name": "Ada"}])
    made.slice("prices", "2022-01-01", [{"id": 1, "price": 2.5}])
    return made


def everything(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Each file and folder with its content and the time of its last change."""
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def ask(lake: SmallLake) -> None:
    """Ask everything that only asks, and see that no byte has changed by it."""
    before = everything(lake.folder)
    for question in QUESTIONS:
        done = lake.run(*question, HOME=str(lake.folder.parent / "home"))
        assert done.code == 0, done.all
        assert everything(lake.folder) == before, question
    assert not (lake.folder.parent / "home").exists()


def test_asking_changes_no_byte_of_the_project_the_lake_or_the_manifest(
    lake: SmallLake, tmp_path: Path
) -> None:
    ask(lake)
    lake.run("manifest", "discover")
    manifest = lake.folder / ".lakewright" / "manifest.db"
    ask(lake)

    # As somebody leaves it who edits it by hand, and as a killed run does: with a log.
    with closing(sqlite3.connect(manifest)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("UPDATE lakewright_records SET run_id = 'another'")
        connection.commit()
        shutil.copytree(manifest.parent, tmp_path / "killed")
    shutil.rmtree(manifest.parent)
    shutil.copytree(tmp_path / "killed", manifest.parent)
    assert manifest.with_name("manifest.db-wal").stat().st_size > 0
    ask(lake)
