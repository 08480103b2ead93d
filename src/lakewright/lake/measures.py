"""Measures that Spark takes of a frame's rows while it computes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from datetime import time as clock_time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakewright.spark.engine import observed_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


def counted(frame: DataFrame) -> tuple[DataFrame, Callable[[], int]]:
    """Return the rows, and what returns their number when they have been computed."""
    from pyspark.sql import Observation, functions

    observed = Observation()
    rows = frame.observe(observed, functions.count(functions.lit(1)).alias("rows"))
    return rows, lambda: int(observed.get["rows"])


def measured(observation: Observation) -> dict[str, Any] | None:
    """Return the values that were measured, or None if the rows haven't been computed."""
    found = observed_values(observation)
    return None if found is None else {name: _plain(value) for name, value in found.items()}


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
