"""A run that is resumed adds no rows twice; what it can't be sure of is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.unit.run.bench import Bench, FakeTarget

from lakewright.errors import Fault, TargetError
from lakewright.manifest.journal import KeptRows, Origin, Taint
from lakewright.manifest.store import Write
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import Plan
from lakewright.run.kept_rows import KEPT_ROWS, REPEATED_ROWS
from lakewright.targets.appending import ADDED_ALREADY
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
        self.left: dict[str, Taint] = {}
        bench.world.act = self

    def __call__(self, target: FakeTarget, context: Context, phase: Phase) -> Outcome | None:
        if phase is not Phase.BUILD:
            return None
        self.asked.append((target.name, context.append_id))
        found = {each.place.target: each for each in self.bench.journal.taints("fake")}
        self.left |= {target.name: found[target.name]} if target.name in found else {}
        if target.adds == "once" and context.append_id is not None:
            self.bench.world.appended.append(context.append_id)
        if self.ends is Status.FAILED:
            raise TargetError("it is broken")
        return None if self.ends is None else Outcome(self.ends, reasons=("interrupted",))


def warnings(plan: Plan) -> dict[str, Fault]:
    return {step.target: step.warning for step in plan.steps() if step.warning is not None}


def test_a_run_that_is_resumed_shares_the_identity_of_its_append(tmp_path: Path) -> None:
    bench = Bench(tmp_path, TARGETS)
    appending = Appending(bench, Status.FAILED)
    bench.run(Phase.BUILD, keep_going=True)
    (_, first), *others = appending.asked
    assert first == "lakewright append run-1 0 once"
    assert others == [("again", None), ("other", None)]
    # It was recorded before it began, in case of a kill.
    assert (appending.left["once"].append_id, appending.left["once"].run_id) == (first, "run-1")
    assert {each.place.target: each.append_id for each in bench.journal.taints("fake")} == {
        "once": first,
        "again": None,
        "other": None,
    }

    assert warnings(bench.plan(Phase.BUILD)) == {}, "where no rows are, none come twice"
    bench.world.versions["/once"] = 1  # the rows
    told = warnings(bench.plan(Phase.BUILD))
    assert {name: each.code for name, each in told.items()} == {"once": REPEATED_ROWS}
    assert told["once"].message == (
        "target 'once': run run-1 has added its rows and did not record it: a build adds them once more"
    )
    resumed = bench.plan(Phase.BUILD, resume=True)
    assert warnings(resumed) == {}
    reasons = {step.target: step.reasons for step in resumed.steps()}
    assert reasons["once"] == (ADDED_ALREADY, "failed in run run-1")
    assert ADDED_ALREADY not in reasons["again"]
    bench.run(Phase.BUILD, resume=True, keep_going=True)  # fails again
    appending.ends = None
    bench.run(Phase.BUILD, resume=True)
    assert [each for name, each in appending.asked if name == "once"] == [first, first, first]
    assert list(bench.journal.taints("fake")) == []

    bench.run(Phase.BUILD)
    assert appending.asked[-3] == ("once", "lakewright append run-4 0 once")


def test_an_append_without_identity_that_was_cut_off_may_have_added_its_rows(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    bench = Bench(tmp_path, {**TARGETS, "again": {**TARGETS["again"], "writes": str(tmp_path / "again")}})
    appending = Appending(bench, Status.FAILED)
    bench.run(Phase.BUILD, keep_going=True)
    killed = appending.left["again"]
    said = "run run-1 may have added its rows already, and a build adds its rows"
    assert (killed.kept, killed.append_id) == (KeptRows(said, Origin.UNSURE), None)
    # One that fails has written nothing.
    assert {each.kept for each in bench.journal.taints("fake")} == {None}

    bench.store.write(
        Write(puts=(killed.place.tainted("was left undone", "run-1", kept=KeptRows(said, Origin.UNSURE)),))
    )
    bench.world.versions[str(tmp_path / "again")] = 1  # rows
    for plan in (bench.plan(Phase.BUILD), bench.plan(Phase.BUILD, resume=True)):
        told = warnings(plan)["again"]
        assert (told.code, told.message) == (KEPT_ROWS, f"target 'again': {said}")
        assert "`lakewright job daily truncate -t again day=2022-01-01 --yes`" in str(told.remedy)

    appending.ends = Status.ABORTED
    bench.run(Phase.BUILD, keep_going=True)
    (left,) = (each for each in bench.journal.taints("fake") if each.place.target == "again")
    assert left.kept == KeptRows(said.replace("run-1", "run-2"), Origin.UNSURE)
    appending.ends = None
    bench.run(Phase.BUILD)
    assert list(bench.journal.taints("fake")) == []


def test_what_another_run_has_appended_since_is_not_appended_by_the_run_that_is_resumed(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, TARGETS)
    appending = Appending(bench, Status.FAILED)
    bench.run(Phase.BUILD, keep_going=True)
    appending.ends = None
    bench.run(Phase.BUILD, "day=2022-01-01,2022-01-02", targets=("again",))
    resumed = bench.plan(Phase.BUILD, resume=True)
    assert [each.target for each in resumed.steps() if each.status is Planned.WOULD_RUN] == ["once", "other"]


def test_a_renamed_target_keeps_the_identity_of_its_append_and_an_emptied_one_does_not() -> None:
    value = {"place": {"project": "p", "target": "t", "phase": "BUILD", "parameters": {}}, "reason": "r"}
    taint = Taint.from_json({**value, "run_id": "r1", "append_id": "a"})
    _, put = taint.renamed("u")
    assert put.value is not None
    assert Taint.from_json(put.value) == replace(taint, place=replace(taint.place, target="u"))
    assert taint.emptied.value is not None
    assert Taint.from_json(taint.emptied.value).append_id is None
