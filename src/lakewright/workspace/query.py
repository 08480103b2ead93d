"""Queries over mappings: their inputs and their frames.

A name of one part is a mapping. A name of several parts is a table of the catalog, or a path
(``delta.`/lake/x` ``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.plan.resource import Resource
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import Named, Reference
from lakewright.spec.models.text_marks import FileText
from lakewright.workspace.sql_tables import WholeName, table_names, with_whole_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


_CATALOG = "spark_catalog"
"""The catalog of the session, whose tables have the same names without it."""

_FULL = 3
"""The number of parts of a name with its catalog."""


class QueryText(Named):
    """A definition with a query, as text or in a file."""

    query_keys: ClassVar[tuple[str, ...]] = ("sql", "file")
    """The fields of which exactly one declares the query."""

    sql: str | None = Declared(default=None, description="The query.")
    file: Annotated[str | None, FileText.OF_PROJECT] = Declared(
        default=None, description="File with the query."
    )

    @model_validator(mode="after")
    def _check_query(self) -> Self:
        if sum(getattr(self, name) is not None for name in self.query_keys) != 1:
            names = ", ".join(f"`{name}`" for name in self.query_keys)
            raise ValueError(f"kind {self.kind!r} needs exactly one of {names}")
        return self

    def query(self, workspace: Workspace) -> str:
        """Return the text of the query, without a semicolon at its end.

        `orders.history` is the mapping of this name, if there is one, as for every entity.
        """
        text = self.sql if self.sql is not None else workspace.read_file(self.file or "")
        # Of thousands of mappings, a query names few.
        lower, names = text.lower(), {}
        for name in workspace.project.whole_names:
            parts = tuple(name.lower().split("."))
            if parts[0] in lower:
                names[parts] = WholeName(name, name.partition(".")[0])
        return with_whole_names(text.rstrip().rstrip(";"), names)


def mapping_names(sql: str) -> tuple[str, ...]:
    """Return the names of the mappings that a query reads, each once."""
    return tuple(name[0] for name in table_names(sql) if len(name) == 1)


def query_references(sql: str, *place: str) -> list[Reference]:
    """Return the mappings that a query reads as references; none if it has expressions that may change them.

    Args:
        sql: The query.
        place: The keys of the definition that lead to the query.
    """
    return [] if has_expression(sql) else [Reference("mapping", name, place) for name in mapping_names(sql)]


def query_requires(workspace: Workspace, sql: str) -> frozenset[Resource]:
    """Return every resource that the result of a query depends on, through all mappings."""
    return catalog_tables(sql).union(*(workspace.required(name) for name in mapping_names(sql)))


def catalog_tables(sql: str) -> frozenset[Resource]:
    """Return the tables of the catalog, and the paths, that a query names."""
    return frozenset(table_resource(name) for name in table_names(sql) if len(name) > 1)


def all_rows(source: str, condition: str | None = None) -> str:
    """Return a query for all rows of a table, or of a query in parentheses, that meet a condition.

    Example:
        >>> all_rows("t", "x > 1"), all_rows("(SELECT 1)")
        ('SELECT * FROM t WHERE x > 1', 'SELECT * FROM (SELECT 1)')
    """
    where = [] if condition is None else ["WHERE", condition]
    return " ".join(["SELECT * FROM", source, *where])


def table_resources(sql: str) -> frozenset[Resource]:
    """Return the resources of a query that reads tables of the catalog only, as a view does."""
    return frozenset(map(table_resource, table_names(sql)))


def table_resource(name: Sequence[str]) -> Resource:
    """Return the table of the catalog, or the path, that a name of these parts means in a query.

    Example:
        >>> str(table_resource(("spark_catalog", "shop", "Sales"))), str(table_resource(("delta", "/lake/x")))
        ('table:shop.sales', 'file:/lake/x')
    """
    is_path = len(name) == 2 and "/" in name[1]
    if is_path:
        return Resource.file(name[1])
    is_full = len(name) == _FULL and name[0].lower() == _CATALOG
    return Resource.table(".".join(name[1:] if is_full else name))


def run_query(workspace: Workspace, sql: str) -> DataFrame:
    """Return the frame of a query, in a session whose views are the mappings that it reads.

    Raises:
        SpecError: A name of one part isn't a mapping.
    """
    with workspace.views(mapping_names(sql)) as session:
        return session.sql(sql)
