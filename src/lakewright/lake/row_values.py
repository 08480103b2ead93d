"""Values of rows as Spark writes them as JSON: decimals with all their digits, times with microseconds."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = ["json_sql", "parse_values"]

_FORMATS = (
    r"'timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX', "
    r"'timestampNTZFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSS'"
)
"""Spark's own formats end with milliseconds, so that times which differ in microseconds look the same."""


def json_sql(value: str, *, has_nulls: bool = True) -> str:
    """Return SQL that writes a struct, list or map as JSON, with null fields or without."""
    return f"to_json({value}, map('ignoreNullFields', '{str(not has_nulls).lower()}', {_FORMATS}))"


def parse_values(text: str, kind: DataType) -> Any:
    """Return a value that Spark wrote as JSON; a number is a `Decimal` where the type is a decimal.

    Args:
        text: The JSON text.
        kind: The type of the value. A struct's type may have other fields, too.
    """
    return _typed(json.loads(text, parse_float=Decimal), kind)


def _typed(value: Any, kind: DataType | None) -> Any:
    """Return a parsed value with numbers of its type; without a type, as in a variant, they are doubles."""
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    if isinstance(value, dict):
        fields = {each.name: each.dataType for each in kind.fields} if isinstance(kind, StructType) else {}
        other = kind.valueType if isinstance(kind, MapType) else None
        return {name: _typed(inner, fields.get(name, other)) for name, inner in value.items()}
    if isinstance(value, list):
        element = kind.elementType if isinstance(kind, ArrayType) else None
        return [_typed(inner, element) for inner in value]
    if isinstance(kind, DecimalType):
        return Decimal(value) if isinstance(value, int) else value
    return float(value) if isinstance(value, Decimal) else value
