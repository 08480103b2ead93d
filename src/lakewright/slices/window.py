"""Where delete inference's window begins, by what the manifest holds of an entity's watermarks.

Source: `processing-strategies.md`, "Delete Inference".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.spec.function import Surroundings

if TYPE_CHECKING:
    from lakewright.slices.bench import Bench
    from lakewright.spec.entity import Entity

__all__ = ["lower_ends"]


def lower_ends(bench: Bench, entity: Entity) -> dict[str, object]:
    """Return each watermark column's expression over its last value; those without one are left out."""
    last = bench.ledger.watermarks.last(bench.application)
    surroundings = Surroundings(clock=bench.clock)
    return {
        mark.column_name: mark.lower_end(last[mark.column_name].python, surroundings)
        for mark in entity.watermarks
        if mark.column_name in last
    }
