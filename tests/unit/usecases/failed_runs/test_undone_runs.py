"""Which failed runs `status` still lists: those whose work no later run has done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.projects import make_workspace

from lakewright.manifest.journal import Journal, Run
from lakewright.manifest.lease import Holder
from lakewright.plan.phase import Phase, phases_until
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.testing import MemoryStore
from lakewright.usecases.failed_runs.undone_runs import given_instances, undone_runs

NOW = datetime(2024, 5, 1, tzinfo=UTC)
FAILED = Run(
    "failed",
    "shop",
    "daily",
    "BUILD",
    {"day": "1"},
    NOW,
    Holder("here", 1, "then", "x", "ada"),
    "FAILED",
    NOW,
)


def undone(newest_first: Sequence[Run]) -> Iterator[Run]:
    """Return the failed runs of a history whose runs have results in the phases that their facts tell."""
    journal = Journal(MemoryStore())
    for run in newest_first:
        phase = Phase.__members__.get(run.phase)
        is_alone = run.facts.get("alone") or run.facts.get("no_lifecycle")
        ran = () if phase is None else (phase,) if is_alone else phases_until(phase)
        status = "SKIPPED" if run.status == "SUCCESS" else run.status
        names = run.facts.get("targets", ("orders", "names"))
        found = (result(run.parameters["day"], status, each.value, name) for each in ran for name in names)
        journal.record_targets(run, dict(enumerate(found)))
    return undone_runs(journal, newest_first, days)


def days(run: Run) -> frozenset[tuple[tuple[str, str], ...]]:
    """Return the days that a run was given."""
    return frozenset((("day", day),) for day in run.parameters["day"].split(","))


def result(day: str, status: str, phase: str = "BUILD", name: str = "orders") -> dict[str, Any]:
    """Return the recorded result of a target in the instance of a day; `NOT_REACHED` is one as well."""
    is_reached = status != "NOT_REACHED"
    status = status if is_reached else "SKIPPED"
    told = {"status": status, "reasons": [], "is_reached": is_reached}
    return {"name": name, "phase": phase, "instance": {"day": day}, **told}


def listed(*newest_first: tuple[Run, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the ids of the failed runs that are listed of a history of runs with their results."""
    journal = Journal(MemoryStore())
    for run, results in newest_first:
        journal.record_targets(run, dict(enumerate(results)))
    return [run.run_id for run in undone_runs(journal, [run for run, _ in newest_first], days)]


@pytest.mark.parametrize(
    ("later", "is_left"),
    [
        ({"phase": "BUILD"}, False),
        ({"phase": "BUILD", "facts": {"targets": ["orders"]}}, True),
        ({"phase": "VERIFY"}, False),
        ({"phase": "VERIFY", "facts": {"no_lifecycle": True}}, True),
        ({"phase": "VERIFY", "facts": {"alone": True}}, True),  # of a version that did not record it
        ({"phase": "VERIFY", "facts": {"targets": ["orders"]}}, True),
        ({"phase": "CREATE"}, True),
        ({"phase": "DESTROY"}, True),
        ({"phase": "UNDO"}, True),
        ({"phase": "VERIFY", "parameters": {"day": "2"}}, True),
        ({"phase": "VERIFY", "job": "weekly"}, True),
    ],
)
def test_a_failed_build_is_listed_until_a_run_that_builds_all_of_it(
    later: dict[str, Any], is_left: bool
) -> None:
    """Issue 11: after `verify` succeeded, `status` kept the failed `build` of the same job."""
    after = replace(FAILED, run_id="later", status="SUCCESS", started=NOW + timedelta(hours=1), **later)
    assert [run.run_id for run in undone([after, FAILED])] == (["failed"] if is_left else [])


def test_a_verify_that_failed_stands_for_the_build_before_it_and_not_for_the_one_after() -> None:
    verify = replace(FAILED, run_id="verify", phase="VERIFY")
    assert [run.run_id for run in undone([verify, FAILED])] == ["verify"]
    assert [run.run_id for run in undone([FAILED, verify])] == ["failed", "verify"]
    rewind = replace(FAILED, phase="REBUILD")
    assert [run.run_id for run in undone([verify, rewind])] == ["verify", "failed"]
    check = replace(rewind, run_id="check", facts={"check": True})
    checked = replace(check, run_id="checked", status="SUCCESS")
    assert [run.run_id for run in undone([checked, rewind])] == ["failed"]


def test_a_later_range_that_failed_stands_for_the_days_in_it() -> None:
    """Both commands were named, and what the first one had appended, the second one appended again."""
    later = replace(
        FAILED, run_id="range", parameters={"day": "1,2"}, started=NOW + timedelta(minutes=1), finished=None
    )
    other = replace(FAILED, run_id="other", parameters={"day": "3"})
    assert [run.run_id for run in undone([later, other, FAILED])] == ["range", "other"]
    chosen = replace(later, facts={"targets": ["names"]})
    assert [run.run_id for run in undone([chosen, FAILED])] == ["range", "failed"]


def test_of_two_runs_at_once_none_stands_for_the_other() -> None:
    """The second was blocked by the first, which then failed: only the second was listed."""
    first = replace(FAILED, finished=NOW + timedelta(minutes=5))
    second = replace(FAILED, run_id="second", started=NOW + timedelta(minutes=1))
    second = replace(second, finished=NOW + timedelta(minutes=2))
    assert [run.run_id for run in undone([second, first])] == ["second", "failed"]
    retried = replace(FAILED, run_id="retried", started=NOW + timedelta(minutes=9))
    assert [run.run_id for run in undone([retried, second, first])] == ["retried"]
    half: dict[str, Any] = {
        "started": NOW + timedelta(minutes=9),
        "status": "SUCCESS",
        "facts": {"targets": ["orders"]},
    }
    assert [run.run_id for run in undone([replace(first, run_id="half", **half), second, first])] == [
        "second",
        "failed",
    ]


@pytest.mark.parametrize(
    ("held_up", "of_first", "ended", "expected"),
    [
        (["BLOCKED", "NOT_REACHED"], ["SUCCESS", "SUCCESS"], 5, []),
        (["BLOCKED", "NOT_REACHED"], ["SUCCESS", "FAILED"], 5, ["second", "first"]),
        (["FAILED", "NOT_REACHED"], ["SUCCESS", "SUCCESS"], 5, ["second"]),
        (["BLOCKED", "NOT_REACHED"], ["SUCCESS", "SUCCESS"], 1, ["second"]),
    ],
)
def test_a_run_that_was_held_up_is_done_once_the_run_that_went_on_beside_it_succeeds(
    held_up: list[str], of_first: list[str], ended: int, expected: list[str]
) -> None:
    """The run that was blocked by an older one stayed listed although that one did all of it."""
    status = "FAILED" if "FAILED" in of_first else "SUCCESS"
    first = replace(FAILED, run_id="first", status=status, finished=NOW + timedelta(minutes=ended))
    begun, end = NOW + timedelta(minutes=1), NOW + timedelta(minutes=2)
    second = replace(FAILED, run_id="second", started=begun, finished=end)
    steps = ("orders", "sales")
    assert expected == listed(
        (second, [result("1", each, name=name) for each, name in zip(held_up, steps, strict=True)]),
        (first, [result("1", each, name=name) for each, name in zip(of_first, steps, strict=True)]),
    )


def test_a_rewind_that_was_refused_and_a_comparison_leave_nothing_undone() -> None:
    """Issue 11: a refused `rebuild --check` stayed among the runs that failed."""
    rewind = replace(FAILED, phase="REBUILD")
    check = replace(rewind, run_id="check", facts={"check": True})
    refused = replace(rewind, run_id="refused", facts={"refused": True})
    assert list(undone([check])) == []
    assert list(undone([refused])) == []
    assert [run.run_id for run in undone([refused, check, rewind])] == ["failed"]


@pytest.mark.parametrize(
    ("later", "facts", "is_left"),
    [
        ([("2", "SUCCESS"), ("3", "SUCCESS")], {}, False),
        ([("2", "SUCCESS_WITH_ERRORS"), ("3", "SKIPPED")], {}, False),  # skipped, as clean
        ([("2", "SUCCESS"), ("3", "NOT_REACHED")], {}, True),
        ([("2", "SUCCESS"), ("3", "BLOCKED")], {}, True),
        ([("2", "SUCCESS")], {}, True),
        ([("1", "SUCCESS")], {}, True),
        ([("2", "SUCCESS"), ("3", "SUCCESS")], {"targets": ["orders"]}, False),
    ],
)
def test_a_failed_range_is_done_once_each_day_that_it_left_undone_has_succeeded(
    later: Sequence[tuple[str, str]], facts: Mapping[str, Any], is_left: bool
) -> None:
    """After `day=1,2,3` failed and the days succeeded in other runs, `status` called it "not run since"."""
    failed = replace(FAILED, parameters={"day": "1,2,3"})
    wider = replace(FAILED, run_id="wider", status="SUCCESS", parameters={"day": "2,3,4"}, facts=facts)
    left = [result("1", "SUCCESS"), result("2", "FAILED"), result("3", "NOT_REACHED")]
    found = listed((wider, [result(*each) for each in later]), (failed, left))
    assert found == (["failed"] if is_left else [])


def test_the_days_of_a_failed_range_may_succeed_one_by_one() -> None:
    failed = replace(FAILED, parameters={"day": "1,2"}), [result("1", "FAILED"), result("2", "NOT_REACHED")]
    first, second = (
        (replace(FAILED, run_id=day, status="SUCCESS", parameters={"day": day}), [result(day, "SUCCESS")])
        for day in ("1", "2")
    )
    assert listed(second, first, failed) == []
    assert listed(first, failed) == ["failed"]
    assert listed(failed, second, first) == ["failed"]  # it failed after they succeeded


def test_another_target_or_phase_of_a_day_does_not_do_what_is_left() -> None:
    failed = replace(FAILED, parameters={"day": "1,2"}), [result("1", "FAILED"), result("2", "SUCCESS")]
    done = replace(FAILED, run_id="done", status="SUCCESS")
    names = [result("1", "SUCCESS", name="names")]
    assert listed((replace(done, facts={"targets": ["names"]}), names), failed) == ["failed"]
    assert listed((replace(done, phase="CREATE"), [result("1", "SUCCESS", "CREATE")]), failed) == ["failed"]
    # A whole run of the day without the target has done it: the job lacks the target by now.
    assert listed((done, names), failed) == []


@pytest.mark.parametrize("facts", [{"resume": True}, {"no_lifecycle": True}])
def test_a_run_of_some_steps_of_a_day_does_not_do_another_step_that_is_left(facts: dict[str, Any]) -> None:
    """A resumed run of the day, and `verify -nl`, took the place of the build of a range that had failed."""
    verify = replace(FAILED, phase="VERIFY")
    failed = replace(verify, parameters={"day": "1,2"}), [result("1", "FAILED"), result("2", "SUCCESS")]
    later = replace(verify, run_id="later", status="SUCCESS", facts=facts)
    assert listed((later, [result("1", "SUCCESS", "VERIFY")]), failed) == ["failed"]
    assert listed((later, [result("1", "SUCCESS")]), failed) == []


KILLED = replace(FAILED, parameters={"day": "1,2"}, status="ABORTED", finished=None)


@pytest.mark.parametrize(
    ("later", "facts", "is_left"),
    [
        ([("1", "SUCCESS"), ("2", "SUCCESS")], {}, False),
        ([("1", "SUCCESS"), ("2", "SKIPPED"), ("3", "FAILED")], {}, False),
        ([("1", "SUCCESS")], {}, True),
        ([("1", "SUCCESS"), ("2", "FAILED")], {}, True),
        ([("1", "SUCCESS"), ("2", "SUCCESS")], {"targets": ["orders"]}, True),
        ([("1", "SUCCESS"), ("2", "SUCCESS")], {"resume": True}, True),
    ],
)
def test_a_run_that_was_killed_is_done_once_all_days_that_it_was_given_have_succeeded(
    later: Sequence[tuple[str, str]], facts: Mapping[str, Any], is_left: bool
) -> None:
    """It did not record what it left undone."""
    after = replace(FAILED, run_id="later", parameters={"day": "1,2,3"}, status="SUCCESS", facts=facts)
    found = listed((after, [result(*each) for each in later]), (KILLED, [result("1", "FAILED")]))
    assert found == (["failed"] if is_left else [])


def test_the_days_of_a_killed_run_may_succeed_one_by_one_in_runs_that_end() -> None:
    first, second = (
        (replace(FAILED, run_id=day, status="SUCCESS", parameters={"day": day}), [result(day, "SUCCESS")])
        for day in ("1", "2")
    )
    again = replace(second[0], status="ABORTED", finished=None), second[1]
    assert listed(second, first, (KILLED, [])) == []
    assert listed(first, (KILLED, [])) == ["failed"]
    assert listed(again, first, (KILLED, [])) == ["2", "failed"]


PROJECT = """
targets: {orders: {kind: empty}}
jobs:
  daily:
    parameters: [{name: day, type: date}, {name: region, default: eu}]
    targets: [orders]
"""


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({"day": "2024-05-01,2024-05-02", "region": "eu"}, ["2024-05-01", "2024-05-02"]),
        (
            {"day:start": "2024-05-01", "day:until": "2024-05-03", "region": "eu"},
            ["2024-05-01", "2024-05-02"],
        ),
        ({"day": "2024-05-01"}, []),  # the default may have been another one
        ({"day": HIDDEN, "region": "eu"}, []),
        ({"day": "tomorrow", "region": "eu"}, []),
        ({"date": "2024-05-01", "region": "eu"}, []),  # a parameter that the job had
    ],
)
def test_the_instances_of_a_run_follow_from_its_arguments_where_these_tell_all(
    tmp_path: Path, parameters: dict[str, str], found: list[str]
) -> None:
    project = make_workspace(tmp_path, PROJECT).project
    told = given_instances(project)(replace(FAILED, parameters=parameters))
    assert told == {(("day", day), ("region", "eu")) for day in found}
    assert given_instances(project)(replace(FAILED, job="weekly", parameters=parameters)) == frozenset()


@pytest.mark.parametrize(
    ("facts", "done", "is_left"),
    [
        ({"targets": ["names"]}, [result("1", "SUCCESS", name="names")], True),
        ({"targets": ["orders"]}, [result("1", "SUCCESS")], False),
        ({"targets": ["orders"]}, [result("1", "FAILED")], True),
        ({"no_lifecycle": True}, [result("1", "SUCCESS"), result("1", "SUCCESS", name="names")], True),
        ({}, [result("1", "SUCCESS"), result("1", "SUCCESS", name="names")], False),
    ],
)
def test_a_run_of_fewer_steps_with_the_same_arguments_does_only_the_steps_that_it_has(
    facts: dict[str, Any], done: list[dict[str, Any]], is_left: bool
) -> None:
    failed = [result("1", "FAILED")]
    if facts.get("no_lifecycle"):
        failed = [result("1", "FAILED", "CREATE"), result("1", "NOT_REACHED")]
    later = replace(FAILED, run_id="later", status="SUCCESS", facts=facts)
    assert ("failed" in listed((later, done), (FAILED, failed))) is is_left


def test_a_repeated_choice_of_targets_stands_for_the_failed_run_of_it() -> None:
    chosen = replace(FAILED, facts={"targets": ["orders"], "no_lifecycle": True})
    again = replace(chosen, run_id="again")
    assert listed((again, [result("1", "FAILED")]), (chosen, [result("1", "FAILED")])) == ["again"]
