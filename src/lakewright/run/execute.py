"""Executing a plan, and saying of every step how it ended.

What a step does is a function passed in, called in a thread of its own; this module decides when. One after
the other it is the plan's order; with several jobs all steps run side by side, of one instance or of many,
that nothing orders (`lakewright.plan.dependencies`).

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from signal import SIGINT
from time import monotonic
from typing import Protocol

from lakewright.errors import Fault, LakewrightError, OperatorError
from lakewright.plan.dependencies import step_dependencies
from lakewright.plan.outcome import Outcome
from lakewright.plan.status import Status
from lakewright.plan.step import Plan, Step
from lakewright.run.progress import Progress, Turn
from lakewright.run.result import RunResult, TargetResult
from lakewright.run.scheduler import Agenda, InOrder, SideBySide
from lakewright.run.workers import Workers
from lakewright.spec.models.job import Execution

__all__ = ["Interruption", "Listener", "Runner", "execute"]

log = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that work which was cut off is given to end; its process ends then."""

BREATH = 0.2
"""Seconds between two attempts at cutting it off."""

_INTERRUPTED = Outcome(Status.ABORTED, reasons=("interrupted",))


class Interruption(Protocol):
    """Tells whether somebody asked the run to stop, and by which signal."""

    @property
    def signal(self) -> int | None:
        """The signal's number, or None while nobody asked."""
        ...


class Listener(Protocol):
    """Is told how a run goes on, by one thread; must not raise."""

    def step_started(self, instance: int, step: Step) -> None:
        """Take note that a step begins."""
        ...

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Take note of how a step ended, also one that never began."""
        ...


def _nothing(*_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Runner:
    """What execution needs of the outside.

    Attributes:
        perform: Does one step of the instance with that index; raises what it meets.
        jobs: How many steps run side by side, where nothing orders them.
        executions: The job's, for the barriers between instances.
        isolated_kinds: Kinds whose failure stops nothing but what depends on it.
        release: Is told of each instance that has ended.
        cut_off: Makes whatever the steps at hand wait for end at once; it is an interruption, no failure.
    """

    run_id: str
    perform: Callable[[int, Step], Outcome]
    clock: Callable[[], datetime]
    listener: Listener
    interruption: Interruption
    keep_going: bool = False
    jobs: int = 1
    executions: Sequence[Execution] = ()
    isolated_kinds: frozenset[str] = frozenset({"entity"})
    release: Callable[[int], None] = _nothing
    cut_off: Callable[[], None] = _nothing


def execute(plan: Plan, runner: Runner) -> RunResult:
    """Return how each step of the plan ended, after doing those that would run."""
    started = runner.clock()
    execution = _Execution(plan, runner)
    execution.run()
    return RunResult(
        run_id=runner.run_id,
        project=plan.project,
        job=plan.job,
        phase=plan.phase,
        started=started,
        finished=runner.clock(),
        instances=execution.progress.results(),
        interrupted_by=execution.interrupted_by,
    )


class _Execution:
    """A run while it goes on; all but the work itself is done by the thread that called `execute`."""

    def __init__(self, plan: Plan, runner: Runner) -> None:
        self.runner = runner
        self.progress = Progress(
            plan,
            keep_going=runner.keep_going,
            isolated_kinds=runner.isolated_kinds,
            is_interrupted=lambda: self.interrupted_by is not None,
        )
        self.workers: Workers[Turn, TargetResult] = Workers(runner.jobs)
        self.agenda: Agenda = (
            InOrder(self.progress.turns())
            if runner.jobs == 1
            else SideBySide(self.progress.turns(), step_dependencies(plan, runner.executions))
        )
        self.is_cut_off = False
        self.untold: tuple[Turn, TargetResult] | None = None

    @property
    def interrupted_by(self) -> int | None:
        """The signal by which the run was asked to stop, or None."""
        return self.runner.interruption.signal or (SIGINT if self.is_cut_off else None)

    def run(self) -> None:
        try:
            while self.agenda or self.workers.running:
                self._begin_next()
                if self.workers.running and (done := self.workers.next_done()):
                    self._settle(*done)
        except KeyboardInterrupt:
            self._cut_off()
        finally:
            self.workers.close()

    def _begin_next(self) -> None:
        while (turn := self.agenda.next()) is not None:
            refusal = self.progress.refusal(turn)
            if refusal is not None:
                self._settle(turn, refusal)
            elif self.workers.has_room:
                self._begin(turn)
            else:
                self.agenda.put_back(turn)
                return

    def _begin(self, turn: Turn) -> None:
        self.progress.begin(turn)
        self.runner.listener.step_started(turn.instance, turn.step)
        self.workers.begin(turn, partial(self._work, turn))

    def _settle(self, turn: Turn, result: TargetResult) -> None:
        self.progress.settle(turn, result)
        self.untold = (turn, result)
        self.agenda.done(turn)
        self._tell()
        if self.progress.is_complete(turn.instance):
            self.runner.release(turn.instance)

    def _tell(self) -> None:
        if self.untold is not None:
            turn, result = self.untold
            self.runner.listener.step_finished(turn.instance, turn.step, result)
            self.untold = None

    def _cut_off(self) -> None:
        """End what is being done at once, and refuse the rest."""
        self.is_cut_off, self.agenda = True, InOrder(())
        self._tell()
        deadline = monotonic() + PATIENCE
        while self.workers.running and monotonic() < deadline:
            # Again and again: what was waited for may have been only a part of the work.
            self._cancel()
            if done := self.workers.next_done(BREATH):
                self._settle(*done)
        at_hand = {turn.key for turn in self.workers.running}
        for turn in self.progress.turns():
            if not self.progress.is_settled(turn):
                refusal = None if turn.key in at_hand else self.progress.refusal(turn)
                self._settle(turn, refusal or _ended(turn.step, _INTERRUPTED, PATIENCE))

    def _cancel(self) -> None:
        try:
            self.runner.cut_off()
        except Exception as error:  # the run ends all the same, after some patience
            log.warning("what is being done could not be cut off: %s", error)

    def _work(self, turn: Turn) -> TargetResult:
        begin = monotonic()
        outcome = self._outcome(turn)
        return _ended(turn.step, outcome, monotonic() - begin)

    def _outcome(self, turn: Turn) -> Outcome:
        try:
            outcome = self.runner.perform(turn.instance, turn.step)
            return _INTERRUPTED if self.is_cut_off and outcome.status is Status.FAILED else outcome
        except BaseException as error:  # a target's failure is recorded here, whatever it is: sys.exit() too
            if self.is_cut_off or isinstance(error, KeyboardInterrupt):
                return _INTERRUPTED
            if isinstance(error, OperatorError):
                return Outcome(Status.BLOCKED, reasons=(error.message,), error=error.as_fault())
            if isinstance(error, LakewrightError):
                return Outcome(Status.FAILED, error=error.as_fault())
            log.exception("%s failed in %s", turn.step.target, turn.step.phase)
            return Outcome(Status.FAILED, error=_unexpected(error))


def _ended(step: Step, outcome: Outcome, seconds: float) -> TargetResult:
    return TargetResult(
        name=step.target,
        kind=step.kind,
        phase=step.phase,
        status=outcome.status,
        reasons=(*step.reasons, *outcome.reasons),
        seconds=seconds,
        metrics=outcome.metrics,
        error=outcome.error,
    )


def _unexpected(error: BaseException) -> Fault:
    message = str(error).strip() or type(error).__name__
    return Fault(f"{type(error).__name__}: {message}", code="unexpected")
