"""Two runs of one job at once, and one that stood still while another did its work.

The run that stands still is a process of its own; the other one works in the tests' session.

`processing-manifest.md`, "State" (Processing); that other targets take leases, and that a lease ends, is
Lakewright's own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.acceptance.command import BIN, PATH
from tests.acceptance.lake import SmallLake
from tests.commands import Watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

LONG_ENOUGH = 400.0


NUMBERS = """
relations:
  numbers: {kind: delta, location: "${project.basedir}/lake/gold/numbers"}
mappings:
  numbers: {kind: sql, sql: SELECT id FROM range(9)}
targets:
  numbers: {kind: relation, mapping: numbers, relation: numbers}
jobs:
  numbers: {targets: numbers}
"""


@pytest.fixture
def lake(tmp_path: Path, session: SparkSession) -> SmallLake:
    made = SmallLake.make(tmp_path / "lake", session)
    (made.folder / "model" / "numbers.yml").write_text(NUMBERS)
    for number in (1, 2):
        rows = [{"id": key, "name": f"n{number}"} for key in range(5 * number)]
        made.slice("customers", str(number), rows)
    return made


def build(target: str) -> tuple[str, ...]:
    job = "numbers" if target == "numbers" else "daily"
    return ("job", job, "build", "-t", target, "-v")


@contextmanager
def started(lake: SmallLake, *arguments: str, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a run in a process group of its own, and end it with all that it started."""
    run = subprocess.Popen(
        [str(BIN / "lakewright"), *arguments],
        cwd=lake.folder,
        env={**os.environ, "PATH": PATH, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with run:
        try:
            yield run
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG_ENOUGH
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def stands_still(run: subprocess.Popen[str]) -> bool:
    state = Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2].split()[0]
    assert state != "Z", run.communicate()[0]
    return state == "T"


def goes_on(run: subprocess.Popen[str]) -> str:
    os.kill(run.pid, signal.SIGCONT)
    said, _ = run.communicate(timeout=LONG_ENOUGH)
    return said


def test_the_second_run_says_who_runs(lake: SmallLake) -> None:
    with started(lake, *build("numbers"), LAKEWRIGHT_FAILPOINT="after_lease:stop") as first:
        until(lambda: stands_still(first))
        second = lake.run(*build("numbers"))
    assert second.code == 4, second.all
    assert f"(process {first.pid}, run " in second.all


@pytest.mark.nightly
def test_the_second_run_says_who_runs_or_waits_if_it_is_told_to(lake: SmallLake) -> None:
    with started(lake, *build("customers"), LAKEWRIGHT_FAILPOINT="after_lock:stop") as first:
        until(lambda: stands_still(first))
        second = lake.run(*build("customers"))
        assert second.code == 4, second.all
        assert f"(process {first.pid}, run " in second.all

        go_on = partial(os.kill, first.pid, signal.SIGCONT)
        err = Watched("BUILD customers started", go_on)
        waiting = replace(lake, make_err=lambda: err).run(*build("customers"), "--wait")
        said, _ = first.communicate(timeout=LONG_ENOUGH)
        assert first.returncode == 0, said
        assert waiting.code == 0, waiting.all
        assert not err.is_awaited
    assert lake.version("customers") == 1
    assert lake.json("status")["running"] == []


@pytest.mark.nightly
def test_a_run_that_stood_still_commits_nothing_after_another_took_over(lake: SmallLake) -> None:
    project = lake.folder / "project.yml"
    project.write_text(project.read_text() + "manifest: {lease: 2s}\n")
    with started(lake, *build("customers"), LAKEWRIGHT_FAILPOINT="after_read:stop") as zombie:
        until(lambda: stands_still(zombie))
        until(lambda: lake.json("manifest", "ls", "--stale") != [])
        (stale,) = lake.json("manifest", "ls", "--stale")
        assert stale["slice"] == "1.parquet"
        done = lake.run(*build("customers"))
        assert done.code == 0, done.all
        before = (lake.version("customers"), sorted(row["name"] for row in lake.silver("customers")))
        said = goes_on(zombie)

    assert zombie.returncode not in (0, None)
    assert "is lost" in said or "not been renewed" in said
    assert before == (1, ["n2"] * 10)
    assert (lake.version("customers"), sorted(row["name"] for row in lake.silver("customers"))) == before
    shown = lake.json("manifest", "show", stale["item_id"])
    states = [record["state"] for record in shown["records"]]
    assert states == ["NEW", "PROCESSING", "RESOLVED", "PROCESSING", "PROCESSED"]
    assert {row["verdict"] for row in lake.json("manifest", "ls")} == {"processed"}
    assert lake.run("manifest", "fsck").code == 0
