"""The base of relations with a query, in the SQL of the place where it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.lake.columns import conform
from lakewright.lake.partition import Partition, partition_condition
from lakewright.relations.relation import Relation
from lakewright.spec.models.text_marks import FileText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["QueryRelation"]


class QueryRelation(Relation):
    """A relation with a query as text, or in a file."""

    sql: str | None = Declared(default=None, description="The query.")
    file: Annotated[str | None, FileText.OF_PROJECT] = Declared(
        default=None, description="File with the query, relative to the project's folder."
    )

    @model_validator(mode="after")
    def _check_query(self) -> Self:
        if (self.sql is None) == (self.file is None):
            raise ValueError(f"a {self.kind} relation needs either `sql` or `file`")
        return self

    def query(self, workspace: Workspace) -> str:
        """Return the text of the query, without a semicolon at its end."""
        text = self.sql if self.sql is not None else workspace.read_file(self.file or "")
        return text.strip().rstrip(";")

    def selected(
        self, workspace: Workspace, frame: DataFrame, partitions: Sequence[Partition] = ()
    ) -> DataFrame:
        """Return the rows of some partitions, with the declared columns if there are any."""
        fields = self.declared(workspace)
        frame = frame if fields is None else conform(frame, fields)
        return frame.where(partition_condition(self.partitions, partitions)) if partitions else frame
