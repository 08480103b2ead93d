"""Which steps of a run begin next, side by side, and what the results of finished steps block.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles". Lakewright adds that steps which depend on a failed
one are blocked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Generic, TypeVar

from lakewright.plan.dependencies import PhaseEnd
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import InstancePlan, PhasePlan, Plan, Step, StepKey
from lakewright.run.result import InstanceResult, PhaseResult, TargetResult
from lakewright.spec.reason import Reason


@dataclass(frozen=True, slots=True, eq=False)
class ScheduledStep:
    """A step of a plan with its instance and phase."""

    instance: int
    phase: PhasePlan
    step: Step

    @property
    def key(self) -> tuple[int, Phase, str]:
        """The key that identifies the step within the plan."""
        return (self.instance, self.step.phase, self.step.target)


@dataclass(slots=True)
class _PhaseState:
    results: dict[str, TargetResult] = field(default_factory=dict)
    failed: list[TargetResult] = field(default_factory=list)
    begun: float | None = None
    ended: float = 0.0

    def result(self, plan: PhasePlan) -> PhaseResult:
        in_order = tuple(self.results[step.target] for step in plan.steps)
        seconds = 0.0 if self.begun is None else self.ended - self.begun
        return PhaseResult(plan.phase, in_order, plan.note, seconds)


@dataclass(slots=True)
class _InstanceState:
    """The progress of one instance.

    Attributes:
        failed: Targets that failed or were blocked, each with the first phase in which that happened.
        stopped: The phase whose remaining steps are not reached, and why.
    """

    phases: dict[Phase, _PhaseState] = field(default_factory=dict)
    failed: dict[str, Phase] = field(default_factory=dict)
    stopped: tuple[Phase, Reason] | None = None


_ISOLATED = frozenset({"entity"})
"""Kinds of targets whose failure stops only what depends on them in their phase."""


class Progress:
    """The results of a run so far; only one thread changes them.

    Args:
        plan: The plan being executed.
        keep_going: Whether steps that do not depend on a failed one still run.
        is_interrupted: Returns whether a signal has asked the run to stop.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        keep_going: bool,
        is_interrupted: Callable[[], bool],
    ) -> None:
        self.plan = plan
        self._keep_going = keep_going
        self._is_interrupted = is_interrupted
        self._instances = [
            _InstanceState({phase.phase: _PhaseState() for phase in instance.phases})
            for instance in plan.instances
        ]
        self._first_failed: int | None = None

    def steps(self) -> Iterator[ScheduledStep]:
        """Yield every step of the plan, in its order."""
        for index, instance in enumerate(self.plan.instances):
            for phase in instance.phases:
                yield from (ScheduledStep(index, phase, step) for step in phase.steps)

    def refusal(self, scheduled: ScheduledStep) -> TargetResult | None:
        """Return the result of a step that must not run, or None if it is to run."""
        step = scheduled.step
        if failed := self._failed_sources(scheduled):
            return _result(step, Status.BLOCKED, failed)
        if not step.is_reached:
            return unreached(step, *step.reasons)
        # What waits for a fault in the project's files says so, whatever else happens.
        obstacle = None if step.is_withheld else self._obstacle(scheduled)
        if obstacle is None and (failed := self._failed_before(scheduled)):
            return _result(step, Status.BLOCKED, failed)
        if obstacle is None and step.status is Planned.BLOCKED:
            error = step.error and step.error.and_also(step.warning)
            return replace(_result(step, Status.BLOCKED, step.reasons), error=error)
        if step.status is Planned.CLEAN and (obstacle is None or not self._is_in_doubt(step)):
            return _clean(step)
        return None if obstacle is None else unreached(step, obstacle)

    def _is_in_doubt(self, step: Step) -> bool:
        """Return whether a step is clean only because of an earlier step that did not succeed."""
        return step.relies_on is not None and not self._result_of(step.relies_on).status.is_success

    def _result_of(self, key: StepKey) -> TargetResult:
        number, phase, name = key
        return self._instances[number].phases[phase].results[name]

    def begin(self, scheduled: ScheduledStep) -> None:
        """Record that a step has started."""
        phase = self._instances[scheduled.instance].phases[scheduled.step.phase]
        phase.begun = monotonic() if phase.begun is None else phase.begun

    def settle(self, scheduled: ScheduledStep, result: TargetResult) -> None:
        """Record the result of a step."""
        instance = self._instances[scheduled.instance]
        phase = instance.phases[scheduled.step.phase]
        phase.results[scheduled.step.target] = result
        phase.ended = monotonic()
        # What waits for a fault in the project's files is no obstacle: the plan withholds what depends on it.
        if not result.status.is_failure or scheduled.step.is_withheld:
            return
        phase.failed.append(result)
        instance.failed.setdefault(result.name, result.phase)
        earlier = scheduled.instance if self._first_failed is None else self._first_failed
        self._first_failed = min(scheduled.instance, earlier)
        is_isolated = result.kind in _ISOLATED or result.status is Status.BLOCKED
        if not is_isolated and instance.stopped is None:
            instance.stopped = (result.phase, Reason(Code.TARGET_FAILED, {"target": result.name}))

    def is_settled(self, scheduled: ScheduledStep) -> bool:
        """Return whether a step has a result."""
        return (
            scheduled.step.target in self._instances[scheduled.instance].phases[scheduled.step.phase].results
        )

    def is_complete(self, index: int) -> bool:
        """Return whether every step of an instance has a result."""
        state, plan = self._instances[index], self.plan.instances[index]
        return all(len(state.phases[phase.phase].results) == len(phase.steps) for phase in plan.phases)

    def results(self) -> tuple[InstanceResult, ...]:
        """Return the result of each instance, once every step has one."""
        return tuple(
            InstanceResult(plan.parameters, _phase_results(plan, state))
            for plan, state in zip(self.plan.instances, self._instances, strict=True)
        )

    def _obstacle(self, scheduled: ScheduledStep) -> Reason | None:
        """Return why a step is not reached, other than failed dependencies; None if it is reached."""
        if self._is_interrupted():
            return Reason(Code.RUN_INTERRUPTED)
        if self._keep_going:
            return None
        if self._first_failed is not None and self._first_failed < scheduled.instance:
            named = _named(self.plan.instances[self._first_failed])
            return Reason(Code.INSTANCE_FAILED, {"instance": named})
        instance = self._instances[scheduled.instance]
        for phase, state in instance.phases.items():
            if phase is scheduled.step.phase:
                break
            if state.failed:
                worst = next((each for each in state.failed if each.status is Status.FAILED), state.failed[0])
                return Reason(Code.PHASE_UNDONE, {"phase": phase.value, "ended": _ended(worst)})
        is_stopped = instance.stopped is not None and instance.stopped[0] is scheduled.step.phase
        return instance.stopped[1] if instance.stopped and is_stopped else None

    def _failed_sources(self, scheduled: ScheduledStep) -> tuple[Reason, ...]:
        """Return a reason for each target that the step depends on and that failed in the same phase."""
        sources = scheduled.phase.sources.get(scheduled.step.target, frozenset())
        failed = self._instances[scheduled.instance].phases[scheduled.step.phase].failed
        return tuple(
            Reason(Code.SOURCE_UNDONE, {"target": each.name, "ended": _ended(each)})
            for each in failed
            if each.name in sources
        )

    def _failed_before(self, scheduled: ScheduledStep) -> tuple[Reason, ...]:
        """Return a reason for each failed step of an earlier phase or instance that this one needs."""
        instance, step = self._instances[scheduled.instance], scheduled.step
        reasons: list[Reason] = []
        if (phase := instance.failed.get(step.target)) is not None:
            ended = _ended(instance.phases[phase].results[step.target])
            reasons.append(Reason(Code.OWN_UNDONE, {"phase": phase.value, "ended": ended}))
        if step.relies_on is not None:
            number, phase, name = step.relies_on
            earlier = self._result_of(step.relies_on)
            if earlier.status.is_failure:
                of, ended = _named(self.plan.instances[number]), _ended(earlier)
                params = {"phase": phase.value, "target": name, "instance": of, "ended": ended}
                reasons.append(Reason(Code.RELIED_UNDONE, params))
        return tuple(reasons)


def _phase_results(plan: InstancePlan, state: _InstanceState) -> tuple[PhaseResult, ...]:
    return tuple(state.phases[phase.phase].result(phase) for phase in plan.phases)


def _named(instance: InstancePlan) -> str:
    return ", ".join(f"{name}={value}" for name, value in instance.parameters.items()) or "before"


def _ended(result: TargetResult) -> str:
    return {Status.FAILED: "failed", Status.BLOCKED: "is blocked"}.get(result.status, "was interrupted")


def _clean(step: Step) -> TargetResult:
    """Return the result of a step that has nothing to do; with a warning, it ends with errors."""
    if step.warning is None:
        return _result(step, Status.SKIPPED, step.reasons)
    return replace(_result(step, Status.SUCCESS_WITH_ERRORS, step.reasons), error=step.warning)


def _result(step: Step, status: Status, reasons: tuple[Reason, ...]) -> TargetResult:
    return TargetResult(step.target, step.kind, step.phase, status, reasons)


def unreached(step: Step, *reasons: Reason) -> TargetResult:
    """Return the result of a step to which the run does not come."""
    return replace(_result(step, Status.SKIPPED, reasons), is_reached=False)


K = TypeVar("K")
R = TypeVar("R")


class Schedule:
    """Hands out every step whose dependencies have finished; of several, the one first in the plan.

    It is false once all steps have finished.
    """

    def __init__(
        self,
        steps: Iterable[ScheduledStep],
        before: Mapping[StepKey | PhaseEnd, Iterable[StepKey | PhaseEnd]],
    ) -> None:
        self._steps = list(steps)
        self._positions = {step.key: position for position, step in enumerate(self._steps)}
        self._sorter = TopologicalSorter(before)
        self._sorter.prepare()
        self._ready: list[int] = []
        self._take_ready()

    @classmethod
    def one_by_one(cls, steps: Iterable[ScheduledStep]) -> Schedule:
        """Return a schedule that hands out one step at a time, in their order."""
        listed = list(steps)
        keys = [step.key for step in listed]
        return cls(listed, {key: keys[at - 1 : at] if at else () for at, key in enumerate(keys)})

    def __bool__(self) -> bool:
        """Return whether a step is left or in progress."""
        return self._sorter.is_active()

    def next(self) -> ScheduledStep | None:
        """Return the next step whose dependencies have finished, or None if there is none now."""
        return self._steps[heappop(self._ready)] if self._ready else None

    def put_back(self, step: ScheduledStep) -> None:
        """Put back a step that `next` returned, so that `next` returns it again."""
        heappush(self._ready, self._positions[step.key])

    def done(self, step: ScheduledStep) -> None:
        """Mark a step as finished, if it is one of these; steps that waited only for it become ready."""
        if step.key in self._positions:
            self._sorter.done(step.key)
            self._take_ready()

    def _take_ready(self) -> None:
        waiting = list(self._sorter.get_ready())
        while waiting:
            key = waiting.pop()
            if isinstance(key, PhaseEnd):
                self._sorter.done(key)
                waiting.extend(self._sorter.get_ready())
            else:
                heappush(self._ready, self._positions[key])


WAKE_SECONDS = 0.5
"""How long a wait for work goes on without a look for signals.

Libraries such as Polars install handlers that resume an interrupted wait: Python would not hear Ctrl-C.
"""


class Workers(Generic[K, R]):
    """A pool of threads, so that the thread that schedules is free to receive signals.

    The threads are daemons: a process that must end does not wait for one that is blocked in a call.
    `next_done` returns each result once. Work that raises an error has that error as its result.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads: list[Thread] = []
        self._work: SimpleQueue[tuple[K, Callable[[], R]] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[K, R | BaseException]] = SimpleQueue()
        self.running: set[K] = set()

    @property
    def has_room(self) -> bool:
        """Whether another piece of work would start immediately."""
        return len(self.running) < self._most

    def begin(self, key: K, work: Callable[[], R]) -> None:
        """Run a piece of work in a thread.

        Raises:
            RuntimeError: The system allows no further thread; the work does not run.
        """
        if len(self._threads) <= len(self.running):
            # In the caller's context, so that what it traces is inside of what the caller traces.
            run = partial(copy_context().run, self._run)
            thread = Thread(target=run, name=f"worker-{len(self._threads) + 1}", daemon=True)
            thread.start()
            self._threads.append(thread)
        self.running.add(key)
        self._work.put((key, work))

    def next_done(self, timeout: float | None = None) -> tuple[K, R | BaseException] | None:
        """Return the key and result of finished work, or None if none finishes within `timeout` seconds."""
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            left = WAKE_SECONDS if deadline is None else max(deadline - monotonic(), 0)
            try:
                key, result = self._done.get(timeout=min(left, WAKE_SECONDS))
            except Empty:
                if deadline is not None and monotonic() >= deadline:
                    return None
            else:
                self.running.discard(key)
                return key, result

    def close(self) -> None:
        """End the threads once they have no work left."""
        for _ in self._threads:
            self._work.put(None)

    def _run(self) -> None:
        while (piece := self._work.get()) is not None:
            key, work = piece
            try:
                ended: R | BaseException = work()
            except BaseException as error:  # else `next_done` would wait for this work without end
                ended = error
            self._done.put((key, ended))
