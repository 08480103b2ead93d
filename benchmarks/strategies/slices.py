"""Slices for measuring: rows of twenty or more columns, any share of which can change."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

# has no type annotations
pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")


KEY = "id"


def write_slice(
    file: Path, rows: int, *, version: int = 0, share: float = 0.0, is_whole: bool = True, columns: int = 20
) -> Path:
    """Write slice number `version` of a source, once, and return its file.

    Args:
        file: Where to write it.
        rows: Number of rows of the source.
        version: Determines which rows change; version 0 has no changes.
        share: Share of the rows that differ from version 0.
        is_whole: Whether the slice contains all rows; otherwise only the changed ones.
        columns: Number of columns of the source.
    """
    if file.exists():
        return file
    values = _values(rows, columns)
    changed = np.sort(np.random.default_rng(version).choice(rows, round(rows * share), replace=False))
    values["n0"][changed] += version
    table = pa.table(values)
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table if is_whole else table.take(pa.array(changed)), file)
    return file


def _values(rows: int, columns: int) -> dict[str, Any]:
    random = np.random.default_rng(42)
    values: dict[str, Any] = {KEY: np.arange(rows, dtype="int64")}
    values["day"] = (np.datetime64("2020-01-01") + random.integers(0, 1_000, rows)).astype("datetime64[D]")
    instants = np.datetime64("2020-01-01T00:00:00", "us") + random.integers(0, 10**13, rows)
    values["at"] = pa.array(instants).cast(pa.timestamp("us", tz="UTC"))
    for n in range(columns - 3):
        values[f"{'ndt'[n % 3]}{n // 3}"] = _column(random, n % 3, rows)
    return values


def _column(random: np.random.Generator, kind: int, rows: int) -> Any:
    if kind == 0:
        return random.integers(0, 10**6, rows)
    if kind == 1:
        return random.random(rows).round(6)
    return np.char.add("text ", random.integers(0, 10**7, rows).astype(str))
