"""The state of a Delta table: its columns, properties and size at one version."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from hashlib import sha256
from typing import Any

from lakewright.schema.sql import name_sql
from lakewright.spec.models.fields import Field, parse_type

__all__ = ["ABSENT", "DECLARED_LENGTH", "VECTORS", "TableState", "columns_of_schema"]

VECTORS = "deletionVectors"
"""The feature of tables whose files may have marked rows."""

_EXACT: Mapping[str, type] = {
    "string": str,
    "boolean": bool,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    "date": date,
    "timestamp": datetime,
}
"""Types of partition columns that keep each value as it was given, and the type of such a value.

A float is kept with fewer digits, a decimal is rounded, a char is padded and a varchar cut.
"""


@dataclass(frozen=True, slots=True)
class TableState:
    """The state in which a table was observed.

    Attributes:
        version: Of the log that was read; None if there is no table.
        partition_columns: Names of the columns by which it is partitioned.
        properties: As the log holds them.
        is_empty: Whether it holds no row; None if the log alone can't tell.
        rows: Upper bound of its number of rows, which counts deleted rows too; None if the log can't tell.
        size: Of its files, in bytes; None if the log wasn't read.
        features: Names of the features that a reader of the table must know.
        partitions: Values of the partition columns for which it has files; None if the log wasn't read.
        files: Paths of its files by these values; None if they do not tell its rows.
    """

    exists: bool
    version: int | None = None
    columns: tuple[Field, ...] = ()
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    is_empty: bool | None = None
    rows: int | None = None
    size: int | None = None
    features: frozenset[str] = frozenset()
    partitions: frozenset[tuple[Any, ...]] | None = None
    files: Mapping[tuple[Any, ...], tuple[str, ...]] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its columns."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Field | None:
        """Return the column of that name, in any case, or None."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)

    def has_files(self, partition: Mapping[str, Any]) -> bool | None:
        """Return whether it has files of a partition, given by values of its columns; None if unknown.

        It is unknown if the table may keep a value in another form: in a column of a type that is not exact,
        or of another type than the value; or an empty text, which Delta writes as null.
        """
        if self.partitions is None or not all(map(self._is_exact, partition, partition.values())):
            return None
        return any(True for _ in self._among(partition, self.partitions))

    def digest_of(self, partitions: Sequence[Mapping[str, Any]]) -> str | None:
        """Return a text that changes whenever rows or columns of partitions may have; None if unknown.

        The path of a file is never used again for other rows, so the files tell the rows.
        """
        if self.files is None:
            return None
        digest = sha256(repr([(each.name, each.type.ddl) for each in self.columns]).encode())
        for partition in partitions:
            # The log may hold an instant in another time zone than it was given in.
            if not all(self._is_exact(*each) and type(each[1]) is not datetime for each in partition.items()):
                return None
            paths = (path for each in self._among(partition, self.files) for path in self.files[each])
            digest.update("\n".join(["", repr(partition), *sorted(paths)]).encode())
        return digest.hexdigest()

    def _among(
        self, partition: Mapping[str, Any], present: Collection[tuple[Any, ...]]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the values that are present of a partition, which may leave out columns."""
        if len(partition) == len(self.partition_columns):
            whole = tuple(partition[name] for name in self.partition_columns)
            yield from [whole] if whole in present else []
            return
        places = [(self.partition_columns.index(name), value) for name, value in partition.items()]
        yield from (each for each in present if all(each[place] == value for place, value in places))

    def _is_exact(self, name: str, value: Any) -> bool:
        column = self.column(name) if name in self.partition_columns else None
        return column is not None and type(value) is _EXACT.get(column.type.ddl) and value != ""


DECLARED_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
"""Metadata of a text of a declared length, `char` or `varchar`; Spark pads a `char` when it reads it."""

ABSENT = TableState(exists=False, is_empty=True, rows=0)
"""The state of a table that doesn't exist."""


def columns_of_schema(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return the columns of a schema in the JSON form that Delta's log and Spark share."""
    return tuple(
        Field(
            name=column["name"],
            type=parse_type(_type_sql(column["type"])),
            nullable=column["nullable"],
            description=column["metadata"].get("comment"),
        )
        for column in schema["fields"]
    )


def _type_sql(kind: Any) -> str:
    """Return the type in Spark's SQL."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "array":
        return f"array<{_type_sql(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_type_sql(kind['keyType'])},{_type_sql(kind['valueType'])}>"
    return "struct<" + ",".join(f"{name_sql(f['name'])}:{_type_sql(f['type'])}" for f in kind["fields"]) + ">"
