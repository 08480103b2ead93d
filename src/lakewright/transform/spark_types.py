"""Columns of frames by what their types are or have inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lakewright.schema.shape import has_part, mapped
from lakewright.schema.spark import column_types
from lakewright.schema.sql import name_sql
from lakewright.schema.types import TEXT, VOID, Scalar, Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

__all__ = ["binary_column", "interval_column", "struct_fields", "without_typeless"]


def struct_fields(schema: StructType) -> dict[str, tuple[str, ...]]:
    """Return the paths of the fields of structs, by the names of their columns in lower case.

    Example:
        >>> from pyspark.sql.types import StringType, StructType
        >>> place = StructType().add("x", StringType())
        >>> address = StructType().add("city", StringType()).add("place", place)
        >>> struct_fields(StructType().add("id", StringType()).add("Address", address))
        {'address': ('Address.city', 'Address.place.x')}
    """
    from pyspark.sql.types import StructType

    def paths(at: str, kind: DataType) -> Iterator[str]:
        if not isinstance(kind, StructType):
            yield at
            return
        for field in kind.fields:
            yield from paths(f"{at}.{field.name}", field.dataType)

    structs = (field for field in schema.fields if isinstance(field.dataType, StructType))
    return {field.name.lower(): tuple(paths(field.name, field.dataType)) for field in structs}


def binary_column(frame: DataFrame) -> str | None:
    """Return the first column with binary values, also inside of others; None if there is none.

    CSV has these in a form that no reader takes for bytes again.
    """
    return _column_with(frame, lambda name: name == "binary")


def interval_column(frame: DataFrame) -> str | None:
    """Return the first column with intervals, also inside of others; None if there is none.

    Delta tables cannot hold them.
    """
    return _column_with(frame, lambda name: name.startswith("interval"))


def without_typeless(frame: DataFrame) -> DataFrame:
    """Return a frame in which columns without any value, also inside of others, are texts."""
    from pyspark.sql import functions

    types = {name: mapped(kind, _typed) for name, kind in column_types(frame.schema).items()}
    typed = {
        name: functions.col(name_sql(name)).cast(types[name].ddl)
        for name, kind in column_types(frame.schema).items()
        if types[name] != kind
    }
    return frame.withColumns(typed) if typed else frame


def _typed(kind: Type) -> Type:
    return TEXT if kind == VOID else kind


def _column_with(frame: DataFrame, is_wanted: Callable[[str], bool]) -> str | None:
    """Return the first column that has a scalar type of a wanted name."""

    def is_part(kind: Type) -> bool:
        return isinstance(kind, Scalar) and is_wanted(kind.name)

    types = column_types(frame.schema).items()
    return next((name for name, kind in types if has_part(kind, is_part)), None)
