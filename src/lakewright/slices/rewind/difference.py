"""The difference between two states of a table: rows by count, and some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lakewright.lake.spark_errors import analysis_error
from lakewright.notebook import json_value, values_text
from lakewright.schema.diff import is_same
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spec.words import counted
from lakewright.transform.row_values import object_sql, parse_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

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
            "sample_only_before": json_value(self.gone_rows),
            "sample_only_after": json_value(self.new_rows),
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
    differing = _differing_types(before, after, both)
    retyped = tuple(_retyped(differing))

    def values_of(sign: int) -> dict[str, str]:
        own = _Side(before, is_old=sign > 0)
        return {name: own.sql(name_sql(name), *types) for name, types in differing.items()}

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


def _differing_types(
    before: DataFrame, after: DataFrame, names: Sequence[str]
) -> dict[str, tuple[DataType, DataType]]:
    """Return the columns whose types are not written alike, with both types."""
    types = {field.name.lower(): field.dataType for field in after.schema.fields}
    pairs = {f.name: (f.dataType, types[f.name.lower()]) for f in before.schema.fields if f.name in names}
    return {
        name: (old, new) for name, (old, new) in pairs.items() if old.simpleString() != new.simpleString()
    }


def _retyped(differing: Mapping[str, tuple[DataType, DataType]]) -> Iterator[Retyped]:
    """Yield the columns with two types; the order of the fields of a struct is no part of its type."""
    for name, (old, new) in differing.items():
        if not is_same(type_of(old), type_of(new)):
            yield Retyped(name, old.simpleString(), new.simpleString())


def _columns(
    names: Sequence[str], kinds: Mapping[str, DataType], values: Mapping[str, str]
) -> Iterator[tuple[str, str, DataType | None]]:
    """Yield the name, SQL and type of columns; `values` has the SQL of those that have two types."""
    for name in names:
        yield (name, values[name], None) if name in values else (name, name_sql(name), kinds[name])


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the tables, whose values are written so that equal ones are equal in both.

    Attributes:
        frame: Any rows: Spark tells by them which types can be cast.
        is_old: Whether it is the table before.
    """

    frame: DataFrame
    is_old: bool

    def sql(self, value: str, old: DataType, new: DataType, depth: int = 0) -> str:
        """Return SQL of a value: fields by their names, and other values of two types as text of the new one.

        Args:
            value: SQL of the value in this table.
            old: Its type before.
            new: Its type after.
            depth: The number of lambdas around it.
        """
        from pyspark.sql.types import ArrayType, MapType, StructType

        if old.simpleString() == new.simpleString():
            return value
        item = f"e{depth}"
        if isinstance(old, ArrayType) and isinstance(new, ArrayType):
            return (
                f"transform({value}, {item} -> {self.sql(item, old.elementType, new.elementType, depth + 1)})"
            )
        if isinstance(old, MapType) and isinstance(new, MapType):
            key = self.sql(f"{item}.key", old.keyType, new.keyType, depth + 1)
            inner = self.sql(f"{item}.value", old.valueType, new.valueType, depth + 1)
            return f"map_from_entries(transform(map_entries({value}), {item} -> struct({key}, {inner})))"
        if isinstance(old, StructType) and isinstance(new, StructType):
            fields = ", ".join(self._fields(value, old, new, depth))
            return f"if({value} is null, null, named_struct({fields}))"
        before, after = old.simpleString(), new.simpleString()
        if not _is_valid(self.frame, _in_new_type(f"cast(null as {before})", before, after)):
            return value
        return _in_new_type(value, before, after) if self.is_old else f"cast({value} as string)"

    def _fields(self, value: str, old: StructType, new: StructType, depth: int) -> Iterator[str]:
        """Yield the fields that the struct has in this table; those that only the other one has are null."""
        olds, news = ({field.name.lower(): field for field in kind.fields} for kind in (old, new))
        for name, own in sorted((olds if self.is_old else news).items()):
            other = (news if self.is_old else olds).get(name, own)
            before, after = (own, other) if self.is_old else (other, own)
            inner = self.sql(f"{value}.{name_sql(own.name)}", before.dataType, after.dataType, depth)
            yield f"{text_sql(after.name)}, {inner}"


def _in_new_type(value: str, before: str, after: str) -> str:
    """Return an old value as text of the new type, or as it is if the cast would lose something.

    A cast of a text loses what its number or time has beyond the new type, such as decimals or the time of a
    day; any other cast, what the cast back does not bring.
    """
    new = f"try_cast({value} as {after})"
    if before != "string":
        is_kept = f"try_cast({new} as {before}) <=> {value}"
    elif after.startswith("decimal"):
        is_kept = f"try_cast({value} as decimal(38, 18)) = {new} or cast({new} as string) = {value}"
    elif after == "date":
        is_kept = f"try_cast({value} as timestamp_ntz) = cast({new} as timestamp_ntz)"
    else:
        is_kept = f"{new} is not null"
    return f"case when {is_kept} then cast({new} as string) else cast({value} as string) end"


def _is_valid(frame: DataFrame, text: str) -> bool:
    """Return whether Spark can evaluate an expression over a frame; it knows which types can be cast."""
    try:
        return bool(frame.selectExpr(text).schema)
    except analysis_error():
        return False


def _some(grouped: DataFrame, seen: str, types: StructType) -> tuple[Mapping[str, Any], ...]:
    some = grouped.select("row", seen).orderBy("row").limit(SHOWN)
    absent = dict.fromkeys(types.names)
    return tuple(
        {**absent, **parse_values(row, types), **parse_values(time, types)} for row, time in some.collect()
    )


def _missing(of: DataFrame, among: DataFrame, ignored: Set[str]) -> tuple[str, ...]:
    present = {name.lower() for name in among.columns} | ignored
    return tuple(name for name in of.columns if name.lower() not in present)
