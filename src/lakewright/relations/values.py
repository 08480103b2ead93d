"""The `values` relation: literal rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field as Declared

from lakewright.lake.columns import frame_of_records
from lakewright.lake.partition import Partition, partition_condition
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.resource import Resource
from lakewright.relations.relation import Relation
from lakewright.spec.models.base import Rows
from lakewright.spec.models.fields import Field, TypeText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ValuesRelation"]


class ValuesRelation(Relation):
    """Returns its records with the columns of `columns` or of the schema.

    A value that does not fit its type is an error: 1.5 is no `int`, and a `date` has no time.
    """

    keeps_past: ClassVar[bool] = True

    records: Rows = Declared(
        default_factory=list, description="Rows: lists of values, or maps of column to value."
    )
    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")

    def declared(self, workspace: Workspace) -> tuple[Field, ...] | None:
        """Return the columns, however they are declared."""
        if self.columns is None:
            return super().declared(workspace)
        return tuple(Field(name=name, type=found) for name, found in self.columns.items())

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return nothing, because the rows are part of the project."""
        del workspace, partition
        return frozenset()

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return that it exists, and whether it has rows."""
        del workspace, partition
        return Observation(f"values:{self.name}", exists=Answer.YES, filled=Answer.of(bool(self.records)))

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the records."""
        frame = frame_of_records(workspace.spark, self.declared(workspace) or (), self.records)
        return frame.where(partition_condition(self.partitions, partitions)) if partitions else frame

    def version(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> str | None:
        """Return the rows themselves."""
        del workspace, partitions
        return self.model_dump_json()
