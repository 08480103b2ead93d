"""The present state of Delta tables: from their logs where possible, otherwise through Spark.

The `deltalake` package reads the log of a table on this machine or in an object store within milliseconds.
Tables known only by a name of the catalog, and tables on other file systems, need the Spark session.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lakewright.errors import MigrationError, SpecError
from lakewright.lake.columns import fields_of
from lakewright.lake.delta_log import (
    ABSENT,
    STATISTICS_PRECISION,
    LocalLog,
    OpenedLog,
    StoredLog,
    TableLog,
    TableState,
    latest_logged,
    read_log,
    state_of,
)
from lakewright.lake.delta_sql import described, is_delta, table_detail, table_history
from lakewright.lake.paths import is_stored, local_path
from lakewright.lake.spark_errors import analysis_error, is_entry_alone
from lakewright.lake.storage_errors import lost_log_error
from lakewright.schema.sql import name_sql
from lakewright.spark.delta_files import delta_files
from lakewright.spark.engine import jvm_of
from lakewright.spec.models.places import Address
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from deltalake import DeltaTable as DeltaFile
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def observe_table(lake: Lake, address: Address) -> TableState:
    """Return the present state of the table at an address.

    Raises:
        MigrationError: The address holds something other than a Delta table.
    """
    return lake.observed(address, lambda: _observe(lake, address))


def _observe(lake: Lake, address: Address) -> TableState:
    opened = open_log(lake, address)
    state = _logged_state(opened)
    if state is None:
        return _observe_with_spark(lake, address)
    if not state.exists and opened.log is not None and opened.log.holds_others():
        raise _not_delta(address)
    return state


def observe_without_spark(lake: Lake, address: Address) -> TableState | None:
    """Return the present state of a table by its log alone; None if only Spark can find it.

    Raises:
        LakewrightError: The log can't be read.
    """
    return None if address.location is None else _logged_state(open_log(lake, address))


def _logged_state(opened: OpenedLog) -> TableState | None:
    if not opened.is_read:
        return None
    if opened.table is not None:
        return state_of(opened.table)
    _check_log_not_lost(opened.log)
    return ABSENT


def _check_log_not_lost(log: TableLog | None) -> None:
    """Check that a place without a table has no files of rows, which a log that is gone has named."""
    if log is not None and log.holds_others() and log.holds_rows():
        raise lost_log_error(str(log))


def open_log(lake: Lake, address: Address) -> OpenedLog:
    """Open the log of a table without Spark; once in an `observing` block.

    Raises:
        LakewrightError: The log can't be read.
    """
    log = table_log(lake, address)

    def read() -> OpenedLog:
        _stamp_of(lake, log)  # a commit after the stamp may be read, but none before it is missed
        return read_log(log)

    return lake.observed(("log", str(log)), read)


def log_stamp(lake: Lake, address: Address) -> str | None:
    """Return a text that differs after each commit to a table; None if only its log has that.

    In an `observing` block it is never newer than the log as it is read there.
    """
    return _stamp_of(lake, table_log(lake, address))


def _stamp_of(lake: Lake, log: TableLog | None) -> str | None:
    return None if log is None else lake.observed(("stamp", str(log)), log.stamp)


def table_log(lake: Lake, address: Address) -> TableLog | None:
    """Return the log of a table if it can be read without Spark, otherwise None.

    Raises:
        MigrationError: A table of that name exists that isn't a Delta table.
    """
    location = _location(lake, address)
    if location is None or "%" in location:
        # The `deltalake` package would decode it as part of a URL.
        return None
    if is_stored(location):
        return StoredLog(location, lake.storage)
    path = local_path(location)
    return None if path is None or "%" in str(path) else LocalLog(path)


def _location(lake: Lake, address: Address) -> str | None:
    """Return the location of a table; the catalog gives that of one that is addressed by name."""
    if address.location is not None:
        return address.location
    if not _exists_with_spark(lake, address):
        return None
    return str(table_detail(lake.spark, address)["location"])


def local_table_path(lake: Lake, address: Address) -> Path | None:
    """Return the table's folder if it is on this machine and its log can be read, otherwise None.

    Raises:
        MigrationError: A table of that name exists that isn't a Delta table.
    """
    log = table_log(lake, address)
    return log.path if isinstance(log, LocalLog) else None


def may_be_clustered(lake: Lake, address: Address) -> bool:
    """Return whether a table may be clustered: its log names the feature, or can't be read without Spark."""
    _, is_read, table = open_log(lake, address)
    return not is_read or (table is not None and "clustering" in (table.protocol().writer_features or ()))


def table_id(lake: Lake, address: Address) -> str | None:
    """Return the identity of a table, which another one in its place lacks; None if only Spark knows it."""
    table = open_log(lake, address).table
    return None if table is None else str(table.metadata().id)


def last_commit_number(
    lake: Lake, address: Address, app_id: str, *, opened: OpenedLog | None = None
) -> int | None:
    """Return the number that an application gave its last commit to the table, or None.

    Args:
        lake: The lake.
        address: The table.
        app_id: The application id.
        opened: The table's log; opened anew unless given.

    Raises:
        MigrationError: There are files of rows, but no log.
    """
    opened = opened or open_log(lake, address)
    if opened.table is not None:
        return opened.table.transaction_version(app_id)
    _check_log_not_lost(opened.log)
    if opened.is_read or not _exists_with_spark(lake, address):
        return None
    found = _spark_log(lake.spark, address).unsafeVolatileSnapshot().transactions().get(app_id)
    return int(found.get()) if found.isDefined() else None


def latest_instant_since(
    lake: Lake, address: Address, columns: Sequence[str], at: datetime, *, with_spark: bool = True
) -> datetime | None:
    """Return the latest instant in these columns, or None if all are before `at` or the columns are missing.

    The statistics of the files, which are exact to a millisecond, are used if they suffice. Otherwise a query
    is run.

    Args:
        lake: The lake.
        address: The table.
        columns: The columns.
        at: The time.
        with_spark: Whether a query may be run; otherwise files without statistics are left out.
    """
    if address.location is None and not with_spark:
        return None
    table = open_log(lake, address).table
    top, is_complete = (None, False) if table is None else latest_logged(table, columns)
    if not with_spark:
        return None if top is None or top < at else top
    if is_complete and (top is None or top + STATISTICS_PRECISION < at):
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


def missing_files(lake: Lake, address: Address, version: int) -> list[str]:
    """Return the data files of a version that are gone, for a table on this machine.

    Of tables elsewhere nothing is known; Delta's RESTORE looks for the files itself.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    path = local_table_path(lake, address)
    if path is None:
        return []
    try:
        opened = open_log(lake, address).table
        is_of_version = opened is not None and opened.version() == version
        table = opened if opened is not None and is_of_version else DeltaTable(path, version=version)
        return files_gone(path, table)
    except DeltaError:
        return []


def files_gone(folder: Path, table: DeltaFile) -> list[str]:
    """Return the names of the data files of a table on this machine that are gone.

    The files of a shallow clone may be in other places; those on other machines count as there.
    """
    # The log has URLs, in which the names of folders are encoded once more than on the disk.
    names = [str(name) for name in table.get_add_actions(flatten=True).column("path").to_pylist()]
    places = (folder / unquote(name) if _SCHEME.match(name) is None else local_path(name) for name in names)
    return [place.name for place in places if place is not None and not place.exists()]


def read_table(spark: SparkSession, address: Address, version: int | None = None) -> DataFrame:
    """Return the rows of the table's last version, or of an earlier one."""
    if version is None and address.location is not None:
        files = delta_files(spark, address.location)
        if files is not None:
            return files.frame()
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", str(version))
    return reader.load(address.location) if address.location is not None else reader.table(address.sql)


def _observe_with_spark(lake: Lake, address: Address) -> TableState:
    if not _exists_with_spark(lake, address):
        return ABSENT
    spark = lake.spark
    detail = table_detail(spark, address)
    version = table_history(spark, address, 1).select("version").first()
    if version is None:
        raise _not_delta(address)
    is_empty = True if int(detail["numFiles"]) == 0 else None
    return TableState(
        exists=True,
        version=int(version[0]),
        columns=fields_of(read_table(spark, address).schema),
        partition_columns=tuple(detail["partitionColumns"]),
        properties=dict(detail["properties"]),
        is_empty=is_empty,
        rows=0 if is_empty else None,
        # Spark names the features of writers too; all that matter here are features of readers.
        features=frozenset(detail["tableFeatures"] or ()),
    )


def _exists_with_spark(lake: Lake, address: Address) -> bool:
    spark = lake.spark
    if address.location is not None:
        return is_delta(spark, address)
    try:
        if not spark.catalog.tableExists(address.sql):
            return False
        found = described(spark, address.sql)
    except analysis_error() as error:
        if is_entry_alone(error):
            return False
        raise
    if found.get("Provider", "").lower() != "delta":
        raise _not_delta(address)
    return True


def _spark_log(spark: SparkSession, address: Address) -> Any:
    """Return Delta's internal view of the table: its public API doesn't offer the transaction ids."""
    jvm = jvm_of(spark)
    if jvm is None:
        raise SpecError.of(
            f"the transactions of {address.shown} cannot be read through Spark Connect",
            remedy="Find the table by a location that this machine reaches, not by its name in the catalog.",
        )
    location, none = table_detail(spark, address)["location"], jvm.packages.scala.Option.empty()
    log = jvm.packages.org.apache.spark.sql.delta.DeltaLog.forTable(jvm.session, location)
    log.update(False, none, none)
    return log


def forget_log(spark: SparkSession, location: str) -> None:
    """Make Delta read the log at a location anew, which it otherwise keeps by the path."""
    jvm = jvm_of(spark)
    if jvm is not None:  # a server's log can't be reached
        packages = jvm.packages.org.apache
        packages.spark.sql.delta.DeltaLog.invalidateCache(jvm.session, packages.hadoop.fs.Path(location))


def _not_delta(address: Address) -> MigrationError:
    return MigrationError(
        f"{address.shown} is not a Delta table",
        remedy="Move away what is there, or declare another place.",
        details={"address": str(address)},
    )
