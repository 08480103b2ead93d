"""The `validate` target: assertions that must hold before anything is created or built."""

from __future__ import annotations

from pydantic import Field as Declared

from lakewright.plan.phase import Phase
from lakewright.targets.assertion_target import AssertionTarget, ErrorMode, ErrorModeText

__all__ = ["ValidateTarget"]


class ValidateTarget(AssertionTarget):
    """Checks assertions in VALIDATE, and by default stops at the first one that fails."""

    mode: ErrorModeText = Declared(
        default=ErrorMode.FAIL_FAST,
        description="Whether a failed assertion stops the target, fails it at the end, or only warns.",
    )

    def phases(self) -> frozenset[Phase]:
        """Return VALIDATE."""
        return frozenset({Phase.VALIDATE})
