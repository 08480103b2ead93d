"""A run that is stopped while Spark is at work. Rules of the command line: a second Ctrl-C stops at once."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil
import pytest
from tests.acceptance.command import BIN
from tests.acceptance.lake import SmallLake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ENDLESS = """
mappings:
  endless:
    kind: sql
    sql: SELECT sum(a.id * b.id % 7) AS s FROM range(100000000) a CROSS JOIN range(100000000) b
relations:
  endless: {kind: delta, location: "${project.basedir}/lake/gold/endless"}
targets:
  endless: {kind: relation, mapping: endless, relation: endless}
jobs:
  endless: {targets: endless}
"""


def read_until(stream: IO[str], text: str) -> str:
    """Return the lines up to the one that has a text."""
    said = ""
    while text not in said:
        line = stream.readline()
        assert line, said
        said += line
    return said


def wait_until_spark_works(run: subprocess.Popen[str]) -> None:
    """Return once a thread of the run's JVM has worked at a task for half a second."""
    while all(seconds < 0.5 for seconds in task_seconds(run)):
        assert run.poll() is None
        time.sleep(0.1)


def task_seconds(run: subprocess.Popen[str]) -> Iterator[float]:
    """Yield the processor's seconds of each thread that executes Spark's tasks."""
    for child in psutil.Process(run.pid).children(recursive=True):
        with suppress(psutil.Error, OSError):
            for thread in child.threads():
                if Path(f"/proc/{child.pid}/task/{thread.id}/comm").read_text().startswith("Executor task"):
                    yield thread.user_time


def begun(lake: SmallLake) -> subprocess.Popen[str]:
    """Begin a job whose target does not end by itself."""
    (lake.folder / "model" / "endless.yml").write_text(ENDLESS)
    command = [str(BIN / "lakewright"), "job", "endless", "build", "-v"]
    return subprocess.Popen(
        command, cwd=lake.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.nightly
def test_a_second_signal_ends_spark_jobs_and_the_run_at_once(tmp_path: Path) -> None:
    lake = SmallLake.make(tmp_path / "lake")
    with begun(lake) as run:
        assert run.stderr is not None
        said = read_until(run.stderr, "BUILD endless started")
        wait_until_spark_works(run)
        begin = time.monotonic()
        run.send_signal(signal.SIGINT)
        said += read_until(run.stderr, "a second signal stops at once")
        assert run.poll() is None
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
        seconds = time.monotonic() - begin

    assert run.returncode == 130, said + err
    assert seconds < 30
    assert "ABORTED=1" in out
    (told,) = lake.json("history")
    assert told["status"] == "ABORTED"
    assert lake.json("plan", "endless", "build")["status"] == "WOULD_RUN"


@pytest.mark.nightly
def test_a_signal_while_spark_starts_ends_the_run_at_once(tmp_path: Path) -> None:
    """B8: nothing has run, so that there is no commit to wait for; neither the JVM nor a lock is left."""
    lake = SmallLake.make(tmp_path / "lake")
    with begun(lake) as run:
        assert run.stderr is not None
        said = read_until(run.stderr, "Spark starts")
        children = wait_for_children(run)
        begin = time.monotonic()
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
        seconds = time.monotonic() - begin

    assert run.returncode == 130, said + err
    assert "Stopping at once: Spark is starting, and nothing has run." in err
    assert "Traceback" not in err
    assert "Spark started" not in err
    assert seconds < 10
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert lake.json("plan", "endless", "build")["status"] == "WOULD_RUN"
    assert lake.json("manifest", "ls", "--state", "locked") == []


def wait_for_children(run: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the processes that a run has started, once there is one."""
    while not (children := psutil.Process(run.pid).children(recursive=True)):
        assert run.poll() is None
        time.sleep(0.05)
    return children
