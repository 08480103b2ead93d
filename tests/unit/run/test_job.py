"""Whole runs of a job over an in-memory store, with targets that only remember what was asked of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from lakewright.errors import SpecError, TargetError, UsageError
from lakewright.lake.lake import Lake
from lakewright.lake.session import SessionSettings
from lakewright.lake.workspace import Workspace
from lakewright.manifest.journal import Journal
from lakewright.manifest.lease import Holder
from lakewright.manifest.leases import Leases
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import Agent, Author
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import Step
from lakewright.run.job import JobRequest, JobRun
from lakewright.run.result import RunResult, TargetResult
from lakewright.spec.load import load_project
from lakewright.spec.model import Texts
from lakewright.spec.registry import Registry
from lakewright.stores.memory import MemoryStore
from lakewright.targets.context import Context
from lakewright.targets.target import Target

HOLDER = Holder("here", 1, "", "run", "me")

PROJECT = """
name: fake
modules: [model.yml]
"""

MODEL = """
targets:
  a: {kind: fake, writes: /a/$day}
  b: {kind: fake, reads: /a/$day, writes: /b/$day}
  other: {kind: fake, writes: /other}
jobs:
  daily:
    parameters: [{name: day, type: date}]
    targets: [b, a, other]
"""


class FakeTarget(Target):
    """Writes names into a set instead of data anywhere."""

    filled: ClassVar[set[str]] = set()
    broken: ClassVar[set[str]] = set()
    performed: ClassVar[list[str]] = []

    reads: Texts = ()
    writes: str

    def phases(self) -> frozenset[Phase]:
        return frozenset((Phase.BUILD, Phase.VERIFY))

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        return frozenset(map(Resource.file, self.reads))

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        return frozenset({Resource.file(self.writes)})

    def observe(self, context: Context) -> Observation:
        is_filled = Answer.of(self.writes in self.filled)
        return Observation(self.writes, exists=is_filled, filled=is_filled)

    def execute(self, context: Context, phase: Phase) -> Outcome:
        self.performed.append(f"{phase} {self.name} {self.writes}")
        if self.name in self.broken:
            raise TargetError(f"{self.name} is broken")
        self.filled.add(self.writes)
        return Outcome(metrics={"rows": 1})


@dataclass
class Silent:
    """Nobody listens and nobody interrupts."""

    signal: int | None = None

    def step_started(self, instance: int, step: Step) -> None: ...

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None: ...


class Bench:
    """A project with fake targets, and runs of its job."""

    def __init__(self, folder: Path) -> None:
        (folder / "project.yml").write_text(PROJECT)
        (folder / "model.yml").write_text(MODEL)
        kinds = Registry({"target": {"fake": cast("Any", FakeTarget)}})
        self.project = load_project(folder, kinds=kinds, environ={})
        self.store = MemoryStore()
        self.journal = Journal(self.store)
        self.numbers = itertools.count(1)
        self.start = datetime(2022, 1, 1, tzinfo=UTC)
        self.lake = Lake(self.project.lake, SessionSettings(folder))

    def job(self, phase: Phase, *arguments: str, **options: Any) -> JobRun:
        request = JobRequest("daily", phase, arguments or ("day=2022-01-01",), **options)
        return JobRun(self.project, self.lake, self.journal, request, self.context)

    def context(self, workspace: Workspace) -> Context:
        ids = map(str, itertools.count()).__next__
        return Context(
            workspace=workspace,
            ledger=Ledger(self.store, Author(Agent("test")), ids=ids),
            leases=Leases(self.store, HOLDER, ids),
            clock=lambda: self.start,
            run_id="run",
            say=print,
        )

    def run(self, phase: Phase, *arguments: str, **options: Any) -> RunResult:
        number = next(self.numbers)
        return self.job(phase, *arguments, **options).run(
            run_id=f"run-{number}",
            holder=HOLDER,
            clock=lambda: self.start + timedelta(minutes=number),
            listener=Silent(),
            interruption=Silent(),
            facts={},
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    for state in (FakeTarget.filled, FakeTarget.broken, FakeTarget.performed):
        state.clear()
    return Bench(tmp_path)


def ended(result: RunResult) -> dict[str, Status]:
    return {f"{target.phase} {target.name}": target.status for target in result.targets()}


def test_what_a_plan_says_would_run_is_what_runs(bench: Bench) -> None:
    plan = bench.job(Phase.VERIFY, "day:start=2022-01-01", "day:end=2022-01-03").plan()
    said = [f"{s.phase} {s.target}" for s in plan.steps() if s.status is Planned.WOULD_RUN]

    assert FakeTarget.performed == []
    result = bench.run(Phase.VERIFY, "day:start=2022-01-01", "day:end=2022-01-03")

    assert [line.rpartition(" ")[0] for line in FakeTarget.performed] == said
    assert result.status is Status.SUCCESS

    days = [instance.parameters["day"] for instance in result.instances]
    assert days == ["2022-01-01", "2022-01-02", "2022-01-03"]


def test_a_second_run_finds_everything_clean(bench: Bench) -> None:
    bench.run(Phase.BUILD)

    again = bench.run(Phase.BUILD)

    assert set(ended(again).values()) == {Status.SKIPPED}
    assert len(FakeTarget.performed) == 3


def test_a_plan_writes_nothing(bench: Bench) -> None:
    bench.job(Phase.VERIFY).plan()

    assert list(bench.journal.runs()) == []
    assert FakeTarget.filled == set()


def test_a_run_is_in_the_history_with_each_target(bench: Bench) -> None:
    bench.run(Phase.BUILD)

    (run,) = bench.journal.runs()
    assert (run.job, run.phase, run.status) == ("daily", "BUILD", "SUCCESS")
    assert run.parameters == {"day": "2022-01-01"}
    targets = list(bench.journal.targets(run.run_id))
    assert [(target["name"], target["status"]) for target in targets] == [
        ("a", "SUCCESS"),
        ("b", "SUCCESS"),
        ("other", "SUCCESS"),
    ]
    assert targets[0]["metrics"] == {"rows": 1}


def test_what_failed_or_was_blocked_stays_dirty_until_it_succeeds(bench: Bench) -> None:
    """ "Dirtiness": B depends on A; A fails, so B is not run, and both are dirty next time though filled."""
    FakeTarget.filled.update({"/a/2022-01-01", "/b/2022-01-01", "/other"})
    FakeTarget.broken.add("a")
    failed = bench.run(Phase.BUILD, dirty=("a",), keep_going=True)
    FakeTarget.broken.clear()
    FakeTarget.performed.clear()

    mended = bench.run(Phase.BUILD)
    after = bench.run(Phase.BUILD)

    assert ended(failed) == {
        "BUILD a": Status.FAILED,
        "BUILD b": Status.BLOCKED,
        "BUILD other": Status.SKIPPED,
    }
    assert ended(mended) == {
        "BUILD a": Status.SUCCESS,
        "BUILD b": Status.SUCCESS,
        "BUILD other": Status.SKIPPED,
    }
    assert set(ended(after).values()) == {Status.SKIPPED}


def test_resume_runs_only_what_the_last_run_left_undone(bench: Bench) -> None:
    FakeTarget.broken.add("b")
    bench.run(Phase.VERIFY)
    FakeTarget.broken.clear()
    FakeTarget.performed.clear()

    resumed = bench.run(Phase.VERIFY, resume=True)

    assert resumed.status is Status.SUCCESS
    assert [line.rpartition(" ")[0] for line in FakeTarget.performed] == [
        "BUILD b",
        "BUILD other",
        "VERIFY a",
        "VERIFY b",
        "VERIFY other",
    ]


def test_there_must_be_a_run_to_resume(bench: Bench) -> None:
    with pytest.raises(UsageError, match="no run of daily"):
        bench.run(Phase.BUILD, resume=True)


@pytest.mark.parametrize(
    ("arguments", "message"), [(("day=x",), "'x' is no date"), (("dy=2022-01-01",), "unknown parameter 'dy'")]
)
def test_wrong_arguments_are_refused_before_anything_is_recorded(
    bench: Bench, arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        bench.run(Phase.BUILD, *arguments)

    assert list(bench.journal.runs()) == []
