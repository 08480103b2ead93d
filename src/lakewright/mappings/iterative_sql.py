"""The `iterativeSql` and `recursiveSql` mappings: a query that reads its own result until nothing changes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import SpecError, TargetError
from lakewright.mappings.mapping import Input, Mapping
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import Reference
from lakewright.spec.models.text_marks import FileText
from lakewright.workspace.query import catalog_tables, mapping_names, query_references
from lakewright.workspace.sql_tables import before_union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.workspace.workspace import Workspace

__all__ = ["IterativeSqlMapping", "RecursiveSqlMapping"]

THIS = "__this__"
"""The name by which the query reads its former result."""


class _Repeated(Mapping):
    """A query that reads its own former result."""

    sql: str | None = Declared(default=None, description="The query, which reads its result as `__this__`.")
    file: Annotated[str | None, FileText.OF_PROJECT] = Declared(
        default=None, description="File with the query, relative to the project's folder."
    )
    max_iterations: int = Declared(
        default=99, ge=1, description="Number of runs after which the mapping fails."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.sql is None) == (self.file is None):
            raise ValueError(f"a mapping of kind {self.kind!r} needs either `sql` or `file`")
        return self

    def query(self, workspace: Workspace) -> str:
        """Return the text of the query."""
        return self.sql if self.sql is not None else workspace.read_file(str(self.file))

    def references(self) -> Iterable[Reference]:
        """Return the mappings in FROM and JOIN, unless the text has expressions that may change them."""
        found = [] if self.sql is None else query_references(self.sql, "sql")
        return [each for each in found if each.name != THIS]

    def inputs(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the mappings in FROM and JOIN."""
        return tuple(name for name in mapping_names(self.query(workspace)) if name != THIS)

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources of the mappings, and the catalog tables."""
        read = (workspace.required(name) for name in self.inputs(workspace))
        return catalog_tables(self.query(workspace)).union(*read)

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
                found = found.localCheckpoint(eager=True)
                if self.is_same(former, found):
                    return found
                former = found
        raise TargetError(
            f"mapping {self.name!r}: the result still changes after {self.max_iterations} runs of its query",
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
                f"mapping {self.name!r}: the query has no UNION",
                remedy="Write SELECT start UNION ALL SELECT … FROM __this__, or use kind: iterativeSql.",
            )
        return session.sql(first)

    def is_same(self, former: DataFrame, found: DataFrame) -> bool:
        """Return whether both have the same number of rows."""
        return former.count() == found.count()


class IterativeSqlMapping(_Repeated):
    """Runs a query over its input, then over its own former result, until the rows stay the same."""

    input: Input = Declared(description="The mapping that the first run reads as `__this__`.")

    def references(self) -> Iterable[Reference]:
        """Return the input, and the mappings of the query."""
        return [Reference("mapping", self.input, ("input",)), *super().references()]

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
