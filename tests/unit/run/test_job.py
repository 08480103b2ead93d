"""Whole runs of a job over an in-memory store, with targets that only remember what was asked of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from tests.unit.run.bench import Bench, FakeTarget, ended, would_run

from lakewright.errors import SpecError
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.status import Status

TARGETS = {
    "b": {"reads": "/a/$day", "writes": "/b/$day"},
    "a": {"writes": "/a/$day"},
    "other": {"writes": "/other"},
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, TARGETS)


def test_what_a_plan_says_would_run_is_what_runs(bench: Bench) -> None:
    plan = bench.plan(Phase.VERIFY, "day:start=2022-01-01", "day:end=2022-01-03")

    assert bench.world.performed == []
    result = bench.run(Phase.VERIFY, "day:start=2022-01-01", "day:end=2022-01-03")

    assert bench.world.performed == would_run(plan)
    assert result.status is Status.SUCCESS
    days = [instance.parameters["day"] for instance in result.instances]
    assert days == ["2022-01-01", "2022-01-02", "2022-01-03"]


def test_a_second_run_finds_everything_clean(bench: Bench) -> None:
    bench.run(Phase.BUILD)

    again = bench.run(Phase.BUILD)

    assert set(ended(again).values()) == {Status.SKIPPED}
    assert len(bench.world.performed) == 3


def test_what_spark_says_of_a_target_that_can_not_be_observed_is_told_in_one_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason was the name of a class and a logical plan of several lines."""

    def observe(*_: object) -> Observation:
        raise AnalysisException(
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `note` cannot be resolved. SQLSTATE: 42703; line 1 "
            "pos 19;\n'Project [cast(getviewcolumnbynameandordinal(v, note, 0, 1) as string)]\n+- 'Project"
        )

    monkeypatch.setattr(FakeTarget, "observe", observe)
    (reason, *_) = bench.plan(Phase.BUILD).steps()[0].reasons
    assert reason.code is Code.UNOBSERVED
    assert reason.params["why"] == (
        "Spark failed while target 'a' was observed: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `note` "
        "cannot be resolved."
    )


def test_a_plan_writes_nothing(bench: Bench) -> None:
    bench.plan(Phase.VERIFY)

    assert list(bench.journal.runs()) == []
    assert bench.world.versions == {}


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
    assert targets[0]["metrics"] == {"target_records": 1}


def test_what_failed_or_was_blocked_stays_dirty_until_it_succeeds(bench: Bench) -> None:
    """ "Dirtiness": B depends on A; A fails, so B is not run, and both are dirty next time though filled."""
    bench.world.versions.update({"/a/2022-01-01": 1, "/b/2022-01-01": 1, "/other": 1})
    bench.world.broken.add("a")
    failed = bench.run(Phase.BUILD, dirty=("a",), keep_going=True)
    bench.world.broken.clear()
    bench.forget()

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
    bench.world.broken.add("b")
    bench.run(Phase.VERIFY)
    bench.world.broken.clear()
    bench.forget()

    resumed = bench.run(Phase.VERIFY, resume=True)

    assert resumed.status is Status.SUCCESS
    assert [f"{phase} {name}" for _, phase, name in bench.world.performed] == [
        "BUILD b",
        "BUILD other",
        "VERIFY b",
        "VERIFY a",
        "VERIFY other",
    ]


def test_resume_runs_every_day_behind_what_was_held_and_what_depends_on_it(bench: Bench) -> None:
    """The table of `held` has rows, so that only what it waits for shows that it is not clean."""
    bench.write({"held": {"writes": "/held"}, "reader": {"reads": "/held", "writes": "/reader"}, **TARGETS})
    bench.world.versions.update({"/held": 1, "/reader": 1})
    bench.world.held.add("held")
    days = ("day:start=2022-01-01", "day:end=2022-01-02")
    blocked = bench.run(Phase.BUILD, *days, targets=("held", "reader"))
    bench.world.held.clear()

    resumed = bench.plan(Phase.BUILD, *days, resume=True)

    assert blocked.exit_code == 4
    assert [step.target for step in resumed.steps()] == ["held", "reader", "held", "reader"]


def test_what_no_run_was_to_do_is_not_resumed(bench: Bench) -> None:
    bench.run(Phase.BUILD, resume=True)
    assert bench.world.performed == []
    bench.run(Phase.BUILD, retry=True)
    assert bench.world.performed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("day=x",), "'x' is not a date"), (("dy=2022-01-01",), "unknown parameter 'dy'")],
)
def test_wrong_arguments_are_refused_before_anything_is_recorded(
    bench: Bench, arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        bench.run(Phase.BUILD, *arguments)

    assert list(bench.journal.runs()) == []


def test_a_job_without_targets_succeeds_as_often_as_it_is_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {})
    for _ in range(2):
        result = bench.run(Phase.VERIFY)
        assert (result.status, result.exit_code) == (Status.SUCCESS, 0)


def test_when_everything_is_clean_the_run_is_skipped_and_not_a_success(bench: Bench) -> None:
    bench.run(Phase.BUILD)

    again = bench.run(Phase.BUILD)

    assert (again.status, again.exit_code) == (Status.SKIPPED, 0)


def test_a_range_that_holds_nothing_is_named(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    plan = bench.plan(Phase.BUILD, "day:start=2022-01-01", "day:until=2022-01-01")

    assert plan.instances == ()
    assert "the arguments of daily expand to no instance, so there is nothing to run" in caplog.text


def test_another_value_of_a_parameter_is_another_thing_to_build(bench: Bench) -> None:
    bench.run(Phase.BUILD)
    bench.forget()

    bench.run(Phase.BUILD, "day=2022-01-02")

    assert [name for _, _, name in bench.world.performed] == ["a", "b"]
