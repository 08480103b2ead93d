"""The expected state of each target after the steps planned so far.

Source: `lifecycles-and-phases.md`, "Dirtiness". That a plan takes its own earlier steps into account is
Lakewright's own rule.
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
"""Phases that affect a whole table, whichever partition of it a target observes."""

_CHANGING = (*_WHOLE, Phase.BUILD, Phase.TRUNCATE)

Expected = tuple[Observation, StepKey]


class Expectations:
    """The expected observation of each subject. A target that no step changes keeps its own observation."""

    def __init__(self) -> None:
        self._by_subject: dict[str, list[Expected]] = {}
        self._whole: dict[tuple[Phase, frozenset[Resource]], StepKey] = {}

    def of(self, candidate: Candidate) -> Observation:
        """Return the expected observation of a target."""
        history = self._history(candidate)
        return history[-1][0] if history else candidate.observation

    def add(self, step: StepKey, candidate: Candidate) -> None:
        """Record that a step will have run."""
        phase = step[1]
        if phase not in _CHANGING:
            return
        history = [*self._history(candidate), (self.of(candidate).after(phase), step)]
        self._by_subject[candidate.observation.subject] = history
        if phase in _WHOLE and candidate.nodes[phase].provides:
            self._whole.setdefault((phase, candidate.nodes[phase].provides), step)

    def relied_on(self, phase: Phase, candidate: Candidate) -> StepKey | None:
        """Return the planned step that makes a dirty target clean, or None if no step is needed for that."""
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
