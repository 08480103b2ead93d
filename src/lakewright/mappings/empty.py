"""The `empty` mapping: no rows, with declared columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.lake.columns import frame_of_records
from lakewright.mappings.mapping import Mapping
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf
from lakewright.spec.models.fields import Field, TypeText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["EmptyMapping"]


class EmptyMapping(Mapping):
    """Returns no rows, with the declared columns."""

    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Columns, instead of `columns`."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.columns is None) == (self.declared_schema is None):
            raise ValueError("an empty mapping needs either `columns` or `schema`")
        return self

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return a frame without rows."""
        if self.columns is not None:
            fields = tuple(Field(name=name, type=found) for name, found in self.columns.items())
        else:
            fields = self.declared_schema.fields(workspace) if self.declared_schema else ()
        return frame_of_records(workspace.spark, fields, [])
