"""Temporary files of runs (E12)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lakewright.spark.session_builder import OLD, remove_leftovers


def test_the_folder_of_a_run_ends_with_its_process(tmp_path: Path) -> None:
    """E12: native libraries and scratch folders stay nowhere."""
    code = (
        "from lakewright.spark.session_builder import scratch_folder;"
        "made = scratch_folder(); assert made == scratch_folder();"
        "(made / 'native.so').touch(); print(made)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_only_old_folders_of_killed_processes_are_removed(tmp_path: Path) -> None:
    """E12: a killed process removes nothing; the next one does, but never what may be in use."""
    gone = 2**22 + 1  # above the largest number of a process
    kept = [f"lakewright-run-{os.getpid()}-a", "lakewright-run-x", "other"]
    for name in (*kept, f"lakewright-run-{gone}-a"):
        (tmp_path / name).mkdir()
    now = (tmp_path / "other").stat().st_mtime
    remove_leftovers(tmp_path, now + 60)
    assert len(list(tmp_path.iterdir())) == 4
    remove_leftovers(tmp_path, now + OLD + 60)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(kept)
