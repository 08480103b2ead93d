"""Tables and views, changed through Spark: Delta tables, and those of its catalog in any format."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.errors import MigrationError
from lakewright.lake.columns import fields_of
from lakewright.lake.commit import sign_commits
from lakewright.lake.delta_log import is_uncommitted
from lakewright.lake.delta_sql import described
from lakewright.lake.files import HadoopFiles, files_at
from lakewright.lake.observation import forget_log, observe_table, read_table
from lakewright.lake.paths import is_stored, local_path
from lakewright.lake.spark_errors import analysis_error, is_entry_alone
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spark.causes import first_line
from lakewright.spark.engine import jvm_of
from lakewright.spark.functions import functions
from lakewright.spec.models.fields import Field
from lakewright.spec.models.lake import TableOutput
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.spec.project import Project


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """One difference between a table and its declaration, and the statement that removes it.

    Attributes:
        description: The effect of the step, as text for users.
        sql: The text after `ALTER TABLE …`, or for a database the whole statement; None if no statement can
            do it.
        loses: The data that would be lost, or None.
        needs_mapping: Whether Delta's column mapping, by which a table knows its columns by id, must be
            enabled first.
        widens: Whether Delta's type widening must be enabled first.
        removes: The name that a column has no more after it, or None.
    """

    description: str
    sql: str | None
    loses: str | None = None
    needs_mapping: bool = False
    widens: bool = False
    removes: str | None = None


def create_table(
    lake: Lake,
    address: Address,
    columns: Iterable[Field],
    *,
    form: str = "delta",
    options: Mapping[str, str] | None = None,
    partition_columns: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
    place: str | None = None,
    replaces: bool = False,
) -> None:
    """Create an empty table of some format; a table with a name may have its files at a given place.

    A Delta table is created in one commit. If there is one at that place already, the name becomes another
    one of it. A table that is replaced keeps its history.

    Raises:
        MigrationError: The address already holds a table, which is not to be replaced, or something else.
    """
    if not replaces:
        ensure_database(lake, address)
    if form == "delta" and not replaces:
        if observe_table(lake, address).exists:
            raise MigrationError(f"the table {address} exists already")
        drop_entry_alone(lake, address)
        if place is not None and observe_table(lake, Address(location=place)).exists:
            run_statement(lake, f"CREATE TABLE {address.sql} USING delta LOCATION {text_sql(place)}")
            return
    clauses = {
        "OPTIONS": _pairs_sql(options),
        "PARTITIONED BY": f"({', '.join(map(name_sql, partition_columns))})" if partition_columns else None,
        "LOCATION": None if place is None else text_sql(place),
        "COMMENT": text_sql(comment) if comment else None,
        "TBLPROPERTIES": _pairs_sql(properties),
    }
    parts = (f"{clause} {text}" for clause, text in clauses.items() if text is not None)
    listed, verb = ", ".join(map(_column_sql, columns)), "REPLACE" if replaces else "CREATE"
    run_statement(lake, " ".join((f"{verb} TABLE {address.sql} ({listed}) USING {form}", *parts)))


def drop_entry_alone(lake: Lake, address: Address) -> None:
    """Remove the catalog's entry of a Delta table whose folder does not exist any more, if there is one."""
    if address.name is None:
        return
    try:
        lake.spark.catalog.tableExists(address.sql)
    except analysis_error() as error:
        if not is_entry_alone(error):
            raise
        run_statement(lake, f"DROP TABLE {address.sql}")


def ensure_database(lake: Lake, address: Address) -> None:
    """Create the database of a catalog table if it is missing."""
    parts = (address.name or "").split(".")
    if len(parts) > 1:
        run_statement(lake, f"CREATE DATABASE IF NOT EXISTS {name_sql(*parts[:-1])}")


def alter_table(lake: Lake, address: Address, steps: Sequence[MigrationStep]) -> None:
    """Run the steps that have SQL, each in a commit of its own, after enabling what they need."""
    needed = {}
    if any(step.needs_mapping for step in steps):
        needed["delta.columnMapping.mode"] = "name"
    if any(step.widens for step in steps):
        needed["delta.enableTypeWidening"] = "true"
    if needed:
        set_properties(lake, address, needed)
    for step in steps:
        if step.sql is not None:
            run_statement(lake, f"ALTER TABLE {address.sql} {step.sql}")


def set_properties(lake: Lake, address: Address, properties: Mapping[str, str]) -> None:
    """Set properties of the table; its other properties stay."""
    run_statement(lake, f"ALTER TABLE {address.sql} SET TBLPROPERTIES {_pairs_sql(properties)}")


def drop_feature(lake: Lake, address: Address, feature: str) -> None:
    """Remove a feature from the table's protocol, after what uses it was rewritten.

    Delta does it in commits of its own, which change no rows. Versions before keep the feature: only who
    knows it can read them. Delta marks the table with the feature `checkpointProtection`, which concerns
    writers alone.
    """
    run_statement(lake, f"ALTER TABLE {address.sql} DROP FEATURE {feature}")


def set_comments(lake: Lake, address: Address, comments: Mapping[str, str]) -> None:
    """Set the comments of columns, each in a commit of its own."""
    for name, text in comments.items():
        run_statement(
            lake, f"ALTER TABLE {address.sql} ALTER COLUMN {name_sql(name)} COMMENT {text_sql(text)}"
        )


def truncate_table(
    lake: Lake, address: Address, condition: str | None = None, partition: Mapping[str, str] | None = None
) -> None:
    """Remove all rows, or those that meet a condition in SQL; the table stays.

    Args:
        lake: The lake.
        address: The table.
        condition: The condition.
        partition: The partition that the condition means, as the commit names it.
    """
    where = ("WHERE", condition) if condition else ()
    run_statement(lake, " ".join(("DELETE FROM", address.sql, *where)), partition)


def restore_table(session: SparkSession, address: Address, version: int | None) -> None:
    """Put the table back to an earlier version, in one commit that writes no rows; None removes all rows.

    The commit is one of the session, whose settings say what it carries. RESTORE carries user metadata, but
    no transaction id.
    """
    if version is not None:
        session.sql(f"RESTORE TABLE {address.sql} TO VERSION AS OF {version}").collect()
        return
    # A DELETE makes no commit to a table without files.
    writer = read_table(session, address).limit(0).writeTo(address.sql)
    writer.option("partitionOverwriteMode", "static").overwrite(functions.lit(True))


def drop_table(lake: Lake, address: Address) -> None:
    """Remove the table with its rows and history, if it exists.

    Raises:
        MigrationError: The address holds something other than a Delta table.
    """
    if not observe_table(lake, address).exists:
        return
    if address.location is None:
        run_statement(lake, f"DROP TABLE {address.sql}")
        return
    files_at(address.location, lake).remove(address.location)
    if lake.is_started and jvm_of(lake.spark) is not None:
        if is_stored(address.location):
            # Hadoop marks folders by objects whose names end with a slash, which only Hadoop sees. Delta
            # would take a folder that is left of them for a table.
            HadoopFiles(lake).remove(address.location)
        forget_log(lake.spark, address.location)


def remove_uncommitted(address: Address) -> None:
    """Remove the remains of a table's first write that never committed, so that the table can be created.

    Only a location on this machine is examined. A folder with a commit, or without a log, stays.
    """
    path = None if address.location is None else local_path(address.location)
    if path is not None and path.is_dir() and is_uncommitted(path):
        shutil.rmtree(path)


def _column_sql(column: Field) -> str:
    not_null = "" if column.nullable else " NOT NULL"
    comment = f" COMMENT {text_sql(column.description)}" if column.description else ""
    return f"{name_sql(column.name)} {column.type.ddl}{not_null}{comment}"


def _pairs_sql(entries: Mapping[str, str] | None) -> str | None:
    pairs = ", ".join(f"{text_sql(key)} = {text_sql(value)}" for key, value in (entries or {}).items())
    return f"({pairs})" if pairs else None


_OF_CATALOG = frozenset(("table", "hiveTable", "hiveQuery", "hiveUnionTable", "view", "hiveView", "provided"))
_OF_CATALOG_BY_NAME = frozenset(("delta", "deltaTable", "deltaFile"))
"""Kinds of relations that are in the catalog only if they name a `table`."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A table or view of the catalog.

    Attributes:
        provider: Format of a table, in lower case.
        view_text: The query of a view; None for a table.
        location: Location of a table's files.
        defect: Why Spark can't read a view, such as that a column of its table is gone; None if it can.
    """

    columns: tuple[Field, ...]
    partition_columns: tuple[str, ...] = ()
    provider: str | None = None
    view_text: str | None = None
    location: str | None = None
    defect: str | None = None


def needs_catalog(project: Project) -> bool:
    """Return whether a project has tables or views that the catalog must keep for the next session.

    If `lakewright.spark.enableHive` is set, it decides.
    """
    asked = project.config.get("lakewright.spark.enableHive")
    if asked is not None and asked.strip().lower() != "true":
        return False
    return (
        bool(project.lake.registered_in)
        or TableOutput.CATALOG in (project.lake.output_method, project.lake.silver_output)
        or any(_is_in_catalog(definition.raw) for definition in project.entity_definitions.values())
        or any(
            definition.kind in _OF_CATALOG
            or (definition.kind in _OF_CATALOG_BY_NAME and "table" in definition.raw)
            for definition in project.relations.values()
        )
        or any(definition.kind == "hiveDatabase" for definition in project.targets.values())
        or any(map(needs_catalog, project.imports.values()))
    )


def _is_in_catalog(entity: Mapping[str, Any]) -> bool:
    settings = entity.get("settings")
    if not isinstance(settings, Mapping):
        return False
    return "silver_table" in settings or str(settings.get("output_method")).lower() == TableOutput.CATALOG


def full_name(database: str | None, name: str) -> str:
    """Return a name with its database, unquoted."""
    return f"{database}.{name}" if database else name


def quoted(name: str) -> str:
    """Return a dotted name with each part quoted."""
    return name_sql(*name.split("."))


def find_entry(lake: Lake, name: str) -> CatalogEntry | None:
    """Return the table or view of that name in the catalog, or None.

    No session is started if its catalog would be empty.
    """
    if not lake.is_started and lake.has_empty_catalog:
        return None
    # A session caches metadata of tables, which others may have changed since: a new one reads it again.
    spark = lake.new_session()
    if not spark.catalog.tableExists(quoted(name)):
        return None
    details = described(spark, quoted(name))
    partitions = tuple(
        column.name for column in spark.catalog.listColumns(quoted(name)) if column.isPartition
    )
    provider = details.get("Provider")
    columns: tuple[Field, ...] = ()
    defect = None
    try:
        columns = fields_of(spark.table(quoted(name)).schema)
    except analysis_error() as error:
        if "View Text" not in details:
            raise
        defect = first_line(error)
    return CatalogEntry(
        columns=columns,
        partition_columns=partitions,
        provider=None if provider is None else provider.lower(),
        view_text=details.get("View Text"),
        location=details.get("Location"),
        defect=defect,
    )


def refresh_tables(session: SparkSession, names: Iterable[str]) -> None:
    """Make a session read the files of tables again, also through views; missing tables are skipped."""
    for name in names:
        if session.catalog.tableExists(quoted(name)):
            session.catalog.refreshTable(quoted(name))


def unpersist(frame: DataFrame) -> None:
    """Drop what Spark caches of a frame, if anything."""
    with suppress(analysis_error()):  # a frame that can't be analysed is kept nowhere
        if frame.storageLevel.useMemory or frame.storageLevel.useDisk:
            frame.unpersist()


def run_statement(lake: Lake, statement: str, emptied: Mapping[str, str] | None = None) -> None:
    """Run a statement in a session of its own, in which Spark doesn't replace texts like `${…}`.

    Args:
        lake: The lake.
        statement: The statement.
        emptied: The partition whose rows it removes, if that is what it is for.
    """
    session = lake.new_session()
    session.conf.set("spark.sql.variable.substitute", "false")
    sign_commits(session, emptied)
    session.sql(statement)
