"""Tables and views of the session's catalog, of whatever format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.columns import fields_of
from lakewright.spec.types import Field
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.lake import Lake

__all__ = ["CatalogEntry", "find_entry", "full_name", "quoted", "run_statement"]


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A table or view as the catalog has it.

    Attributes:
        provider: Format of a table, in lower case.
        view_text: The query of a view; None for a table.
    """

    columns: tuple[Field, ...]
    partition_columns: tuple[str, ...] = ()
    provider: str | None = None
    view_text: str | None = None


def full_name(database: str | None, name: str) -> str:
    """Return a name with its database, unquoted."""
    return f"{database}.{name}" if database else name


def quoted(name: str) -> str:
    """Return a dotted name as SQL."""
    return name_sql(*name.split("."))


def find_entry(lake: Lake, name: str) -> CatalogEntry | None:
    """Return what the catalog has under a name, or None.

    A catalog in memory ends with its session, so a session isn't started to look into one.
    """
    if not lake.is_started and lake.has_catalog_in_memory:
        return None
    # A session keeps what it has seen of a table, which others may have changed since.
    spark = lake.isolated()
    if not spark.catalog.tableExists(quoted(name)):
        return None
    details = _details(spark, name)
    partitions = tuple(
        column.name for column in spark.catalog.listColumns(quoted(name)) if column.isPartition
    )
    provider = details.get("Provider")
    return CatalogEntry(
        columns=fields_of(spark.table(quoted(name)).schema),
        partition_columns=partitions,
        provider=None if provider is None else provider.lower(),
        view_text=details.get("View Text"),
    )


def run_statement(lake: Lake, statement: str) -> None:
    """Run a statement; texts like `${…}` in it are left as they are."""
    session = lake.isolated()
    session.conf.set("spark.sql.variable.substitute", "false")
    session.sql(statement)


def _details(spark: SparkSession, name: str) -> dict[str, str]:
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {quoted(name)}").collect()
    return {str(row["col_name"]): str(row["data_type"]) for row in rows if row["data_type"]}
