"""The `readHive` and `provided` mappings: tables that the catalog or the session has, without a relation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.columns import conform
from lakewright.lake.table import full_name, quoted, refresh_tables
from lakewright.mappings.mapping import Mapping
from lakewright.plan.resource import Resource
from lakewright.spec.models.fields import Field, TypeText
from lakewright.workspace.query import all_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ProvidedMapping", "ReadHiveMapping"]


class ProvidedMapping(Mapping):
    """Returns the rows of a table that somebody else provides: a table or global view of the catalog."""

    table: str = Declared(description="Name of the table, such as `shop.items` or `global_temp.items`.")

    def qualified(self) -> str:
        """Return the name of the table with its database."""
        return self.table

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the table."""
        return frozenset({Resource.table(self.qualified())})

    def plain_sql(self, workspace: Workspace) -> str:
        """Return a query for all rows of the table."""
        return all_rows(quoted(self.qualified()))

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the rows of the table."""
        refresh_tables(workspace.spark, [self.qualified()])
        return workspace.spark.table(quoted(self.qualified()))


class ReadHiveMapping(ProvidedMapping):
    """Returns the rows of a table of the catalog that the project doesn't declare."""

    database: str | None = Declared(default=None, description="Database of the table.")
    columns: dict[str, TypeText] | None = Declared(
        default=None, description="Columns of the result with their types; default: all."
    )

    def qualified(self) -> str:
        """Return the name of the table with its database."""
        return full_name(self.database, self.table)

    def plain_sql(self, workspace: Workspace) -> str:
        """Return a query for all rows of the table.

        Raises:
            SpecError: Only some of its columns are read.
        """
        return super().plain_sql(workspace) if self.columns is None else Mapping.plain_sql(self, workspace)

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the rows, with the declared columns if there are any."""
        frame = super().transform(workspace)
        if self.columns is None:
            return frame
        return conform(frame, [Field(name=name, type=found) for name, found in self.columns.items()])
