"""Column lineage: the columns of a mapping's inputs from which each of its columns is computed.

The mapping is built over empty inputs whose columns are named after their mapping, and lineage is read from
Spark's analysed plan (docs/decisions/013-column-lineage.md). No Spark job runs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lakewright.documentation.document import Ref, Source
from lakewright.documentation.lineage.spark_plan import MARK, sources_of
from lakewright.spec.models.fields import Field
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["column_sources"]


def column_sources(outline: Workspace, mapping: str) -> dict[str, tuple[Source, ...]]:
    """Return the direct sources of each column of a mapping, by the column's name.

    Args:
        outline: A workspace whose frames have columns and no rows.
        mapping: Name of the mapping.
    """
    traced = _TracedWorkspace(outline, mapping)
    text = traced.frame(mapping)._jdf.queryExecution().analyzed().toJSON()
    return {
        name: tuple(Source(Ref("mapping", origin), column) for origin, column in origins)
        for name, origins in sources_of(json.loads(text))
    }


class _TracedWorkspace(Workspace):
    """A workspace in which every mapping but one is a leaf with marked column names."""

    def __init__(self, outline: Workspace, subject: str) -> None:
        super().__init__(outline.project, outline.scope, outline.lake, importer=outline, is_outline=True)
        self._outline = outline
        self._subject = subject

    def frame(self, mapping: str) -> DataFrame:
        """Return the frame of the traced mapping unchanged, and any other as a leaf."""
        if mapping == self._subject:
            return super().frame(mapping)
        return _leaf(self._outline.frame(mapping), mapping)

    def fields(self, mapping: str) -> tuple[Field, ...]:
        """Return the columns of a mapping's frame."""
        return self._outline.fields(mapping)


def _leaf(frame: DataFrame, origin: str) -> DataFrame:
    """Return an empty frame with the columns of `frame`, under names that carry their origin in the plan."""
    from pyspark.sql.types import StructField, StructType

    fields = [
        StructField(f"{origin}{MARK}{each.name}", each.dataType, each.nullable) for each in frame.schema
    ]
    return frame.sparkSession.createDataFrame([], StructType(fields)).toDF(*frame.columns)
