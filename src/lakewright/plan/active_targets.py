"""Which targets are active in a phase of an instance, by the job's `executions`.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (active targets).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lakewright.plan.phase import Phase
from lakewright.spec.models.job import Execution

__all__ = ["active_patterns"]


def active_patterns(
    executions: Sequence[Execution], phase: Phase, *, index: int, count: int
) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of the active targets, or none if the instance skips the phase.

    A phase that no entry names is active in every instance, with all targets.
    """
    listed = [entry for entry in executions if entry.phase == phase]
    if not listed:
        return (re.compile(".*"),)
    active = [entry for entry in listed if _is_active(entry.cycle, index, count)]
    return tuple(re.compile(pattern) for entry in active for pattern in entry.targets)


def _is_active(cycle: str, index: int, count: int) -> bool:
    if cycle == "first":
        return index == 0
    if cycle == "last":
        return index == count - 1
    return cycle == "always"
