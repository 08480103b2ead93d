"""The `validate` target: what must hold before anything is created or built."""

from __future__ import annotations

from pydantic import Field as Declared

from lakewright.plan.phase import Phase
from lakewright.targets.assertion_target import AssertionTarget, ErrorMode, ErrorModeText

__all__ = ["ValidateTarget"]


class ValidateTarget(AssertionTarget):
    """Checks assertions in VALIDATE, and stops at the first that fails unless told otherwise."""

    mode: ErrorModeText = Declared(
        default=ErrorMode.FAIL_FAST,
        description="Whether a failed one ends the rest, fails the target, or is only noted.",
    )

    def phases(self) -> frozenset[Phase]:
        """Return VALIDATE."""
        return frozenset({Phase.VALIDATE})
