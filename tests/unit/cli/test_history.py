"""What ran, as it is told afterwards."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.documents import checked
from tests.unit.cli.surroundings import NOW, FakeApp, call_with, ended

from lakewright.errors import Fault
from lakewright.manifest.journal import Run
from lakewright.manifest.lease import Holder
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.request import JobRequest
from lakewright.usecases.history import is_resumable, resume_command


def a_history() -> FakeApp:
    app = FakeApp()
    for number, status in enumerate(("FAILED", "SUCCESS", None)):
        run = app.journal.start_run(
            Run(
                run_id=f"{'abc'[number]}{number}-run",
                project="shop",
                job="daily",
                phase="BUILD",
                parameters={"month:start": "2022-01"},
                started=NOW - timedelta(hours=3 - number),
                holder=Holder("here", 1, "then", "x", "ada"),
            )
        )
        for month in ("2022-01", "2022-02"):
            entry = {**ended(reasons=("empty",)).as_json(), "phase": "BUILD", "instance": {"month": month}}
            app.journal.record_targets(run, {int(month[-1]): entry})
        if status:
            finished = run.started + timedelta(seconds=75)
            app.journal.finish_run(run, status, finished=finished, exit_code=0, versions={"lakewright": "1"})
    return app


def runs(*options: str) -> list[dict[str, Any]]:
    answered = call_with(a_history(), "history", *options, "-o", "json")
    assert answered.code == 0, answered.err
    found: list[dict[str, Any]] = checked(json.loads(answered.out))
    return found


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((), ["c2-run", "b1-run", "a0-run"]),
        (("--limit", "1"), ["c2-run"]),
        (("--status", "failed"), ["a0-run"]),
        (("--status", "success_with_errors"), []),
        (("--job", "other"), []),
    ],
)
def test_the_newest_run_comes_first(options: tuple[str, ...], found: list[str]) -> None:
    assert [run["run_id"] for run in runs(*options)] == found


def test_the_page_is_a_table() -> None:
    head, *rows = call_with(a_history(), "history").out.splitlines()
    assert head.split() == ["run", "status", "job", "phase", "parameters", "started", "took"]
    assert rows[1].split()[:5] == ["b1-run", "SUCCESS", "daily", "build", "month:start=2022-01"]
    assert rows[1].endswith("2 h 0 min ago  1 min 15 s")


def test_a_run_is_shown_in_the_shape_in_which_it_was_printed() -> None:
    answered = call_with(a_history(), "history", "show", "b1", "-o", "json")
    shown = checked(json.loads(answered.out))
    assert (shown["run_id"], shown["status"], shown["exit_code"]) == ("b1-run", "SUCCESS", 0)
    assert [instance["parameters"] for instance in shown["instances"]] == [
        {"month": "2022-01"},
        {"month": "2022-02"},
    ]
    (phase,) = shown["instances"][0]["phases"]
    assert (phase["phase"], phase["targets"][0]) == ("BUILD", ended(reasons=("empty",)).as_json())


def test_its_page_is_a_tree() -> None:
    page = call_with(a_history(), "history", "show", "b1-run").out
    assert "    SUCCESS regions (relation) 1.2 s: empty" in page.splitlines()


def test_a_reason_that_an_earlier_version_recorded_is_left_out_if_the_error_has_it() -> None:
    app = a_history()
    (run,) = (each for each in app.journal.runs() if each.run_id == "a0-run")
    error = Fault("column b is gone\nsample: 1").as_json()
    old = {**ended(reasons=("empty", "column b is gone", "")).as_json(), "error": error, "phase": "BUILD"}
    old = {name: value for name, value in old.items() if name != "reason_codes"}
    app.journal.record_targets(run, {1: {**old, "instance": {"month": "2022-01"}}})
    shown = json.loads(call_with(app, "history", "show", "a0", "-o", "json").out)
    (target,) = shown["instances"][0]["phases"][0]["targets"]
    assert [each["code"] for each in target["reason_codes"]] == ["note", "error", "note"]
    page = call_with(app, "history", "show", "a0").out
    assert page.count("column b is gone") == 1


@pytest.mark.parametrize("run", ["zzz", ""])
def test_an_unknown_run_is_wrong_usage(run: str) -> None:
    assert call_with(a_history(), "history", "show", run).code == 2


def test_an_empty_history_says_so() -> None:
    assert call_with(FakeApp(), "history").out == "nothing has run yet\n"


def test_a_choice_that_no_run_meets_is_told_as_that() -> None:
    assert call_with(a_history(), "history", "--status", "skipped").out == "no run matches\n"
    assert call_with(a_history(), "history", "--job", "other").out == "no run matches\n"


@pytest.mark.parametrize(
    ("options", "known"),
    [(("--status", "bogus"), "'running'"), (("--job", "nope"), "there are: daily, other")],
)
def test_a_choice_that_can_not_be_meant_is_wrong_usage(options: tuple[str, ...], known: str) -> None:
    answered = call_with(a_history(), "history", *options)
    assert (answered.code, known in answered.err) == (2, True)


@pytest.mark.parametrize(
    ("given", "typed"),
    [
        ("day=2024-05-04,2024-05-05", "day=2024-05-04,2024-05-05"),
        ('day="north, south",east', "'day=\"north, south\",east'"),
        ("day=it\\,is", "'day=it\\,is'"),
    ],
)
def test_the_command_of_a_failed_run_has_its_arguments_as_they_were_given(given: str, typed: str) -> None:
    app = a_history()
    parameters = JobRequest("daily", Phase.BUILD, (given,)).given
    run = replace(next(app.journal.runs()), run_id="d3-run", started=NOW, parameters=parameters)
    app.journal.finish_run(app.journal.start_run(run), "FAILED", finished=NOW)
    assert resume_command(run) == f"lakewright job daily build {typed} --resume"


@pytest.mark.parametrize(
    ("facts", "options", "words"),
    [
        ({"targets": ["a.*", "b"]}, "-t 'a.*' -t b", "the targets a.*, b"),
        ({"targets": ["a"], "no_lifecycle": True}, "-nl -t a", "the targets a and this phase"),
        ({"no_lifecycle": True}, "-nl", "this phase"),
    ],
)
def test_the_command_of_a_failed_run_has_its_choice_of_targets(
    facts: dict[str, Any], options: str, words: str
) -> None:
    """A command without it would have named all targets of the job, which a `truncate` then empties."""
    app = a_history()
    run = replace(
        next(app.journal.runs()),
        run_id="d3-run",
        phase="TRUNCATE",
        started=NOW,
        status="RUNNING",
        facts=facts,
    )
    app.journal.finish_run(app.journal.start_run(run), "FAILED", finished=NOW)
    typed = f"lakewright job daily truncate {options} month:start=2022-01 --resume --yes"
    assert resume_command(run) == typed
    assert f"\nrestricted to {words}\n" in call_with(app, "history", "show", "d3-run").out
    assert not is_resumable(run)


def test_the_page_of_a_replay_says_who_did_it_and_why_and_names_its_slices() -> None:
    app = a_history()
    facts = {"author": "ada", "reason": "apply", "code": "changed_slice", "slices": ["s1", "s2"]}
    run = replace(next(app.journal.runs()), run_id="r4", job="replay people", phase="REPLAY", facts=facts)
    app.journal.finish_run(app.journal.start_run(run), "SUCCESS", finished=NOW)
    lines = call_with(app, "history", "show", "r4").out.splitlines()
    assert (lines[0], lines[3:]) == (
        "shop/replay people, run r4, SUCCESS",
        ["for ada: apply (changed_slice)", "slices s1, s2"],
    )


def test_runs_are_chosen_by_their_age() -> None:
    assert [run["run_id"] for run in runs("--since", "90m")] == ["c2-run"]
    assert len(runs("--since", "P1D")) == 3
    answered = call_with(a_history(), "history", "--since", "tomorrow")
    assert (answered.code, "is not an age" in answered.err) == (2, True)


class TestDiff:
    """Two runs beside each other."""

    def app(self) -> FakeApp:
        app = a_history()
        run = app.journal.run("c2-run")
        assert run is not None
        changed = replace(ended(reasons=("new",)), metrics={"rows": 1200}, seconds=3.0)
        entry = {**changed.as_json(), "phase": "BUILD", "instance": {"month": "2022-01"}}
        app.journal.record_targets(run, {1: entry})
        failed = replace(ended("added"), status=Status.FAILED, error=Fault("it broke"))
        app.journal.record_targets(run, {9: {**failed.as_json(), "phase": "BUILD", "instance": {}}})
        return app

    def test_what_is_otherwise_is_told_target_by_target(self) -> None:
        answered = call_with(self.app(), "history", "diff", "b1", "c2")
        said = [text.strip() for text in answered.out.splitlines()]
        assert said[2:] == [
            "regions BUILD month=2022-01",
            "took 1.2 s → 3.0 s",
            "said empty → new",
            "rows none → 1,200",
            "added BUILD",
            "not there → FAILED",
            "said nothing → it broke",
            "2 differences, 1 the same",
        ]

    def test_the_document_has_every_target(self) -> None:
        answered = call_with(self.app(), "history", "diff", "b1", "c2", "-o", "json")
        document = checked(json.loads(answered.out))
        assert (document["before"]["run_id"], document["after"]["run_id"]) == ("b1-run", "c2-run")
        first, second, third = document["targets"]
        assert (first["same"], second["same"], third["status"]) == (False, True, [None, "FAILED"])
        assert first["metrics"] == {"rows": [None, 1200]}

    def test_without_another_it_is_the_one_before(self) -> None:
        answered = call_with(self.app(), "history", "diff", "c2", "-o", "json")
        assert checked(json.loads(answered.out))["before"]["run_id"] == "b1-run"

    def test_the_first_run_of_its_kind_is_said_to_be_that_and_is_no_error(self) -> None:
        app = self.app()
        answered = call_with(app, "history", "diff", "a0")
        assert (answered.code, answered.err) == (0, "")
        assert answered.out == (
            "a0-run is the first run of daily up to BUILD with month:start=2022-01, "
            "so there is nothing to compare it with.\n"
        )
        found = checked(json.loads(call_with(app, "history", "diff", "a0", "-o", "json").out))
        assert (found["before"], found["after"]["run_id"], found["targets"]) == (None, "a0-run", [])

    def test_the_first_run_of_its_kind_names_the_run_before_as_one_to_compare_with(self) -> None:
        app = self.app()
        app.journal.start_run(replace(next(app.journal.runs()), run_id="d3-run", started=NOW, phase="VERIFY"))
        page = call_with(app, "history", "diff", "d3", "--project", "lake").out
        assert "with the run before, BUILD month:start=2022-01" in page
        assert "`lakewright history diff c2-run d3-run --project lake`" in page


class TestPrune:
    """Old runs go; what is to be resumed, and what runs, stays."""

    def test_the_last_runs_of_a_kind_stay(self) -> None:
        app = a_history()
        for number in range(3):
            old = Run(
                run_id=f"old-{number}",
                project="shop",
                job="daily",
                phase="BUILD",
                parameters={"month:start": "2021-01"},
                started=NOW - timedelta(days=100 - number),
                holder=Holder("here", 1, "then", "x"),
            )
            app.journal.finish_run(
                app.journal.start_run(old), ("SUCCESS", "SUCCESS", "FAILED")[number], finished=NOW
            )
        told = call_with(app, "history", "prune", "--older-than", "30d", "--dry-run", "-o", "json")
        assert checked(json.loads(told.out)) == {"removed": ["old-0"], "dry_run": True}
        assert call_with(app, "history", "prune", "--older-than", "30d").out == "1 run removed\n"
        left = checked(json.loads(call_with(app, "history", "-o", "json").out))
        assert [run["run_id"] for run in left] == ["c2-run", "b1-run", "a0-run", "old-2", "old-1"]

    def test_what_tells_when_targets_were_built_stays(self) -> None:
        """A run of other targets, or one that failed, has not built what the run before it built."""
        app = FakeApp()
        of_names = {"targets": ["names"]}
        whole = ["SUCCESS", "SUCCESS_WITH_ERRORS", "SUCCESS_WITH_ERRORS", "FAILED"]
        for number, status in enumerate([*whole, "SUCCESS", "SUCCESS"]):
            facts = of_names if number >= len(whole) else {}
            begun = NOW - timedelta(days=100 - number)
            holder = Holder("here", 1, "then", "x")
            run = Run(f"run-{number}", "shop", "daily", "BUILD", {}, begun, holder, facts=facts)
            app.journal.finish_run(app.journal.start_run(run), status, finished=begun)

        call_with(app, "history", "prune", "--older-than", "30d")

        assert sorted(run.run_id for run in app.journal.runs()) == ["run-0", "run-2", "run-3", "run-5"]

    def test_what_was_kept_of_its_targets_goes_with_it(self) -> None:
        app = a_history()
        assert list(app.journal.targets("a0-run"))
        assert call_with(app, "history", "prune", "--older-than", "1h").out == "1 run removed\n"
        assert app.journal.run("a0-run") is None
        assert list(app.journal.targets("a0-run")) == []
        assert len(list(app.journal.targets("b1-run"))) == 2

    def test_it_must_be_said_how_old(self) -> None:
        answered = call_with(a_history(), "history", "prune")
        assert (answered.code, "retention" in answered.err) == (2, True)


def test_a_rebuild_that_only_compared_is_listed_as_such() -> None:
    """Without `--yes` a rebuild compares, and nobody should take it for one that was done."""
    app = a_history()
    run = Run("r", "shop", "rebuild orders", "REBUILD", {}, NOW, Holder("here", 1, "then", "x", "ada"))
    app.journal.finish_run(
        app.journal.start_run(replace(run, facts={"check": True})), "SUCCESS", finished=NOW
    )
    assert "rebuild --check" in call_with(app, "history").out


@pytest.mark.parametrize(
    ("job", "phase", "facts", "typed"),
    [
        ("undo orders", "UNDO", {"slice": "d3", "requeue": True}, "undo orders d3 --requeue"),
        ("undo orders", "UNDO", {"slice": "d3", "entity": "orders"}, "undo orders d3"),
        ("rebuild orders", "REBUILD", {"entity": "orders", "from": "d2"}, "rebuild orders --from=d2"),
        ("replay orders", "REPLAY", {"entity": "orders", "slices": ["d3"]}, "apply orders"),
    ],
)
def test_the_command_of_a_replay_is_that_which_has_asked_for_it(
    job: str, phase: str, facts: dict[str, Any], typed: str
) -> None:
    """The history named a job of that name for what `apply` had replayed. Older runs have no `entity`."""
    run = Run("r", "shop", job, phase, {}, NOW, Holder("here", 1, "then", "x", "ada"), facts=facts)
    assert resume_command(run) == f"lakewright {typed}"
    assert not is_resumable(run)
