"""JSON in which a value has another shape than the table's column: a text for a list, a number for an object.

Spark infers a text for such a column, so that no row of the slice would fit the table. Read with the table's
type, only the odd rows do not parse, and they are put aside. The rules are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from lakewright.lake.observation import observe_table
from lakewright.transform.sql import name_sql
from lakewright.transform.typeless import is_typeless

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity

__all__ = ["known_columns", "with_columns_of", "with_known_shapes"]


def known_columns(lake: Lake, entity: Entity) -> Mapping[str, DataType]:
    """Return the columns of an entity's table, by their names in silver in lower case.

    There are none if the entity does not put aside rows of JSON.
    """
    if not _puts_json_aside(entity):
        return {}
    columns = observe_table(lake, entity.places(lake.settings).silver).columns
    if not columns:
        return {}
    from pyspark.sql.types import StructType

    ddl = ", ".join(f"{name_sql(column.name)} {column.type.ddl}" for column in columns)
    read = cast("StructType", StructType.fromDDL(ddl))
    return {field.name.lower(): field.dataType for field in read.fields}


def with_columns_of(
    frame: DataFrame, known: Mapping[str, DataType], entity: Entity
) -> Mapping[str, DataType]:
    """Return the known columns with those that a slice adds: the next slices must fit them, too."""
    if not _puts_json_aside(entity):
        return known
    own = {entity.silver_name(field.name).lower(): field.dataType for field in frame.schema.fields}
    return {**own, **{name: kind for name, kind in known.items() if not is_typeless(kind)}}


def with_known_shapes(
    inferred: StructType, known: Mapping[str, DataType], entity: Entity
) -> StructType | None:
    """Return a slice's columns, some of them with the type of the table instead of their own.

    Args:
        inferred: The columns as Spark infers them from JSON.
        known: Those of the table; see `known_columns`.
        entity: The entity.

    Returns:
        None if all keep their own.
    """
    from pyspark.sql.types import StructType

    columns = StructType()
    for field in inferred.fields:
        of_table = known.get(entity.silver_name(field.name).lower())
        kind = field.dataType
        if of_table is not None and not _is_declared(entity, field.name):
            kind = _shaped(kind, of_table)
        columns = columns.add(field.name, kind)
    kept = all(old.dataType == new.dataType for old, new in zip(inferred.fields, columns.fields, strict=True))
    return None if kept else columns


def _puts_json_aside(entity: Entity) -> bool:
    settings = entity.settings
    return settings.on_bad_rows == "quarantine" and settings.slice_format.kind == "json"


def _is_declared(entity: Entity, name: str) -> bool:
    """Return whether the entity declares the type that a column is converted to."""
    return any(column.source.lower() == name.lower() and column.datatype for column in entity.columns)


def _shaped(inferred: DataType, known: DataType) -> DataType:
    """Return the known type if only one of both is nested; inside of nested ones, that of each part."""
    from pyspark.sql.types import ArrayType, MapType, NullType, StringType, StructField, StructType

    if isinstance(inferred, StructType) and isinstance(known, StructType):
        inner = {field.name.lower(): field.dataType for field in known.fields}
        kinds = ((f.name, f.dataType, inner.get(f.name.lower())) for f in inferred.fields)
        return StructType(
            [StructField(name, kind if of is None else _shaped(kind, of)) for name, kind, of in kinds]
        )
    if isinstance(inferred, ArrayType) and isinstance(known, ArrayType):
        return ArrayType(_shaped(inferred.elementType, known.elementType))
    # A text column takes what is nested as text, and what is only null has no type yet.
    if isinstance(inferred, NullType) or isinstance(known, StringType | NullType):
        return inferred
    nested = (ArrayType, StructType, MapType)
    if not isinstance(inferred, nested) and not isinstance(known, nested):
        return inferred
    return inferred if isinstance(known, MapType) and isinstance(inferred, StructType) else known
