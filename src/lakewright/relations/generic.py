"""The `generic` relation: any Spark data source, by its format and options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field as Declared

from lakewright.errors import TargetError
from lakewright.lake.columns import conform, fields_of, reader_schema
from lakewright.lake.frames import empty_frame
from lakewright.lake.partition import Partition
from lakewright.plan.observation import Observation
from lakewright.plan.resource import Resource
from lakewright.relations.relation import OutputMode, StoredRelation, WriteSummary, left_out
from lakewright.spark.engine import counted
from lakewright.spec.models.base import TextMap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


_SAVE_MODES = {OutputMode.OVERWRITE: "overwrite", OutputMode.APPEND: "append"}


class GenericRelation(StoredRelation):
    """Reads and writes through Spark's own reader and writer.

    Its content is not observed, and nothing is created or removed.
    """

    modes: ClassVar[frozenset[OutputMode]] = frozenset(_SAVE_MODES)

    format: str = Declared(description="Name of the data source, for example jdbc.")
    options: TextMap = Declared(default_factory=dict, description="Options of the data source.")

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the table of another database, or the path, that the options name."""
        options = {name.lower(): value for name, value in self._options(workspace).items()}
        if "path" in options:
            return frozenset({Resource.file(options["path"])})
        if "url" in options:
            return frozenset({Resource.jdbc(f"{options['url']}/{options.get('dbtable', '')}")})
        return frozenset({Resource.jdbc(f"{self.format}/{self.name}")} if self.name else ())

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return that its state is unknown."""
        return Observation(f"generic:{self.format}:{self.name}")

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the data source."""
        fields = self.declared(workspace)
        reader = workspace.spark.read.format(self.format).options(**self._options(workspace))
        is_described = fields is not None and self.format.lower() != "jdbc"
        frame = (reader.schema(reader_schema(fields or ())) if is_described else reader).load()
        return self.selected(workspace, frame, partitions)

    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Overwrite the existing rows with no rows."""
        if partition:
            raise self._undivided()
        columns = self.read(workspace).schema
        empty = empty_frame(workspace.spark, ((each.name, each.dataType) for each in columns))
        self.write(workspace, empty, partition={}, mode=OutputMode.OVERWRITE)

    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Pass the rows to the data source."""
        if partition:
            raise self._undivided()
        fields = self.declared(workspace)
        outgoing = frame if fields is None else conform(frame, fields, is_strict=True)
        rows, count = counted(outgoing)
        writer = rows.write.format(self.format).options(**self._options(workspace))
        writer.mode(_SAVE_MODES[mode]).save()
        return WriteSummary(count(), left_out=left_out(frame, fields_of(outgoing.schema)))

    def _options(self, workspace: Workspace) -> dict[str, str]:
        return {
            name: workspace.lake.redirect(value) if name.lower() == "path" else value
            for name, value in self.options.items()
        }

    def _undivided(self) -> TargetError:
        return TargetError(
            f"{self.label}: a single partition cannot be written", remedy="Remove the `partition`."
        )
