"""`retries` and `timeout` of targets: what passes is tried again, what takes too long is cut off."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.run.bench import Bench, FakeTarget, Listening, ended

from lakewright.errors import CommitConflict, Fault, LeaseHeld, SpecError, StoreUnavailable, TargetError
from lakewright.lake.lake import Lake
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.status import Status
from lakewright.run.result import RunResult
from lakewright.run.step_runner import StepRunner
from lakewright.spec.reason import Reason
from lakewright.targets.context import Context


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were slept, without sleeping."""
    slept: list[float] = []
    monkeypatch.setattr("lakewright.run.job.StepRunner", partial(StepRunner, sleep=slept.append))
    return slept


def bench_of(folder: Path, **target: Any) -> Bench:
    return Bench(folder, {"a": {"writes": "/a", "phases": "build", **target}})


def failing(times: int, error: Callable[[], Exception]) -> Callable[..., Outcome | None]:
    left = iter(range(times))

    def act(target: FakeTarget, context: Context, phase: Phase) -> Outcome | None:
        if next(left, None) is not None:
            raise error()
        return None

    return act


def only(result: RunResult) -> Any:
    (target,) = result.targets()
    return target


def of_function(cause: Exception) -> SpecError:
    """Return the error of a `python` mapping whose function raised another one."""
    error = SpecError.of(f"mapping 'm': f failed: {cause}")
    error.__cause__ = cause
    return error


Conflict = type("DeltaConcurrentModificationException", (Exception,), {})
"""Named as Delta's is."""


@pytest.mark.parametrize(
    "error",
    [
        lambda: CommitConflict("another writer was first"),
        lambda: StoreUnavailable("the store is down"),
        lambda: ConnectionResetError("gone"),
        lambda: of_function(ConnectionResetError("gone")),
        lambda: type("ConcurrentAppendException", (Conflict,), {})("files were added"),
    ],
)
def test_what_passes_by_itself_is_tried_again_and_each_attempt_is_told(
    tmp_path: Path, pauses: list[float], caplog: pytest.LogCaptureFixture, error: Callable[[], Exception]
) -> None:
    bench = bench_of(tmp_path, retries=2)
    bench.world.act = failing(2, error)

    result = bench.run(Phase.BUILD)

    assert ended(result) == {"BUILD a": Status.SUCCESS}
    assert len(bench.world.performed) == 3
    assert [str(reason).partition(":")[0] for reason in only(result).reasons[1:]] == [
        "attempt 1 of 3 failed",
        "attempt 2 of 3 failed",
    ]
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert round(sum(pauses)) == 3


def test_the_last_attempt_fails_the_target(tmp_path: Path, pauses: list[float]) -> None:
    bench = bench_of(tmp_path, retries=1)
    bench.world.act = failing(2, lambda: CommitConflict("another writer was first"))

    result = bench.run(Phase.BUILD)

    assert len(bench.world.performed) == 2
    assert only(result).error.code == "commit_conflict"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (lambda: TargetError("the slice is broken"), Status.FAILED),
        (lambda: ValueError("a defect"), Status.FAILED),
        (lambda: LeaseHeld("another run writes"), Status.BLOCKED),
    ],
)
def test_what_stays_wrong_is_not_tried_again(
    tmp_path: Path, pauses: list[float], error: Callable[[], Exception], status: Status
) -> None:
    bench = bench_of(tmp_path, retries=5)
    bench.world.act = failing(1, error)

    assert ended(bench.run(Phase.BUILD)) == {"BUILD a": status}
    assert len(bench.world.performed) == 1
    assert pauses == []


@pytest.mark.parametrize("code", ["store_unavailable", "executor_lost", "database_unavailable"])
def test_a_failure_that_the_target_itself_tells_of_is_tried_again_if_it_may_pass(
    tmp_path: Path, pauses: list[float], code: str
) -> None:
    bench = bench_of(tmp_path, retries=1)
    told = iter([Outcome(Status.FAILED, error=Fault("it does not answer", code=code))])
    bench.world.act = lambda target, context, phase: next(told, None)

    assert ended(bench.run(Phase.BUILD)) == {"BUILD a": Status.SUCCESS}


def test_nothing_is_tried_again_once_the_run_is_to_stop(tmp_path: Path, pauses: list[float]) -> None:
    bench = bench_of(tmp_path, retries=9)
    listening = Listening()

    def act(target: FakeTarget, context: Context, phase: Phase) -> Outcome | None:
        listening.signal = 2
        raise CommitConflict("another writer was first")

    bench.world.act = act

    assert ended(bench.run(Phase.BUILD, listening=listening)) == {"BUILD a": Status.FAILED}
    assert len(bench.world.performed) == 1


class CancelledError(Exception):
    """What Spark raises where its jobs are cancelled."""


class BusyLake(Lake):
    """A lake whose Spark jobs end when they are cancelled."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake.settings, lake.session)
        self.ends = threading.Event()
        self.tags: list[str | None] = []

    def cancel_jobs(self, tag: str | None = None) -> None:
        self.tags.append(tag)
        self.ends.set()

    def work(self, target: FakeTarget, context: Context, phase: Phase) -> Outcome | None:
        assert self.ends.wait(10)
        raise CancelledError("the job was cancelled")


def test_what_takes_longer_than_allowed_is_cancelled_and_fails(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, retries=3, timeout="PT0.05S")
    bench.lake = lake = BusyLake(bench.lake)
    bench.world.act = lake.work

    result = bench.run(Phase.BUILD)

    assert only(result).status is Status.FAILED
    assert only(result).error.code == "timeout"
    assert "BUILD took longer than PT0.05S" in only(result).error.message
    assert len(bench.world.performed) == 1
    assert lake.tags[0] is not None
    assert lake.tags[0].endswith("BUILD a")


def test_a_target_that_stops_between_two_commits_for_its_time_fails_with_what_it_did(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, timeout="PT0.05S")

    def act(target: FakeTarget, context: Context, phase: Phase) -> Outcome | None:
        while not context.is_stopping():
            threading.Event().wait(0.01)
        return Outcome(Status.ABORTED, metrics={"slices": 3}, reasons=(Reason(Code.STOPPED),))

    bench.world.act = act

    target = only(bench.run(Phase.BUILD))
    assert (target.status, target.error.code, target.metrics) == (Status.FAILED, "timeout", {"slices": 3})


def test_a_target_in_time_is_left_alone(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, timeout="PT1H")

    assert ended(bench.run(Phase.BUILD)) == {"BUILD a": Status.SUCCESS}


@pytest.mark.parametrize(
    ("timeout", "message"),
    [("P1M", "has months"), ("PT0S", "longer than zero"), ("soon", "not a duration")],
)
def test_a_time_of_no_fixed_length_is_refused_when_the_project_is_loaded(
    tmp_path: Path, timeout: str, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        bench_of(tmp_path, timeout=timeout)


def test_a_jvm_that_was_killed_is_told_in_words_and_not_as_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended_process:
        gateway = SimpleNamespace(proc=ended_process)
        monkeypatch.setitem(
            sys.modules,
            "pyspark",
            SimpleNamespace(SparkContext=SimpleNamespace(_gateway=gateway, _active_spark_context=None)),
        )
        bench = bench_of(tmp_path)
        bench.world.act = failing(1, lambda: ConnectionRefusedError("refused"))
        failed = only(bench.run(Phase.BUILD))
    assert failed.error.message == "target 'a': BUILD: Spark's JVM has ended"
    assert "ran out of memory" in failed.error.remedy
    assert "Traceback" not in caplog.text


def test_what_a_relation_tells_of_its_files_is_a_warning_of_the_target_that_reads_it(tmp_path: Path) -> None:
    def act(target: FakeTarget, context: Context, phase: Phase) -> Outcome | None:
        context.workspace.note("relation 'r': the header of a.csv has x where the schema has y")
        return None

    bench = bench_of(tmp_path)
    bench.world.act = act
    assert only(bench.run(Phase.BUILD)).warnings == (
        "target 'a': relation 'r': the header of a.csv has x where the schema has y",
    )


def test_what_a_target_warns_of_is_kept_once_with_its_result(tmp_path: Path) -> None:
    def act(target: FakeTarget, context: Context, phase: Phase) -> Outcome | None:
        for _ in range(2):
            context.warn("column zz is left out")
        context.show("a: 2: column vip is new")
        return Outcome(metrics={"slices": [{"slice": "2", "warnings": ["column vip is new"]}]})

    bench = bench_of(tmp_path)
    bench.world.act = act
    result = bench.run(Phase.BUILD)
    assert only(result).warnings == ("column zz is left out",)
    assert only(result).as_json()["warnings"] == ["column zz is left out"]
    assert [each["warnings"] for each in bench.journal.targets(result.run_id)] == [["column zz is left out"]]
