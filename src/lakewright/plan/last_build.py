"""What a run knows of the builds of its instances before it plans."""

from __future__ import annotations

from dataclasses import dataclass

from lakewright.plan.reason import Code
from lakewright.spec.reason import Reason


@dataclass(frozen=True, slots=True)
class LastBuild:
    """How the last build of an instance stands.

    Attributes:
        stale: Why it is to be built again whatever its build policy, None if it is not.
        changed: Why it is not built from what is declared and there now, None if it is.
        is_redefined: Whether its definition has changed since.
        begun: The identity of an append that has begun, and of which no end is recorded.
        holds_rows: Whether what it has written is there.
        is_unsure: Whether nobody knows if an append that was cut off has added its rows.
        order: When it was recorded, as a text that sorts with the keys of runs.
    """

    stale: Reason | None = None
    changed: Reason | None = None
    is_redefined: bool = False
    begun: str | None = None
    holds_rows: bool = False
    is_unsure: bool = False
    order: str = ""


NOTHING = LastBuild(changed=Reason(Code.NO_BUILD))
"""Of what was never built."""
