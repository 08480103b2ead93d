"""Spark's types as those that a project declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.spec.models.types import Array, Chars, Decimal, MapOf, Scalar, Struct, StructField, Type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = ["type_of"]


def type_of(kind: DataType) -> Type:
    """Return a type of Spark as one of a project; fields of structs are nullable.

    It is made of the type's parts: Spark's text of a type has the names of fields without quotes.

    Example:
        >>> from pyspark.sql.types import IntegerType, StructField, StructType
        >>> type_of(StructType([StructField("unit price", IntegerType(), False)])).ddl
        'struct<`unit price`: int>'
    """
    from pyspark.sql import types

    if isinstance(kind, types.UserDefinedType):
        return type_of(kind.sqlType())
    if isinstance(kind, types.DecimalType):
        return Decimal(kind.precision, kind.scale)
    if isinstance(kind, types.VarcharType | types.CharType):
        return Chars(kind.length, is_fixed=isinstance(kind, types.CharType))
    return _nested(kind) or Scalar(kind.simpleString())


def _nested(kind: DataType) -> Type | None:
    """Return a list, map or struct; None for other types."""
    from pyspark.sql import types

    if isinstance(kind, types.ArrayType):
        return Array(type_of(kind.elementType))
    if isinstance(kind, types.MapType):
        return MapOf(type_of(kind.keyType), type_of(kind.valueType))
    if isinstance(kind, types.StructType):
        return Struct(tuple(StructField(field.name, type_of(field.dataType)) for field in kind.fields))
    return None
