"""Tables and views of the session's catalog, in any format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.lake.columns import fields_of
from lakewright.lake.commit import sign_commits
from lakewright.lake.spark_errors import analysis_error, first_line
from lakewright.schema.sql import name_sql
from lakewright.spec.models.fields import Field
from lakewright.spec.models.lake import TableOutput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.spec.project import Project

__all__ = [
    "CatalogEntry",
    "find_entry",
    "full_name",
    "needs_catalog",
    "quoted",
    "refresh_tables",
    "run_statement",
    "unpersist",
]

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
    if "spark.remote" in project.config:
        return False
    return (
        TableOutput.CATALOG in (project.lake.output_method, project.lake.silver_output)
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
    details = _details(spark, name)
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


def _details(spark: SparkSession, name: str) -> dict[str, str]:
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {quoted(name)}").collect()
    return {str(row["col_name"]): str(row["data_type"]) for row in rows if row["data_type"]}
