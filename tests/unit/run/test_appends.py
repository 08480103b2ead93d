"""A run that goes on with a failed one adds no rows twice; what nobody can be sure of is told."""

from __future__ import annotations

from pathlib import Path

from tests.unit.run.bench import Bench, FakeTarget

from lakewright.errors import TargetError
from lakewright.manifest.journal import BUILD
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import Plan
from lakewright.run.builds import BuildState, RecordedBuild
from lakewright.run.plan_warnings import ROWS_ADDED_AGAIN
from lakewright.spec.reason import Reason
from lakewright.targets.context import Context

TARGETS = {
    "once": {"writes": "/once", "adds": "once", "buildPolicy": "ALWAYS"},
    "again": {"writes": "/again", "adds": "again", "buildPolicy": "ALWAYS"},
    "other": {"writes": "/other", "buildPolicy": "ALWAYS"},
}


class Appending:
    """Appends, and then fails as long as it is asked to."""

    def __init__(self, bench: Bench, ends: Status | None = None) -> None:
        self.bench = bench
        self.ends = ends
        self.asked: list[tuple[str, str | None]] = []
        self.begun: dict[str, BuildState] = {}
        bench.world.act = self

    def __call__(self, target: FakeTarget, context: Context, phase: Phase) -> Outcome | None:
        if phase is not Phase.BUILD:
            return None
        self.asked.append((target.name, context.append_id))
        self.begun[target.name] = builds(self.bench)[target.name].state
        if target.adds == "once" and context.append_id is not None:
            self.bench.world.appended.append(context.append_id)
        if self.ends is Status.FAILED:
            raise TargetError("it is broken")
        return None if self.ends is None else Outcome(self.ends, reasons=(Reason(Code.INTERRUPTED),))


def builds(bench: Bench) -> dict[str, RecordedBuild]:
    found = map(RecordedBuild.from_json, (each.value for each in bench.store.documents(BUILD)))
    return {each.target: each for each in found}


def warned(plan: Plan) -> dict[str, str]:
    return {step.target: step.warning.code for step in plan.steps() if step.warning is not None}


def would_run(plan: Plan) -> list[str]:
    return [step.target for step in plan.steps() if step.status is Planned.WOULD_RUN]


def test_an_append_that_was_begun_has_the_same_identity_in_each_attempt(tmp_path: Path) -> None:
    bench = Bench(tmp_path, TARGETS)
    appending = Appending(bench, Status.FAILED)
    bench.run(Phase.BUILD, keep_going=True)
    (_, first), *others = appending.asked
    assert first == "lakewright append run-1 0 once"
    assert others == [("again", None), ("other", None)]
    # It was recorded before it began, in case of a kill.
    assert appending.begun == {
        "once": BuildState.BEGUN,
        "again": BuildState.BEGUN,
        "other": BuildState.WANTED,
    }
    assert {each.append for each in builds(bench).values()} == {first, None}
    bench.run(Phase.BUILD, resume=True, keep_going=True)  # fails again
    appending.ends = None
    bench.run(Phase.BUILD)
    assert [each for name, each in appending.asked if name == "once"] == [first, first, first]
    assert {each.state for each in builds(bench).values()} == {BuildState.DONE}

    bench.run(Phase.BUILD)
    assert appending.asked[-3] == ("once", "lakewright append run-4 0 once")


def test_a_second_run_of_an_instance_says_that_it_adds_its_rows_again(tmp_path: Path) -> None:
    """Rules, "Gold: builds": a second `job` adds them again if the policy says dirty, and says so."""
    bench = Bench(tmp_path, TARGETS)
    bench.run(Phase.BUILD)
    assert warned(bench.plan(Phase.BUILD)) == {"once": ROWS_ADDED_AGAIN, "again": ROWS_ADDED_AGAIN}
    assert warned(bench.plan(Phase.BUILD, "day=2022-01-02")) == {}


def test_an_append_without_identity_that_was_cut_off_may_have_added_its_rows(tmp_path: Path) -> None:
    bench = Bench(tmp_path, TARGETS)
    appending = Appending(bench, Status.ABORTED)
    bench.run(Phase.BUILD, keep_going=True)
    bench.world.versions["/again"] = 1  # rows
    assert warned(bench.plan(Phase.BUILD))["again"] == ROWS_ADDED_AGAIN
    appending.ends = None
    bench.run(Phase.BUILD)
    assert builds(bench)["again"].state is BuildState.DONE


def test_a_scheduler_s_next_try_adds_no_rows_that_the_failed_one_has_added(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {**TARGETS, "last": {"writes": "/last", "reads": ["/other"]}})
    bench.world.broken.add("last")
    bench.run(Phase.BUILD)
    bench.world.broken.clear()
    plan = bench.plan(Phase.BUILD, retry=True)
    reasons = {step.target: step.reasons for step in plan.steps()}
    assert (reasons["once"], reasons["again"]) == ((Reason(Code.ADDED_ALREADY),),) * 2
    assert would_run(plan) == ["other", "last"]
    bench.run(Phase.BUILD, retry=True)
    assert "once" in would_run(bench.plan(Phase.BUILD, retry=True)), "the last run succeeded: all is run"


def test_what_another_run_has_appended_since_is_not_appended_by_the_run_that_is_resumed(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, TARGETS)
    appending = Appending(bench, Status.FAILED)
    bench.run(Phase.BUILD, keep_going=True)
    appending.ends = None
    bench.run(Phase.BUILD, "day=2022-01-01,2022-01-02", targets=("again",))
    assert would_run(bench.plan(Phase.BUILD, resume=True)) == ["once", "other"]
