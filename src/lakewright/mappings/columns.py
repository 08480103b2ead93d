"""Mappings that choose, compute and cast the columns of their input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import ConfigDict, ModelWrapValidatorHandler, model_validator
from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.lake.columns import cast_by_name, column
from lakewright.mappings.mapping import ColumnName, InputMapping, NamedColumn
from lakewright.spark.functions import functions
from lakewright.spec.models.base import ALSO, Listed, Model
from lakewright.spec.models.fields import TypeText
from lakewright.spec.models.text_marks import SqlText
from lakewright.transform.steps import find_name
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


class SelectMapping(InputMapping):
    """Returns one column per entry of `columns`, in their order."""

    columns: Annotated[dict[str, str], SqlText.EXPRESSION] = Declared(
        description="SQL expression of each column of the result."
    )

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the names of the declared columns."""
        return tuple(self.columns)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return only the declared columns."""
        return frame.select(*(functions.expr(text).alias(name) for name, text in self.columns.items()))


class ProjectedColumn(Model):
    """One column of the result; a plain text is the name of a column to keep unchanged."""

    model_config = ConfigDict(json_schema_extra={ALSO: [{"type": "string"}]})

    column: str = Declared(description="Name in the input.")
    name: str | None = Declared(default=None, description="Name in the result; default: unchanged.")
    type: TypeText | None = Declared(default=None, description="Type in the result; default: unchanged.")
    description: str | None = Declared(default=None, description="Comment of the column.")

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


class DropMapping(InputMapping):
    """Removes columns; the run warns of those that the input does not have."""

    columns: Listed[ColumnName] = Declared(description="Columns to remove.")

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns to remove."""
        return self.named("columns", self.columns)

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the input's columns without those that are removed."""
        found = columns_of(self.input)
        dropped = {name.lower() for name in self.columns}
        return None if found is None else tuple(name for name in found if name.lower() not in dropped)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the remaining columns in their order."""
        self.note_absent(workspace, self.columns, frame.columns, use=" to drop")
        return frame.drop(*self.columns)


class CastMapping(InputMapping):
    """Changes the types of columns; names, order and other columns are kept.

    The run warns of columns that the input does not have.
    """

    keeps_columns: ClassVar[bool] = True

    columns: dict[str, TypeText] = Declared(description="New type of each column to change.")

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns to change."""
        return self.named("columns", self.columns)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return all columns, with new types for those in `columns`."""
        self.note_absent(workspace, self.columns, frame.columns, use=" to cast")
        types = {find_name(frame.columns, name): found for name, found in self.columns.items()}
        return frame.select(
            *(
                cast_by_name(frame, name, types[name]).alias(name) if name in types else column(name)
                for name in frame.columns
            )
        )


class ExtendMapping(InputMapping):
    """Adds a column for each entry of `columns`, or replaces the column of that name.

    Expressions may use each other's results; they are evaluated in dependency order.
    """

    columns: Annotated[dict[str, str], SqlText.EXPRESSION] = Declared(
        default_factory=dict, description="SQL expression for each new column."
    )

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the input's columns and the new ones."""
        found = columns_of(self.input)
        return None if found is None else tuple(dict.fromkeys((*found, *self.columns)))

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the input's columns, with replaced columns in their place and new ones at the end."""
        for name in self.order():
            frame = frame.withColumn(name, functions.expr(self.columns[name]))
        return frame

    def order(self) -> tuple[str, ...]:
        """Return the new columns, each after those that its expression uses.

        Raises:
            SpecError: Expressions depend on each other in a cycle.
        """
        uses = {name: self._uses(name) for name in self.columns}
        try:
            return tuple(TopologicalSorter(uses).static_order())
        except CycleError as cycle:
            chain = " -> ".join(cycle.args[1])
            raise SpecError.of(
                f"columns of mapping {self.name!r} depend on each other: {chain}",
                remedy="Compute one of them in an earlier mapping.",
            ) from cycle

    def _uses(self, name: str) -> list[str]:
        words = {word.lower() for word in re.findall(r"\w+", self.columns[name])}
        return [other for other in self.columns if other != name and other.lower() in words]
