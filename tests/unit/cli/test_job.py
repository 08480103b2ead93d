"""`job` and `plan`: what is asked of the application, printed and returned."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.documents import checked
from tests.unit.cli.surroundings import FakeApp, call_with, ended, plan_of, result_of, step

from lakewright.cli.page import plain
from lakewright.cli.render.run import failure_lines
from lakewright.errors import Fault, ItemLocked, Location
from lakewright.errors.fault import BRIEF
from lakewright.plan.observation import Hold, TableChange
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.plan.planner import Instance, PlanRequest, build_plan
from lakewright.plan.reason import Code, error_reason, note
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import Plan
from lakewright.run.result import PhaseResult, RunResult, TargetResult
from lakewright.spec.reason import Reason

BUILD = ("job", "daily", "build", "month=2022-01")
HELD = Fault("it is locked", code=ItemLocked.code, remedy="lakewright manifest release x")
BROKEN = Fault("column b is gone\nsample: 1", location=Location("m.yml", 7), remedy="Put it back.")


def test_a_plan_is_a_tree_with_reasons_and_losses() -> None:
    planned = plan_of(
        step("raw", Phase.CREATE, Planned.CLEAN, ["it is as declared"]),
        step("silver", Phase.CREATE, Planned.CLEAN, ["it is as declared"]),
        step(
            "gold",
            Phase.CREATE,
            changes=(TableChange("add column a"), TableChange("drop column b", "12 values")),
        ),
        step("gold", Phase.BUILD, Planned.BLOCKED, ["locked"], hold=Hold(HELD, is_locked=True)),
    )
    answered = call_with(FakeApp(planned=planned), "plan", "daily", "build", "month=2022-01")
    assert answered.out.splitlines() == [
        "shop/daily up to build, 1 instance",
        "month=2022-01 BLOCKED",
        "  CREATE WOULD_RUN",
        "    CLEAN raw, silver: it is as declared",
        "    WOULD_RUN gold (relation): the partition is empty",
        "      change: add column a",
        "      change: drop column b, loses 12 values",
        "  BUILD BLOCKED",
        "    BLOCKED gold (relation): locked",
        "      do: lakewright manifest release x",
        "Plan. WOULD_RUN=1 CLEAN=2 BLOCKED=1",
    ]
    assert answered.code == 0


def test_what_can_not_be_observed_is_told_in_the_first_phase_only_b5() -> None:
    why = f"s3://lake/bronze/gold can't be listed: {'no credentials were found ' * 2}"
    planned = plan_of(
        *(step(name, Phase.CREATE, reasons=[why]) for name in ("gold", "silver")),
        *(step(name, Phase.BUILD, reasons=[why]) for name in ("gold", "silver", "late")),
        step("gold", Phase.VERIFY, reasons=["VERIFY always runs"]),
    )
    shown = call_with(FakeApp(planned=planned), "plan", "daily", "verify", "month=2022-01").out
    assert [line.strip() for line in shown.splitlines()[2:-1]] == [
        "CREATE WOULD_RUN",
        f"WOULD_RUN gold, silver: {why}".strip(),
        "BUILD WOULD_RUN",
        "WOULD_RUN gold, silver: as in CREATE",
        f"WOULD_RUN late (relation): {why}".strip(),
        "VERIFY WOULD_RUN",
        "WOULD_RUN gold (relation): VERIFY always runs",
    ]


@pytest.mark.parametrize(
    ("phase", "status", "code"),
    [
        (Phase.BUILD, Planned.WOULD_RUN, 3),
        (Phase.CREATE, Planned.WOULD_RUN, 3),
        (Phase.VERIFY, Planned.WOULD_RUN, 0),
        (Phase.BUILD, Planned.CLEAN, 0),
    ],
)
def test_the_detailed_exit_code_tells_work_from_checks(phase: Phase, status: Planned, code: int) -> None:
    planned = plan_of(step(phase=phase, status=status))
    assert call_with(FakeApp(planned=planned), "plan", "daily", "verify", "--detailed-exitcode").code == code


def test_every_option_reaches_the_application() -> None:
    options = (
        *("-f", "-k", "-nl", "-t", "a.*", "-t", "b", "-d", "c", "--resume", "--wait"),
        *("--allow-data-loss", "--allow-backdated", "-j", "3"),
    )
    request = call_with(FakeApp(result=result_of(ended())), *BUILD, *options).app.asked[0]
    assert (request.job, request.phase, request.arguments) == ("daily", Phase.BUILD, ("month=2022-01",))
    assert (request.targets, request.dirty, request.jobs) == (("a.*", "b"), ("c",), 3)
    flags = ("force", "keep_going", "is_alone", "resume", "wait")
    assert all(getattr(request, flag) for flag in flags)
    assert request.permissions == Permissions(allow_data_loss=True, allow_backdated=True)


def test_a_run_is_a_tree_whose_last_line_can_be_found_by_grep() -> None:
    metrics = {
        "slices": [
            {
                "slice": "2022-01-01",
                "strategy": "merge",
                "records_in_slice": 1247,
                "inserted": 1200,
                "updated": 40,
                "deleted": 7,
                "unchanged": 0,
                "changed": 12,
                "inferred_deletes": 0,
                "delta_version": 3,
                "seconds": 2.04,
            }
        ]
    }
    result = result_of(
        ended("raw", Status.SKIPPED, reasons=("the partition is filled",)),
        ended("silver", metrics=metrics, reasons=("1 slice is pending",)),
        ended("sizes", phase=Phase.VERIFY, metrics={"rows": 1200, "share": 0.5}),
    )
    answered = call_with(FakeApp(result=result), *BUILD)
    assert answered.out.splitlines() == [
        "shop/daily up to build, run r1",
        "month=2022-01 SUCCESS",
        "  BUILD SUCCESS",
        "    SUCCESS silver (relation) 1.2 s: 1 slice is pending",
        "      2022-01-01 merge 1,247 records: 1,200 inserted, 40 updated (12 of them changed), 7 deleted"
        " (version 3, 2.0 s)",
        "    SKIPPED raw: the partition is filled",
        "  VERIFY SUCCESS",
        "    SUCCESS sizes (relation) 1.2 s",
        "      rows=1,200 share=0.5",
        "Done. SUCCESS=2 WITH_ERRORS=0 SKIPPED=1 BLOCKED=0 FAILED=0 ABORTED=0 in 90.0 s",
    ]
    assert answered.code == 0


def test_without_a_terminal_a_failure_is_told_once_on_stderr() -> None:
    """A tree in a file refers to stderr, where scripts and schedulers look for errors."""
    failed = ended(
        status=Status.FAILED, error=BROKEN, reasons=("1 slice is pending", error_reason("column b is gone"))
    )
    answered = call_with(FakeApp(result=result_of(failed)), *BUILD)
    assert answered.code == 1
    assert answered.err.splitlines()[-4:] == [
        "FAILED regions in BUILD month=2022-01: column b is gone",
        "  sample: 1",
        "  where: m.yml:7",
        "  do: Put it back.",
    ]
    assert "    FAILED regions (relation): 1 slice is pending; its error is on stderr" in answered.out
    assert (answered.out + answered.err).count("column b is gone") == 1
    whole = call_with(FakeApp(result=result_of(failed)), *BUILD, "-v")
    assert (whole.out + whole.err).count("column b is gone") == 1


@pytest.mark.parametrize(("option", "told"), [((), 1), (("-q",), 1), (("-o", "json"), 1)])
def test_scripts_find_a_failure_on_stderr_with_each_output(option: tuple[str, ...], told: int) -> None:
    failed = ended(status=Status.FAILED, error=BROKEN)
    answered = call_with(FakeApp(result=result_of(failed)), *BUILD, *option)
    assert answered.err.count("column b is gone") == told
    assert answered.out.count("column b is gone") == ("json" in option)


def test_on_a_terminal_a_short_tree_tells_a_failure_once_and_a_long_one_again_below() -> None:
    failed = ended(status=Status.FAILED, error=BROKEN)
    short = call_with(FakeApp(result=result_of(failed)), *BUILD, terminal=True)
    assert short.out.count("column b is gone") == 1
    assert "column b is gone" not in short.err
    many = result_of(failed, *(ended(f"t{number}") for number in range(20)))
    long = call_with(FakeApp(result=many), *BUILD, terminal=True)
    assert (long.out.count("column b is gone"), long.err.count("column b is gone")) == (1, 1)


@pytest.mark.parametrize(
    ("statuses", "signal", "code"),
    [
        ([(Status.SUCCESS, Phase.BUILD, None)], None, 0),
        ([(Status.FAILED, Phase.BUILD, BROKEN)], None, 1),
        ([(Status.BLOCKED, Phase.BUILD, HELD)], None, 4),
        ([(Status.SUCCESS, Phase.BUILD, None), (Status.FAILED, Phase.VERIFY, BROKEN)], None, 5),
        ([(Status.ABORTED, Phase.BUILD, None)], 2, 130),
        ([(Status.ABORTED, Phase.BUILD, None)], 15, 143),
    ],
)
def test_the_exit_code_is_the_results(
    statuses: list[tuple[Status, Phase, Fault | None]], signal: int | None, code: int
) -> None:
    """Lifecycle rules, "Status and exit codes"."""
    targets = [ended(f"t{n}", s, phase, error=error) for n, (s, phase, error) in enumerate(statuses)]
    assert call_with(FakeApp(result=result_of(*targets, interrupted_by=signal)), *BUILD).code == code


def test_under_json_stdout_holds_the_document_and_stderr_the_last_line() -> None:
    answered = call_with(FakeApp(result=result_of(ended())), *BUILD, "-o", "json")
    assert checked(json.loads(answered.out))["run_id"] == "r1"
    assert answered.err.rstrip().splitlines()[-1].startswith("Done. SUCCESS=1 ")


def test_quiet_leaves_the_last_line() -> None:
    answered = call_with(FakeApp(result=result_of(ended())), *BUILD, "-q")
    assert answered.out.startswith("Done. ")
    assert answered.err == ""


def test_without_a_terminal_each_step_is_a_log_line() -> None:
    answered = call_with(FakeApp(result=result_of(ended())), *BUILD, "--log-format", "json")
    begun, finished = (json.loads(text) for text in answered.err.splitlines())
    assert (begun["message"], begun["target"]) == ("BUILD regions started", "regions")
    assert (finished["message"], finished["status"], finished["phase"]) == (
        "BUILD regions ended",
        "SUCCESS",
        "BUILD",
    )


def test_a_targets_own_lines_stay_out_of_the_document() -> None:
    class Talking(FakeApp):
        def plan(self, request: object) -> Plan:
            self.say("hello from a target")
            return super().plan(request)

    for options, stream in (((), "out"), (("-o", "json"), "err")):
        answered = call_with(Talking(planned=plan_of(step())), "plan", "daily", "build", *options)
        assert "hello from a target" in getattr(answered, stream)


def test_on_a_terminal_finished_steps_scroll_by() -> None:
    answered = call_with(FakeApp(result=result_of(ended())), *BUILD, terminal=True)
    assert "BUILD regions" in answered.err
    assert "started" not in answered.err
    assert "\x1b[" in answered.out


def test_a_dry_run_is_the_plan_and_runs_nothing() -> None:
    answered = call_with(FakeApp(planned=plan_of(step())), *BUILD, "--dry-run")
    assert answered.out.endswith("Plan. WOULD_RUN=1 CLEAN=0 BLOCKED=0\n")
    assert len(answered.app.asked) == 1


class TestRemoving:
    """Lifecycle rules, "Flags": truncate and destroy say what they would remove and ask."""

    def app(self, status: Planned = Planned.WOULD_RUN) -> FakeApp:
        planned = plan_of(step("gold", Phase.DESTROY, status, ["it exists"]))
        return FakeApp(planned=planned, result=result_of(ended("gold", phase=Phase.DESTROY)))

    def test_without_a_terminal_it_needs_yes(self) -> None:
        answered = call_with(self.app(), "job", "daily", "destroy")
        assert answered.code == 2
        assert "remove gold (month=2022-01): it exists" in answered.err
        assert "--yes" in answered.err
        assert call_with(self.app(), "job", "daily", "destroy", "--yes").code == 0

    @pytest.mark.parametrize(
        ("typed", "code"), [("y\n", 0), ("YES\n", 0), ("\n", 130), ("no\n", 130), ("", 130)]
    )
    def test_on_a_terminal_it_asks(self, typed: str, code: int) -> None:
        answered = call_with(self.app(), "job", "daily", "destroy", terminal=True, typed=typed)
        assert answered.code == code
        assert "Remove all of this? [y/N]" in answered.err
        assert ("Nothing was removed" in answered.err) == (code != 0)

    def test_a_dry_run_asks_nothing(self) -> None:
        answered = call_with(self.app(), "job", "daily", "destroy", "--dry-run")
        assert (answered.code, answered.err) == (0, "")

    def test_with_nothing_to_remove_it_asks_nothing(self) -> None:
        assert call_with(self.app(Planned.CLEAN), "job", "daily", "destroy").code == 0

    def test_under_json_the_question_needs_yes_as_well(self) -> None:
        answered = call_with(self.app(), "job", "daily", "truncate", "-o", "json")
        assert checked(json.loads(answered.out))["errors"][0]["code"] == "usage"


def range_of(*statuses: Status) -> RunResult:
    """Return the result of a range of days, in each of which two targets ended with the same status."""
    found = result_of(ended("raw"), ended("silver"))
    (instance,) = found.instances
    (phase,) = instance.phases
    instances = []
    for day, one in enumerate(statuses, 1):
        targets = tuple(
            replace(target, status=one, reasons=(Reason(Code.FILLED),)) for target in phase.targets
        )
        phases = (replace(phase, targets=targets),)
        instances.append(replace(instance, parameters={"day": f"2024-05-{day:02}"}, phases=phases))
    return replace(found, instances=tuple(instances))


def test_the_report_of_a_range_tells_what_happened_and_counts_the_rest() -> None:
    """C2: instances in which nothing happened are one line; -v shows all."""
    app = FakeApp(result=range_of(Status.SKIPPED, Status.SKIPPED, Status.SUCCESS, *[Status.SKIPPED] * 7))
    shown = call_with(app, *BUILD).out.splitlines()
    assert shown[1:-1] == [
        "day=2024-05-01 … day=2024-05-02 SKIPPED 2 instances: 4 targets: is filled",
        "day=2024-05-03 SUCCESS",
        "  BUILD SUCCESS",
        "    SUCCESS raw (relation) 1.2 s: is filled",
        "    SUCCESS silver (relation) 1.2 s: is filled",
        "day=2024-05-04 … day=2024-05-10 SKIPPED 7 instances: 14 targets: is filled",
    ]
    whole = call_with(app, *BUILD, "-v").out
    assert whole.count("SKIPPED raw, silver: is filled") == 9


def test_instances_of_which_a_resumed_run_runs_nothing_have_the_reason() -> None:
    """The reason was empty: their phases have no targets."""
    request = PlanRequest((Phase.VALIDATE, Phase.BUILD), only=frozenset())
    planned = build_plan("shop", "daily", [Instance({}, ())], request, count=1).instances[0].phases
    phases = tuple(PhaseResult(each.phase, (), each.note) for each in planned)
    found = range_of(*[Status.SKIPPED] * 2)
    result = replace(found, instances=tuple(replace(each, phases=phases) for each in found.instances))
    assert call_with(FakeApp(result=result), *BUILD).out.splitlines()[1:-1] == [
        "day=2024-05-01 … day=2024-05-02 SKIPPED 2 instances: no target was left undone"
    ]


def test_a_report_that_folds_what_was_skipped_keeps_the_reasons_of_build() -> None:
    """A day whose slices have not arrived is not hidden behind what is true of each day."""
    skipped = [
        ended(name, Status.SKIPPED, phase=phase, reasons=(reason,))
        for name in ("raw", "silver")
        for phase, reason in (
            (Phase.VALIDATE, "there is no slice to check"),
            (Phase.CREATE, "exists and conforms"),
            (Phase.BUILD, "bronze has no slice that it takes (slices: 2024-05-07*)"),
        )
    ]
    shown = call_with(FakeApp(result=result_of(*skipped)), *BUILD).out
    assert "6 targets: bronze has no slice that it takes (slices: 2024-05-07*), " in shown
    assert "and 1 more reason; -v shows all" in shown


def test_targets_that_were_skipped_beside_others_are_counted_by_reason() -> None:
    skipped = [
        ended(name, Status.SKIPPED, reasons=(reason,))
        for name, reason in (("a", "is clean"), ("b", "is empty"), ("c", "is clean"), ("d", "is late"))
    ]
    shown = call_with(FakeApp(result=result_of(ended("raw"), *skipped)), *BUILD).out
    assert "SKIPPED 2 targets: is clean\n" in shown
    assert "SKIPPED b: is empty\n" in shown
    assert "SKIPPED 1 more target for 1 other reason; -v shows all" in shown


def test_a_failed_target_without_rows_shows_no_counts() -> None:
    failed = ended("raw", Status.FAILED, metrics={"inserted": 0, "updated": 0}, error=Fault("no"))
    assert "inserted" not in call_with(FakeApp(result=result_of(failed)), *BUILD).out


def test_progress_of_a_range_names_the_instance_and_how_many_there_are() -> None:
    """C2: `[3/10] day=2024-05-03 BUILD regions`."""
    app = FakeApp(result=range_of(Status.SUCCESS, Status.SUCCESS))
    assert "[2/2] day=2024-05-02 BUILD silver started" in call_with(app, *BUILD).err
    drawn = call_with(app, *BUILD, terminal=True).err
    assert "[1/2] day=2024-05-01 BUILD raw" in drawn
    alone = FakeApp(result=range_of(Status.SUCCESS))
    assert "[1/1]" not in call_with(alone, *BUILD).err


def test_a_warning_is_not_repeated_where_the_same_target_failed_afterwards() -> None:
    """C3: no SUCCESS_WITH_ERRORS in VALIDATE before the FAILED of the same slice."""
    found = Fault("a key occurs twice")
    result = result_of(
        ended("people", Status.SUCCESS_WITH_ERRORS, phase=Phase.VALIDATE, error=found),
        ended("prices", Status.SUCCESS_WITH_ERRORS, phase=Phase.VALIDATE, error=found),
        ended("people", Status.FAILED, phase=Phase.BUILD, error=found),
    )
    shown = call_with(FakeApp(result=result), *BUILD).err
    assert "FAILED people in BUILD" in shown
    assert "people in VALIDATE" not in shown
    assert "SUCCESS_WITH_ERRORS prices in VALIDATE" in shown


def test_the_error_of_a_slice_that_validate_found_is_repeated_once_after_a_long_tree() -> None:
    """C3: BUILD names the slice and the command; the message stands where the slice failed."""
    found = Fault("the slice 2 lacks the column id", code="slice")
    brief = "orders/2 failed earlier in this run"
    told = Fault(f"{brief}: {found.message}", remedy="Fix the cause.", code="item_failed")
    told = replace(told, details={BRIEF: brief})
    checked = TargetResult("orders", "entity", Phase.VALIDATE, Status.SUCCESS_WITH_ERRORS, error=found)
    built = TargetResult("orders", "entity", Phase.BUILD, Status.FAILED, error=told)
    verified = TargetResult(
        "orders", "entity", Phase.VERIFY, Status.BLOCKED, reasons=(note("failed in BUILD"),)
    )
    result = result_of(checked, built, verified)
    lines = [text for each in failure_lines(result) for text in plain(each)]
    assert [text for text in lines if "lacks the column" in text] == [
        "SUCCESS_WITH_ERRORS orders in VALIDATE month=2022-01: the slice 2 lacks the column id"
    ]
    assert "FAILED orders in BUILD month=2022-01: orders/2 failed earlier in this run" in lines


def test_warnings_of_a_target_stand_below_it_and_are_counted_with_q() -> None:
    slices = [{"slice": "2", "warnings": ["column vip is new"]}]
    warned = (
        ended("gold", warnings=("column zz is left out",)),
        TargetResult("people", "entity", Phase.BUILD, Status.SUCCESS, metrics={"slices": slices}),
        ended("plain"),
    )
    app = FakeApp(result=result_of(*warned))
    shown = call_with(app, *BUILD)
    assert "      warning: column zz is left out\n" in shown.out
    assert "targets have warnings" not in shown.err
    assert call_with(app, "-q", *BUILD).err.splitlines()[-1] == (
        "warning: 2 targets have warnings: gold, people; `lakewright history show r1` shows them"
    )
    quiet = call_with(FakeApp(result=result_of(ended("plain"))), "-q", *BUILD)
    assert "warning" not in quiet.err


def test_metrics_with_labels_are_told_in_words() -> None:
    observed = [{"value": 1500, "labels": {"category": "mapping", "kind": "observe", "name": "seen"}}]
    measured = [
        {"value": 2.5, "labels": {"measure": "prices", "country": "GB"}},
        {"value": None, "labels": {"measure": "prices", "country": "NL"}},
    ]
    target = ended("gold", metrics={"n": observed, "price": measured, "rows": 3})
    assert (
        "n=1,500 (name=seen) price=2.5 (measure=prices, country=GB), none (measure=prices, country=NL) rows=3"
    ) in call_with(FakeApp(result=result_of(target)), *BUILD).out
