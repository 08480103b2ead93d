"""What a run with many workers holds of its machine: open files, threads and memory."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.acceptance.command import BIN

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]

TARGETS = 16
HEAP_GIB = 1
MOST_FILES, MOST_THREADS, MOST_BESIDE_HEAP = 550, 500, 1.5
"""The limits of the page, in files, threads and GiB."""


def write_project(folder: Path) -> None:
    """Write a project of tables, each by day, that are made from each other in pairs."""
    (folder / "project.yml").write_text("name: wide\nmodules: [model.yml]\nlake: {root_folder: lake}\n")
    lines = ["mappings:"]
    lines += [f"  m{n}: {{kind: sql, sql: 'SELECT id, {n} AS n FROM range(20000)'}}" for n in range(TARGETS)]
    lines.append("relations:")
    day = "partitions: [{name: day, type: string}]"
    lines += [
        f'  t{n}: {{kind: delta, location: "${{project.basedir}}/lake/t{n}", {day}}}' for n in range(TARGETS)
    ]
    lines.append("targets:")
    where = "partition: {day: $day}"
    lines += [f"  t{n}: {{kind: relation, mapping: m{n}, relation: t{n}, {where}}}" for n in range(TARGETS)]
    names = ", ".join(f"t{n}" for n in range(TARGETS))
    lines += ["jobs:", f"  main: {{parameters: [{{name: day, type: date}}], targets: [{names}]}}"]
    (folder / "model.yml").write_text("\n".join(lines) + "\n")


def samples(run: subprocess.Popen[bytes]) -> Iterator[dict[str, float]]:
    """Yield what the run's processes hold together, twice a second until it has ended."""
    while run.poll() is None:
        held = {"files": 0.0, "threads": 0.0, "gib": 0.0, "jars": 0.0}
        with suppress(psutil.Error, OSError):
            own = psutil.Process(run.pid)
            children = [each for each in own.children(recursive=True) if not _is_copy(each)]
            for process in (own, *children):
                held["files"] += process.num_fds()
                held["threads"] += process.num_threads()
                held["gib"] += process.memory_info().rss / 2**30
                held["jars"] += sum(file.path.endswith(".jar") for file in process.open_files())
            yield held
        time.sleep(0.5)


def _is_copy(process: psutil.Process) -> bool:
    """Return whether a process has just been forked: it shares its parent's files until it has a program."""
    try:
        parent = process.parent()
        return parent is not None and process.cmdline() == parent.cmdline()
    except psutil.ZombieProcess:
        return False  # it has ended and holds nothing


def test_a_run_with_eight_workers_keeps_to_its_documented_limits(tmp_path: Path) -> None:
    """E12: `docs/running.md`, "What a run needs"."""
    write_project(tmp_path)
    command = [str(BIN / "lakewright"), "job", "main", "build", "day=2024-01-01,2024-01-02,2024-01-03"]
    command += ["-j", "8", "--conf", f"spark.driver.memory={HEAP_GIB}g"]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log) as run,
    ):
        seen = list(samples(run))
    assert run.returncode == 0, (tmp_path / "log").read_text()
    most = {name: max(each[name] for each in seen) for name in seen[0]}
    assert most["jars"] > 0, most
    assert most["files"] <= MOST_FILES, most
    assert most["threads"] <= MOST_THREADS, most
    assert most["gib"] <= HEAP_GIB + MOST_BESIDE_HEAP, most
