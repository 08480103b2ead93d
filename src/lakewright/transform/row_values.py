"""Values of rows as Spark writes them as JSON: decimals with all their digits, times with microseconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakewright.schema.shape import with_maps_sql
from lakewright.schema.spark import type_of
from lakewright.schema.sql import text_sql
from lakewright.schema.types import TEXT, MapOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


_FORMATS = (
    r"'timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX', "
    r"'timestampNTZFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSS'"
)
"""Spark's own formats end with milliseconds, so that times which differ in microseconds look the same."""


def json_sql(value: str, kind: DataType | None, *, has_nulls: bool = True) -> str:
    """Return SQL that writes a struct, list or map as JSON.

    Args:
        value: SQL of the value.
        kind: Its type; None if it has no maps inside whose keys are no texts.
        has_nulls: Whether fields that are null are written, too.
    """
    shown = value if kind is None else _with_text_keys(value, kind)
    return f"to_json({shown}, map('ignoreNullFields', '{str(not has_nulls).lower()}', {_FORMATS}))"


def object_sql(columns: Iterable[tuple[str, str, DataType | None]], *, has_nulls: bool = True) -> str:
    """Return SQL that writes columns as a JSON object: each by its name, SQL and type; see `json_sql`."""
    pairs = ", ".join(
        f"{text_sql(name)}, {value if kind is None else _with_text_keys(value, kind)}"
        for name, value, kind in columns
    )
    return json_sql(f"named_struct({pairs})", None, has_nulls=has_nulls)


def _with_text_keys(value: str, kind: DataType) -> str:
    """Return SQL of a value whose maps have texts as keys: Spark would write a date as a number of days."""

    def keyed(own: str, map_: MapOf, item: str, held: str) -> str:
        if map_.key == TEXT and held == f"{item}.value":
            return own
        entry = f"struct(cast({item}.key as string), {held})"
        return f"map_from_entries(transform(map_entries({own}), {item} -> {entry}))"

    return with_maps_sql(value, type_of(kind), keyed)


def read_rows(frame: DataFrame, sql_of: Callable[[str, DataType], str]) -> list[tuple[Any, ...]]:
    """Return the rows of a frame, of which several columns may have the same name.

    Args:
        frame: The frame.
        sql_of: Returns the SQL of a column of a name and type. What it writes by `json_sql`, and decimals,
            are parsed.
    """
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    plain = frame.toDF(*(f"c{position}" for position in range(len(frame.columns))))
    kinds = [field.dataType for field in plain.schema.fields]
    is_written = [isinstance(kind, (ArrayType, DecimalType, MapType, StructType)) for kind in kinds]
    return [
        tuple(
            parse_values(value, kind) if written and value is not None else value
            for value, kind, written in zip(row, kinds, is_written, strict=True)
        )
        for row in plain.selectExpr(*map(sql_of, plain.columns, kinds)).collect()
    ]


def is_nested(kind: DataType) -> bool:
    """Return whether values of a type have others inside."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    return isinstance(kind, (ArrayType, MapType, StructType))


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
