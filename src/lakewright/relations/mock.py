"""The `mock` relation: replaces a relation by the records of a test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.errors import SpecError, TargetError
from lakewright.lake.columns import frame_of_records
from lakewright.lake.partition import Partition, partition_condition
from lakewright.plan.observation import Answer, Observation
from lakewright.relations.empty import EmptyRelation
from lakewright.spec.models.base import Reference, Rows
from lakewright.spec.models.fields import Field
from lakewright.spec.models.records import without_others

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["MockRelation"]


class MockRelation(EmptyRelation):
    """Replaces another relation in a test: returns its own records, and discards what is written.

    Without `relation`, it mocks the relation with its own name that the test overrides.
    """

    relation: str | None = Declared(default=None, description="Relation whose columns it has.")
    records: Rows = Declared(
        default_factory=list, description="Rows: lists of values, or maps; partition columns come last."
    )

    def references(self) -> Iterable[Reference]:
        """Return the mocked relation."""
        named = [] if self.relation is None else [Reference("relation", self.relation, ("relation",))]
        return [*super().references(), *named]

    def declared(self, workspace: Workspace) -> tuple[Field, ...] | None:
        """Return the columns of the mocked relation, unless it declares its own."""
        own = super().declared(workspace)
        if own is not None:
            return own
        mocked = workspace.original_relation(self.relation or self.name)
        if mocked is self or mocked.name == self.name == "":
            raise SpecError.of(f"{self.label} mocks itself", remedy="Name the relation to mock.")
        try:
            return mocked.fields(workspace)
        except TargetError as error:
            raise SpecError.of(
                f"{self.label}: the columns of what it mocks are only known from data: {error.message}",
                remedy="Give the mock a `schema` with the columns that the test uses.",
            ) from error

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return that it exists, and whether it has records."""
        del workspace, partition
        return Observation(f"mock:{self.name}", exists=Answer.YES, filled=Answer.of(bool(self.records)))

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the records."""
        fields = self.declared(workspace) or ()
        records, dropped = without_others(fields, self.records)
        for text in dropped:
            workspace.note(f"{self.label}: {text}")
        frame = frame_of_records(workspace.spark, fields, records)
        return frame.where(partition_condition(self.partitions, partitions)) if partitions else frame

    def version(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> str | None:
        """Return the records themselves."""
        del workspace, partitions
        return self.model_dump_json()
