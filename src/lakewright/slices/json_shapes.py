"""JSON in which a value has another shape than the table's column: a text for a list, a number for an object.

Spark infers a text for such a column, so that no row of the slice would fit the table. Read with the table's
type, only the odd rows do not parse, and they are put aside. The rules are Lakewright's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from lakewright.slices.json_columns import KnownColumns
    from lakewright.spec.models.entity import Entity

__all__ = ["with_known_shapes"]


def with_known_shapes(inferred: StructType, known: KnownColumns, entity: Entity) -> StructType:
    """Return a slice's columns, some of them with the type of the table instead of their own.

    Args:
        inferred: The columns as Spark infers them from JSON.
        known: What is known of them.
        entity: The entity; if it does not put bad rows aside, all columns keep their own types.
    """
    from pyspark.sql.types import StructType

    if entity.settings.on_bad_rows != "quarantine":
        return inferred
    columns = StructType()
    for field in inferred.fields:
        of_table = known.types.get(entity.silver_name(field.name).lower())
        kind = field.dataType
        if of_table is not None and not _is_declared(entity, field.name):
            kind = _shaped(kind, of_table)
        columns = columns.add(field.name, kind)
    return columns


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
