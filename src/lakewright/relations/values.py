"""The `values` relation: literal rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field as Declared

from lakewright.errors import SpecError, TargetError
from lakewright.lake.columns import frame_of_records
from lakewright.lake.partition import Partition
from lakewright.plan.observation import Answer
from lakewright.relations.relation import OutputMode, Relation, StoredRelation, WriteSummary
from lakewright.spark.engine import counted
from lakewright.spec.models.base import RefersTo, Rows
from lakewright.spec.models.fields import Field, TypeText
from lakewright.spec.models.records import without_others

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


class LiteralRelation(Relation):
    """A relation whose rows are part of the project."""

    keeps_past: ClassVar[bool] = True

    records: Rows = Declared(
        default_factory=list, description="Rows: lists of values, or maps; partition columns come last."
    )

    @property
    def filled(self) -> Answer:
        """Whether it has records."""
        return Answer.of(bool(self.records))

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the records."""
        frame = frame_of_records(workspace.spark, self.declared(workspace) or (), self.records)
        return self.within(frame, partitions)


class ValuesRelation(LiteralRelation):
    """Returns its records with the columns of `columns` or of the schema.

    A value that does not fit its type is an error.
    """

    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")

    def declared(self, workspace: Workspace) -> tuple[Field, ...] | None:
        """Return the columns, however they are declared."""
        if self.columns is None:
            return super().declared(workspace)
        return tuple(Field(name=name, type=found) for name, found in self.columns.items())


class EmptyRelation(StoredRelation):
    """Has the declared columns and no rows; written rows are computed and discarded."""

    keeps_past: ClassVar[bool] = True

    modes: ClassVar[frozenset[OutputMode]] = frozenset(OutputMode)

    @property
    def filled(self) -> Answer:
        """Whether it has rows."""
        return Answer.NO

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return a frame with the declared columns and no rows."""
        return frame_of_records(workspace.spark, self.declared(workspace) or (), [])

    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Do nothing, because it is always empty."""

    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Compute, count and discard the rows."""
        rows, count = counted(frame)
        rows.write.format("noop").mode("overwrite").save()
        return WriteSummary(count())


class MockRelation(LiteralRelation, EmptyRelation):
    """Replaces another relation in a test: returns its own records, and discards what is written.

    Without `relation`, it mocks the relation with its own name that the test overrides.
    """

    relation: Annotated[str | None, RefersTo.RELATION] = Declared(
        default=None, description="Relation whose columns it has."
    )

    def declared(self, workspace: Workspace) -> tuple[Field, ...] | None:
        """Return the columns of the mocked relation, unless it declares its own."""
        own = super().declared(workspace)
        if own is not None:
            return own
        mocked = workspace.original_relation(self.relation or self.name)
        if mocked is self or mocked.name == self.name == "":
            raise SpecError.of("it mocks itself", remedy="Name the relation to mock.", subject=self.label)
        try:
            return mocked.fields(workspace)
        except TargetError as error:
            raise SpecError.of(
                f"the columns of what it mocks are only known from data: {error.message}",
                remedy="Give the mock a `schema` with the columns that the test uses.",
                subject=self.label,
            ) from error

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the records."""
        fields = self.declared(workspace) or ()
        records, dropped = without_others(fields, self.records)
        for text in dropped:
            workspace.note(f"{self.label}: {text}")
        frame = frame_of_records(workspace.spark, fields, records)
        return self.within(frame, partitions)
