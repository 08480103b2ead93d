"""The `empty` target: takes part in every phase and does nothing."""

from __future__ import annotations

from typing import ClassVar

from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.targets.context import Context
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target

__all__ = ["EmptyTarget"]


class EmptyTarget(Target):
    """Does nothing and is never dirty; `before` and `after` of other targets can refer to it."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset(Phase) - {Phase.VALIDATE}
    feeds_others: ClassVar[bool] = False

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return that the target never runs."""
        return Dirtiness.no("is never dirty")

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Do nothing."""
        return Outcome()
