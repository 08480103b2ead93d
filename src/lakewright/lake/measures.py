"""Measures that Spark takes of a frame's rows while it computes them."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Observation

__all__ = ["measured"]

PATIENCE = 2.0
"""Seconds that a measurement may arrive after the rows were computed: Spark sends it by its listeners."""


def measured(observation: Observation) -> dict[str, Any] | None:
    """Return the values that were measured, or None if the rows haven't been computed."""
    classic: Any = getattr(observation, "_jo", None)
    if classic is not None:
        future = classic.future()
        deadline = time.monotonic() + PATIENCE
        while not future.isCompleted():
            if time.monotonic() > deadline:
                return None
            time.sleep(0.01)
    return {
        name: float(value) if isinstance(value, Decimal) else value for name, value in observation.get.items()
    }
