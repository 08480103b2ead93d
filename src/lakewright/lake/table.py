"""Delta tables as they are: looked at without Spark where that can be, made, changed and removed with it.

A table at a location of this machine is read by the `deltalake` package, from its log alone. Catalog names
and other file systems need the session.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.errors import MigrationError, TargetError
from lakewright.lake.files import files_at, local_path
from lakewright.lake.parquet import count_rows
from lakewright.spec.models.fields import Field, parse_type
from lakewright.spec.models.places import Address
from lakewright.transform.sql import name_sql, text_sql
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from delta.tables import DeltaTable
    from deltalake import DeltaTable as DeltaFile
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake

__all__ = [
    "Address",
    "TableState",
    "add_columns",
    "ask_log",
    "create_table",
    "delta_table",
    "drop_table",
    "is_unborn",
    "last_number",
    "latest_from",
    "local_place",
    "observe_table",
    "open_file",
    "read_table",
    "remove_unborn",
    "set_properties",
    "truncate_table",
    "widen_column",
]


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as it was found.

    Attributes:
        version: Of the log that was read; None where there is no table.
        partition_columns: Names of the columns by which it is partitioned.
        properties: As they are kept in the log.
        is_empty: Whether it holds no row; None where the log alone doesn't tell.
        rows: At most so many rows, deleted ones among them; None where the log doesn't tell.
        size: Of its files, in bytes; None where the log wasn't read.
    """

    exists: bool
    version: int | None = None
    columns: tuple[Field, ...] = ()
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    is_empty: bool | None = None
    rows: int | None = None
    size: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its columns."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Field | None:
        """Return a column by its name, in any case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


ABSENT = TableState(exists=False, is_empty=True, rows=0)


def observe_table(lake: Lake, address: Address) -> TableState:
    """Return what is at the address now.

    Raises:
        MigrationError: Something is there that is no Delta table.
    """
    return lake.seen(address, lambda: _observe(lake, address))


def _observe(lake: Lake, address: Address) -> TableState:
    path = local_place(lake, address)
    is_told, table = ask_log(path)
    if path is None or not is_told:
        return _observe_with_spark(lake, address)
    if table is not None:
        return _state(table)
    if path.is_dir() and any(path.iterdir()) and not is_unborn(path):
        raise _no_delta(address)
    return ABSENT


def is_unborn(path: Path) -> bool:
    """Return whether a folder is what a table's first write left that never committed."""
    log = path / "_delta_log"
    return log.is_dir() and not any(log.glob("*.json")) and not any(log.glob("*.checkpoint*.parquet"))


def remove_unborn(address: Address) -> None:
    """Remove what a first write that never committed left at a local place, so that it can be made."""
    path = None if address.location is None else local_path(address.location)
    if path is not None and path.is_dir() and is_unborn(path):
        shutil.rmtree(path)


def local_place(lake: Lake, address: Address) -> Path | None:
    """Return the table's folder where it is on this machine, else None; the catalog knows those by name.

    None too for a path with a percent sign, which the `deltalake` package takes for an encoded one.

    Raises:
        MigrationError: A table of that name is there that is no Delta table.
    """
    location = address.location
    if location is None:
        if not _exists_with_spark(lake, address):
            return None
        detail = delta_table(lake.spark, address).detail().select("location").first()
        location = None if detail is None else detail[0]
    path = None if location is None else local_path(location)
    return path if path is not None and "%" not in str(path) else None


def last_number(lake: Lake, address: Address, app_id: str) -> int | None:
    """Return the number of the last commit to the table that an application numbered, or None."""
    is_told, table = ask_log(local_place(lake, address))
    if is_told:
        return None if table is None else table.transaction_version(app_id)
    if not _exists_with_spark(lake, address):
        return None
    found = _log(lake.spark, address).unsafeVolatileSnapshot().transactions().get(app_id)
    return int(found.get()) if found.isDefined() else None


def latest_from(lake: Lake, address: Address, columns: Sequence[str], at: datetime) -> datetime | None:
    """Return the latest instant in these columns if it isn't before `at`, else None.

    None too where the columns are missing.

    Statistics of files, which are exact to a millisecond, answer where they can; a query does otherwise.
    """
    _, table = ask_log(local_place(lake, address))
    if table is not None and _are_all_before(table, columns, at):
        return None
    state = observe_table(lake, address)
    if not all(state.column(name) for name in columns):
        return None
    frame = read_table(lake.spark, address)
    instant = instant_sql(at)
    late = " or ".join(f"{name_sql(name)} >= {instant}" for name in columns)
    tops = ", ".join(f"max({name_sql(name)})" for name in columns)
    row = frame.where(late).selectExpr(f"unix_micros(greatest({tops})) as top").first()
    return None if row is None or row["top"] is None else EPOCH + timedelta(microseconds=row["top"])


def read_table(spark: SparkSession, address: Address, version: int | None = None) -> DataFrame:
    """Return the table's rows, of its last version or of an earlier one."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", str(version))
    return reader.load(address.location) if address.location is not None else reader.table(address.sql)


def create_table(
    lake: Lake,
    address: Address,
    columns: Iterable[Field],
    *,
    partition_columns: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
) -> None:
    """Make an empty table, in one commit.

    Raises:
        MigrationError: Something is there already.
    """
    if observe_table(lake, address).exists:
        raise MigrationError(f"the table {address} is there already")
    ensure_database(lake.spark, address)
    listed = ", ".join(_column_sql(column) for column in columns)
    parts = [f"CREATE TABLE {address.sql} ({listed}) USING delta"]
    if partition_columns:
        parts.append(f"PARTITIONED BY ({', '.join(name_sql(name) for name in partition_columns)})")
    if comment:
        parts.append(f"COMMENT {text_sql(comment)}")
    if properties:
        parts.append(f"TBLPROPERTIES ({_properties_sql(properties)})")
    _run(lake.spark, " ".join(parts))


def ensure_database(spark: SparkSession, address: Address) -> None:
    """Make the database of a catalog table, if it is missing."""
    parts = (address.name or "").split(".")
    if len(parts) > 1:
        _run(spark, f"CREATE DATABASE IF NOT EXISTS {name_sql(*parts[:-1])}")


def add_columns(lake: Lake, address: Address, columns: Iterable[Field]) -> None:
    """Add columns after the present ones; they are null in present rows."""
    listed = ", ".join(_column_sql(column, is_added=True) for column in columns)
    _run(lake.spark, f"ALTER TABLE {address.sql} ADD COLUMNS ({listed})")


def widen_column(lake: Lake, address: Address, name: str, type_sql: str) -> None:
    """Give a column a wider type, in which all its values have their place; no file is rewritten."""
    set_properties(lake.spark, address, {"delta.enableTypeWidening": "true"})
    _run(lake.spark, f"ALTER TABLE {address.sql} ALTER COLUMN {name_sql(name)} TYPE {type_sql}")


def set_properties(spark: SparkSession, address: Address, properties: Mapping[str, str]) -> None:
    """Give the table these properties, beside those that it has."""
    _run(spark, f"ALTER TABLE {address.sql} SET TBLPROPERTIES ({_properties_sql(properties)})")


def truncate_table(lake: Lake, address: Address, condition: str | None = None) -> None:
    """Remove all rows, or those of a condition in SQL; the table stays."""
    where = ("WHERE", condition) if condition else ()
    _run(lake.spark, " ".join(("DELETE FROM", address.sql, *where)))


def drop_table(lake: Lake, address: Address) -> None:
    """Remove the table with its rows and history; nothing happens where nothing is.

    Raises:
        MigrationError: What is there is no Delta table.
    """
    if not observe_table(lake, address).exists:
        return
    if address.location is None:
        _run(lake.spark, f"DROP TABLE {address.sql}")
        return
    files_at(address.location, lake).remove(address.location)
    if lake.is_started:
        spark: Any = lake.spark
        place = spark._jvm.org.apache.hadoop.fs.Path(address.location)
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(spark._jsparkSession, place)


def open_file(path: Path) -> DeltaFile | None:
    """Return the table at a local path, its log read, or None where none is."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    if not (path / "_delta_log").is_dir():
        return None
    try:
        return DeltaTable(path)
    except TableNotFoundError:
        return None


def ask_log(path: Path | None) -> tuple[bool, DeltaFile | None]:
    """Return whether a table's log tells without Spark what is there, and the table, or None where none is.

    It doesn't where the place isn't known, or where the `deltalake` package can't make sense of it.

    Raises:
        TargetError: A checkpoint is torn, so that nothing can read the table.
    """
    from deltalake.exceptions import DeltaError

    if path is None:
        return False, None
    try:
        return True, open_file(path)
    except DeltaError as error:
        torn = [file.name for file in sorted((path / "_delta_log").glob(_CHECKPOINTS)) if _is_torn(file)]
        if not torn:
            return False, None
        raise TargetError(
            f"the table {path} can't be read: its checkpoint {torn[-1]} is damaged",
            remedy=f"If _delta_log has all commits from 0 on, move {', '.join(torn)} and _last_checkpoint "
            "away: they are only a help. Else restore the table from a copy.",
            details={"torn": torn},
        ) from error


_CHECKPOINTS = "*.checkpoint*.parquet"


def _is_torn(checkpoint: Path) -> bool:
    try:
        count_rows(checkpoint)
    except (ValueError, OSError):
        return True
    return False


def _state(table: DeltaFile) -> TableState:
    metadata = table.metadata()
    schema = json.loads(table.schema().to_json())
    files = table.get_add_actions(flatten=True)
    rows, is_empty = _rows(table, files)
    return TableState(
        exists=True,
        version=table.version(),
        columns=_columns(schema),
        partition_columns=tuple(metadata.partition_columns),
        properties=dict(metadata.configuration),
        is_empty=is_empty,
        rows=rows,
        size=sum(files.column("size_bytes").to_pylist()),
    )


def _rows(table: DeltaFile, files: Any) -> tuple[int | None, bool | None]:
    """How many rows a table's files hold, and whether none is left of them."""
    if files.num_rows == 0:
        return 0, True
    counts = files.column("num_records").to_pylist() if "num_records" in files.column_names else [None]
    if None in counts:
        return None, None
    rows = sum(counts)
    may_be_marked = "deletionVectors" in (table.protocol().writer_features or ())
    return rows, None if may_be_marked and rows else rows == 0


def _are_all_before(table: DeltaFile, columns: Sequence[str], at: datetime) -> bool:
    """Whether the files' statistics say that no value of the columns reaches `at`."""
    actions = table.get_add_actions(flatten=True)
    if actions.num_rows == 0:
        return True
    names = set(actions.column_names)
    for name in columns:
        if not {f"max.{name}", f"null_count.{name}", "num_records"} <= names:
            return False
        parts = (f"max.{name}", f"null_count.{name}", "num_records")
        for top, nulls, rows in zip(*(actions.column(part).to_pylist() for part in parts), strict=True):
            is_empty = top is None and nulls is not None and nulls == rows
            if not is_empty and (top is None or top + timedelta(milliseconds=1) >= at):
                return False
    return True


def _observe_with_spark(lake: Lake, address: Address) -> TableState:
    if not _exists_with_spark(lake, address):
        return ABSENT
    table = delta_table(lake.spark, address)
    detail = table.detail().first()
    version = table.history(1).select("version").first()
    if detail is None or version is None:
        raise _no_delta(address)
    is_empty = True if int(detail["numFiles"]) == 0 else None
    return TableState(
        exists=True,
        version=int(version[0]),
        columns=_columns(json.loads(table.toDF().schema.json())),
        partition_columns=tuple(detail["partitionColumns"]),
        properties=dict(detail["properties"]),
        is_empty=is_empty,
        rows=0 if is_empty else None,
    )


def delta_table(spark: SparkSession, address: Address) -> DeltaTable:
    """Return the table as Delta's own interface has it."""
    from delta.tables import DeltaTable

    if address.location is not None:
        return DeltaTable.forPath(spark, address.location)
    return DeltaTable.forName(spark, address.sql)


def _exists_with_spark(lake: Lake, address: Address) -> bool:
    from delta.tables import DeltaTable

    spark = lake.spark
    if address.location is not None:
        return DeltaTable.isDeltaTable(spark, address.location)
    if not spark.catalog.tableExists(address.sql):
        return False
    provider = [
        row for row in spark.sql(f"DESCRIBE TABLE EXTENDED {address.sql}").collect() if row[0] == "Provider"
    ]
    if not provider or provider[0][1].lower() != "delta":
        raise _no_delta(address)
    return True


def _log(spark: SparkSession, address: Address) -> Any:
    """Delta's own view of the table, where there is no other way to its transaction ids."""
    jvm: Any = spark._jvm
    detail = delta_table(spark, address).detail().select("location").first()
    location = address.location if detail is None else detail[0]
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, location)
    log.update(False, jvm.scala.Option.empty(), jvm.scala.Option.empty())
    return log


def _columns(schema: Mapping[str, Any]) -> tuple[Field, ...]:
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
    """The type in Spark's SQL, from the form that Delta's log and Spark's JSON have in common."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "array":
        return f"array<{_type_sql(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_type_sql(kind['keyType'])},{_type_sql(kind['valueType'])}>"
    return "struct<" + ",".join(f"{name_sql(f['name'])}:{_type_sql(f['type'])}" for f in kind["fields"]) + ">"


def _column_sql(column: Field, *, is_added: bool = False) -> str:
    not_null = "" if column.nullable or is_added else " NOT NULL"
    comment = f" COMMENT {text_sql(column.description)}" if column.description else ""
    return f"{name_sql(column.name)} {column.type.ddl}{not_null}{comment}"


def _properties_sql(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{text_sql(key)} = {text_sql(value)}" for key, value in properties.items())


def _run(spark: SparkSession, statement: str) -> None:
    """Run a statement; texts like `${…}` in it are left as they are."""
    session = spark.newSession()
    session.conf.set("spark.sql.variable.substitute", "false")
    session.sql(statement)


def _no_delta(address: Address) -> MigrationError:
    return MigrationError(
        f"{address} is no Delta table",
        remedy="Move away what is there, or declare another place.",
        details={"address": str(address)},
    )
