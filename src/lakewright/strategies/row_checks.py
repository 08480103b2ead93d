"""Checks of rows that were not made by slices: rows whose meaning is not clear prevent that they are taken.

A check is a value: the sentence on the rows that fail, and their condition. All checks of a frame are counted
by one query. The checks are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.errors import MigrationError
from lakewright.schema.sql import name_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["RowCheck", "check_rows"]

SAMPLES = 5
"""Number of keys that an error shows for each failed check."""


@dataclass(frozen=True, slots=True)
class RowCheck:
    """A check of rows.

    Attributes:
        singular: Subject and verb of the sentence on one row that fails.
        plural: The same on several rows.
        rest: The rest of that sentence.
        condition: SQL condition of the rows that fail; null counts as false.
        remedy: What to do about them.
    """

    singular: str
    plural: str
    rest: str
    condition: str
    remedy: str

    def text(self, count: int) -> str:
        """Return the sentence on a number of rows that fail.

        Example:
            >>> check = RowCheck("row has", "rows have", "no start", "start is null", "Correct them.")
            >>> check.text(1), check.text(1200)
            ('1 row has no start', '1,200 rows have no start')
        """
        return f"{count:,} {self.singular if count == 1 else self.plural} {self.rest}"


def check_rows(
    rows: DataFrame,
    checks: Iterable[RowCheck],
    *,
    keys: Sequence[str],
    refusal: str,
    counts: Mapping[str, str],
) -> dict[str, int]:
    """Check rows and return other counts of them, by one query.

    Args:
        rows: The rows.
        checks: The checks.
        keys: Columns whose values the error shows for some of the rows that fail.
        refusal: The beginning of the error's message.
        counts: SQL of the aggregates to return, by name.

    Raises:
        MigrationError: Rows fail checks; the message names all failed checks, with samples of keys.
    """
    from pyspark.sql import functions

    found = list(checks)
    failures = (f"count_if(coalesce({check.condition}, false))" for check in found)
    row = rows.agg(*(functions.expr(sql) for sql in (*counts.values(), *failures))).first()
    numbers = [0] * (len(counts) + len(found)) if row is None else [int(value) for value in row]
    failed = [(check, n) for check, n in zip(found, numbers[len(counts) :], strict=True) if n]
    if failed:
        texts = (f"{check.text(n)}{_samples(rows, check, n, keys)}" for check, n in failed)
        raise MigrationError(
            f"{refusal}: {'; '.join(texts)}",
            remedy=failed[0][0].remedy,
            details={f"{check.plural} {check.rest}": n for check, n in failed},
        )
    return dict(zip(counts, numbers, strict=False))


def _samples(rows: DataFrame, check: RowCheck, count: int, keys: Sequence[str]) -> str:
    """Return the keys of some rows that fail, for a message; nothing if they have no keys."""
    if not keys:
        return ""
    found: list[Any] = rows.where(check.condition).selectExpr(*map(name_sql, keys)).limit(SAMPLES).collect()
    shown = [", ".join(f"{name}={row[name]}" for name in keys) for row in found]
    return f" ({'; '.join(shown)}{' …' if count > len(shown) else ''})"
