"""The `verify` target: assertions that must hold after everything is built."""

from __future__ import annotations

from lakewright.plan.phase import Phase
from lakewright.targets.assertion_target import AssertionTarget

__all__ = ["VerifyTarget"]


class VerifyTarget(AssertionTarget):
    """Checks assertions in VERIFY, and by default all of them even if one fails."""

    def phases(self) -> frozenset[Phase]:
        """Return VERIFY."""
        return frozenset({Phase.VERIFY})
