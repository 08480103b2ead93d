"""The `explode` mapping: one row per element of an array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.mappings.flatten import flattened
from lakewright.mappings.mapping import InputMapping, NamedColumn, check_distinct
from lakewright.mappings.naming import Naming, NamingText
from lakewright.schema.sql import name_sql
from lakewright.spec.models.base import Model, TextMap, Texts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ColumnChoice", "ExplodeMapping"]

_ELEMENT = "__element"


class ColumnChoice(Model):
    """Selects columns by path; `*` stands for all."""

    keep: Texts = Declared(default=(), description="Columns to keep even if `drop` includes them.")
    drop: Texts = Declared(default=(), description="Columns to remove.")
    rename: TextMap = Declared(
        default_factory=dict, description="New column names, each with the path of the column to rename."
    )

    def named(self, source: str) -> Iterator[NamedColumn]:
        """Yield the columns of a mapping that are named here, in a declaration's `outerColumns`."""
        for key in ("keep", "drop"):
            for index, name in enumerate(self.listed(key)):
                yield NamedColumn(source, name, ("outerColumns", key, index))
        for name, path in self.rename.items():
            yield NamedColumn(source, path, ("outerColumns", "rename", name))

    def listed(self, *keys: str) -> list[str]:
        """Return the columns that `keep` or `drop` name."""
        return [name for key in keys for name in getattr(self, key) if name != "*"]

    def columns(self, names: Sequence[str], at: tuple[str, ...] = ()) -> list[Column]:
        """Return the selected columns among these columns, or among the fields of the struct at a path."""
        from pyspark.sql import functions

        dropped = {name.lower() for name in self.drop}
        kept = {name.lower() for name in self.keep}
        renamed = {path.lower() for path in self.rename.values()}
        chosen = [
            name
            for name in names
            if name.lower() in kept or not ("*" in dropped or name.lower() in dropped | renamed)
        ]
        return [
            *(functions.col(name_sql(*at, name)).alias(name) for name in chosen),
            *(
                functions.col(name_sql(*at, *path.split("."))).alias(name)
                for name, path in self.rename.items()
            ),
        ]


class ExplodeMapping(InputMapping):
    """Returns a row per array element with the element's fields, next to columns of the original row.

    Rows without elements are removed.
    """

    array: str = Declared(description="Path of the array.")
    outer_columns: ColumnChoice = Declared(
        default_factory=ColumnChoice, description="Columns of the original row; default: all but the array's."
    )
    inner_columns: ColumnChoice = Declared(
        default_factory=ColumnChoice, description="Fields of the elements; default: all."
    )
    flatten: bool = Declared(default=False, description="Whether struct fields become columns.")
    naming: NamingText = Declared(
        default=Naming.SNAKE_CASE, description="Style in which names of flattened columns are joined."
    )

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the array, and columns of the original row."""
        return (
            NamedColumn(self.input, self.array, ("array",)),
            *self.outer_columns.named(self.input),
        )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the columns of the row, followed by those of the element.

        Raises:
            SpecError: Two of them have the same name.
        """
        from pyspark.sql import functions
        from pyspark.sql.types import StructType

        chosen = self.outer_columns.listed("keep", "drop")
        self.note_absent(workspace, chosen, frame.columns)
        path = self.array.split(".")
        exploded = frame.withColumn(_ELEMENT, functions.explode(functions.col(name_sql(*path))))
        outer = [name for name in frame.columns if name.lower() != path[0].lower() or len(path) > 1]
        element = exploded.schema[_ELEMENT].dataType
        fields = element.fieldNames() if isinstance(element, StructType) else []
        chosen = self.inner_columns.listed("keep", "drop")
        self.note_absent(workspace, chosen, fields, lacks=f"the elements of {self.array} have no field")
        if isinstance(element, StructType):
            inner = self.inner_columns.columns(fields, (_ELEMENT,))
        else:
            inner = [functions.col(_ELEMENT).alias(path[-1])]
        found = exploded.select(*self.outer_columns.columns(outer), *inner)
        remedy = "Rename or drop one of them with `outerColumns` or `innerColumns`."
        check_distinct(found.columns, "when exploded: one of the row, one of the element", remedy)
        return flattened(found, self.naming) if self.flatten else found
