"""Execute a plan and return the result of every step.

The work of a step is a function passed in and called in a worker thread; this module decides when. With one
job, steps run in the order of the plan. With several, steps that do not depend on each other run at once,
also across instances (`lakewright.plan.dependencies`).

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from signal import SIGINT
from time import monotonic
from typing import Protocol

from lakewright.errors import Fault, JvmEnded, LakewrightError, OperatorError
from lakewright.lake.lake import cancel_quietly
from lakewright.lake.storage_errors import storage_error
from lakewright.manifest.payload import text_of
from lakewright.plan.dependencies import step_dependencies
from lakewright.plan.outcome import Outcome
from lakewright.plan.reason import Code, error_reason
from lakewright.plan.status import Status
from lakewright.plan.step import Plan, Step, done_reasons
from lakewright.run.result import RunResult, TargetResult
from lakewright.run.scheduler import (
    Progress,
    Schedule,
    ScheduledStep,
    Workers,
    unreached,
)
from lakewright.spec.models.job import Execution
from lakewright.spec.reason import Reason

log = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that cancelled work is given to end; then the process ends anyway."""

CANCEL_INTERVAL = 0.2
"""Seconds between two attempts to cancel work: it may have started another Spark job since the last one."""

_INTERRUPTED = Outcome(Status.ABORTED, reasons=(Reason(Code.INTERRUPTED),))


class Interruption(Protocol):
    """Shows whether a signal has asked the run to stop."""

    @property
    def signal(self) -> int | None:
        """The number of the signal, or None."""
        ...


class Listener(Protocol):
    """Receives the progress of a run, from one thread; an error that it raises ends the run."""

    def step_started(self, instance: int, step: Step) -> None:
        """Receive that a step starts."""
        ...

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Receive the result of a step, even of one that never started."""
        ...


def _nothing(*_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """How a plan is executed.

    Attributes:
        perform: Runs one step of the instance with this index; its errors fail the step.
        jobs: The largest number of steps that run at once.
        executions: The job's executions, which define barriers between instances.
        release: Called with the index of each instance that has finished.
        cut_off: Cancels what the running steps wait for; they end as interrupted, not as failed.
    """

    run_id: str
    perform: Callable[[int, Step], Outcome]
    clock: Callable[[], datetime]
    listener: Listener
    interruption: Interruption
    keep_going: bool = False
    jobs: int = 1
    executions: Sequence[Execution] = ()
    release: Callable[[int], None] = _nothing
    cut_off: Callable[[], None] = _nothing


def execute(plan: Plan, options: ExecutionOptions) -> RunResult:
    """Run the steps of a plan that are not clean, and return the result of every step.

    Raises:
        Exception: The listener raised it, or the runner itself. The running steps were waited for, no other
            was begun, and the listener has received the result of every step unless it failed again.
        BaseException: A handler of signals raised it, other than `KeyboardInterrupt`. The running steps were
            cancelled as for that, and the listener has received the result of every step.
    """
    started = options.clock()
    execution = _Execution(plan, options)
    execution.run()
    return RunResult(
        run_id=options.run_id,
        project=plan.project,
        job=plan.job,
        phase=plan.phase,
        started=started,
        finished=options.clock(),
        instances=execution.progress.results(),
        interrupted_by=execution.interrupted_by,
    )


class _Execution:
    """The execution of a plan; everything but the work of steps runs in the caller's thread."""

    def __init__(self, plan: Plan, options: ExecutionOptions) -> None:
        self.options = options
        self.progress = Progress(
            plan,
            keep_going=options.keep_going,
            is_interrupted=lambda: self.interrupted_by is not None,
        )
        self.workers: Workers[ScheduledStep, TargetResult] = Workers(options.jobs)
        self.schedule = (
            Schedule.one_by_one(self.progress.steps())
            if options.jobs == 1
            else Schedule(self.progress.steps(), step_dependencies(plan, options.executions))
        )
        self.is_cut_off = False
        self.begun: dict[ScheduledStep, float] = {}
        # Set until the listener has been notified of the result: a signal may arrive in between.
        self.unreported: tuple[ScheduledStep, TargetResult] | None = None

    @property
    def interrupted_by(self) -> int | None:
        """The signal that asked the run to stop, or None."""
        return self.options.interruption.signal or (SIGINT if self.is_cut_off else None)

    def run(self) -> None:
        try:
            try:
                while self.schedule or self.workers.running:
                    self._begin_next()
                    if self.workers.running and (done := self.workers.next_done()):
                        self._settle_done(*done)
            except Exception as error:
                self._give_up(error)
                raise
        except KeyboardInterrupt:
            self._cut_off()
        except Exception:
            raise
        except BaseException:  # such as Airflow's timeout of a task, which a handler of signals raises
            self._cut_off()
            raise
        finally:
            self.workers.close()

    def _begin_next(self) -> None:
        while (scheduled := self.schedule.next()) is not None:
            refusal = self.progress.refusal(scheduled)
            if refusal is not None:
                self._settle(scheduled, refusal)
            elif self.workers.has_room:
                self._begin(scheduled)
            else:
                self.schedule.put_back(scheduled)
                return

    def _begin(self, scheduled: ScheduledStep) -> None:
        self.progress.begin(scheduled)
        self.options.listener.step_started(scheduled.instance, scheduled.step)
        self.begun[scheduled] = monotonic()
        self.workers.begin(scheduled, partial(self._work, scheduled))

    def _settle_done(self, scheduled: ScheduledStep, ended: TargetResult | BaseException) -> None:
        self._settle(scheduled, self._result(scheduled, ended))

    def _result(self, scheduled: ScheduledStep, ended: TargetResult | BaseException) -> TargetResult:
        """Return how a step has ended, also if the runner failed, for example after the target's work."""
        if not isinstance(ended, BaseException):
            return ended
        step = scheduled.step
        log.error("the runner failed for %s in %s", step.target, step.phase, exc_info=ended)
        error = _unexpected(ended, f"{step.target}: {step.phase} was ended by an error outside the target: ")
        # Without what the target reported: that may be what the runner failed for.
        outcome = _INTERRUPTED if self.is_cut_off else Outcome(Status.FAILED, error=error)
        return _ended(step, outcome, monotonic() - self.begun[scheduled])

    def _settle(self, scheduled: ScheduledStep, result: TargetResult) -> None:
        self.progress.settle(scheduled, result)
        self.unreported = (scheduled, result)
        self.schedule.done(scheduled)
        self._report()
        if self.progress.is_complete(scheduled.instance):
            self.options.release(scheduled.instance)

    def _report(self) -> None:
        if self.unreported is not None:
            scheduled, result = self.unreported
            self.options.listener.step_finished(scheduled.instance, scheduled.step, result)
            self.unreported = None

    def _give_up(self, error: Exception) -> None:
        """Wait for the running steps, and report them and those that are not reached."""
        self.schedule, self.unreported = Schedule((), {}), None
        reason = Reason(Code.RUN_ENDED, {"why": text_of(error)})
        is_listening = True
        for scheduled, result in self._rest(reason):
            try:
                if is_listening:
                    self._settle(scheduled, result)
            except Exception as again:  # a manifest that still does not answer is not asked for each step
                log.warning("the results of the other steps are not recorded: %s", text_of(again))
                is_listening = False

    def _rest(self, reason: Reason) -> Iterator[tuple[ScheduledStep, TargetResult]]:
        """Yield the running steps as they end, then those without a result."""
        while self.workers.running:
            if done := self.workers.next_done():
                yield done[0], self._result(*done)
        for scheduled in self.progress.steps():
            if not self.progress.is_settled(scheduled):
                yield scheduled, unreached(scheduled.step, reason)

    def _cut_off(self) -> None:
        """Cancel the running steps immediately, and do not start the others."""
        self.is_cut_off, self.schedule = True, Schedule((), {})
        self._report()
        deadline = monotonic() + PATIENCE
        while self.workers.running and monotonic() < deadline:
            # Repeated, because a cancelled Spark job may have been only a part of the work.
            cancel_quietly(self.options.cut_off)
            if done := self.workers.next_done(CANCEL_INTERVAL):
                self._settle_done(*done)
        running_keys = {scheduled.key for scheduled in self.workers.running}
        for scheduled in self.progress.steps():
            if not self.progress.is_settled(scheduled):
                refusal = None if scheduled.key in running_keys else self.progress.refusal(scheduled)
                self._settle(scheduled, refusal or _ended(scheduled.step, _INTERRUPTED, PATIENCE))

    def _work(self, scheduled: ScheduledStep) -> TargetResult:
        begin = monotonic()
        outcome = self._outcome(scheduled)
        return _ended(scheduled.step, outcome, monotonic() - begin)

    def _outcome(self, scheduled: ScheduledStep) -> Outcome:
        try:
            outcome = self.options.perform(scheduled.instance, scheduled.step)
            return _INTERRUPTED if self._is_interrupted(outcome) else outcome
        except BaseException as error:  # every failure of a target is recorded here, even sys.exit()
            if self.is_cut_off or isinstance(error, KeyboardInterrupt):
                return _INTERRUPTED
            if isinstance(error, OperatorError):
                return Outcome(Status.BLOCKED, reasons=(error_reason(error.message),), error=error.as_fault())
            if isinstance(error, LakewrightError):
                failed = Outcome(Status.FAILED, error=error.as_fault())
                return _INTERRUPTED if self._is_interrupted(failed) else failed
            if isinstance(error, OSError) and error.filename is not None:
                ours = storage_error(error, f"{scheduled.step.target} failed in {scheduled.step.phase}")
                return Outcome(Status.FAILED, error=ours.as_fault())
            log.exception("%s failed in %s", scheduled.step.target, scheduled.step.phase)
            return Outcome(Status.FAILED, error=_unexpected(error))

    def _is_interrupted(self, outcome: Outcome) -> bool:
        """Return whether a step failed only because the run was interrupted.

        A signal to the whole group of processes ends Spark's JVM, too: that is no failure of the target.
        """
        if outcome.status is not Status.FAILED:
            return False
        error = outcome.error
        has_lost_jvm = error is not None and error.code == JvmEnded.code and not error.details.get("memory")
        return self.is_cut_off or (has_lost_jvm and self.options.interruption.signal is not None)


def _ended(step: Step, outcome: Outcome, seconds: float) -> TargetResult:
    # A measure of another target may have this name, too.
    found = outcome.metrics.get("slices", ()) if step.kind == "entity" else ()
    slices = [each["slice"] for each in found]
    planned = done_reasons(step, slices) if outcome.status.is_success else step.reasons
    return TargetResult(
        name=step.target,
        kind=step.kind,
        phase=step.phase,
        status=outcome.status,
        reasons=tuple(dict.fromkeys((*planned, *outcome.reasons))),
        seconds=seconds,
        metrics=outcome.metrics,
        error=outcome.error,
        warnings=outcome.warnings,
    )


def _unexpected(error: BaseException, what: str = "") -> Fault:
    return Fault(f"{what}{type(error).__name__}: {text_of(error)}", code="unexpected")
