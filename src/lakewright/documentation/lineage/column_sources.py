"""Which columns of its inputs each column of a mapping is made of.

The mapping is put together over empty inputs whose columns say whose they are; nothing is computed.
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
        outline: Frames with columns and no rows.
        mapping: Its name.
    """
    traced = _Traced(outline, mapping)
    text = traced.frame(mapping)._jdf.queryExecution().analyzed().toJSON()
    return {
        name: tuple(Source(Ref("mapping", origin), column) for origin, column in origins)
        for name, origins in sources_of(json.loads(text))
    }


class _Traced(Workspace):
    """A workspace in which all mappings but one are leaves that carry their names."""

    def __init__(self, outline: Workspace, subject: str) -> None:
        super().__init__(outline.project, outline.scope, outline.lake, importer=outline, is_outline=True)
        self._outline = outline
        self._subject = subject

    def frame(self, mapping: str) -> DataFrame:
        """Return the one that is traced as it is, and any other as a leaf."""
        if mapping == self._subject:
            return super().frame(mapping)
        return _leaf(self._outline.frame(mapping), mapping)

    def fields(self, mapping: str) -> tuple[Field, ...]:
        """Return the columns of a mapping's frame."""
        return self._outline.fields(mapping)


def _leaf(frame: DataFrame, origin: str) -> DataFrame:
    from pyspark.sql.types import StructField, StructType

    fields = [
        StructField(f"{origin}{MARK}{each.name}", each.dataType, each.nullable) for each in frame.schema
    ]
    return frame.sparkSession.createDataFrame([], StructType(fields)).toDF(*frame.columns)
