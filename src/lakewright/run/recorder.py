"""Record a run in the history: the result of each step, and which targets stay dirty because of it.

Source: `lifecycles-and-phases.md`, "Dirtiness"; that a failed target stays dirty is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakewright.manifest.journal import Journal, Run, TargetPhase
from lakewright.manifest.store import Put
from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import Plan, Step
from lakewright.run.execute import Listener
from lakewright.run.result import TargetResult

__all__ = ["Recorder", "initial_taints"]

_STAYS_DIRTY = (Phase.CREATE, Phase.BUILD)
_KEPT_ELSEWHERE = frozenset({"entity"})
"""Kinds whose dirtiness follows from the manifest."""

MOST_WAITING = 500
"""The largest number of results that wait for the next write: a write per result would slow clean runs."""


def initial_taints(run: Run, plan: Plan) -> Iterator[Put]:
    """Yield the taints to record when a run starts.

    They remember steps whose dirtiness the lake alone cannot show, in case the run is killed.
    """
    for index, instance in enumerate(plan.instances):
        for phase in instance.phases:
            for step in phase.steps:
                if step.is_remembered and _is_taintable(step):
                    yield _place(run, plan, index, step).tainted(f"was left undone in run {run.run_id}")


@dataclass(slots=True)
class Recorder:
    """Records the results of steps in the journal as they finish, and passes them to listeners.

    Results of clean steps are written together with the next other result, or by `flush`.
    """

    journal: Journal
    run: Run
    plan: Plan
    listeners: Sequence[Listener]
    _waiting: dict[int, dict[str, Any]] = field(default_factory=dict, init=False)
    _numbers: dict[tuple[int, Phase], int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        number = 0
        for index, instance in enumerate(self.plan.instances):
            for phase in instance.phases:
                self._numbers[index, phase.phase] = number
                number += len(phase.steps)

    def step_started(self, instance: int, step: Step) -> None:
        """Notify the listeners that a step starts."""
        for listener in self.listeners:
            listener.step_started(instance, step)

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Record the result of a step, and whether its target stays dirty, in one write."""
        number = self._number(instance, step)
        parameters = dict(self.plan.instances[instance].parameters)
        self._waiting[number] = {**result.as_json(), "phase": step.phase.value, "instance": parameters}
        puts = self._taint(instance, step, result)
        if puts or result.status is not Status.SKIPPED or len(self._waiting) >= MOST_WAITING:
            self.flush(puts)
        for listener in self.listeners:
            listener.step_finished(instance, step, result)

    def flush(self, puts: Sequence[Put] = ()) -> None:
        """Write the waiting results."""
        if self._waiting:
            self.journal.record_targets(self.run, self._waiting, puts)
            self._waiting.clear()

    def _number(self, instance: int, step: Step) -> int:
        phase = next(each for each in self.plan.instances[instance].phases if each.phase is step.phase)
        return self._numbers[instance, step.phase] + phase.steps.index(step)

    def _taint(self, instance: int, step: Step, result: TargetResult) -> tuple[Put, ...]:
        if step.status is Planned.CLEAN or not _is_taintable(step):
            return ()
        place = _place(self.run, self.plan, instance, step)
        return (place.tainted(_reason(self.run, result)) if result.is_undone else place.untainted(),)


def _is_taintable(step: Step) -> bool:
    return step.phase in _STAYS_DIRTY and step.kind not in _KEPT_ELSEWHERE


def _place(run: Run, plan: Plan, instance: int, step: Step) -> TargetPhase:
    return TargetPhase(run.project, step.target, step.phase.value, dict(plan.instances[instance].parameters))


def _reason(run: Run, result: TargetResult) -> str:
    ended = "failed" if result.status is Status.FAILED else "was left undone"
    return f"{ended} in run {run.run_id}"
