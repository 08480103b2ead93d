"""Which targets are active in which phase of which instance: a job's `executions`, and `-t`.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (active targets).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lakewright.plan.phase import Phase

__all__ = ["Cycle", "Execution", "active_patterns"]


class Cycle(StrEnum):
    """In which instances of a run an entry of `executions` is active."""

    ALWAYS = "always"
    FIRST = "first"
    LAST = "last"
    NEVER = "never"

    def is_active(self, index: int, count: int) -> bool:
        """Return whether the entry is active in instance `index` of `count`."""
        if self is Cycle.FIRST:
            return index == 0
        if self is Cycle.LAST:
            return index == count - 1
        return self is Cycle.ALWAYS


@dataclass(frozen=True, slots=True)
class Execution:
    """One entry of a job's `executions`; the patterns are regular expressions of whole names."""

    phase: Phase
    cycle: Cycle = Cycle.ALWAYS
    targets: tuple[str, ...] = (".*",)


def active_patterns(
    executions: Sequence[Execution], phase: Phase, *, index: int, count: int
) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of targets that are active; none where the phase is left out of the instance.

    A phase without any entry is active in every instance, with all targets.
    """
    listed = [entry for entry in executions if entry.phase is phase]
    if not listed:
        return (re.compile(".*"),)
    active = [entry for entry in listed if entry.cycle.is_active(index, count)]
    return tuple(re.compile(pattern) for entry in active for pattern in entry.targets)
