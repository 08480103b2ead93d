"""Executing a plan, step by step, and saying of every step how it ended.

What a step does is a function passed in; this module decides only whether it is called and what follows
from its end: dependents of a failure are blocked, the rest goes on with `keep_going` or is skipped.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
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
        jobs: How many targets of a phase run side by side, where nothing orders them.
        isolated_kinds: Kinds whose failure stops nothing but what depends on it.
    """

    run_id: str
    perform: Callable[[int, Step], Outcome]
    clock: Callable[[], datetime]
    listener: Listener
    interruption: Interruption
    keep_going: bool = False
    jobs: int = 1
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
            result = _Phase(self.index, phase, self.runner, obstacle).run()
            phases.append(result)
            if result.status.is_failure and not self.runner.keep_going:
                obstacle = obstacle or f"not reached: {phase.phase} failed"
        return InstanceResult(self.plan.parameters, tuple(phases))


@dataclass(slots=True)
class _Phase:
    """One phase while it runs; only the thread that runs it changes anything here."""

    index: int
    plan: PhasePlan
    runner: Runner
    obstacle: str | None
    results: dict[str, TargetResult] = field(default_factory=dict)

    def run(self) -> PhaseResult:
        if self.runner.jobs == 1:
            for step in self.plan.steps:
                self._settle(step, self._refusal(step) or self._perform(step))
        else:
            with ThreadPoolExecutor(self.runner.jobs, thread_name_prefix="target") as pool:
                self._run_side_by_side(pool)
        in_order = tuple(self.results[step.target] for step in self.plan.steps)
        return PhaseResult(self.plan.phase, in_order, self.plan.note)

    def _run_side_by_side(self, pool: ThreadPoolExecutor) -> None:
        waiting = list(self.plan.steps)
        running: dict[Future[TargetResult], Step] = {}
        while waiting or running:
            for step in [step for step in waiting if self._is_next(step, waiting, running.values())]:
                refusal = self._refusal(step)
                if refusal is None and len(running) >= self.runner.jobs:
                    break
                waiting.remove(step)
                if refusal is not None:
                    self._settle(step, refusal)
                else:
                    self.runner.listener.step_started(self.index, step)
                    running[pool.submit(self._work, step)] = step
            for done in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                self._settle(running.pop(done), done.result())

    def _is_next(self, step: Step, waiting: Sequence[Step], running: Iterable[Step]) -> bool:
        unsettled = {other.target for other in (*waiting, *running)}
        return not unsettled & self.plan.predecessors.get(step.target, frozenset())

    def _settle(self, step: Step, result: TargetResult) -> None:
        self.results[step.target] = result
        self.runner.listener.step_finished(self.index, step, result)
        if self._stops_phase(result):
            self.obstacle = self.obstacle or f"not reached: {step.target} failed"

    def _stops_phase(self, result: TargetResult) -> bool:
        is_isolated = result.kind in self.runner.isolated_kinds or result.status is Status.BLOCKED
        return result.status.is_failure and not self.runner.keep_going and not is_isolated

    def _refusal(self, step: Step) -> TargetResult | None:
        """Return how the step ends without being done, or None if it is to be done."""
        obstacle = self.obstacle
        if obstacle is None and self.runner.interruption.signal is not None:
            obstacle = "not reached: the run was interrupted"
        sources = self.plan.sources.get(step.target, frozenset())
        failed = [r for name, r in self.results.items() if name in sources and r.status.is_failure]
        if obstacle is None and failed:
            reasons = tuple(f"depends on {source.name}, which {_ended(source)}" for source in failed)
            return _result(step, Status.BLOCKED, reasons)
        if step.status is Planned.BLOCKED and obstacle is None:
            error = step.hold.error if step.hold else None
            return replace(_result(step, Status.BLOCKED, step.reasons), error=error)
        if step.status is Planned.CLEAN:
            return _result(step, Status.SKIPPED, step.reasons)
        return _result(step, Status.SKIPPED, (obstacle,)) if obstacle is not None else None

    def _perform(self, step: Step) -> TargetResult:
        self.runner.listener.step_started(self.index, step)
        return self._work(step)

    def _work(self, step: Step) -> TargetResult:
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
