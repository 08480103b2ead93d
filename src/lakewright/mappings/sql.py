"""Mappings of queries over other mappings, and over their own result."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field as Declared

from lakewright.errors import SpecError, TargetError
from lakewright.mappings.mapping import Input, Mapping
from lakewright.plan.resource import Resource
from lakewright.schema.sql import name_sql
from lakewright.spark.engine import materialized
from lakewright.spec.models.base import Reference
from lakewright.spec.models.text_marks import SqlText
from lakewright.workspace.query import (
    QueryText,
    all_rows,
    catalog_tables,
    mapping_names,
    query_references,
    run_query,
)
from lakewright.workspace.sql_tables import before_union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.workspace.workspace import Workspace


THIS = "__this__"
"""The name by which a query reads its former result."""


class _QueryMapping(QueryText, Mapping):
    """A mapping with a query."""

    own_names: ClassVar[frozenset[str]] = frozenset()
    """Names in the query that are no mappings of the project."""

    def references(self) -> Iterable[Reference]:
        """Return the mappings in FROM and JOIN, unless the text has expressions that may change them."""
        found = [] if self.sql is None else query_references(self.sql, "sql")
        own = [each for each in found if each.name not in self.own_names]
        return [*super().references(), *own]

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the mappings in FROM and JOIN."""
        return tuple(name for name in mapping_names(self.query(workspace)) if name not in self.own_names)

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources of the mappings, and the catalog tables."""
        read = (workspace.required(name) for name in self.inputs(workspace))
        return catalog_tables(self.query(workspace)).union(*read)


class SqlMapping(_QueryMapping):
    """Runs a Spark SQL query.

    A single name in FROM or JOIN refers to a mapping; `database.table` to a catalog table.
    """

    sql: Annotated[str | None, SqlText.QUERY] = Declared(default=None, description="The query.")

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


class _Repeated(_QueryMapping):
    """A query that reads its own former result."""

    own_names: ClassVar[frozenset[str]] = frozenset({THIS})

    sql: str | None = Declared(default=None, description="The query, which reads its result as `__this__`.")
    max_iterations: int = Declared(
        default=99, ge=1, description="Number of runs after which the mapping fails."
    )

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the last result. The query runs here, because its results decide how often.

        Raises:
            TargetError: The result still changes after `maxIterations` runs.
        """
        query = self.query(workspace)
        with workspace.views(self.inputs(workspace)) as session:
            former = self.start(workspace, session, query)
            for number in range(self.max_iterations):
                former.createOrReplaceTempView(THIS)
                found = session.sql(query)
                if number == 0:
                    self.note_cuts(workspace, query, found)
                if workspace.is_outline:
                    return found
                found = materialized(found)
                if self.is_same(former, found):
                    return found
                former = found
        raise TargetError(
            f"{self.label}: the result still changes after {self.max_iterations} runs of its query",
            remedy="Correct the query so that it ends, or set a larger maxIterations.",
        )

    @abstractmethod
    def start(self, workspace: Workspace, session: SparkSession, query: str) -> DataFrame:
        """Return what the first run of the query reads."""

    @abstractmethod
    def is_same(self, former: DataFrame, found: DataFrame) -> bool:
        """Return whether the result has stopped changing."""


class RecursiveSqlMapping(_Repeated):
    """Runs `SELECT start UNION ALL SELECT … FROM __this__` until the number of rows stays the same."""

    def start(self, workspace: Workspace, session: SparkSession, query: str) -> DataFrame:
        """Return the rows of the part before UNION, which doesn't read the former result.

        Raises:
            SpecError: The query has no UNION.
        """
        first = before_union(query)
        if first is None:
            raise SpecError.of(
                "the query has no UNION",
                remedy="Write SELECT start UNION ALL SELECT … FROM __this__, or use kind: iterativeSql.",
                subject=self.label,
            )
        return session.sql(first)

    def is_same(self, former: DataFrame, found: DataFrame) -> bool:
        """Return whether both have the same number of rows."""
        return former.count() == found.count()


class IterativeSqlMapping(_Repeated):
    """Runs a query over its input, then over its own former result, until the rows stay the same."""

    input: Input = Declared(description="The mapping that the first run reads as `__this__`.")

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the input, and the mappings of the query."""
        return tuple(dict.fromkeys((self.input, *super().inputs(workspace))))

    def start(self, workspace: Workspace, session: SparkSession, query: str) -> DataFrame:
        """Return the rows of the input."""
        return workspace.frame(self.input)

    def is_same(self, former: DataFrame, found: DataFrame) -> bool:
        """Return whether both have the same columns and rows."""
        if former.columns != found.columns or former.count() != found.count():
            return False
        return found.exceptAll(former).isEmpty()
