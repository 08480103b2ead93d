"""Errors of the runner itself, outside the work of a target: they end a run, which is recorded."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests.unit.run.bench import Bench, FakeTarget, Listening, ended

from lakewright.errors import StoreUnavailable
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.plan.step import Step, done_reasons
from lakewright.run.result import TargetResult
from lakewright.run.scheduler import Workers
from lakewright.spec.reason import Reason
from lakewright.targets.context import Context

pytestmark = pytest.mark.timeout(60)

TARGETS = {
    "bad": {"writes": "/bad", "phases": "build"},
    "beside": {"writes": "/beside", "phases": "build"},
    "after_bad": {"after": "bad", "writes": "/after", "phases": "build"},
}


class Unspeakable(Exception):
    """An error whose text can't be had, like one of a JVM that has ended."""

    def __str__(self) -> str:
        raise ConnectionError("the JVM is gone")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, TARGETS)


def recorded(bench: Bench) -> dict[str, str]:
    (run,) = bench.journal.runs()
    return {each["name"]: each["status"] for each in bench.journal.targets(run.run_id)}


@pytest.mark.parametrize("jobs", [1, 4])
def test_an_error_at_the_end_of_a_target_fails_it_and_the_run_ends(
    bench: Bench, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reasons(step: Step, slices: Sequence[str] = ()) -> tuple[Reason, ...]:
        if step.target == "bad":
            raise KeyError("slice")
        return done_reasons(step, slices)

    monkeypatch.setattr("lakewright.run.execution.done_reasons", reasons)

    result = bench.run(Phase.BUILD, jobs=jobs, keep_going=True)

    assert ended(result) == {
        "BUILD bad": Status.FAILED,
        "BUILD beside": Status.SUCCESS,
        "BUILD after_bad": Status.BLOCKED,
    }
    assert result.exit_code == 1
    error = result.targets()[0].error
    assert error is not None
    assert error.message == "bad: BUILD was ended by an error outside the target: KeyError: 'slice'"
    (run,) = bench.journal.runs()
    assert (run.status, run.facts["exit_code"]) == ("FAILED", 1)
    assert recorded(bench) == {"bad": "FAILED", "beside": "SUCCESS", "after_bad": "BLOCKED"}


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Log nothing: handlers that format an error need its text."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("unlogged")
@pytest.mark.parametrize("jobs", [1, 4])
def test_an_error_without_a_text_fails_its_target(bench: Bench, jobs: int) -> None:
    def act(target: FakeTarget, context: Context, phase: Phase) -> None:
        if target.name == "bad":
            raise Unspeakable

    bench.world.act = act

    result = bench.run(Phase.BUILD, jobs=jobs)

    failed = result.targets()[0]
    assert (failed.name, failed.status) == ("bad", Status.FAILED)
    assert failed.error is not None
    assert failed.error.message == "Unspeakable: Unspeakable"


class Failing(Listening):
    """Can't be told of the end of one target."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
        self.failed = Event()

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        if step.target == "bad":
            self.failed.set()
            raise self.error
        super().step_finished(instance, step, result)


@pytest.mark.parametrize("jobs", [1, 4])
def test_an_error_of_a_listener_ends_the_run_after_what_runs_and_all_is_recorded(
    bench: Bench, jobs: int
) -> None:
    listening = Failing(OSError("nobody reads the output"))

    def act(target: FakeTarget, context: Context, phase: Phase) -> Outcome | None:
        if target.name == "beside":
            assert listening.failed.wait(10)
        return None

    bench.world.act = act

    with pytest.raises(OSError, match="nobody reads the output"):
        bench.run(Phase.BUILD, jobs=jobs, listening=listening)

    (run,) = bench.journal.runs()
    assert (run.status, run.facts["exit_code"]) == ("FAILED", 1)
    assert run.finished is not None
    beside = "SUCCESS" if jobs > 1 else "SKIPPED"
    assert recorded(bench) == {"bad": "SUCCESS", "beside": beside, "after_bad": "SKIPPED"}
    last = list(bench.journal.targets(run.run_id))[-1]
    assert last["reasons"] == ["not reached: the run ended with an error: nobody reads the output"]
    assert ("/beside" in bench.world.versions) == (jobs > 1)


def test_a_listener_that_ends_the_program_leaves_no_run_that_counts_as_running(bench: Bench) -> None:
    """In a notebook, SystemExit ends a cell and not the process."""
    listening = Failing(SystemExit(3))
    with pytest.raises(SystemExit):
        bench.run(Phase.BUILD, listening=listening)
    (run,) = bench.journal.runs()
    assert run.finished is not None or run.status != "RUNNING"


@pytest.mark.parametrize("jobs", [1, 4])
def test_a_run_whose_results_cannot_be_recorded_has_no_end_in_the_history(
    bench: Bench, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it left undone is not known, so it counts as killed; and the store is not asked for each step."""
    asked: list[int] = []

    def record(*_: Any) -> None:
        asked.append(1)
        raise StoreUnavailable("the manifest does not answer")

    monkeypatch.setattr("lakewright.manifest.journal.Journal.record_targets", record)

    with pytest.raises(StoreUnavailable):
        bench.run(Phase.BUILD, "day:start=2022-01-01", "day:end=2022-01-09", jobs=jobs)

    (run,) = bench.journal.runs()
    assert run.finished is None
    assert len(asked) <= 4


def test_a_thread_that_the_system_refuses_ends_the_run_after_what_runs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Event()

    class Refused(Thread):
        def start(self) -> None:
            if self.name == "worker-2":
                refused.set()
                raise RuntimeError("can't start new thread")
            super().start()

    def act(target: FakeTarget, context: Context, phase: Phase) -> None:
        assert refused.wait(10)

    monkeypatch.setattr("lakewright.run.scheduler.Thread", Refused)
    bench.world.act = act

    with pytest.raises(RuntimeError, match="new thread"):
        bench.run(Phase.BUILD, jobs=4)

    assert recorded(bench) == {"bad": "SUCCESS", "beside": "SKIPPED", "after_bad": "SKIPPED"}


def test_work_that_raises_an_error_has_it_as_its_result() -> None:
    workers: Workers[str, int] = Workers(1)

    def leave() -> int:
        raise SystemExit(3)

    workers.begin("a", leave)
    done = workers.next_done(10)
    workers.begin("b", lambda: 5)

    assert done is not None
    assert isinstance(done[1], SystemExit)
    assert workers.next_done(10) == ("b", 5)
    workers.close()
