"""Delta tables on this machine and in object stores, read from their logs without Spark, by `deltalake`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lakewright.errors import TargetError
from lakewright.lake.object_storage import ObjectStorage
from lakewright.lake.parquet_footer import count_rows
from lakewright.lake.storage_errors import accessing, damaged_commits, damaged_log_error, file_in_place_error
from lakewright.schema.shape import plain_type
from lakewright.spark.launch import environment_set
from lakewright.spec.models.fields import Field
from lakewright.spec.models.type_text import parse_json_columns

if TYPE_CHECKING:
    from deltalake import DeltaTable as DeltaFile


_CHECKPOINTS = "*.checkpoint*.parquet"

_DELTA_FILES = ("part-", "deletion_vector_", "_", ".", "cdc-")
"""Beginnings of the names of files that Delta writes into a table's folder."""

_UNSUPPORTED = "Unsupported"
"""What the package says of a table with features that it does not know."""

STATISTICS_PRECISION = timedelta(milliseconds=1)
"""Instants in the statistics of a file are exact to a millisecond."""


@dataclass(frozen=True, slots=True)
class LocalLog:
    """The log of a table on this machine.

    Attributes:
        path: The table's folder.
    """

    path: Path

    def open(self) -> DeltaFile | None:
        """Return the table with its log read, or None if there is none.

        Raises:
            TargetError: A file stands where the table's folder belongs, or a folder above it.
            StorageUnavailable: The log's files can't be read.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        with accessing(f"the table {self.path} can't be read"):
            if not (self.path / "_delta_log").is_dir():
                self.check_place()
                return None
            try:
                return DeltaTable(self.path)
            except TableNotFoundError:
                return None

    def stamp(self) -> str | None:
        """Return a text that differs after each commit; None without commits. The log is not read."""
        try:
            with os.scandir(self.path / "_delta_log") as files:
                commits = (file for file in files if re.fullmatch(r"\d+\.json", file.name))
                last = max(commits, key=lambda file: file.name, default=None)
                if last is None:
                    return None
                status = last.stat()
        except OSError:
            return None
        return f"{last.name} {status.st_size} {status.st_mtime_ns}"

    def check_place(self) -> None:
        """Raise `TargetError` if a file stands where the table's folder belongs, or a folder above it."""
        present = next((each for each in (self.path, *self.path.parents) if each.exists()), None)
        if present is not None and not present.is_dir():
            raise file_in_place_error(str(self.path), str(present))

    def read(self, name: str) -> bytes | None:
        """Return the content of a file of the log, or None if it can't be read."""
        try:
            return (self.path / "_delta_log" / name).read_bytes()
        except OSError:
            return None

    def holds_others(self) -> bool:
        """Return whether the folder holds something, but no log.

        A first write makes the folder of the log before its files, so it's none of others while it goes on.
        """
        return self.path.is_dir() and any(self.path.iterdir()) and not (self.path / "_delta_log").is_dir()

    def holds_rows(self) -> bool:
        """Return whether the folder has files as Delta writes them for rows."""
        return next(self.path.rglob("part-*.parquet"), None) is not None

    def damaged_commits(self) -> tuple[tuple[str, str], ...]:
        """Return the commits that are damaged or missing, each with which it is."""
        names = [file.name for file in (self.path / "_delta_log").glob("*.json")]
        return tuple(damaged_commits(names, self.read))

    def torn_checkpoints(self) -> list[str]:
        """Return the names of the checkpoints that are damaged."""
        return [file.name for file in sorted((self.path / "_delta_log").glob(_CHECKPOINTS)) if _is_torn(file)]

    def __str__(self) -> str:
        """Return the table's folder."""
        return str(self.path)


@dataclass(frozen=True, slots=True)
class StoredLog:
    """The log of a table in an object store.

    Attributes:
        url: The table's location.
        storage: How it is reached.
    """

    url: str
    storage: ObjectStorage

    def open(self) -> DeltaFile | None:
        """Return the table with its log read, or None if there is none.

        A table that has not changed since it was opened last is the same one.

        Raises:
            StorageUnavailable: The store can't be reached.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        bucket, key = self.storage.at(self.url)
        options = self.storage.options(self.url)
        try:
            return self.storage.tables.open(
                bucket, key, lambda: DeltaTable(f"{bucket.url}/{key}", storage_options=options)
            )
        except TableNotFoundError:
            return None
        except OSError as error:
            raise bucket.fault(error, f"{key}/_delta_log", "read") from error

    def stamp(self) -> None:
        """Return nothing: a stamp would take as many requests as the log of a table that has not changed."""
        return

    def read(self, name: str) -> bytes | None:
        """Return the content of a file of the log, or None if there is none."""
        bucket, key = self.storage.at(self.url)
        return bucket.read(f"{key}/_delta_log/{name}")

    def holds_others(self) -> bool:
        """Return whether the folder holds objects that Delta didn't write.

        A write that never committed leaves files of data, as there are no folders that could show it.
        """
        bucket, key = self.storage.at(self.url)
        names = (found.name.rpartition("/")[2] for found in bucket.under(key))
        return any(name and not name.startswith(_DELTA_FILES) for name in names)

    def holds_rows(self) -> bool:
        """Return whether there are objects of rows; only with others beside them if `holds_others`."""
        return False

    def damaged_commits(self) -> tuple[tuple[str, str], ...]:
        """Return the commits since the last checkpoint that are damaged or missing, each with which it is."""
        bucket, key = self.storage.at(self.url)
        found = bucket.under(f"{key}/_delta_log")
        names = sorted(each.name.rpartition("/")[2] for each in found)
        start = max((name.partition(".")[0] for name in names if ".checkpoint" in name), default="")
        return tuple(damaged_commits((name for name in names if name > start), self.read))

    def torn_checkpoints(self) -> list[str]:
        """Return nothing: an object is written whole or not at all."""
        return []

    def __str__(self) -> str:
        """Return the table's location."""
        return self.url


TableLog = LocalLog | StoredLog
"""The log of a table that is read without Spark."""


class OpenedLog(NamedTuple):
    """A log that was opened without Spark.

    Attributes:
        log: The log; None if its place isn't known without Spark.
        is_read: Whether it could be read: not if its place isn't known, or if the `deltalake` package doesn't
            support the table.
        table: The table, or None if there is none.
    """

    log: TableLog | None
    is_read: bool
    table: DeltaFile | None = None


def read_log(log: TableLog | None) -> OpenedLog:
    """Open a log without Spark.

    Raises:
        TargetError: A commit or a checkpoint is damaged, so that nothing can read the table.
        StorageUnavailable: The log's files can't be read, or the object store can't be reached.
    """
    error_of_delta = _delta_error()
    if log is None:
        return OpenedLog(None, is_read=False)
    try:
        return OpenedLog(log, is_read=True, table=log.open())
    except error_of_delta as error:
        if _UNSUPPORTED in str(error):  # looking for damage would read the log for nothing
            return OpenedLog(log, is_read=False)
        if found := log.damaged_commits():
            raise damaged_log_error(str(log), found) from error
        torn = log.torn_checkpoints()
        if not torn:
            return OpenedLog(log, is_read=False)
        raise TargetError(
            f"the table {log} can't be read: its checkpoint {torn[-1]} is damaged",
            remedy=f"If _delta_log holds all commits from 0 on, move {', '.join(torn)} and _last_checkpoint "
            "away: the table can be read without them. Otherwise restore the table from a copy.",
            details={"torn": torn},
        ) from error


@cache
def _delta_error() -> type[Exception]:
    """Return the base of the package's errors; import the package, which then logs nothing by itself."""
    # Reads the variable once. By default the package logs each place in which it finds no credentials.
    with environment_set({"RUST_LOG": os.environ.get("RUST_LOG", "off")}):
        from deltalake.exceptions import DeltaError
    return DeltaError


def read_history(log: TableLog | None, table: DeltaFile, limit: int | None) -> list[dict[str, Any]] | None:
    """Return the latest commits of a table, newest first; all of them without a limit.

    The first commit of a shallow clone reads version -1, which the `deltalake` package refuses. The files of
    a log on this machine are read instead; None is returned for one elsewhere.
    """
    from deltalake.exceptions import DeltaError

    try:
        return table.history(limit)
    except DeltaError:
        if not isinstance(log, LocalLog):
            return None
        files = sorted((log.path / "_delta_log").glob("*.json"), reverse=True)
        commits = [(int(file.stem), file) for file in files if file.stem.isdecimal()]
        return [
            {"version": version, **commit_info(actions_of(file.read_bytes()))}
            for version, file in commits[:limit]
        ]


def actions_of(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the actions of a commit, given the content of its file; what a commit says of itself is first."""
    return (json.loads(line) for line in content.splitlines() if line.strip())


def commit_info(actions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a commit says of itself; nothing if it does not."""
    return next((each["commitInfo"] for each in actions if each.get("commitInfo")), {})


def marked_rows(log: TableLog, version: int) -> int | None:
    """Return how many rows the deletion vectors of a version mark, by the checksum file beside its commit.

    None if that does not say so.
    """
    try:
        found = json.loads(log.read(f"{version:020d}.crc") or b"{}").get("numDeletedRecordsOpt")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, int) else None


def is_uncommitted(path: Path) -> bool:
    """Return whether a folder holds only the remains of a table's first write, which never committed."""
    log = path / "_delta_log"
    return log.is_dir() and not any(log.glob("*.json")) and not any(log.glob(_CHECKPOINTS))


def state_of(table: DeltaFile) -> TableState:
    """Return the state of a table whose log is read."""
    metadata = table.metadata()
    schema = json.loads(table.schema().to_json())
    files = table.get_add_actions(flatten=True)
    rows, is_empty = _count_rows(table, files)
    # Spark pads such a text, so that the log has other values than were given.
    limited = {field["name"] for field in schema["fields"] if DECLARED_LENGTH in field["metadata"]}
    is_known = limited.isdisjoint(metadata.partition_columns)
    features = frozenset(table.protocol().reader_features or ())
    return TableState(
        exists=True,
        version=table.version(),
        columns=tuple(
            Field.of(replace(each, type=plain_type(each.type))) for each in parse_json_columns(schema)
        ),
        partition_columns=tuple(metadata.partition_columns),
        properties=dict(metadata.configuration),
        is_empty=is_empty,
        rows=rows,
        size=sum(files.column("size_bytes").to_pylist()),
        features=features,
        partitions=_partitions(metadata.partition_columns, files) if is_known else None,
    )


def _partitions(names: Sequence[str], files: Any) -> frozenset[tuple[Any, ...]] | None:
    """Return the values of the partition columns for which there are files; None if the log has none."""
    if not names or not files.num_rows:
        return frozenset()
    wanted = [f"partition.{name}" for name in names]
    if not set(wanted) <= set(files.column_names):
        return None
    return frozenset(zip(*(files.column(name).to_pylist() for name in wanted), strict=True))


def latest_logged(table: DeltaFile, columns: Sequence[str]) -> tuple[datetime | None, bool]:
    """Return the latest value of the columns that the statistics of the files have, and whether of all rows.

    It is cut to a millisecond.
    """
    actions = table.get_add_actions(flatten=True)
    rows, found, is_complete = record_counts(actions), list[datetime](), True
    for name in columns:
        tops, nulls = (_column(actions, f"{kind}.{name}") for kind in ("max", "null_count"))
        found += (top for top in tops if top is not None)
        is_complete = is_complete and all(
            top is not None or (count is not None and count == all_rows)
            for top, count, all_rows in zip(tops, nulls, rows, strict=True)
        )
    return max(found, default=None), is_complete


def _column(actions: Any, name: str) -> list[Any]:
    """Return a column of the table of files; nulls if it lacks it."""
    return (
        list(actions.column(name).to_pylist()) if name in actions.column_names else [None] * actions.num_rows
    )


def _is_torn(checkpoint: Path) -> bool:
    try:
        count_rows(checkpoint)
    except (ValueError, OSError):
        return True
    return False


def _count_rows(table: DeltaFile, files: Any) -> tuple[int | None, bool | None]:
    """Return how many rows the table's files hold, and whether the table is empty; None where unknown."""
    if files.num_rows == 0:
        return 0, True
    counts = record_counts(files)
    if None in counts:
        return None, None
    rows = sum(filter(None, counts))
    return rows, None if may_have_marks(table) and rows else rows == 0


def record_counts(files: Any) -> list[int | None]:
    """Return how many rows each file holds, given the table of files; None where it is not in the log."""
    return _column(files, "num_records")


def may_have_marks(table: DeltaFile) -> bool:
    """Return whether deletion vectors may mark rows as deleted, which counts still include."""
    return VECTORS in (table.protocol().writer_features or ())


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
        is_empty: Whether it holds no row; None if it does not follow from the log alone.
        rows: Upper bound of its number of rows, which counts deleted rows too; None if unknown from the log.
        size: Of its files, in bytes; None if the log wasn't read.
        features: Names of the features that a reader of the table must know.
        partitions: Values of the partition columns for which it has files; None if the log wasn't read.
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
        if len(partition) == len(self.partition_columns):
            return tuple(partition[name] for name in self.partition_columns) in self.partitions
        places = [(self.partition_columns.index(name), value) for name, value in partition.items()]
        return any(all(each[place] == value for place, value in places) for each in self.partitions)

    def _is_exact(self, name: str, value: Any) -> bool:
        column = self.column(name) if name in self.partition_columns else None
        return column is not None and type(value) is _EXACT.get(column.type.ddl) and value != ""


DECLARED_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
"""Metadata of a text of a declared length, `char` or `varchar`; Spark pads a `char` when it reads it."""

ABSENT = TableState(exists=False, is_empty=True, rows=0)
"""The state of a table that doesn't exist."""
