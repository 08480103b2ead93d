"""Recording a run while it goes on: each target's end, and what stays dirty because of it.

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

__all__ = ["Recorder", "notes"]

_STAYS_DIRTY = (Phase.CREATE, Phase.BUILD)
_KEPT_ELSEWHERE = frozenset({"entity"})
"""Kinds whose dirtiness the manifest keeps."""

MOST_WAITING = 500
"""Entries that wait for the next write, at most."""


def notes(run: Run, plan: Plan) -> Iterator[Put]:
    """Yield the taints with which a run begins.

    A step that nothing to be found in the lake tells to be dirty must not be forgotten if the run is killed.
    """
    for index, instance in enumerate(plan.instances):
        for phase in instance.phases:
            for step in phase.steps:
                if step.is_remembered and _is_kept_here(step):
                    yield _place(run, plan, index, step).tainted(f"was left undone in run {run.run_id}")


@dataclass(slots=True)
class Recorder:
    """Writes a run into the journal as its steps end, and passes the news on.

    What had nothing to do is written with what comes next, or by `flush`.
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
        """Pass on that a step begins."""
        for listener in self.listeners:
            listener.step_started(instance, step)

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Record how a step ended, with what the next run must know, in one write."""
        number = self._number(instance, step)
        parameters = dict(self.plan.instances[instance].parameters)
        self._waiting[number] = {**result.as_json(), "phase": step.phase.value, "instance": parameters}
        consequences = self._consequences(instance, step, result)
        if consequences or result.status is not Status.SKIPPED or len(self._waiting) >= MOST_WAITING:
            self.flush(consequences)
        for listener in self.listeners:
            listener.step_finished(instance, step, result)

    def flush(self, puts: Sequence[Put] = ()) -> None:
        """Write down what waits."""
        if self._waiting:
            self.journal.record_targets(self.run, self._waiting, puts)
            self._waiting.clear()

    def _number(self, instance: int, step: Step) -> int:
        phase = next(each for each in self.plan.instances[instance].phases if each.phase is step.phase)
        return self._numbers[instance, step.phase] + phase.steps.index(step)

    def _consequences(self, instance: int, step: Step, result: TargetResult) -> tuple[Put, ...]:
        if step.status is Planned.CLEAN or not _is_kept_here(step):
            return ()
        place = _place(self.run, self.plan, instance, step)
        return (place.tainted(_reason(self.run, result)) if result.is_undone else place.untainted(),)


def _is_kept_here(step: Step) -> bool:
    return step.phase in _STAYS_DIRTY and step.kind not in _KEPT_ELSEWHERE


def _place(run: Run, plan: Plan, instance: int, step: Step) -> TargetPhase:
    return TargetPhase(run.project, step.target, step.phase.value, dict(plan.instances[instance].parameters))


def _reason(run: Run, result: TargetResult) -> str:
    ended = "failed" if result.status is Status.FAILED else "was left undone"
    return f"{ended} in run {run.run_id}"
