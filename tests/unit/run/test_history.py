"""What a run leaves in the history, and what the next run makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.unit.run.bench import Bench, Listening, ended, would_run

from lakewright.errors import StoreUnavailable
from lakewright.lake.history import mark_of
from lakewright.manifest.journal import BUILD, RUN, RUN_TARGET, Journal
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.store import Write, Written
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.reason import note
from lakewright.plan.resource import Resource
from lakewright.plan.status import Status
from lakewright.plan.step import Step
from lakewright.run.builds import BuildState, RecordedBuild
from lakewright.stores.memory import MemoryStore

RANGE = ("day:start=2022-01-01", "day:end=2022-01-03")


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Killing(Listening):
    """Ends the process when a target begins."""

    victim: str = ""

    def step_started(self, instance: int, step: Step) -> None:
        if step.target == self.victim:
            raise Killed


class Counting(MemoryStore):
    writes = 0
    most = 10_000

    def write(self, write: Write) -> Written:
        self.writes += 1
        if self.writes > self.most:
            raise Killed
        return super().write(write)


def bench_of(folder: Path, **targets: dict[str, Any]) -> tuple[Bench, Counting]:
    bench = Bench(folder, targets)
    store = Counting()
    bench.store = store
    bench.journal = type(bench.journal)(store)
    return bench, store


CHAIN = {"a": {"writes": "/a/$day"}, "b": {"reads": "/a/$day", "writes": "/b/$day"}}


def test_what_has_nothing_to_do_costs_no_write_of_its_own(tmp_path: Path) -> None:
    targets = {f"t{n}": {"writes": f"/t{n}", "phases": "build"} for n in range(50)}
    bench, store = bench_of(tmp_path, **targets)
    bench.run(Phase.BUILD, *RANGE)
    before = store.writes

    bench.run(Phase.BUILD, *RANGE)

    assert store.writes - before == 3
    assert len(list(bench.journal.targets("run-2"))) == 150


def test_a_target_that_was_built_is_recorded_with_what_it_read_and_wrote(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("rows")
    bench, _ = bench_of(tmp_path, a={"reads": [str(tmp_path / "in")], "writes": "/a/$day"})
    bench.run(Phase.BUILD, "day=2022-01-01")
    (build,) = map(RecordedBuild.from_json, (each.value for each in bench.store.documents(BUILD)))
    assert (build.target, build.parameters, build.state) == ("a", {"day": "2022-01-01"}, BuildState.DONE)
    assert build.writes == (Resource.file("/a/2022-01-01"),)
    assert build.inputs == {Resource.file(str(tmp_path / "in")): mark_of(bench.lake, *build.inputs)}


@pytest.mark.parametrize("jobs", [1, 4])
def test_targets_stand_in_the_history_in_the_order_of_the_plan(tmp_path: Path, jobs: int) -> None:
    bench, _ = bench_of(tmp_path, **CHAIN, other={"writes": "/other"})

    result = bench.run(Phase.VERIFY, *RANGE, jobs=jobs)

    entries = [
        (e["instance"]["day"], e["phase"], e["name"], e["status"]) for e in bench.journal.targets("run-1")
    ]
    assert entries == [
        (instance.parameters["day"], target.phase.value, target.name, target.status.value)
        for instance in result.instances
        for phase in instance.phases
        for target in phase.targets
    ]


def test_a_killed_run_is_resumed_with_all_that_it_did_not_tell_of(tmp_path: Path) -> None:
    bench, store = bench_of(tmp_path, **CHAIN)
    planned = would_run(bench.plan(Phase.VERIFY, *RANGE))
    store.most = 1 + 3
    with pytest.raises(Killed):
        bench.run(Phase.VERIFY, *RANGE)
    store.most = 10_000
    bench.forget()

    bench.run(Phase.VERIFY, *RANGE, resume=True)

    # The fourth was done, but nobody was told of it: it is found clean, or is checked again.
    assert bench.world.performed == planned[3:]


def test_a_resumed_run_keeps_to_the_targets_of_the_one_before(tmp_path: Path) -> None:
    bench, store = bench_of(tmp_path, **CHAIN)
    store.most = 1
    with pytest.raises(Killed):
        bench.run(Phase.BUILD, targets=("a",))
    store.most = 10_000

    resumed = bench.run(Phase.BUILD, resume=True)

    assert list(ended(resumed)) == ["BUILD a"]


def test_a_phase_that_failed_is_resumed_after_a_run_of_an_earlier_phase(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, **CHAIN)
    bench.world.broken.add("b")
    bench.run(Phase.VERIFY, *RANGE)
    bench.world.broken.clear()
    left = [
        step for step in would_run(bench.plan(Phase.VERIFY, *RANGE, resume=True)) if "VERIFY" in str(step)
    ]
    assert left
    bench.run(Phase.BUILD, *RANGE)

    after = [
        step for step in would_run(bench.plan(Phase.VERIFY, *RANGE, resume=True)) if "VERIFY" in str(step)
    ]

    assert after == left


def test_a_target_that_failed_is_resumed_after_a_run_of_another_one(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, **CHAIN)
    bench.world.broken.add("b")
    bench.run(Phase.BUILD)
    bench.world.broken.clear()
    bench.run(Phase.BUILD, targets=("a",))

    resumed = bench.run(Phase.BUILD, resume=True)

    assert ended(resumed) == {"BUILD b": Status.SUCCESS}
    assert not ended(bench.run(Phase.BUILD, resume=True))


def test_runs_of_single_targets_are_resumed_together(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, **CHAIN)
    bench.world.broken.add("a")
    bench.run(Phase.BUILD, targets=("a",))
    bench.world.broken.clear()
    bench.run(Phase.BUILD, targets=("b",))

    assert list(ended(bench.run(Phase.BUILD, resume=True))) == ["BUILD a"]


def test_what_only_a_taint_makes_dirty_is_not_forgotten_by_a_killed_run(tmp_path: Path) -> None:
    """ "Dirtiness": a has been built anew, b was to follow and is filled; the run dies between the two."""
    bench, _ = bench_of(tmp_path, **CHAIN)
    bench.run(Phase.BUILD)
    bench.forget()

    with pytest.raises(Killed):
        bench.run(Phase.BUILD, dirty=("a",), listening=Killing(victim="b"))

    after = bench.run(Phase.BUILD)

    assert ended(after) == {"BUILD a": Status.SKIPPED, "BUILD b": Status.SUCCESS}
    assert set(ended(bench.run(Phase.BUILD)).values()) == {Status.SKIPPED}


def test_a_target_that_itself_finds_nothing_to_do_is_not_dirty_for_ever(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, a={"writes": "/a", "phases": "build"})
    bench.world.versions["/a"] = 1
    bench.world.act = lambda target, context, phase: Outcome(
        Status.SKIPPED, reasons=(note("holds rows already"),)
    )

    bench.run(Phase.BUILD, dirty=("a",))

    assert ended(bench.run(Phase.BUILD)) == {"BUILD a": Status.SKIPPED}


def test_an_input_that_changed_is_built_anew_and_nothing_else(tmp_path: Path) -> None:
    """IF_CHANGED: definition and inputs, through what is tainted, whatever else is filled."""
    bench, _ = bench_of(
        tmp_path,
        a={"reads": "/source", "writes": "/a", "buildPolicy": "ifChanged", "phases": "build"},
        b={"reads": "/a", "writes": "/b", "buildPolicy": "ifChanged", "phases": "build"},
        c={"reads": "/other", "writes": "/c", "buildPolicy": "ifChanged", "phases": "build"},
    )
    bench.world.versions |= {"/source": 1, "/other": 1}
    clean = {"BUILD a": Status.SKIPPED, "BUILD b": Status.SKIPPED, "BUILD c": Status.SKIPPED}

    assert set(ended(bench.run(Phase.BUILD)).values()) == {Status.SUCCESS}
    assert ended(bench.run(Phase.BUILD)) == clean

    bench.world.versions["/source"] += 1
    changed = bench.run(Phase.BUILD)
    assert ended(changed) == {**clean, "BUILD a": Status.SUCCESS, "BUILD b": Status.SUCCESS}
    reasons = {target.name: target.reasons for target in changed.targets()}
    assert str(reasons["a"][-1]) == "/source has changed since the last build"
    assert ended(bench.run(Phase.BUILD)) == clean

    bench.write(
        {
            "c": {
                "reads": "/other",
                "writes": "/c",
                "buildPolicy": "ifChanged",
                "phases": "build",
                "retries": 1,
            }
        }
    )
    redefined = bench.run(Phase.BUILD)
    assert ended(redefined) == {"BUILD c": Status.SUCCESS}
    assert str(redefined.targets()[0].reasons[-1]) == "definition has changed since the last build"


def test_what_failed_is_still_changed_the_next_time(tmp_path: Path) -> None:
    bench, _ = bench_of(
        tmp_path, a={"reads": "/source", "writes": "/a", "buildPolicy": "ifChanged", "phases": "build"}
    )
    bench.world.versions["/source"] = 1
    bench.run(Phase.BUILD)
    bench.world.versions["/source"] = 2
    bench.world.broken.add("a")
    bench.run(Phase.BUILD)
    bench.world.broken.clear()

    assert ended(bench.run(Phase.BUILD)) == {"BUILD a": Status.SUCCESS}
    assert ended(bench.run(Phase.BUILD)) == {"BUILD a": Status.SKIPPED}


def test_a_secret_argument_is_kept_nowhere_and_its_run_is_resumed(tmp_path: Path) -> None:
    secret, day = "login_token=correct-horse", "day=2022-01-01"
    bench = Bench(tmp_path, CHAIN, {"parameters": [{"name": "day", "type": "date"}, {"name": "login_token"}]})
    bench.journal = Journal(bench.store, redactor=Redactor(met=bench.project.scope.seen_secrets))
    bench.world.broken.add("b")
    bench.run(Phase.BUILD, day, secret)
    documents = [found for kind in (RUN, RUN_TARGET, BUILD) for found in bench.store.documents(kind)]
    assert len(documents) == 1 + 2 + 2
    assert "correct-horse" not in str(documents)
    bench.world.broken.clear()
    bench.world.versions["/b/2022-01-01"] = 1

    resumed = bench.run(Phase.BUILD, day, secret, resume=True)

    assert ended(resumed) == {"BUILD b": Status.SUCCESS}
    states = [RecordedBuild.from_json(each.value).state for each in bench.store.documents(BUILD)]
    assert states == [BuildState.DONE] * 2


def test_a_run_that_broke_off_is_not_running_although_its_process_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a notebook, a run that ended while the manifest was away was RUNNING until the kernel ended."""
    bench = Bench(tmp_path, {"a": {}})
    write, calls = bench.store.write, iter(range(1))

    def failing(given: Write) -> Any:
        if next(calls, None) is None:
            raise StoreUnavailable("the manifest does not answer")
        return write(given)

    monkeypatch.setattr(bench.store, "write", failing)
    with pytest.raises(StoreUnavailable):
        bench.run(Phase.BUILD)
    assert [each.status for each in bench.journal.runs()] == ["ABORTED"]
    assert [each.status for each in Journal(bench.store).runs()] == ["RUNNING"]

    monkeypatch.undo()
    assert [each.status for each in bench.journal.runs()] == ["ABORTED"]
    (run,) = Journal(bench.store).runs()
    assert (run.status, run.finished) == ("ABORTED", None), "others see it too, once the manifest answers"


def test_a_run_that_ctrl_c_breaks_off_as_it_ends_is_not_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, {"a": {}})
    write, ends = bench.store.write, iter([KeyboardInterrupt])

    def interrupted(given: Write) -> Written:
        is_end = any(put.kind == RUN and put.value and put.value["finished"] for put in given.puts)
        if is_end and (error := next(ends, None)):
            raise error
        return write(given)

    monkeypatch.setattr(bench.store, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bench.run(Phase.BUILD)
    assert [each.status for each in Journal(bench.store).runs()] == ["FAILED"]
