"""The `verify` target: what must hold after everything is built."""

from __future__ import annotations

from lakewright.plan.phase import Phase
from lakewright.targets.checking import CheckingTarget

__all__ = ["VerifyTarget"]


class VerifyTarget(CheckingTarget):
    """Checks assertions in VERIFY, all of them unless told otherwise."""

    def phases(self) -> frozenset[Phase]:
        """Return VERIFY."""
        return frozenset({Phase.VERIFY})
