"""How rows of a table are lost: it is made anew, emptied or removed, or was replaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.plan.observation import Answer
from lakewright.plan.phase import Phase

if TYPE_CHECKING:
    from lakewright.plan.observation import Observation
    from lakewright.plan.resource import Resource
    from lakewright.run.table_marks import TableLook

__all__ = ["LOST_ROWS", "REMOVED_ROWS", "REPLACED_ROWS", "Loss"]

LOST_ROWS, REMOVED_ROWS, REPLACED_ROWS = "lost_rows", "removed_rows", "replaced_rows"
"""The codes of the warning: if CREATE makes the table anew, or it is an older copy; if a run is asked to
empty or remove it; and if a build replaces what others have built."""


@dataclass(frozen=True, slots=True)
class Loss:
    """How the rows of a table are lost.

    Attributes:
        code: The code of the warning.
        told: What happens to the table.
        remedy: What to do about what was built into it, before the commands that build it again.
        reason: Why that is to be built again, once a run has done it.
        is_older: Whether the table is an older copy, so that it may hold older rows in the same places.
        kept: Why building again leaves rows of which nobody knows; None if it replaces them, or none are.
    """

    code: str
    told: str
    remedy: str
    reason: str
    is_older: bool = False
    kept: str | None = None

    @classmethod
    def of_older(cls, look: TableLook, kept: str | None) -> Loss:
        """Return that a table lacks builds, and why building these again leaves unknown rows, if it does."""
        was = "an older copy, or another table," if look.foreign is None else "replaced by another program"
        return cls(LOST_ROWS, look.told, look.advice, f"{look.place} was {was}", True, kept)

    @classmethod
    def of_replaced(cls, places: Iterable[Resource]) -> Loss:
        """Return that a build replaces what others have built into the same places."""
        place, part = _words(places)
        return cls(
            REPLACED_ROWS,
            f"BUILD replaces {part} of {place}",
            "Targets that replace each other's rows need tables, or partitions, of their own. "
            "Build these again",
            "its rows were replaced by another target",
        )

    @classmethod
    def of(cls, phase: Phase, places: Iterable[Resource], found: Observation) -> Loss:
        """Return what a phase does to the rows of places."""
        place, part = _words(places)
        if phase.is_cleanup:
            does = f"empties {part} of {place}" if phase is Phase.TRUNCATE else f"removes {place}"
            return cls(
                REMOVED_ROWS,
                f"{phase} {does}",
                "Build these again afterwards",
                f"its rows were removed by {phase}",
            )
        if found.exists is Answer.NO:
            return cls(
                LOST_ROWS,
                f"{place} does not exist any more",
                "If the table is to be brought back, do so before it is created. Otherwise build these again",
                f"{place} did not exist any more, and was made anew",
            )
        return cls(
            LOST_ROWS,
            f"CREATE replaces {place} with an empty table",
            "Build these again afterwards",
            f"{place} was replaced with an empty table",
        )


def _words(places: Iterable[Resource]) -> tuple[str, str]:
    """Return places, and which part of them, as text."""
    found = list(places)
    parts = {f"{column}={value}" for each in found for column, value in each.partition}
    part = f"the partition {' '.join(sorted(parts))}" if parts else "the whole"
    return ", ".join(sorted({each.name for each in found})), part
