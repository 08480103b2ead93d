"""The difference between two states of a table: rows by count, and some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lakewright.notebook import json_value, values_text
from lakewright.schema.conversion import convert
from lakewright.schema.diff import is_same
from lakewright.schema.shape import plain_type, united
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import TEXT, Type
from lakewright.spec.words import counted
from lakewright.transform.row_values import object_sql, parse_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    from lakewright.transform.system_columns import SystemColumns


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
            "sample_only_before": json_value(self.gone_rows),
            "sample_only_after": json_value(self.new_rows),
            "columns_only_before": list(self.columns_gone),
            "columns_only_after": list(self.columns_new),
            "columns_retyped": [asdict(each) for each in self.retyped],
        }


def compare_tables(before: DataFrame, after: DataFrame, system: SystemColumns) -> TableDifference:
    """Return the difference between two states of a silver table.

    Keys and hashes are not compared: they follow from the other columns, and differ in every row under
    another key or hash version.
    """
    return compare_rows(before, after, without=(system.key, system.hash), seen=system.last_seen)


def compare_rows(
    before: DataFrame, after: DataFrame, *, without: Sequence[str] = (), seen: str | None = None
) -> TableDifference:
    """Return the difference between two frames, by the columns that both have.

    Rows count as often as they occur. Values are compared as JSON, so that maps can be compared too; those of
    a column with two types as text, after the old value was cast to the new type if that loses nothing.
    Fields of structs are compared by name, at any depth, whatever their order.

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
    kinds_after = {field.name.lower(): field.dataType for field in after.schema.fields}
    types = {
        name: (type_of(before.schema[name].dataType), type_of(kinds_after[name.lower()])) for name in both
    }
    pairs = {name: each for name, each in types.items() if plain_type(each[0]) != plain_type(each[1])}
    retyped = tuple(
        Retyped(name, before.schema[name].dataType.simpleString(), kinds_after[name.lower()].simpleString())
        for name, (old, new) in pairs.items()
        if not is_same(old, new)
    )

    def values_of(sign: int) -> dict[str, str]:
        return {name: _value_sql(name_sql(name), *types, is_old=sign > 0) for name, types in pairs.items()}

    def side(frame: DataFrame, sign: int) -> DataFrame:
        values = values_of(sign)
        # A field that only one type has counts as null, as a column does that only one table has.
        kinds = {field.name: field.dataType for field in frame.schema.fields}
        rows, times = (
            object_sql(_columns(each, kinds, values), has_nulls=not retyped) if each else "'{}'"
            for each in (rest, apart)
        )
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

    def some(frame: DataFrame, sign: int, condition: str, time: str) -> tuple[Mapping[str, Any], ...]:
        values = values_of(sign)
        columns = [f"{values.get(name, name_sql(name))} as {name_sql(name)}" for name in (*rest, *apart)]
        return _some(grouped.where(condition), time, frame.selectExpr(*columns).schema)

    return TableDifference(
        **found,
        gone_rows=some(before, 1, "old > new", "old_seen") if found["gone"] else (),
        new_rows=some(after, -1, "new > old", "new_seen") if found["new"] else (),
        columns_gone=_missing(before, after, ignored),
        columns_new=_missing(after, before, ignored),
        retyped=retyped,
    )


def _columns(
    names: Sequence[str], kinds: Mapping[str, DataType], values: Mapping[str, str]
) -> Iterator[tuple[str, str, DataType | None]]:
    """Yield the name, SQL and type of columns; `values` has the SQL of those that have two types."""
    for name in names:
        yield (name, values[name], None) if name in values else (name, name_sql(name), kinds[name])


def _value_sql(value: str, old: Type, new: Type, *, is_old: bool) -> str:
    """Return SQL of a value of one of two tables, such that equal ones are equal in both.

    Fields are matched by their names, and what has two types is written as text: an old value that fits the
    new type as one of that, any other as it is.
    """
    texts = united(new, old, lambda one, other: one if is_same(one, other) else TEXT) or TEXT
    if not is_old:
        return convert(value, new, texts, column="").sql
    kind = united(new, old, lambda one, _: one) or new
    fitted, kept = convert(value, old, kind, column=""), convert(value, old, texts, column="").sql
    shown = f"get(transform(array({fitted.sql}), own -> {convert('own', kind, texts, column='').sql}), 0)"
    return shown if fitted.fault is None else f"if(({fitted.fault}) is null, {shown}, {kept})"


def _some(grouped: DataFrame, seen: str, types: StructType) -> tuple[Mapping[str, Any], ...]:
    some = grouped.select("row", seen).orderBy("row").limit(SHOWN)
    absent = dict.fromkeys(types.names)
    return tuple(
        {**absent, **parse_values(row, types), **parse_values(time, types)} for row, time in some.collect()
    )


def _missing(of: DataFrame, among: DataFrame, ignored: Set[str]) -> tuple[str, ...]:
    present = {name.lower() for name in among.columns} | ignored
    return tuple(name for name in of.columns if name.lower() not in present)
