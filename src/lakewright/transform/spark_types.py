"""Columns of frames by what their types are or have inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import Array, MapOf, Scalar, Struct, Type

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

    typed = {
        field.name: functions.col(name_sql(field.name)).cast(_typed(field.dataType))
        for field in frame.schema.fields
        if "void" in field.dataType.simpleString() and _typed(field.dataType) != field.dataType
    }
    return frame.withColumns(typed) if typed else frame


def _typed(kind: DataType) -> DataType:
    """Return a type with texts in place of values that have none."""
    from pyspark.sql import types

    if isinstance(kind, types.NullType):
        return types.StringType()
    if isinstance(kind, types.ArrayType):
        return types.ArrayType(_typed(kind.elementType), kind.containsNull)
    if isinstance(kind, types.MapType):
        return types.MapType(_typed(kind.keyType), _typed(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, types.StructType):
        fields = (types.StructField(f.name, _typed(f.dataType), f.nullable) for f in kind.fields)
        return types.StructType(list(fields))
    return kind


def _column_with(frame: DataFrame, is_wanted: Callable[[str], bool]) -> str | None:
    """Return the first column that has a scalar type of a wanted name."""
    found = (each.name for each in frame.schema.fields if _has(type_of(each.dataType), is_wanted))
    return next(found, None)


def _has(kind: Type, is_wanted: Callable[[str], bool]) -> bool:
    if isinstance(kind, Struct):
        return any(_has(field.type, is_wanted) for field in kind.fields)
    if isinstance(kind, MapOf):
        return _has(kind.key, is_wanted) or _has(kind.value, is_wanted)
    if isinstance(kind, Array):
        return _has(kind.element, is_wanted)
    return isinstance(kind, Scalar) and is_wanted(kind.name)
