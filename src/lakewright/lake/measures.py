"""Measures that Spark takes of a frame's rows while it computes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from datetime import time as clock_time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakewright.spark.connect import connect_session_active
from lakewright.transform.analysis import is_of_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

__all__ = ["counted", "materialized", "measured"]

PATIENCE = 2.0
"""Seconds that a measurement may arrive after the rows were computed: Spark sends it by its listeners."""


def counted(frame: DataFrame) -> tuple[DataFrame, Callable[[], int]]:
    """Return the rows, and what returns their number when they have been computed."""
    from pyspark.sql import Observation, functions

    observed = Observation()
    rows = frame.observe(observed, functions.count(functions.lit(1)).alias("rows"))
    return rows, lambda: int(observed.get["rows"])


def materialized(frame: DataFrame) -> DataFrame:
    """Return the rows, computed once and kept by the executors; what was observed of them has arrived."""
    if not is_of_connect(frame.sparkSession):
        return frame.localCheckpoint()
    # A server sends what it observed with the rows of a query, not with a checkpoint.
    kept = frame.persist()
    try:
        kept.count()
        with connect_session_active(frame.sparkSession):
            return kept.localCheckpoint()
    finally:
        kept.unpersist()


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
    return {name: _plain(value) for name, value in observation.get.items()}


def _plain(value: Any) -> Any:
    """Return a value of Spark as JSON has it, but for NaN: times as ISO 8601, bytes in hexadecimal digits."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | float | str) else _plain_scalar(value)


def _plain_scalar(value: Any) -> float | str:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    return value.isoformat() if isinstance(value, date | clock_time) else str(value)
