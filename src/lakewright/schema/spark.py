"""Spark's types as those that a project declares. They are read from their attributes, without pyspark."""

from __future__ import annotations

from typing import Any

from lakewright.schema.types import Array, Chars, Decimal, MapOf, Scalar, Struct, StructField, Type


def columns_of(schema: Any) -> tuple[StructField, ...]:
    """Return the columns of a `StructType` of Spark, in order."""
    return tuple(StructField(field.name, type_of(field.dataType)) for field in schema.fields)


def column_types(schema: Any) -> dict[str, Type]:
    """Return the types of the columns of a `StructType` of Spark, by their names."""
    return {field.name: field.type for field in columns_of(schema)}


def type_of(kind: Any) -> Type:
    """Return a `DataType` of Spark as a type of a project; fields of structs are nullable.

    It is made of the type's parts: Spark's text of a type has the names of fields without quotes. A type that
    a user has defined is the type that its values are stored in. A text with a collation keeps that in its
    name.

    Example:
        >>> from pyspark.sql.types import IntegerType, StructField, StructType
        >>> type_of(StructType([StructField("unit price", IntegerType(), False)])).ddl
        'struct<`unit price`: int>'
    """
    if hasattr(kind, "sqlType"):
        return type_of(kind.sqlType())
    name = kind.typeName()
    if name == "decimal":
        return Decimal(kind.precision, kind.scale)
    if name in {"char", "varchar"}:
        return Chars(kind.length, is_fixed=name == "char")
    return _nested(name, kind) or Scalar(kind.simpleString())


def _nested(name: str, kind: Any) -> Type | None:
    """Return a list, map or struct; None for other types."""
    if name == "array":
        return Array(type_of(kind.elementType))
    if name == "map":
        return MapOf(type_of(kind.keyType), type_of(kind.valueType))
    if name == "struct":
        return Struct(columns_of(kind))
    return None
