"""The `flatten` mapping: turns nested fields into columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping, check_distinct
from lakewright.mappings.naming import Naming, NamingText
from lakewright.schema.sql import name_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

    from lakewright.workspace.workspace import Workspace

__all__ = ["FlattenMapping", "flattened"]


class FlattenMapping(InputMapping):
    """Returns a column for each nested struct field at any depth, named after its path.

    Names are only joined; `conform` with `flatten` and `naming` changes them, too.
    """

    naming: NamingText = Declared(
        default=Naming.SNAKE_CASE, description="snakeCase joins names by `_`, camelCase by case."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the flattened columns in order."""
        return flattened(frame, self.naming)


def flattened(frame: DataFrame, naming: Naming) -> DataFrame:
    """Return a frame without structs; arrays and maps are kept.

    Raises:
        SpecError: Two columns would have the same name.
    """
    from pyspark.sql import functions

    paths = [path for field in frame.schema.fields for path in _paths(field, ())]
    names = [naming.joined(path) for path in paths]
    check_distinct(names, "when flattened", "Rename one of them first.")
    return frame.select(
        *(functions.col(name_sql(*path)).alias(name) for path, name in zip(paths, names, strict=True))
    )


def _paths(field: StructField, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    from pyspark.sql.types import StructType

    path = (*before, field.name)
    if isinstance(field.dataType, StructType):
        for inner in field.dataType.fields:
            yield from _paths(inner, path)
    else:
        yield path
