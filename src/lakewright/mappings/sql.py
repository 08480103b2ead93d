"""The `sql` mapping: a query whose tables are mappings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.mappings.mapping import Mapping
from lakewright.plan.resource import Resource
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import Reference
from lakewright.transform.sql import name_sql
from lakewright.workspace.query import all_rows, mapping_names, query_requires, run_query, table_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["SqlMapping"]


class SqlMapping(Mapping):
    """Runs a query of Spark's SQL.

    A name of one part in FROM or JOIN is a mapping; one of several, `database.table`, a table of the catalog.
    """

    sql: str | None = Declared(default=None, description="The query.")
    file: str | None = Declared(default=None, description="File with the query, below the project's folder.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.sql is None) == (self.file is None):
            raise ValueError("a sql mapping has one of `sql` and `file`")
        return self

    def query(self, workspace: Workspace) -> str:
        """Return the query, from wherever it stands."""
        return self.sql if self.sql is not None else workspace.read_file(str(self.file))

    def references(self) -> Iterable[Reference]:
        """Return the mappings in FROM and JOIN, if the text holds no expression that may change them."""
        if self.sql is None or has_expression(self.sql):
            return []
        return [Reference("mapping", name, ("sql",)) for name in mapping_names(self.sql)]

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the mappings in FROM and JOIN."""
        return mapping_names(self.query(workspace))

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return what the mappings are made of, and the tables of the catalog."""
        return query_requires(workspace, self.query(workspace))

    def versions(self, workspace: Workspace) -> dict[str, str] | None:
        """Return the text itself; None where it reads tables of the catalog, whose state isn't known."""
        query = self.query(workspace)
        return (
            {f"query of {self.name}": query} if len(mapping_names(query)) == len(table_names(query)) else None
        )

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the query's rows."""
        return run_query(workspace, self.query(workspace))

    def plain_sql(self, workspace: Workspace) -> str:
        """Return the query with each mapping's own query before it, under the mapping's name."""
        query = self.query(workspace)
        parts = [f"{name_sql(name)} AS ({workspace.sql_text(name)})" for name in mapping_names(query)]
        return " ".join(["WITH", ", ".join(parts), all_rows(f"({query})")]) if parts else query
