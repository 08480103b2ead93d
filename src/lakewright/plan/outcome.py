"""How the work of one step ended, as the target itself says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakewright.errors import Fault
from lakewright.plan.status import Status

__all__ = ["Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A step's end: a status, what was measured, and what went wrong, if anything did."""

    status: Status = Status.SUCCESS
    metrics: Mapping[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    error: Fault | None = None
