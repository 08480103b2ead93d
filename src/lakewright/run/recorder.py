"""Recording a run while it goes on: each target's end, and what stays dirty because of it.

Source: `lifecycles-and-phases.md`, "Dirtiness"; that a failed target stays dirty is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakewright.manifest.journal import Journal, Place, Run
from lakewright.manifest.store import Put
from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import Step
from lakewright.run.execute import Listener
from lakewright.run.result import TargetResult

__all__ = ["Recorder"]

_STAYS_DIRTY = (Phase.CREATE, Phase.BUILD)


@dataclass(slots=True)
class Recorder:
    """Writes a run into the journal as its steps end, and passes the news on.

    Attributes:
        parameters: Of each instance, as text.
        independent: Kinds whose dirtiness is kept elsewhere: entities have the manifest.
    """

    journal: Journal
    run: Run
    parameters: Sequence[Mapping[str, str]]
    listener: Listener
    independent: frozenset[str] = frozenset({"entity"})
    _count: int = field(default=0, init=False)

    def step_started(self, instance: int, step: Step) -> None:
        """Pass on that a step begins."""
        self.listener.step_started(instance, step)

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Record how a step ended, with what the next run must know, in one write."""
        entry = {**result.as_json(), "phase": step.phase.value, "instance": dict(self.parameters[instance])}
        self.journal.target_done(self.run, self._count, entry, self._consequences(instance, step, result))
        self._count += 1
        self.listener.step_finished(instance, step, result)

    def _consequences(self, instance: int, step: Step, result: TargetResult) -> tuple[Put, ...]:
        if step.phase not in _STAYS_DIRTY or step.kind in self.independent:
            return ()
        place = Place(self.run.project, step.target, step.phase.value, dict(self.parameters[instance]))
        if result.status.is_success:
            return (place.untainted(),)
        is_undone = result.status.is_failure or step.status is Planned.WOULD_RUN
        return (place.tainted(_reason(self.run, result)),) if is_undone else ()


def _reason(run: Run, result: TargetResult) -> str:
    ended = "failed" if result.status is Status.FAILED else "was left undone"
    return f"{ended} in run {run.run_id}"
