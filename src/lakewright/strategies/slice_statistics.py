"""Statistics of a slice and checks of its keys, from one query over a few of its columns.

Nothing is written before they are known. From ranges of values follow conditions on the table by which Delta
skips files that no row of the slice can match. The primary key is a hash, spread evenly over all files, so
that a range of it skips nothing; the columns that it is computed from have useful ranges.

Source: `processing-strategies.md`, "Merge Strategy" (applies partition filters to limit merge scope); the
rule for where that is safe is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from lakewright.errors import DuplicateBusinesskeyException, NullKeyError, SchemaDriftError, TargetError
from lakewright.lake.partition import NULL_FOLDER
from lakewright.manifest.watermarks import Watermark
from lakewright.schema.sql import name_sql, text_sql
from lakewright.transform.sequence import IS_KEPT, IS_LATEST
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import DataType

    from lakewright.spec.models.entity import Entity
    from lakewright.transform.pipeline import PreparedSlice


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SAMPLES = 5
"""Number of keys that an error shows."""

LONGEST_BOUND = 200
"""Characters above which a text is no bound of a range: Delta keeps only the first 32 for skipping files."""

LONGEST_NAME = 254
"""Bytes of a partition folder's name, `column=value`, without the equals sign: file systems allow 255."""

_INTEGERS = ("tinyint", "smallint", "int", "bigint")

_ROUNDED = {"int": 31, "bigint": 63}
"""Types whose bounds are rounded, with their bits beside the sign."""

_RANGED = (*_INTEGERS, "decimal", "date", "timestamp", "string")
"""Types, as Spark writes them, whose ranges are used; a text with a collation has an order of its own."""


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value of a column, and whether it has nulls."""

    low: Any
    high: Any
    has_null: bool


@dataclass(frozen=True, slots=True)
class SliceStatistics:
    """Counts, watermarks and ranges of a slice.

    Attributes:
        records: Number of rows.
        arrived_deleted: Number of rows that arrive deleted, without superseded ones.
        superseded: Number of rows that are not used, because the slice has a later one of the same key.
        watermarks: Watermark column, as declared, to its greatest value; columns with only nulls are left
            out.
        ranges: Silver column to the range of its values, for columns by which files of the table can be
            skipped.
        latest: The greatest value of `sequence_by`; None without one.
    """

    records: int = 0
    arrived_deleted: int = 0
    watermarks: Mapping[str, Watermark] = field(default_factory=dict)
    ranges: Mapping[str, Range] = field(default_factory=dict)
    superseded: int = 0
    latest: Any = None

    @property
    def marks(self) -> dict[str, Any]:
        """The watermarks as records and commits hold them."""
        return {column: mark.as_json() for column, mark in self.watermarks.items()}

    @property
    def used(self) -> int:
        """Number of rows that are not superseded."""
        return self.records - self.superseded


def collect_statistics(
    prepared: PreparedSlice,
    *,
    are_null_keys_allowed: bool,
    ranged: tuple[str, ...] = (),
    number: str | None = None,
) -> dict[int, SliceStatistics | TargetError]:
    """Return the statistics of prepared slices by their numbers, or what is wrong with one of them.

    Keys and partition values are checked. Slices without rows, and those after one that is wrong, are left
    out.

    Args:
        prepared: One slice, or several with a column that has the number of each row's slice.
        are_null_keys_allowed: Whether null is a value of the business key like others.
        ranged: Silver columns whose ranges are wanted.
        number: Name of that column; None for one slice, which has the number 0.
    """
    aggregates = _Aggregates(prepared, ranged, number)
    found: dict[int, SliceStatistics | TargetError] = {}
    rows = {0 if number is None else row[number]: row for row in aggregates.query().collect()}
    for place, row in sorted(rows.items()):
        frame = prepared.frame if number is None else prepared.frame.where(f"{number} = {place}")
        own = replace(prepared, frame=frame)
        error = _error(own, row, are_null_keys_allowed=are_null_keys_allowed)
        found[place] = error or aggregates.statistics(row)
        if error is not None:
            break
    return found


def _error(prepared: PreparedSlice, row: Row, *, are_null_keys_allowed: bool) -> TargetError | None:
    """Return the error of a slice with several rows of one key, null keys, or unfit partition values."""
    if prepared.has_key and row["duplicates"]:
        return _duplicate_error(prepared, row["duplicates"])
    if row["null_keys"] and not (are_null_keys_allowed and prepared.key_columns):
        return _null_error(prepared, row["null_keys"])
    # Delta stores the first as null.
    if row["empty_partitions"]:
        return SchemaDriftError(
            f"{_rows_have(row['empty_partitions'])} an empty text, or {NULL_FOLDER}, in a partition column "
            f"({', '.join(prepared.partitions)}), which a table cannot tell from null",
            remedy="Make the source or a transformation return null or another text.",
        )
    if row["long_partitions"]:
        return SchemaDriftError(
            f"{_rows_have(row['long_partitions'])} a text in a partition column "
            f"({', '.join(prepared.partitions)}) that is too long for the name of a folder",
            remedy="Partition by another column, or by an expression that shortens it.",
        )
    return None


_RECORDS = "_lakewright_records"
_LEAST, _GREATEST = "_lakewright_least", "_lakewright_greatest"


def _content_sql(prepared: PreparedSlice) -> str:
    """Return SQL of what two rows of the same key must have in common to count as one row twice."""
    system = prepared.system
    return f"concat({name_sql(system.hash)}, cast({name_sql(system.deleted)} as string))"


class _Aggregate(NamedTuple):
    """An aggregate over all rows of the slice.

    Attributes:
        name: Name of the column in the result.
        of: SQL of the condition to count, or of the value to aggregate.
        columns: All silver columns that `of` refers to.
        how: The function: `count_if`, `max`, `min` or `bool_or`.
    """

    name: str
    of: str
    columns: tuple[str, ...]
    how: str = "count_if"


class _Aggregates:
    """The aggregates over a slice, grouped by key first if there is one, to find duplicates.

    There are about as many groups as rows, so each aggregate within groups is expensive. Aggregates over key
    columns alone are computed from the groups instead.
    """

    def __init__(self, prepared: PreparedSlice, ranged: tuple[str, ...], number: str | None = None) -> None:
        self.prepared = prepared
        self.by = () if number is None else (number,)
        self.types = {f.name: f.dataType for f in prepared.frame.schema.fields}
        self.marks = list(prepared.watermarks.items())
        self.ranged = [
            name for name in ranged if self.types[name].simpleString().partition("(")[0] in _RANGED
        ]

    def query(self) -> DataFrame:
        """Return the aggregates of the slice, or of each slice if there are several."""
        from pyspark.sql import functions

        prepared, ranked = self.prepared, self.prepared.ranked
        keys = prepared.identity if prepared.has_key else ()
        inner, outer = [f"count(1) {_RECORDS}"], [f"sum({_RECORDS}) records"]
        # A key may occur once; of rows with a sequence, those that are the latest must not differ.
        is_duplicate = f"{_RECORDS} > 1"
        if ranked is not None:
            content = f"if({IS_LATEST}, {_content_sql(prepared)}, null)"
            inner += [f"min({content}) {_LEAST}", f"max({content}) {_GREATEST}"]
            is_duplicate = f"{_LEAST} <> {_GREATEST}"
        outer.append(f"count_if({is_duplicate}) duplicates" if prepared.has_key else "0L duplicates")
        for name, of, columns, how in self._all():
            is_count, part = how == "count_if", f"_lakewright_{name}"
            if set(columns) <= set(keys):  # all rows of a key share it
                outer.append(f"sum(if({of}, {_RECORDS}, 0)) {name}" if is_count else f"{how}({of}) {name}")
            else:
                inner.append(f"{how}({of}) {part}")
                outer.append(f"{'sum' if is_count else how}({part}) {name}")
        grouped = (prepared.frame if ranked is None else ranked).groupBy(
            *(functions.expr(name_sql(name)) for name in (*self.by, *keys))
        )
        of_groups = grouped.agg(*map(functions.expr, inner)).groupBy(*self.by)
        return of_groups.agg(*map(functions.expr, outer))

    def statistics(self, row: Row) -> SliceStatistics:
        """Return the statistics that a row of the query holds."""
        marks = ((column, self._value(row, f"mark{i}", name)) for i, (column, name) in enumerate(self.marks))
        sequence = self.prepared.sequence
        return SliceStatistics(
            records=row["records"] or 0,
            arrived_deleted=row["deleted"] or 0,
            watermarks={column: Watermark.of(value) for column, value in marks if value is not None},
            ranges=dict(self._ranges(row)),
            superseded=row["superseded"] or 0,
            latest=None if sequence is None else self._value(row, "sequence", sequence),
        )

    def _value(self, row: Row, field: str, column: str) -> Any:
        value = row[field]
        is_time = value is not None and self.types[column].typeName() == "timestamp"
        return _EPOCH + timedelta(microseconds=value) if is_time else value

    def _ranges(self, row: Row) -> Iterator[tuple[str, Range]]:
        for index, name in enumerate(self.ranged):
            low, high = (self._value(row, f"span{index}{end}", name) for end in ("_low", ""))
            if not any(isinstance(value, str) and len(value) > LONGEST_BOUND for value in (low, high)):
                yield name, Range(low, high, bool(row[f"span{index}_null"]))

    def _all(self) -> Iterator[_Aggregate]:
        deleted, is_ranked = self.prepared.system.deleted, self.prepared.ranked is not None
        kept = (IS_KEPT,) if is_ranked else ()
        yield _Aggregate("deleted", " and ".join((name_sql(deleted), *kept)), (deleted, *kept))
        yield _Aggregate("superseded", f"not {IS_KEPT}" if is_ranked else "false", kept)
        if self.prepared.sequence is not None:
            yield self._of_value("sequence", self.prepared.sequence, "max")
        yield from self._faults()
        for index, (_, name) in enumerate(self.marks):
            yield self._of_value(f"mark{index}", name, "max")
        for index, name in enumerate(self.ranged):
            yield self._of_value(f"span{index}", name, "max")
            yield self._of_value(f"span{index}_low", name, "min")
            yield _Aggregate(f"span{index}_null", f"{name_sql(name)} is null", (name,), "bool_or")

    def _of_value(self, name: str, column: str, how: str) -> _Aggregate:
        return _Aggregate(name, _plain(name_sql(column), self.types[column]), (column,), how)

    def _faults(self) -> Iterator[_Aggregate]:
        """Yield counts of rows with a null in their key, and with an empty or too long partition value."""
        columns = self.prepared.key_columns or ((self.prepared.system.key,) if self.prepared.has_key else ())
        texts = tuple(name for name in self.prepared.partitions if self.types[name].typeName() == "string")
        yield self._any("null_keys", columns, lambda _, sql: f"{sql} is null")
        yield self._any(
            "empty_partitions", texts, lambda _, sql: f"coalesce({sql} in ('', '{NULL_FOLDER}'), false)"
        )
        yield self._any(
            "long_partitions",
            texts,
            lambda name, sql: f"coalesce(octet_length({sql}) > {LONGEST_NAME - len(name.encode())}, false)",
        )

    def _any(self, name: str, columns: tuple[str, ...], condition: Callable[[str, str], str]) -> _Aggregate:
        conditions = [condition(column, name_sql(column)) for column in columns]
        return _Aggregate(name, " or ".join(conditions) or "false", columns)


def _rows_have(count: int) -> str:
    return "1 row has" if count == 1 else f"{count} rows have"


def _plain(value: str, kind: DataType) -> str:
    """Return SQL of a value that Python reads alike in every time zone; NaN, the greatest, becomes null."""
    name = kind.typeName()
    if name == "timestamp":
        return f"unix_micros({value})"
    return f"if(isnan({value}), null, {value})" if name in {"float", "double"} else value


def _duplicate_error(prepared: PreparedSlice, count: int) -> DuplicateBusinesskeyException:
    from pyspark.sql import functions

    key = name_sql(prepared.system.key)
    columns = prepared.key_columns or (prepared.system.key,)
    # Equal rows are no duplicates if the latest row is used.
    is_ranked = prepared.ranked is not None
    frame = prepared.ranked.where(IS_LATEST) if prepared.ranked is not None else prepared.frame
    number = f"count(distinct {_content_sql(prepared)})" if is_ranked else "count(1)"
    grouped = frame.groupBy(functions.expr(key), *(functions.expr(name_sql(c)) for c in columns))
    counted = grouped.agg(functions.expr(f"{number} as count"))
    rows = counted.where("count > 1").limit(SAMPLES).collect()
    samples = [{name: str(row[name]) for name in columns} for row in rows]
    shown = "; ".join(", ".join(f"{name}={value}" for name, value in sample.items()) for sample in samples)
    more = " …" if count > len(samples) else ""
    message = (
        f"{count} business {'key occurs' if count == 1 else 'keys occur'} more than once in the slice: "
        f"{shown}{more}"
    )
    remedy = (
        "Correct the slice, add the column that distinguishes these records to the business key, or set "
        "sequence_by and duplicates: latest if they are states of the same record."
    )
    if is_ranked:
        message = (
            f"{count} business {'key has' if count == 1 else 'keys have'} several latest rows in the slice, "
            f"which differ although their value of {prepared.sequence} is the same: {shown}{more}"
        )
        remedy = "Correct the slice, or name a column in sequence_by that shows which one is the latest."
    details = {"duplicates": count, "samples": samples}
    return DuplicateBusinesskeyException(message, remedy=remedy, details=details)


def _null_error(prepared: PreparedSlice, count: int) -> NullKeyError:
    columns = prepared.key_columns or (prepared.system.key,)
    with_null: DataFrame = prepared.frame.where(" or ".join(f"{name_sql(name)} is null" for name in columns))
    row = with_null.selectExpr(*(name_sql(name) for name in columns)).first()
    sample = {} if row is None else {name: str(row[name]) for name in columns}
    return NullKeyError(
        f"{count} {'record has' if count == 1 else 'records have'} no value in a column of the business key "
        f"({', '.join(columns)})",
        details={"records": count, "sample": sample},
    )


def prunable_columns(entity: Entity, prepared: PreparedSlice) -> tuple[str, ...]:
    """Return the silver columns that have equal values in matching rows of slice and table.

    These are the columns of the business key. Partition columns are included only with
    `partition_moves: never`: otherwise a record may have moved, and its row is in another partition.
    """
    partitions = prepared.partitions if entity.settings.partition_moves == "never" else ()
    return tuple(dict.fromkeys((*prepared.key_columns, *partitions)))


def range_condition(ranges: Mapping[str, Range], types: Mapping[str, str], *, alias: str) -> str:
    """Return the condition that every row of the table meets which matches a row of the slice.

    Args:
        ranges: Silver column to the range of its values in the slice.
        types: Silver column to its type in the table; other columns are ignored.
        alias: Alias of the table in the query.

    Example:
        >>> ranges = {"id": Range(1, 9, has_null=False), "v": Range(1, 1, has_null=True)}
        >>> range_condition(ranges, {"id": "int"}, alias="t")
        "(`t`.`id` between cast('1' as int) and cast('9' as int))"
    """
    conditions = [
        _in_range(name_sql(alias, name), range_, types[name])
        for name, range_ in ranges.items()
        if name in types
    ]
    return " and ".join(conditions) or "true"


def _in_range(column: str, range_: Range, type_sql: str) -> str:
    if range_.low is None:
        return f"{column} is null"
    low, high = _rounded(range_, type_sql)
    inside = f"{column} between {value_sql(low, type_sql)} and {value_sql(high, type_sql)}"
    return f"({inside} or {column} is null)" if range_.has_null else f"({inside})"


def _rounded(range_: Range, type_sql: str) -> tuple[Any, Any]:
    """Return the bounds; those of many integers are moved outwards by less than a thirty-second of the range.

    Spark writes them into the Java of a query. It compiles that again for each slice whose bounds differ.

    Example:
        >>> _rounded(Range(3, 119_843, has_null=False), "int"), _rounded(Range(3, 99, has_null=False), "int")
        ((0, 120832), (3, 99))
    """
    low, high, bits = range_.low, range_.high, _ROUNDED.get(type_sql)
    if bits is None or type(low) is not int or type(high) is not int:
        return low, high
    step = 1 << max(0, (high - low).bit_length() - 7)
    most = (1 << bits) - 1
    return max(low // step * step, -most - 1), min(-(-high // step) * step, most)


def value_sql(value: object, type_sql: str) -> str:
    r"""Return a Python value as a typed literal of Spark SQL; it is never spliced in as text.

    Args:
        value: A number, text, date or time; a time without a zone is in UTC.
        type_sql: The type in Spark's SQL.

    Example:
        >>> value_sql(1.5, "decimal(10,2)"), value_sql(date(2024, 5, 1), "timestamp")
        ("cast('1.5' as decimal(10,2))", "cast(cast('2024-05-01' as date) as timestamp)")
        >>> value_sql(7.0, "bigint")
        "cast(cast('7.0' as decimal(38,18)) as bigint)"
    """
    if isinstance(value, datetime):
        moment = (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
        if type_sql == "timestamp_ntz":
            return f"cast({text_sql(moment.replace(tzinfo=None).isoformat(' '))} as timestamp_ntz)"
        return f"cast({instant_sql(moment)} as {type_sql})"
    if isinstance(value, date):
        return f"cast(cast({text_sql(value.isoformat())} as date) as {type_sql})"
    if isinstance(value, (float, Decimal)) and type_sql in _INTEGERS:
        # In ANSI mode Spark refuses to cast a text with a decimal point to an integer, even '7.0'.
        return f"cast(cast({text_sql(str(value))} as decimal(38,18)) as {type_sql})"
    return f"cast({text_sql(str(value))} as {type_sql})"
