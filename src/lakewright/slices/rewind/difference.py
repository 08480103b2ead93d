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
        equal: Number of rows that stay as they are.
        gone: Number of rows that are only there before.
        new: Number of rows that are only there after.
        gone_rows: Some of the rows that go, as texts by column.
        new_rows: Some of the rows that come.
        columns_gone: Columns that only the table before has.
        columns_new: Columns that only the table after has.
        retyped: Columns that both have with different types. A value of the old type that casts to the new
            one without loss is compared in the new type.
        seen: Number of rows that stay but for their `lastSeen`.
    """

    equal: int
    gone: int
    new: int
    gone_rows: tuple[Mapping[str, Any], ...] = ()
    new_rows: tuple[Mapping[str, Any], ...] = ()
    columns_gone: tuple[str, ...] = ()
    columns_new: tuple[str, ...] = ()
    retyped: tuple[Retyped, ...] = ()
    seen: int = 0

    @property
    def is_none(self) -> bool:
        """Whether both have the same rows and columns."""
        rows = self.gone or self.new or self.seen
        return not (rows or self.columns_gone or self.columns_new or self.retyped)

    @property
    def text(self) -> str:
        """The numbers of rows that go, come and stay, and the columns whose types change."""
        stay = f"{self.equal + self.seen:,} equal{self.seen_words}"
        rows = f"{counted(self.gone, 'row')} gone, {self.new:,} new, {stay}"
        return "; ".join((rows, *(each.text for each in self.retyped)))

    @property
    def seen_words(self) -> str:
        """How many of the rows that stay have another `lastSeen`: words after their number, or none."""
        return f" ({self.seen:,} of them with another lastSeen)" if self.seen else ""

    def shown_rows(self, gone: str, new: str) -> Iterator[tuple[str, str]]:
        """Yield some of the rows that differ as a notebook shows them, each after a word for it."""
        for word, rows in ((gone, self.gone_rows), (new, self.new_rows)):
            yield from ((word, values_text(row)) for row in rows)

    def as_json(self) -> dict[str, Any]:
        """Return the difference as commands print it."""
        return {
            "rows_equal": self.equal,
            "rows_seen": self.seen,
            "rows_only_before": self.gone,
            "rows_only_after": self.new,
            "sample_only_before": list(self.gone_rows),
            "sample_only_after": list(self.new_rows),
            "columns_only_before": list(self.columns_gone),
            "columns_only_after": list(self.columns_new),
            "columns_retyped": [asdict(each) for each in self.retyped],
        }


def compare_rows(
    before: DataFrame, after: DataFrame, *, without: Sequence[str] = (), seen: str | None = None
) -> TableDifference:
    """Return the difference between two frames, by the columns that both have.

    Rows count as often as they occur. Values are compared as JSON, so that maps can be compared too; those of
    a column with two types as text, after the old value was cast to the new type if that loses nothing.

    Args:
        before: The rows before.
        after: The rows after.
        without: Columns that are not compared.
        seen: The column `lastSeen`: rows that differ in it alone are counted by themselves.
    """
    from pyspark.sql import functions

    ignored = {name.lower() for name in without}
    others = {name.lower() for name in after.columns}
    both = [name for name in before.columns if name.lower() in others and name.lower() not in ignored]
    apart = [name for name in both if seen is not None and name.lower() == seen.lower()]
    rest = [name for name in both if name not in apart]
    retyped = tuple(_retyped(before, after, both))

    def side(frame: DataFrame, sign: int) -> DataFrame:
        values = dict(_values(before, retyped, is_old=sign > 0))
        # A field that only one type has counts as null, as a column does that only one table has.
        rows, times = (_json_sql(each, values, has_nulls=not retyped) for each in (rest, apart))
        return frame.selectExpr(f"{rows} as row", f"{times} as seen", f"{sign} as side")

    # One shuffle does for both groups.
    sides = side(before, 1).unionAll(side(after, -1)).repartition("row")
    exact = sides.groupBy("row", "seen").agg(
        functions.expr("sum(side) as excess"), functions.expr("count(1) as occurs")
    )
    grouped = exact.groupBy("row").agg(
        functions.expr("sum(greatest(excess, 0)) as old"),
        functions.expr("sum(greatest(-excess, 0)) as new"),
        functions.expr("sum((occurs - abs(excess)) div 2) as equal"),
        functions.expr("min(if(excess > 0, seen, null)) as old_seen"),
        functions.expr("min(if(excess < 0, seen, null)) as new_seen"),
    )
    counts = grouped.selectExpr(
        "coalesce(sum(greatest(old - new, 0)), 0) as gone",
        "coalesce(sum(greatest(new - old, 0)), 0) as new",
        "coalesce(sum(equal), 0) as equal",
        "coalesce(sum(least(old, new)), 0) as seen",
    ).first()
    found = {} if counts is None else counts.asDict()
    return TableDifference(
        **found,
        gone_rows=_some(grouped, "old > new", "old_seen", (*rest, *apart)) if found["gone"] else (),
        new_rows=_some(grouped, "new > old", "new_seen", (*rest, *apart)) if found["new"] else (),
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


def _json_sql(names: Sequence[str], values: Mapping[str, str], *, has_nulls: bool) -> str:
    """Return the expression of an object with these columns, as text, with null fields or without."""
    if not names:
        return "'{}'"
    pairs = ", ".join(f"{text_sql(name)}, {values.get(name, name_sql(name))}" for name in names)
    return f"to_json(named_struct({pairs}), map('ignoreNullFields', '{str(not has_nulls).lower()}'))"


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


def _some(
    grouped: DataFrame, condition: str, seen: str, names: Sequence[str]
) -> tuple[Mapping[str, Any], ...]:
    some = grouped.where(condition).select("row", seen).orderBy("row").limit(SHOWN)
    absent = dict.fromkeys(names)
    return tuple({**absent, **json.loads(row), **json.loads(time)} for row, time in some.collect())


def _missing(of: DataFrame, among: DataFrame, ignored: Set[str]) -> tuple[str, ...]:
    present = {name.lower() for name in among.columns} | ignored
    return tuple(name for name in of.columns if name.lower() not in present)
