"""The outcome of a step, as its target reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakewright.errors import Fault
from lakewright.plan.status import Status
from lakewright.spec.reason import Reason


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one step: its status, metrics, reasons, warnings, and the error if there was one."""

    status: Status = Status.SUCCESS
    metrics: Mapping[str, Any] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()
    error: Fault | None = None
    warnings: tuple[str, ...] = ()
