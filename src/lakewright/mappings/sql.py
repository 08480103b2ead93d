"""The `sql` mapping: a query over other mappings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.mappings.mapping import Mapping
from lakewright.plan.resource import Resource
from lakewright.schema.sql import name_sql
from lakewright.spec.models.base import Reference
from lakewright.spec.models.text_marks import FileText, SqlText
from lakewright.workspace.query import all_rows, mapping_names, query_references, query_requires, run_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["SqlMapping"]


class SqlMapping(Mapping):
    """Runs a Spark SQL query.

    A single name in FROM or JOIN refers to a mapping; a qualified name, `database.table`, to a catalog table.
    The run warns of a UNION, INTERSECT or EXCEPT that cuts fractions, also inside structs, arrays and maps,
    since no decimal holds the digits of all its inputs.
    """

    sql: Annotated[str | None, SqlText.QUERY] = Declared(default=None, description="The query.")
    file: Annotated[str | None, FileText.OF_PROJECT] = Declared(
        default=None, description="File with the query, relative to the project's folder."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.sql is None) == (self.file is None):
            raise ValueError("a sql mapping needs either `sql` or `file`")
        return self

    def query(self, workspace: Workspace) -> str:
        """Return the text of the query."""
        return self.sql if self.sql is not None else workspace.read_file(str(self.file))

    def references(self) -> Iterable[Reference]:
        """Return the mappings in FROM and JOIN, unless the text has expressions that may change them."""
        return [] if self.sql is None else query_references(self.sql, "sql")

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the mappings in FROM and JOIN."""
        return mapping_names(self.query(workspace))

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources of the mappings, and the catalog tables."""
        return query_requires(workspace, self.query(workspace))

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the query's rows; the run warns of set operations that cut fractions."""
        query = self.query(workspace)
        frame = run_query(workspace, query)
        self.note_cuts(workspace, query, frame)
        return frame

    def plain_sql(self, workspace: Workspace) -> str:
        """Return the query with the query of each mapping as a CTE of the mapping's name."""
        query = self.query(workspace)
        parts = [f"{name_sql(name)} AS ({workspace.sql_text(name)})" for name in mapping_names(query)]
        return " ".join(["WITH", ", ".join(parts), all_rows(f"({query})")]) if parts else query
