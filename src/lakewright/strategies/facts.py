"""What must be known of a slice before anything is written, from one query over a few of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakewright.errors import DuplicateBusinesskeyException, NullKeyError, SchemaDriftError
from lakewright.manifest.watermark import Watermark
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import DataType

    from lakewright.transform.pipeline import Prepared

__all__ = ["Facts", "Range", "take_facts"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SAMPLES = 5
LONGEST_BOUND = 200

LONGEST_NAME = 254
"""Bytes of a partition's folder, which has the column's name and value, but for the sign between them."""

_RANGED = ("tinyint", "smallint", "int", "bigint", "decimal", "date", "timestamp", "string")
"""Types, as Spark writes them, that the table orders as the slice does: no text with a collation."""


@dataclass(frozen=True, slots=True)
class Range:
    """Between which values a column's lie; `has_null` where some are null."""

    low: Any
    high: Any
    has_null: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """A slice in numbers.

    Attributes:
        records: Its rows.
        arrived_deleted: Those that arrive deleted.
        watermarks: Column of a watermark, as declared, to its greatest value; left out where all are null.
        ranges: Column in silver to its range, for columns by which target files can be left out.
    """

    records: int
    arrived_deleted: int
    watermarks: Mapping[str, Watermark] = field(default_factory=dict)
    ranges: Mapping[str, Range] = field(default_factory=dict)


def take_facts(prepared: Prepared, *, are_null_keys_allowed: bool, ranged: tuple[str, ...]) -> Facts:
    """Return the facts of a prepared slice.

    Args:
        prepared: The slice.
        are_null_keys_allowed: Whether null is a value of the business key.
        ranged: Columns in silver whose ranges are of use.

    Raises:
        DuplicateBusinesskeyException: Several rows have the same key.
        NullKeyError: A column of the business key is null.
        SchemaDriftError: A partition value is an empty text, which a table can't tell from null, or too long.
    """
    questions = _Questions(prepared, ranged)
    row = questions.ask()
    if prepared.has_key and row["duplicates"]:
        raise _duplicate_error(prepared, row["duplicates"])
    if row["null_keys"] and not (are_null_keys_allowed and prepared.key_columns):
        raise _null_error(prepared, row["null_keys"])
    if row["empty_partitions"]:
        raise SchemaDriftError(
            f"{row['empty_partitions']} rows have an empty text in a partition column "
            f"({', '.join(prepared.partitions)}), which a table can't tell from null",
            remedy="Let the source or a transformation give null or another text.",
        )
    if row["long_partitions"]:
        raise SchemaDriftError(
            f"{row['long_partitions']} rows have a text in a partition column "
            f"({', '.join(prepared.partitions)}) that is too long for a folder's name",
            remedy="Partition by another column, or by an expression that shortens it.",
        )
    return Facts(
        records=row["records"] or 0,
        arrived_deleted=row["deleted"] or 0,
        watermarks=dict(questions.watermarks(row)),
        ranges=dict(questions.ranges(row)),
    )


_RECORDS = "_lakewright_records"


@dataclass(frozen=True, slots=True)
class _Question:
    """An aggregate over all rows.

    Attributes:
        name: Of the column in the answer.
        of: SQL of a condition to count, or of the value to aggregate.
        columns: In silver, all that `of` looks at.
        how: The aggregate: `count_if`, `max`, `min` or `bool_or`.
    """

    name: str
    of: str
    columns: tuple[str, ...]
    how: str

    @property
    def _found(self) -> str:
        return f"_lakewright_{self.name}"

    @property
    def of_rows(self) -> str:
        """The aggregate over the rows of one key."""
        return f"{self.how}({self.of}) {self._found}"

    @property
    def of_groups(self) -> str:
        """What the keys' aggregates come to."""
        return f"{'sum' if self.how == 'count_if' else self.how}({self._found}) {self.name}"

    @property
    def of_keys(self) -> str:
        """The same from columns that rows of one key have in common, and the number of these rows."""
        if self.how == "count_if":
            return f"sum(if({self.of}, {_RECORDS}, 0)) {self.name}"
        return f"{self.how}({self.of}) {self.name}"


class _Questions:
    """Aggregates over a slice, grouped by key first where there is one.

    There are as many groups as rows, so each aggregate within them costs: what keys tell isn't asked there.
    """

    def __init__(self, prepared: Prepared, ranged: tuple[str, ...]) -> None:
        self.prepared = prepared
        self.types = {f.name: f.dataType for f in prepared.frame.schema.fields}
        self.marks = list(prepared.watermarks.items())
        self.ranged = [
            name for name in ranged if self.types[name].simpleString().partition("(")[0] in _RANGED
        ]

    def ask(self) -> Row:
        from pyspark.sql import functions

        keys = self.prepared.identity if self.prepared.has_key else ()
        of_keys: list[_Question] = []
        of_rows: list[_Question] = []
        for question in self._questions():
            (of_keys if set(question.columns) <= set(keys) else of_rows).append(question)
        inner = [f"count(1) {_RECORDS}", *(each.of_rows for each in of_rows)]
        outer = [
            f"sum({_RECORDS}) records",
            f"count_if({_RECORDS} > 1) duplicates" if self.prepared.has_key else "0L duplicates",
            *(each.of_keys for each in of_keys),
            *(each.of_groups for each in of_rows),
        ]
        grouped = self.prepared.frame.groupBy(*(functions.expr(name_sql(key)) for key in keys))
        row = grouped.agg(*map(functions.expr, inner)).agg(*map(functions.expr, outer)).first()
        if row is None:
            raise RuntimeError("an aggregate over all rows gave none")
        return row

    def _questions(self) -> Iterator[_Question]:
        deleted = self.prepared.system.deleted
        yield _Question("deleted", name_sql(deleted), (deleted,), "count_if")
        yield from self._faults()
        for index, (_, name) in enumerate(self.marks):
            yield self._of_value(f"mark{index}", name, "max")
        for index, name in enumerate(self.ranged):
            yield self._of_value(f"span{index}", name, "max")
            yield self._of_value(f"span{index}_low", name, "min")
            yield _Question(f"span{index}_null", f"{name_sql(name)} is null", (name,), "bool_or")

    def _of_value(self, name: str, column: str, how: str) -> _Question:
        return _Question(name, _plain(name_sql(column), self.types[column]), (column,), how)

    def _faults(self) -> Iterator[_Question]:
        """Rows with a null in their key, and with a text as partition that is empty or too long."""
        columns = self.prepared.key_columns or ((self.prepared.system.key,) if self.prepared.has_key else ())
        texts = tuple(name for name in self.prepared.partitions if self.types[name].typeName() == "string")
        yield self._any("null_keys", columns, lambda _, sql: f"{sql} is null")
        yield self._any("empty_partitions", texts, lambda _, sql: f"coalesce({sql} = '', false)")
        yield self._any(
            "long_partitions",
            texts,
            lambda name, sql: f"coalesce(octet_length({sql}) > {LONGEST_NAME - len(name.encode())}, false)",
        )

    def _any(self, name: str, columns: tuple[str, ...], is_so: Callable[[str, str], str]) -> _Question:
        conditions = [is_so(column, name_sql(column)) for column in columns]
        return _Question(name, " or ".join(conditions) or "false", columns, "count_if")

    def watermarks(self, row: Row) -> Iterator[tuple[str, Watermark]]:
        for index, (column, name) in enumerate(self.marks):
            value = row[f"mark{index}"]
            if value is not None:
                yield column, Watermark.of(_python(value, self.types[name]))

    def ranges(self, row: Row) -> Iterator[tuple[str, Range]]:
        for index, name in enumerate(self.ranged):
            low, high = (row[f"span{index}{end}"] for end in ("_low", ""))
            is_long = any(isinstance(value, str) and len(value) > LONGEST_BOUND for value in (low, high))
            if not is_long:
                low, high = (
                    None if value is None else _python(value, self.types[name]) for value in (low, high)
                )
                yield name, Range(low, high, bool(row[f"span{index}_null"]))


def _plain(value: str, kind: DataType) -> str:
    """The value in a form that Python reads the same in every time zone; NaN, which tops all, left out."""
    name = kind.typeName()
    if name == "timestamp":
        return f"unix_micros({value})"
    return f"if(isnan({value}), null, {value})" if name in {"float", "double"} else value


def _python(value: Any, kind: DataType) -> Any:
    return _EPOCH + timedelta(microseconds=value) if kind.typeName() == "timestamp" else value


def _duplicate_error(prepared: Prepared, count: int) -> DuplicateBusinesskeyException:
    from pyspark.sql import functions

    key = name_sql(prepared.system.key)
    columns = prepared.key_columns or (prepared.system.key,)
    counted = prepared.frame.groupBy(
        functions.expr(key), *(functions.expr(name_sql(c)) for c in columns)
    ).count()
    rows = counted.where("count > 1").limit(SAMPLES).collect()
    samples = [{name: str(row[name]) for name in columns} for row in rows]
    shown = "; ".join(", ".join(f"{name}={value}" for name, value in sample.items()) for sample in samples)
    more = " …" if count > len(samples) else ""
    return DuplicateBusinesskeyException(
        f"{count} business keys are in the slice more than once: {shown}{more}",
        remedy="Correct the slice, or add what tells these records apart to the business key.",
        details={"duplicates": count, "samples": samples},
    )


def _null_error(prepared: Prepared, count: int) -> NullKeyError:
    columns = prepared.key_columns or (prepared.system.key,)
    where: DataFrame = prepared.frame.where(" or ".join(f"{name_sql(name)} is null" for name in columns))
    row = where.selectExpr(*(name_sql(name) for name in columns)).first()
    sample = {} if row is None else {name: str(row[name]) for name in columns}
    return NullKeyError(
        f"{count} records have no value in a column of the business key ({', '.join(columns)})",
        details={"records": count, "sample": sample},
    )
