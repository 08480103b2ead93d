"""The `project` mapping: selects, renames and casts columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, ModelWrapValidatorHandler, model_validator
from pydantic import Field as Declared

from lakewright.lake.columns import cast_by_name, column
from lakewright.mappings.mapping import InputMapping, NamedColumn
from lakewright.spec.models.base import ALSO, Listed, Model
from lakewright.spec.models.fields import TypeText
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ProjectMapping", "ProjectedColumn"]


class ProjectedColumn(Model):
    """One column of the result; a plain text is the name of a column to keep unchanged."""

    model_config = ConfigDict(json_schema_extra={ALSO: [{"type": "string"}]})

    column: str = Declared(description="Name in the input.")
    name: str | None = Declared(default=None, description="Name in the result; default: unchanged.")
    type: TypeText | None = Declared(default=None, description="Type in the result; default: unchanged.")
    description: str | None = Declared(default=None, description="Description; becomes the column's comment.")

    @model_validator(mode="wrap")
    @classmethod
    def _read_text(
        cls, declared: Any, handler: ModelWrapValidatorHandler[ProjectedColumn]
    ) -> ProjectedColumn:
        return handler({"column": declared} if isinstance(declared, str) else declared)


class ProjectMapping(InputMapping):
    """Returns only the listed columns, in their order."""

    columns: Listed[ProjectedColumn] = Declared(description="Columns of the result.")

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns of the input that are listed."""
        return self.named("columns", [each.column for each in self.columns])

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the listed columns."""
        return tuple(each.name or each.column for each in self.columns)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the listed columns, renamed and cast."""
        columns = []
        for wanted in self.columns:
            source = column(wanted.column)
            made = source if wanted.type is None else cast_by_name(frame, wanted.column, wanted.type)
            comment = {} if wanted.description is None else {"metadata": {"comment": wanted.description}}
            columns.append(made.alias(wanted.name or wanted.column, **comment))
        return frame.select(*columns)
