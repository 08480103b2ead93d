"""The difference between two states of a table: rows by count, and some of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.notebook import values_text
from lakewright.spec.words import counted
from lakewright.transform.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TableDifference", "compare_rows"]

SHOWN = 5
"""Number of rows of each kind that are shown."""


@dataclass(frozen=True, slots=True)
class TableDifference:
    """The difference between the rows of a table before and after a change.

    Attributes:
        equal: Number of rows that stay.
        gone: Number of rows that are only there before.
        new: Number of rows that are only there after.
        gone_rows: Some of the rows that go, as texts by column.
        new_rows: Some of the rows that come.
        columns_gone: Columns that only the table before has.
        columns_new: Columns that only the table after has.
    """

    equal: int
    gone: int
    new: int
    gone_rows: tuple[Mapping[str, Any], ...] = ()
    new_rows: tuple[Mapping[str, Any], ...] = ()
    columns_gone: tuple[str, ...] = ()
    columns_new: tuple[str, ...] = ()

    @property
    def is_none(self) -> bool:
        """Whether both have the same rows and columns."""
        return not (self.gone or self.new or self.columns_gone or self.columns_new)

    @property
    def text(self) -> str:
        """The numbers of rows that go, come and stay."""
        return f"{counted(self.gone, 'row')} gone, {self.new:,} new, {self.equal:,} equal"

    def shown_rows(self, gone: str, new: str) -> Iterator[tuple[str, str]]:
        """Yield some of the rows that differ as a notebook shows them, each after a word for it."""
        for word, rows in ((gone, self.gone_rows), (new, self.new_rows)):
            yield from ((word, values_text(row)) for row in rows)

    def as_json(self) -> dict[str, Any]:
        """Return the difference as commands print it."""
        return {
            "rows_equal": self.equal,
            "rows_only_before": self.gone,
            "rows_only_after": self.new,
            "sample_only_before": list(self.gone_rows),
            "sample_only_after": list(self.new_rows),
            "columns_only_before": list(self.columns_gone),
            "columns_only_after": list(self.columns_new),
        }


def compare_rows(before: DataFrame, after: DataFrame, *, without: Sequence[str] = ()) -> TableDifference:
    """Return the difference between two frames, by the columns that both have.

    Rows count as often as they occur. Values are compared as JSON, so that maps can be compared too.

    Args:
        before: The rows before.
        after: The rows after.
        without: Columns that are not compared.
    """
    from pyspark.sql import functions

    ignored = {name.lower() for name in without}
    others = {name.lower() for name in after.columns}
    both = [name for name in before.columns if name.lower() in others and name.lower() not in ignored]
    pairs = ", ".join(f"{text_sql(name)}, {name_sql(name)}" for name in both)
    row = f"to_json(named_struct({pairs}), map('ignoreNullFields', 'false')) as row"
    sides = before.selectExpr(row, "1 as side").unionAll(after.selectExpr(row, "-1 as side"))
    grouped = sides.groupBy("row").agg(
        functions.expr("sum(side) as excess"), functions.expr("count(1) as occurs")
    )
    counts = grouped.selectExpr(
        "coalesce(sum(greatest(excess, 0)), 0) as gone",
        "coalesce(sum(greatest(-excess, 0)), 0) as new",
        "coalesce(sum((occurs - abs(excess)) div 2), 0) as equal",
    ).first()
    found = {} if counts is None else counts.asDict()
    return TableDifference(
        **found,
        gone_rows=_some(grouped, "excess > 0") if found["gone"] else (),
        new_rows=_some(grouped, "excess < 0") if found["new"] else (),
        columns_gone=_missing(before, after, ignored),
        columns_new=_missing(after, before, ignored),
    )


def _some(grouped: DataFrame, condition: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        json.loads(row[0])
        for row in grouped.where(condition).select("row").orderBy("row").limit(SHOWN).collect()
    )


def _missing(of: DataFrame, among: DataFrame, ignored: Set[str]) -> tuple[str, ...]:
    present = {name.lower() for name in among.columns} | ignored
    return tuple(name for name in of.columns if name.lower() not in present)
