"""Types with parts that a slice cannot tell: columns, fields and elements that are only null or empty.

Spark's type `void` stands for such a part. The rules are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["is_typeless", "settled", "texts_by_field", "without_types"]


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


def without_types(inferred: DataType, typed: DataType | None) -> DataType:
    """Return an inferred type in which the texts that `typed` does not have are void.

    Args:
        inferred: The type that Spark infers from JSON, in which what is only null or empty is text; or the
            table's, where its shape is another one.
        typed: The type that Spark infers without columns that are only null or empty; None if it has none.
    """
    from pyspark.sql.types import ArrayType, NullType, StringType, StructField, StructType

    if (
        typed is not None
        and isinstance(inferred, ArrayType | StructType)
        and type(typed) is not type(inferred)
    ):
        return inferred  # rows with values have another shape, others may have this one
    if isinstance(inferred, ArrayType):
        element = typed.elementType if isinstance(typed, ArrayType) else None
        return ArrayType(without_types(inferred.elementType, element))
    if isinstance(inferred, StructType):
        known = {f.name: f.dataType for f in typed.fields} if isinstance(typed, StructType) else {}
        fields = [(f.name, without_types(f.dataType, known.get(f.name))) for f in inferred.fields]
        return StructType([StructField(name, kind) for name, kind in fields])
    return NullType() if typed is None and isinstance(inferred, StringType) else inferred


def texts_by_field(columns: StructType) -> dict[str, int] | None:
    """Return the names of all fields that are texts, and in how many lists the texts are.

    None if another field has the same name, so that a value in a file does not tell which of both it is.
    """
    found: dict[str, int] = {}
    names: set[str] = set()
    for name, depth in _leaves(columns):
        if name in names:
            return None
        names.add(name)
        if depth is not None:
            found[name] = depth
    return found


def _leaves(columns: StructType) -> Iterator[tuple[str, int | None]]:
    """Yield the name of each field at any depth, and the number of lists around its text, if it is one."""
    from pyspark.sql.types import ArrayType, StringType, StructType

    for field in columns.fields:
        kind, depth = field.dataType, 0
        while isinstance(kind, ArrayType):
            kind, depth = kind.elementType, depth + 1
        yield field.name, depth if isinstance(kind, StringType) else None
        if isinstance(kind, StructType):
            yield from _leaves(kind)


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
