"""Executing a plan, step by step, and saying of every step how it ended.

What a step does is a function passed in; this module decides only whether it is called and what follows
from its end: dependents of a failure are blocked, the rest goes on with `keep_going` or is skipped.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from typing import Protocol

from lakewright.errors import Fault, LakewrightError, OperatorError
from lakewright.plan.outcome import Outcome
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import InstancePlan, PhasePlan, Plan, Step
from lakewright.run.result import InstanceResult, PhaseResult, RunResult, TargetResult

__all__ = ["Interruption", "Listener", "Runner", "execute"]

log = logging.getLogger(__name__)


class Interruption(Protocol):
    """Tells whether somebody asked the run to stop, and by which signal."""

    @property
    def signal(self) -> int | None:
        """The signal's number, or None while nobody asked."""
        ...


class Listener(Protocol):
    """Is told how a run goes on; must not raise."""

    def step_started(self, instance: int, step: Step) -> None:
        """Take note that a step begins."""
        ...

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Take note of how a step ended, also one that never began."""
        ...


@dataclass(frozen=True, slots=True)
class Runner:
    """What execution needs of the outside.

    Attributes:
        perform: Does one step of the instance with that index; raises what it meets.
        isolated_kinds: Kinds whose failure stops nothing but what depends on it.
    """

    run_id: str
    perform: Callable[[int, Step], Outcome]
    clock: Callable[[], datetime]
    listener: Listener
    interruption: Interruption
    keep_going: bool = False
    isolated_kinds: frozenset[str] = frozenset({"entity"})


def execute(plan: Plan, runner: Runner) -> RunResult:
    """Return how each step of the plan ended, after doing those that would run."""
    started = runner.clock()
    instances: list[InstanceResult] = []
    for index, instance in enumerate(plan.instances):
        obstacle = _failed_instance(instances, runner)
        instances.append(_Instance(index, instance, runner).run(obstacle))
    return RunResult(
        run_id=runner.run_id,
        project=plan.project,
        job=plan.job,
        phase=plan.phase,
        started=started,
        finished=runner.clock(),
        instances=tuple(instances),
        interrupted_by=runner.interruption.signal,
    )


def _failed_instance(done: Sequence[InstanceResult], runner: Runner) -> str | None:
    if runner.keep_going or not done or not done[-1].status.is_failure:
        return None
    failed = next(instance for instance in done if instance.status.is_failure)
    named = ", ".join(f"{name}={value}" for name, value in failed.parameters.items())
    return f"not reached: the instance {named or 'before'} failed"


@dataclass(slots=True)
class _Instance:
    index: int
    plan: InstancePlan
    runner: Runner

    def run(self, obstacle: str | None) -> InstanceResult:
        phases: list[PhaseResult] = []
        for phase in self.plan.phases:
            result = self._run_phase(phase, obstacle)
            phases.append(result)
            if result.status.is_failure and not self.runner.keep_going:
                obstacle = obstacle or f"not reached: {phase.phase} failed"
        return InstanceResult(self.plan.parameters, tuple(phases))

    def _run_phase(self, phase: PhasePlan, obstacle: str | None) -> PhaseResult:
        results: dict[str, TargetResult] = {}
        for step in phase.steps:
            verdict = self._refusal(step, phase, results, obstacle)
            result = verdict if verdict is not None else self._perform(step)
            self.runner.listener.step_finished(self.index, step, result)
            results[step.target] = result
            if self._stops_phase(result):
                obstacle = obstacle or f"not reached: {step.target} failed"
        return PhaseResult(phase.phase, tuple(results.values()), phase.note)

    def _stops_phase(self, result: TargetResult) -> bool:
        is_isolated = result.kind in self.runner.isolated_kinds or result.status is Status.BLOCKED
        return result.status.is_failure and not self.runner.keep_going and not is_isolated

    def _refusal(
        self,
        step: Step,
        phase: PhasePlan,
        done: dict[str, TargetResult],
        obstacle: str | None,
    ) -> TargetResult | None:
        if obstacle is None and self.runner.interruption.signal is not None:
            obstacle = "not reached: the run was interrupted"
        failed = [name for name in done if name in phase.sources.get(step.target, ())]
        failed = [name for name in failed if done[name].status.is_failure]
        if obstacle is None and failed:
            reasons = tuple(f"depends on {name}, which {_ended(done[name])}" for name in failed)
            return _result(step, Status.BLOCKED, reasons)
        if step.status is Planned.BLOCKED and obstacle is None:
            error = step.hold.error if step.hold else None
            return replace(_result(step, Status.BLOCKED, step.reasons), error=error)
        if step.status is Planned.CLEAN:
            return _result(step, Status.SKIPPED, step.reasons)
        return _result(step, Status.SKIPPED, (obstacle,)) if obstacle is not None else None

    def _perform(self, step: Step) -> TargetResult:
        self.runner.listener.step_started(self.index, step)
        begin = monotonic()
        outcome = self._outcome(step)
        return TargetResult(
            name=step.target,
            kind=step.kind,
            phase=step.phase,
            status=outcome.status,
            reasons=(*step.reasons, *outcome.reasons),
            seconds=monotonic() - begin,
            metrics=outcome.metrics,
            error=outcome.error,
        )

    def _outcome(self, step: Step) -> Outcome:
        try:
            return self.runner.perform(self.index, step)
        except OperatorError as held:
            return Outcome(Status.BLOCKED, reasons=(held.message,), error=held.as_fault())
        except LakewrightError as error:
            return Outcome(Status.FAILED, error=error.as_fault())
        except KeyboardInterrupt:
            return Outcome(Status.ABORTED, reasons=("interrupted",))
        except Exception as error:  # a target's failure is recorded here, whatever it is
            log.exception("%s failed in %s", step.target, step.phase)
            return Outcome(Status.FAILED, error=_unexpected(error))


def _unexpected(error: Exception) -> Fault:
    message = str(error).strip() or type(error).__name__
    return Fault(f"{type(error).__name__}: {message}", code="unexpected")


def _ended(result: TargetResult) -> str:
    return {Status.FAILED: "failed", Status.BLOCKED: "is blocked"}.get(result.status, "was interrupted")


def _result(step: Step, status: Status, reasons: tuple[str, ...]) -> TargetResult:
    return TargetResult(step.target, step.kind, step.phase, status, reasons)
