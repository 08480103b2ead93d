"""The `sqlserver` relation: a table in Microsoft SQL Server or Azure SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field as Declared

from lakewright.relations.jdbc_table import JdbcTableRelation
from lakewright.spec.models.base import from_text

if TYPE_CHECKING:
    from lakewright.spec.models.fields import Field
    from lakewright.workspace.workspace import Workspace

__all__ = ["SqlServerRelation"]


class SqlServerRelation(JdbcTableRelation):
    """A table in SQL Server: a `jdbcTable` that may be stored by columns.

    The driver's jar is added with `spark.jars`.
    """

    storage_format: Annotated[Literal["ROWSTORE", "COLUMNSTORE"], from_text(str.upper)] = Declared(
        default="ROWSTORE", description="`COLUMNSTORE` creates a clustered columnstore index."
    )

    def creation_sql(self, workspace: Workspace, brought: tuple[Field, ...] | None = None) -> list[str]:
        """Return the statements that create the table and its storage."""
        statements = super().creation_sql(workspace, brought)
        if statements and self.storage_format == "COLUMNSTORE" and not self.sql:
            dialect = self.dialect(workspace)
            index = dialect.name(f"{self.table}_columnstore")
            on = dialect.table(self.table_name)
            statements.append(f"CREATE CLUSTERED COLUMNSTORE INDEX {index} ON {on}")
        return statements
