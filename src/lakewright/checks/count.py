"""Counts of the rows, or keys, that are as stated, taken in one pass over a frame; samples of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.columns import column as column_of
from lakewright.spark.functions import functions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


SHOWN_ROWS = 5
LONGEST_VALUE = 80
"""Rows that are shown of failing ones, and characters of each value."""

_ROWS = "__rows"


@dataclass(frozen=True, slots=True)
class Sample:
    """A few rows, their values as text; None is null.

    Attributes:
        left_out: Names of further columns, which are not shown.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, frame: DataFrame, columns: int | None = None) -> Sample:
        """Return some rows of a frame, with its first columns; by default with all."""
        names = tuple(frame.columns)
        shown = names[:columns]
        # Several columns may have the same name.
        plain = frame.toDF(*(f"c{place}" for place in range(len(names))))
        texts = plain.selectExpr(*(f"cast(c{place} as string)" for place in range(len(shown))))
        rows = tuple(tuple(map(_cut, row)) for row in texts.limit(SHOWN_ROWS).collect())
        return cls(shown, rows, left_out=names[len(shown) :])

    def texts(self) -> tuple[str, ...]:
        """Return each row as text."""
        return tuple(row_text(self.columns, row) for row in self.rows)


def row_text(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Return values with the names of their columns; further values are left out.

    Example:
        >>> row_text(["id", "name"], ["1", None])
        'id=1, name=null'
    """
    shown = ("null" if value is None else value for value in values)
    return ", ".join(f"{name}={value}" for name, value in zip(names, shown, strict=False))


def _cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 1]}…"


@dataclass(frozen=True, slots=True)
class Count:
    """Rows, or keys, to be counted.

    Attributes:
        frame: The rows.
        passed: The aggregate that counts those that are as stated.
        failed: The aggregate that counts the others.
        failing: The others; None if they are not known.
    """

    frame: DataFrame
    passed: Column
    failed: Column
    failing: DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many rows, or keys, are as stated, how many are not, and some that are not."""

    passed: int
    failed: int
    sample: Sample


def count_rows(
    frame: DataFrame, condition: Column, selected: Column | None = None, *, shown_first: str | None = None
) -> Count:
    """Return the count of the rows that meet a condition; null counts as not met.

    Args:
        frame: The rows.
        condition: What each must meet.
        selected: Which of them are counted; by default all.
        shown_first: The first column of the failing rows.
    """
    holds = functions.coalesce(condition.cast("boolean"), functions.lit(False))
    within = functions.lit(True) if selected is None else selected
    failing = frame.where(within & ~holds)
    if shown_first is not None:
        others = (name for name in frame.columns if name.lower() != shown_first.lower())
        failing = failing.select(*map(column_of, (shown_first, *others)))
    return Count(frame, functions.count_if(within & holds), functions.count_if(within & ~holds), failing)


def count_keys(frame: DataFrame, names: Sequence[str], selected: Column | None = None) -> Count:
    """Return the count of keys, and of the rows that repeat one; null is a value like any other.

    The failing rows are the repeated keys with a column `rows`, the most frequent first.
    """
    within = functions.lit(True) if selected is None else selected
    key = functions.struct(*(column_of(name).alias(f"k{place}") for place, name in enumerate(names)))
    keys = functions.count_distinct(functions.when(within, key))
    groups = frame.where(within).groupBy(*map(column_of, names)).agg(functions.count("*").alias(_ROWS))
    repeated = groups.where(f"{_ROWS} > 1").orderBy(functions.desc(_ROWS)).toDF(*names, "rows")
    return Count(frame, keys, functions.count_if(within) - keys, repeated)


def tallied(counts: Sequence[Count], columns: int | None = None) -> list[Tally]:
    """Return the results of counts over one frame, in one pass; failing rows are read only if there are any.

    Args:
        counts: What to count.
        columns: How many columns samples have; by default all.
    """
    if not counts:
        return []
    aggregates = (each for count in counts for each in (count.passed, count.failed))
    (row,) = counts[0].frame.agg(*aggregates).collect()
    return [
        Tally(passed, failed, Sample.of(count.failing, columns) if failed and count.failing else Sample())
        for count, passed, failed in zip(counts, row[::2], row[1::2], strict=True)
    ]
