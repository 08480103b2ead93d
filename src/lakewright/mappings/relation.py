"""The `relation` mapping: the rows of a relation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field as Declared

from lakewright.lake.columns import conform, frame_of_records
from lakewright.lake.partition import Selection, expand_selection
from lakewright.mappings.mapping import Mapping
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import Reference
from lakewright.spec.models.fields import Field, TypeText
from lakewright.workspace.query import all_rows
from lakewright.workspace.reference import RelationReference, referenced
from lakewright.workspace.workspace import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["RelationMapping"]


class RelationMapping(Mapping):
    """Reads a relation, or some of its partitions."""

    deferred: ClassVar[frozenset[str]] = frozenset({"relation.pattern"})

    relation: RelationReference = Declared(description="Name of the relation, or the relation itself.")
    partitions: Selection = Declared(
        default_factory=dict, description="Values, lists or ranges (both ends included) of partition columns."
    )
    columns: dict[str, TypeText] | None = Declared(
        default=None, description="Columns of the result with their types; all unless given."
    )

    def references(self) -> Iterable[Reference]:
        """Return the relation."""
        return referenced(self.relation)

    def source(self, workspace: Workspace) -> Source:
        """Return the relation."""
        return workspace.relation(self.relation) if isinstance(self.relation, str) else self.relation

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the partitions that are read, or the whole relation."""
        source = self.source(workspace)
        partitions = self.selected(workspace)
        return frozenset().union(*(source.resources(workspace, each) for each in partitions or [{}]))

    def versions(self, workspace: Workspace) -> dict[str, str] | None:
        """Return the relation's version."""
        source = self.source(workspace)
        version = source.version(workspace, self.selected(workspace))
        return None if version is None else {f"relation {source.name or self.name}": version}

    def selected(self, workspace: Workspace) -> tuple[dict[str, str], ...]:
        """Return the partitions to read; none for all."""
        return expand_selection(self.source(workspace).partitions, self.partitions)

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the rows, with the declared columns only where some are declared."""
        frame = self._rows(self.source(workspace), workspace)
        if self.columns is None:
            return frame
        return conform(frame, [Field(name=name, type=found) for name, found in self.columns.items()])

    def _rows(self, source: Source, workspace: Workspace) -> DataFrame:
        if workspace.is_outline:
            return frame_of_records(workspace.spark, source.fields(workspace), [])
        return source.read(workspace, self.selected(workspace))

    def plain_sql(self, workspace: Workspace) -> str:
        """Return all of the relation as a query.

        Raises:
            SpecError: Only a part of it is read, or it isn't a table that a query can name.
        """
        table = self.source(workspace).table_sql(workspace)
        if table is None or self.partitions or self.columns:
            return super().plain_sql(workspace)
        return all_rows(table)
