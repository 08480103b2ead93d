"""Types with parts that a slice cannot tell: columns, fields and elements that are only null or empty.

Spark's type `void` stands for such a part. The rules are Lakewright's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["is_typeless", "settled"]


def is_typeless(kind: DataType) -> bool:
    """Return whether a type is void, or has a part that is."""
    from pyspark.sql.types import ArrayType, MapType, NullType, StructType

    if isinstance(kind, ArrayType):
        return is_typeless(kind.elementType)
    if isinstance(kind, MapType):
        return is_typeless(kind.valueType)
    if isinstance(kind, StructType):
        return any(is_typeless(field.dataType) for field in kind.fields)
    return isinstance(kind, NullType)


def settled(kind: DataType, known: DataType | None, *, is_kept: bool) -> DataType | None:
    """Return a type in which void parts have the types that a table knows.

    Args:
        kind: The type.
        known: The type of the same part in the table; None if the table does not have it.
        is_kept: Whether void parts that the table does not have become text; otherwise they are left out.

    Returns:
        The type; None if all of it is left out.
    """
    from pyspark.sql.types import ArrayType, MapType, NullType, StringType, StructType

    if isinstance(kind, NullType):
        return known or (StringType() if is_kept else None)
    if isinstance(kind, ArrayType):
        inner = known.elementType if isinstance(known, ArrayType) else None
        element = settled(kind.elementType, inner, is_kept=is_kept)
        return None if element is None else ArrayType(element)
    if isinstance(kind, MapType):
        inner = known.valueType if isinstance(known, MapType) else None
        value = settled(kind.valueType, inner, is_kept=is_kept)
        return None if value is None else MapType(kind.keyType, value)
    if isinstance(kind, StructType):
        return _settled_struct(kind, known, is_kept=is_kept)
    return kind


def _settled_struct(kind: StructType, known: DataType | None, *, is_kept: bool) -> StructType | None:
    from pyspark.sql.types import StructField, StructType

    from lakewright.transform.column_names import normal_name

    inside = {f.name.lower(): f.dataType for f in known.fields} if isinstance(known, StructType) else {}
    fields = []
    for field in kind.fields:
        own = settled(field.dataType, inside.get(normal_name(field.name).lower()), is_kept=is_kept)
        if own is not None:
            fields.append(StructField(field.name, own))
    return StructType(fields) if fields else None
