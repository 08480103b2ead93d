"""What will be found once the steps planned so far have run, and which of them makes it so.

Source: `lifecycles-and-phases.md`, "Dirtiness"; carrying it forward is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakewright.plan.candidate import Candidate
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.step import StepKey

__all__ = ["Expectations"]

_WHOLE = (Phase.CREATE, Phase.DESTROY)
"""Phases that concern a table as a whole, whichever part of it a target looks at."""

_CHANGING = (*_WHOLE, Phase.BUILD, Phase.TRUNCATE)

Expected = tuple[Observation, StepKey]


class Expectations:
    """What is expected of each subject; a target that isn't mentioned is expected to be as it was found."""

    def __init__(self) -> None:
        self._by_subject: dict[str, list[Expected]] = {}
        self._whole: dict[tuple[Phase, frozenset[Resource]], StepKey] = {}

    def of(self, candidate: Candidate) -> Observation:
        """Return what will be found of a target."""
        history = self._history(candidate)
        return history[-1][0] if history else candidate.observation

    def add(self, step: StepKey, candidate: Candidate) -> None:
        """Expect that a step will have run."""
        phase = step[1]
        if phase not in _CHANGING:
            return
        history = [*self._history(candidate), (self.of(candidate).after(phase), step)]
        self._by_subject[candidate.observation.subject] = history
        if phase in _WHOLE and candidate.nodes[phase].provides:
            self._whole.setdefault((phase, candidate.nodes[phase].provides), step)

    def relied_on(self, phase: Phase, candidate: Candidate) -> StepKey | None:
        """Return the step that makes a target clean which by itself isn't, or None if it is."""
        history = self._history(candidate)
        if not history or not candidate.dirtiness(phase, candidate.observation).is_to_run:
            return None
        return next(key for found, key in history if not candidate.dirtiness(phase, found).is_to_run)

    def _history(self, candidate: Candidate) -> Sequence[Expected]:
        found = candidate.observation
        if found.subject in self._by_subject:
            return self._by_subject[found.subject]
        return [
            (found.after(phase), self._whole[phase, node.provides])
            for phase, node in candidate.nodes.items()
            if phase in _WHOLE and (phase, node.provides) in self._whole
        ]
