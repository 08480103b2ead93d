"""What follows from how a step ends. No Spark, no files: steps are functions here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from signal import SIGALRM, SIGINT, pthread_kill, siginterrupt, signal
from threading import Barrier, Event, Timer, main_thread
from time import sleep

import pytest

from lakewright.errors import ItemLocked, JvmEnded, LakeMoved, VerificationError
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code, note
from lakewright.plan.resource import Resource
from lakewright.plan.status import Planned, Status, overall
from lakewright.plan.step import InstancePlan, PhasePlan, Plan, Step
from lakewright.run.execution import ExecutionOptions, execute
from lakewright.run.result import RunResult, TargetResult
from lakewright.spec.reason import Reason

NOW = datetime(2022, 1, 1, tzinfo=UTC)


@dataclass
class Recorder:
    performed: list[str] = field(default_factory=list)
    signal: int | None = None

    def step_started(self, instance: int, step: Step) -> None:
        self.performed.append(f"{instance} {step.phase} {step.target}")

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        pass


def step(
    target: str, phase: Phase = Phase.BUILD, status: Planned = Planned.WOULD_RUN, kind: str = "relation"
) -> Step:
    return Step(phase, target, kind, status, (Reason(Code.EMPTY),))


def plan_of(*phases: PhasePlan, instances: int = 1) -> Plan:
    made = tuple(InstancePlan({"day": str(n)}, phases) for n in range(instances))
    return Plan("p", "j", phases[-1].phase, made)


def run(
    plan: Plan,
    perform: Callable[[int, Step], Outcome],
    *,
    keep_going: bool = False,
    jobs: int = 1,
    recorder: Recorder | None = None,
) -> tuple[RunResult, list[str]]:
    listener = recorder or Recorder()
    runner = ExecutionOptions("r1", perform, lambda: NOW, listener, listener, keep_going, jobs)
    return execute(plan, runner), listener.performed


def failing(*names: str) -> Callable[[int, Step], Outcome]:
    def perform(instance: int, step: Step) -> Outcome:
        if step.target in names:
            raise ValueError("broken")
        return Outcome()

    return perform


def statuses(result: RunResult) -> list[tuple[str, Status]]:
    return [(target.name, target.status) for target in result.targets()]


CHAIN = PhasePlan(
    Phase.BUILD,
    (step("a"), step("b"), step("c"), step("other")),
    {"b": frozenset({"a"}), "c": frozenset({"b"})},
)


def test_clean_targets_are_skipped_with_their_reason() -> None:
    result, performed = run(plan_of(PhasePlan(Phase.BUILD, (step("a", status=Planned.CLEAN),))), failing())

    assert performed == []
    assert statuses(result) == [("a", Status.SKIPPED)]
    assert result.status is Status.SKIPPED
    assert result.exit_code == 0


def test_what_the_plan_has_noted_is_said_once() -> None:
    noted = replace(step("a"), reasons=(Reason(Code.EMPTY), note("a note")))

    outcome = Outcome(reasons=(note("a note"), note("done")))

    result, _ = run(plan_of(PhasePlan(Phase.BUILD, (noted,))), lambda *_: outcome)

    (target,) = result.targets()
    assert target.reasons[1:] == (note("a note"), note("done"))


def test_dependents_of_a_failure_are_blocked_and_the_rest_is_not_reached() -> None:
    result, performed = run(plan_of(CHAIN), failing("a"))

    assert performed == ["0 BUILD a"]
    assert statuses(result) == [
        ("a", Status.FAILED),
        ("b", Status.BLOCKED),
        ("c", Status.BLOCKED),
        ("other", Status.SKIPPED),
    ]
    assert result.exit_code == 1


def test_a_target_that_ends_the_process_fails_like_any_other() -> None:
    def leave(instance: int, step: Step) -> Outcome:
        sys.exit(3)

    result, _ = run(plan_of(PhasePlan(Phase.BUILD, (step("a"),))), leave)

    (target,) = result.targets()
    assert target.status is Status.FAILED
    assert target.error is not None
    assert target.error.message == "SystemExit: 3"


def test_keep_going_runs_what_does_not_depend_on_the_failure() -> None:
    result, performed = run(plan_of(CHAIN), failing("a"), keep_going=True)

    assert performed == ["0 BUILD a", "0 BUILD other"]
    assert statuses(result) == [
        ("a", Status.FAILED),
        ("b", Status.BLOCKED),
        ("c", Status.BLOCKED),
        ("other", Status.SUCCESS),
    ]


def test_a_failed_entity_stops_only_what_depends_on_it() -> None:
    phase = PhasePlan(
        Phase.BUILD,
        (step("bad", kind="entity"), step("good", kind="entity"), step("gold")),
        {"gold": frozenset({"bad"})},
    )

    result, performed = run(plan_of(phase), failing("bad"))

    assert performed == ["0 BUILD bad", "0 BUILD good"]
    assert dict(statuses(result))["gold"] is Status.BLOCKED


def test_phases_and_instances_after_a_failure_are_listed_as_not_reached() -> None:
    plan = plan_of(
        PhasePlan(Phase.BUILD, (step("a"),)), PhasePlan(Phase.VERIFY, (step("a", Phase.VERIFY),)), instances=2
    )

    result, performed = run(plan, failing("a"))

    assert performed == ["0 BUILD a"]
    assert [status for _, status in statuses(result)] == [Status.FAILED, *[Status.SKIPPED] * 3]
    reasons = [target.reasons[0] for target in result.targets()]
    assert reasons[1] == Reason(Code.PHASE_UNDONE, {"phase": "BUILD", "ended": "failed"})
    assert reasons[2] == Reason(Code.INSTANCE_FAILED, {"instance": "day=0"})


def test_a_target_that_failed_is_blocked_in_later_phases_and_so_is_what_depends_on_it() -> None:
    create = PhasePlan(Phase.CREATE, (step("a", Phase.CREATE),))
    plan = plan_of(create, CHAIN)

    def perform(instance: int, step: Step) -> Outcome:
        if step.phase is Phase.CREATE:
            raise ValueError("broken")
        return Outcome()

    result, performed = run(plan, perform, keep_going=True)

    assert performed == ["0 CREATE a", "0 BUILD other"]
    assert [target.reasons for target in result.targets()][1:3] == [
        (Reason(Code.OWN_UNDONE, {"phase": "CREATE", "ended": "failed"}),),
        (Reason(Code.SOURCE_UNDONE, {"target": "a", "ended": "is blocked"}),),
    ]


def test_what_is_clean_only_by_an_earlier_instance_is_blocked_if_that_one_failed() -> None:
    made = PhasePlan(Phase.CREATE, (step("a", Phase.CREATE),))
    clean = replace(made.steps[0], status=Planned.CLEAN, relies_on=(0, Phase.CREATE, "a"))
    instances = (
        InstancePlan({"day": "0"}, (made,)),
        InstancePlan({"day": "1"}, (replace(made, steps=(clean,)),)),
    )

    result, _ = run(Plan("p", "j", Phase.CREATE, instances), failing("a"), keep_going=True)

    assert statuses(result) == [("a", Status.FAILED), ("a", Status.BLOCKED)]
    (reason,) = result.targets()[1].reasons
    assert (reason.code, reason.params["target"], reason.params["instance"]) == (
        Code.RELIED_UNDONE,
        "a",
        "day=0",
    )


def test_a_failed_instance_stops_later_ones_and_leaves_earlier_ones_to_end() -> None:
    """Side by side as one by one; E13: an instance whose VERIFY was not reached is no success."""
    both = Barrier(3, timeout=10)

    def perform(instance: int, step: Step) -> Outcome:
        if step.phase is Phase.BUILD:
            both.wait()
        if (instance, step.phase) == (1, Phase.BUILD):
            raise ValueError("broken")
        if instance != 1:
            sleep(0.05)
        return Outcome()

    build = (
        PhasePlan(Phase.BUILD, (replace(step("a"), provides=frozenset({Resource.file(f"/{n}")})),))
        for n in range(3)
    )
    verify = PhasePlan(Phase.VERIFY, (step("a", Phase.VERIFY),))
    instances = tuple(InstancePlan({"day": str(n)}, (phase, verify)) for n, phase in enumerate(build))

    result, performed = run(Plan("p", "j", Phase.VERIFY, instances), perform, jobs=3)

    assert "0 VERIFY a" in performed
    assert "1 VERIFY a" not in performed
    assert "2 VERIFY a" not in performed
    assert [instance.status for instance in result.instances] == [
        Status.SUCCESS,
        Status.FAILED,
        Status.ABORTED,
    ]


def test_what_somebody_else_holds_is_blocked_and_exits_with_4() -> None:
    def locked(instance: int, step: Step) -> Outcome:
        raise ItemLocked("run r0 holds the item")

    result, _ = run(plan_of(CHAIN), locked)

    assert statuses(result)[0] == ("a", Status.BLOCKED)
    assert result.exit_code == 4

    def moved(instance: int, step: Step) -> Outcome:
        raise LakeMoved("the lake was moved")

    assert run(plan_of(CHAIN), moved)[0].exit_code == 4

    create = PhasePlan(Phase.CREATE, (step("a", Phase.CREATE),))
    result, _ = run(plan_of(create, CHAIN), locked)
    assert {str(target.reasons[-1]) for target in result.targets()[1:]} == {"not reached: CREATE is blocked"}


def test_a_failed_verification_alone_exits_with_5() -> None:
    def empty(instance: int, step: Step) -> Outcome:
        raise VerificationError("the table is empty")

    result, _ = run(plan_of(PhasePlan(Phase.VERIFY, (step("a", Phase.VERIFY),))), empty)

    assert result.exit_code == 5


def test_an_interruption_finishes_the_step_at_hand_and_skips_the_rest() -> None:
    recorder = Recorder()

    def interrupting(instance: int, step: Step) -> Outcome:
        recorder.signal = 2
        return Outcome()

    result, performed = run(plan_of(CHAIN), interrupting, recorder=recorder)

    assert performed == ["0 BUILD a"]
    assert statuses(result) == [("a", Status.SUCCESS), *[(n, Status.SKIPPED) for n in ("b", "c", "other")]]
    assert result.exit_code == 130


def test_a_second_interruption_aborts_the_step_at_hand() -> None:
    recorder = Recorder(signal=None)

    def interrupted(instance: int, step: Step) -> Outcome:
        recorder.signal = 2
        raise KeyboardInterrupt

    result, _ = run(plan_of(CHAIN), interrupted, recorder=recorder)

    assert statuses(result)[0] == ("a", Status.ABORTED)
    assert result.status is Status.ABORTED, "an interrupted run is no failed one (C3, B8)"


@pytest.mark.parametrize("is_raised", [True, False])
@pytest.mark.parametrize(
    ("signal", "details", "status"),
    [(15, {}, Status.ABORTED), (None, {}, Status.FAILED), (15, {"memory": True}, Status.FAILED)],
)
def test_a_jvm_that_ends_by_the_signal_of_the_run_is_no_failure_of_the_target_e11(
    signal: int | None, details: dict[str, bool], status: Status, is_raised: bool
) -> None:
    """A SIGTERM to the process group ends Spark's JVM before the run is told to stop."""
    error = JvmEnded("Spark's JVM has ended", details=details)

    def lose_jvm(instance: int, step: Step) -> Outcome:
        if is_raised:
            raise error
        return Outcome(Status.FAILED, error=error.as_fault())

    recorder = Recorder()

    def signalled(instance: int, step: Step) -> Outcome:
        recorder.signal = signal
        return lose_jvm(instance, step)

    result, _ = run(plan_of(CHAIN), signalled, recorder=recorder)

    assert statuses(result)[0] == ("a", status)
    assert result.exit_code == (1 if signal is None else 143)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_second_interruption_cuts_off_what_threads_wait_for(jobs: int) -> None:
    """What it waits for then fails, which is no failure of the target."""
    waits = Event()

    class Interrupting(Recorder):
        def step_started(self, instance: int, step: Step) -> None:
            super().step_started(instance, step)
            Timer(0.05, lambda: pthread_kill(main_thread().ident or 0, SIGINT)).start()

    def wait(instance: int, step: Step) -> Outcome:
        assert waits.wait(10)
        raise ValueError("what it waited for was cancelled")

    recorder = Interrupting()
    runner = ExecutionOptions("r1", wait, lambda: NOW, recorder, recorder, jobs=jobs, cut_off=waits.set)

    result = execute(plan_of(PhasePlan(Phase.BUILD, (step("a"),)), instances=3), runner)

    aborted, *rest = [status for _, status in statuses(result)]
    assert aborted is Status.ABORTED
    assert set(rest) <= {Status.ABORTED, Status.SKIPPED}
    assert result.exit_code == 130
    assert result.targets()[-1].reasons[-1].code is Code.RUN_INTERRUPTED


class TimeOut(BaseException):
    """As Airflow raises it in a handler of SIGALRM."""


@pytest.mark.usefixtures("interruptible")
def test_an_error_of_a_handler_of_signals_cuts_off_the_run_and_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread went on and committed, and the run counted as running as long as the process lived."""

    class Told(Recorder):
        def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
            ended.append(result.status)

    waits, recorder = Event(), Told()
    ended: list[Status] = []

    def time_out(*_: object) -> None:
        raise TimeOut

    def wait(instance: int, step: Step) -> Outcome:
        Timer(0.05, lambda: pthread_kill(main_thread().ident or 0, SIGALRM)).start()
        assert waits.wait(10)
        raise ValueError("what it waited for was cancelled")

    before = signal(SIGALRM, time_out)
    try:
        with pytest.raises(TimeOut):
            execute(
                plan_of(CHAIN),
                ExecutionOptions("r1", wait, lambda: NOW, recorder, recorder, cut_off=waits.set),
            )
    finally:
        signal(SIGALRM, before)
    assert (ended[0], len(ended)) == (Status.ABORTED, 4)
    assert Status.SUCCESS not in ended


@pytest.mark.usefixtures("interruptible")
def test_a_handler_that_resumes_waits_does_not_keep_the_run_from_its_signals() -> None:
    """Polars' handler of SIGINT does so: Ctrl-C was heard when the work at hand had ended."""
    waits, recorder = Event(), Recorder()

    def wait(instance: int, step: Step) -> Outcome:
        Timer(0.05, lambda: pthread_kill(main_thread().ident or 0, SIGINT)).start()
        assert waits.wait(10)
        raise ValueError("what it waited for was cancelled")

    siginterrupt(SIGINT, False)
    try:
        options = ExecutionOptions("r1", wait, lambda: NOW, recorder, recorder, cut_off=waits.set)
        result = execute(plan_of(CHAIN), options)
    finally:
        siginterrupt(SIGINT, True)
    assert statuses(result)[0] == ("a", Status.ABORTED)


@pytest.mark.usefixtures("interruptible")
def test_work_that_does_not_end_when_it_is_cut_off_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakewright.run.execution.PATIENCE", 0.05)
    stuck = Event()

    def wait(instance: int, step: Step) -> Outcome:
        Timer(0.05, lambda: pthread_kill(main_thread().ident or 0, SIGINT)).start()
        stuck.wait(10)
        return Outcome()

    recorder = Recorder()
    result = execute(plan_of(CHAIN), ExecutionOptions("r1", wait, lambda: NOW, recorder, recorder))
    stuck.set()

    assert statuses(result)[0] == ("a", Status.ABORTED)


def test_independent_targets_run_side_by_side_and_ordered_ones_do_not() -> None:
    both = Barrier(2, timeout=10)
    phase = PhasePlan(
        Phase.BUILD,
        (step("a"), step("b"), step("after_a")),
        predecessors={"after_a": frozenset({"a"})},
    )

    def meet(instance: int, step: Step) -> Outcome:
        if step.target != "after_a":
            both.wait()
        return Outcome()

    result, performed = run(plan_of(phase), meet, jobs=3)

    assert statuses(result) == [(name, Status.SUCCESS) for name in ("a", "b", "after_a")]
    assert performed[-1] == "0 BUILD after_a"


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_what_follows_from_a_failure_is_the_same_side_by_side(jobs: int) -> None:
    phase = replace(CHAIN, predecessors={"b": frozenset({"a"}), "c": frozenset({"a", "b"})})

    result, _ = run(plan_of(phase), failing("a"), keep_going=True, jobs=jobs)

    ends = [Status.FAILED, Status.BLOCKED, Status.BLOCKED, Status.SUCCESS]
    assert statuses(result) == list(zip(("a", "b", "c", "other"), ends, strict=True))


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([], Status.SUCCESS),
        ([Status.SKIPPED, Status.SKIPPED], Status.SKIPPED),
        ([Status.SKIPPED, Status.SUCCESS], Status.SUCCESS),
        ([Status.SUCCESS, Status.SUCCESS_WITH_ERRORS], Status.SUCCESS_WITH_ERRORS),
        ([Status.SUCCESS_WITH_ERRORS, Status.FAILED], Status.FAILED),
        ([Status.SUCCESS, Status.BLOCKED], Status.FAILED),
        ([Status.SUCCESS, Status.ABORTED], Status.FAILED),
    ],
)
def test_what_several_statuses_come_to(parts: list[Status], whole: Status) -> None:
    assert overall(parts) is whole


def test_the_last_line_can_be_found_by_grep() -> None:
    result, _ = run(plan_of(CHAIN), failing("a"), keep_going=True)

    assert result.summary == "Done. SUCCESS=1 WITH_ERRORS=0 SKIPPED=0 BLOCKED=2 FAILED=1 ABORTED=0 in 0.0 s"
