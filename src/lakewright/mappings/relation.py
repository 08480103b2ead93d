"""Mappings that read relations, and tables without one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.lake.columns import conform, frame_of_records
from lakewright.lake.partition import Partition, Selection, expand_selection
from lakewright.lake.table import full_name, quoted, refresh_tables
from lakewright.mappings.mapping import Mapping
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import Reference
from lakewright.spec.models.fields import Field, TypeText
from lakewright.workspace.partition_values import check_partition_values
from lakewright.workspace.query import all_rows
from lakewright.workspace.readable_parts import ReadableRelation, RelationReference, read_relation, referenced
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


MOST_NAMED = 3
"""The largest number of partitions that a reason names one by one."""


class RelationMapping(Mapping):
    """Reads a relation, or some of its partitions."""

    deferred: ClassVar[frozenset[str]] = frozenset({"relation.pattern"})

    relation: RelationReference = Declared(description="The relation, or its name.")
    partitions: Selection = Declared(
        default_factory=dict, description="Values, lists or ranges of partition columns."
    )
    columns: dict[str, TypeText] | None = Declared(
        default=None,
        description="Columns of the result; default: all. Those that the relation lacks are null, with a "
        "warning; `validate` refuses them if it declares its columns.",
    )

    def references(self) -> Iterable[Reference]:
        """Return the relation."""
        return referenced(self.relation)

    def source(self, workspace: Workspace) -> ReadableRelation:
        """Return the relation."""
        return workspace.relation(self.relation) if isinstance(self.relation, str) else self.relation

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the partitions that are read, or the whole relation."""
        source = self.source(workspace)
        partitions = self.selected(workspace)
        return frozenset().union(*(source.resources(workspace, each) for each in partitions or [{}]))

    def selected(self, workspace: Workspace) -> tuple[dict[str, str], ...]:
        """Return the partitions to read; empty for all."""
        source, definition = self.source(workspace), workspace.project.definitions("mapping").get(self.name)
        check_partition_values(workspace, definition, source, self.partitions, ("partitions",))
        return expand_selection(source.partitions, self.partitions)

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the columns, if they are declared here or by the relation."""
        if self.columns is not None:
            return tuple(self.columns)
        declare = getattr(self.source(workspace), "declared", None)
        fields = None if declare is None else declare(workspace)
        return None if fields is None else tuple(each.name for each in fields)

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the rows, restricted to the declared columns if there are any."""
        frame = self._rows(self.source(workspace), workspace)
        if self.columns is None:
            return frame
        self.note_absent(
            workspace,
            self.columns,
            frame.columns,
            lacks=f"relation {(self.source(workspace).name or self.name)!r} has no column",
            use=", so null is read",
        )
        return conform(frame, [Field(name=name, type=found) for name, found in self.columns.items()])

    def _rows(self, source: ReadableRelation, workspace: Workspace) -> DataFrame:
        if workspace.is_outline:
            return frame_of_records(workspace.spark, source.fields(workspace), [])
        return read_relation(source, workspace, self.selected(workspace))

    def plain_sql(self, workspace: Workspace) -> str:
        """Return a query for the whole relation.

        Raises:
            SpecError: Only part of it is read, or a query cannot name it as a table.
        """
        source = self.source(workspace)
        table = source.table_sql(workspace)
        if table is None:
            raise SpecError.of(
                f"mapping {self.name!r} of project {workspace.project.name!r} cannot be used in a view: it "
                f"reads the relation {source.name!r} of kind {source.kind!r}, which is no table that a view "
                "could name",
                remedy="Write its rows to a relation of kind delta or table with a target, and let the view "
                "read that one.",
            )
        if self.partitions or self.columns:
            named = "partitions" if self.partitions else "columns"
            raise SpecError.of(
                f"mapping {self.name!r} cannot be used in a view, because it has `{named}`",
                remedy="Leave them out, and select what is needed in a mapping of kind sql or filter.",
            )
        return all_rows(table)


def _named(partitions: Sequence[Partition]) -> str:
    """Return partitions as reasons name them; different ones have different names.

    Example:
        >>> _named([{"day": "2024-05-01"}, {"day": "2024-05-02"}])
        '[day=2024-05-01; day=2024-05-02]'
    """
    texts = [",".join(f"{name}={value}" for name, value in each.items()) for each in partitions]
    if len(texts) <= MOST_NAMED:
        return f"[{'; '.join(texts)}]" if texts else ""
    which = sha256("; ".join(texts).encode()).hexdigest()[:8]
    return f"[{texts[0]} to {texts[-1]}, {len(texts):,} partitions, {which}]"


class ProvidedMapping(Mapping):
    """Returns the rows of a table or global view of the catalog."""

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
        default=None, description="Columns of the result; default: all."
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
