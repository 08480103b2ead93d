"""The difference between two states of a table: rows by count, and some of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lakewright.lake.spark_errors import analysis_error
from lakewright.notebook import values_text
from lakewright.spec.words import counted
from lakewright.transform.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Retyped", "TableDifference", "compare_rows"]

SHOWN = 5
"""Number of rows of each kind that are shown."""


@dataclass(frozen=True, slots=True)
class Retyped:
    """A column that has another type after a change.

    Attributes:
        before: Its type before, as SQL writes it.
        after: Its type after.
    """

    name: str
    before: str
    after: str

    @property
    def text(self) -> str:
        """The change, for people."""
        return f"the type of {self.name} changes from {self.before} to {self.after}"


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
        retyped: Columns that both have with different types. A value of the old type that casts to the new
            one without loss is compared in the new type.
    """

    equal: int
    gone: int
    new: int
    gone_rows: tuple[Mapping[str, Any], ...] = ()
    new_rows: tuple[Mapping[str, Any], ...] = ()
    columns_gone: tuple[str, ...] = ()
    columns_new: tuple[str, ...] = ()
    retyped: tuple[Retyped, ...] = ()

    @property
    def is_none(self) -> bool:
        """Whether both have the same rows and columns."""
        return not (self.gone or self.new or self.columns_gone or self.columns_new or self.retyped)

    @property
    def text(self) -> str:
        """The numbers of rows that go, come and stay, and the columns whose types change."""
        rows = f"{counted(self.gone, 'row')} gone, {self.new:,} new, {self.equal:,} equal"
        return "; ".join((rows, *(each.text for each in self.retyped)))

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
            "columns_retyped": [asdict(each) for each in self.retyped],
        }


def compare_rows(before: DataFrame, after: DataFrame, *, without: Sequence[str] = ()) -> TableDifference:
    """Return the difference between two frames, by the columns that both have.

    Rows count as often as they occur. Values are compared as JSON, so that maps can be compared too; those of
    a column with two types as text, after the old value was cast to the new type if that loses nothing.

    Args:
        before: The rows before.
        after: The rows after.
        without: Columns that are not compared.
    """
    from pyspark.sql import functions

    ignored = {name.lower() for name in without}
    others = {name.lower() for name in after.columns}
    both = [name for name in before.columns if name.lower() in others and name.lower() not in ignored]
    retyped = tuple(_retyped(before, after, both))
    old, new = (_row_sql(both, dict(_values(before, retyped, is_old=is_old))) for is_old in (True, False))
    sides = before.selectExpr(old, "1 as side").unionAll(after.selectExpr(new, "-1 as side"))
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
        retyped=retyped,
    )


def _retyped(before: DataFrame, after: DataFrame, names: Sequence[str]) -> Iterator[Retyped]:
    types = {field.name.lower(): field.dataType.simpleString() for field in after.schema.fields}
    for field in before.schema.fields:
        then, now = field.dataType.simpleString(), types.get(field.name.lower())
        if field.name in names and now is not None and now != then:
            yield Retyped(field.name, then, now)


def _row_sql(names: Sequence[str], values: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{text_sql(name)}, {values.get(name, name_sql(name))}" for name in names)
    return f"to_json(named_struct({pairs}), map('ignoreNullFields', 'false')) as row"


def _values(before: DataFrame, retyped: Sequence[Retyped], *, is_old: bool) -> Iterator[tuple[str, str]]:
    """Yield the columns with two types whose values can be cast, with how they are compared."""
    for each in retyped:
        old = _in_new_type(each)
        if _is_valid(before, old):
            yield each.name, old if is_old else f"cast({name_sql(each.name)} as string)"


def _in_new_type(column: Retyped) -> str:
    """Return an old value as text of the new type, or as it is if the cast would lose something.

    A cast of a text loses what its number or time has beyond the new type, such as decimals or the time of a
    day; any other cast, what the cast back does not bring.
    """
    name, new = name_sql(column.name), f"try_cast({name_sql(column.name)} as {column.after})"
    if column.before != "string":
        is_kept = f"try_cast({new} as {column.before}) <=> {name}"
    elif column.after.startswith("decimal"):
        is_kept = f"try_cast({name} as decimal(38, 18)) = {new} or cast({new} as string) = {name}"
    elif column.after == "date":
        is_kept = f"try_cast({name} as timestamp_ntz) = cast({new} as timestamp_ntz)"
    else:
        is_kept = f"{new} is not null"
    return f"case when {is_kept} then cast({new} as string) else cast({name} as string) end"


def _is_valid(frame: DataFrame, text: str) -> bool:
    """Return whether Spark can evaluate an expression over a frame; it knows which types can be cast."""
    try:
        return bool(frame.selectExpr(text).schema)
    except analysis_error():
        return False


def _some(grouped: DataFrame, condition: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        json.loads(row[0])
        for row in grouped.where(condition).select("row").orderBy("row").limit(SHOWN).collect()
    )


def _missing(of: DataFrame, among: DataFrame, ignored: Set[str]) -> tuple[str, ...]:
    present = {name.lower() for name in among.columns} | ignored
    return tuple(name for name in of.columns if name.lower() not in present)
