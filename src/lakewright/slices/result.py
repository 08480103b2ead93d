"""What processing an entity's slices came to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from lakewright.errors import LakewrightError
from lakewright.strategies.summary import Summary

__all__ = ["ProcessResult", "SliceResult"]


@dataclass(frozen=True, slots=True)
class SliceResult:
    """One slice that was processed.

    Attributes:
        name: Of the slice.
        summary: Its metrics.
        is_adopted: Whether an earlier attempt's commit was found and taken over.
        warnings: What was noticed: schema drift, a processing time that isn't one.
    """

    name: str
    item_id: str
    summary: Summary
    is_adopted: bool = False
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the slice as commands print it: item, name, strategy and numbers."""
        numbers = {name: value for name, value in asdict(self.summary).items() if name != "is_first"}
        return {
            "item": self.item_id,
            "slice": self.name,
            **numbers,
            "strategy": self.summary.strategy.value,
        }


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The slices that were processed, in order, and why there were no more.

    Attributes:
        slices: In order.
        failed: Names of the slices that failed in this run.
        errors: Why, in the same order; the last may be what held the entity back before it began.
        waiting: Names of the slices that wait.
        is_stopped: Whether the run was asked to stop before all were done.
    """

    slices: tuple[SliceResult, ...] = ()
    failed: tuple[str, ...] = ()
    errors: tuple[LakewrightError, ...] = ()
    waiting: tuple[str, ...] = ()
    is_stopped: bool = False
    warnings: tuple[str, ...] = field(default=())

    @property
    def error(self) -> LakewrightError | None:
        """The first thing that went wrong, or None."""
        return self.errors[0] if self.errors else None
