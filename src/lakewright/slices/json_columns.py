"""What is known of the columns of JSON before a slice is read: types in the table, and declared ones.

Spark infers a type from the values of one slice alone, so that the same column may have another type in the
next slice. The rules are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakewright.lake.observation import observe_table
from lakewright.schemas.spark import as_spark_json
from lakewright.spec.models.fields import Field
from lakewright.strategies.table_properties import reads_by_type
from lakewright.transform.typeless import is_typeless

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity

__all__ = ["KnownColumns", "columns_without_rows", "declared_types", "known_columns", "with_columns_of"]


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """What is known of the columns of JSON before a slice is read. By default, there is no table yet.

    Attributes:
        types: The types of the table's columns, by their names in silver in lower case.
        are_typed: Whether values are read in the types of their columns; see `reads_by_type`.
    """

    types: Mapping[str, DataType] = field(default_factory=dict)
    are_typed: bool = True


def known_columns(lake: Lake, entity: Entity) -> KnownColumns:
    """Return what the table of an entity tells of the columns of its slices; nothing if they are not JSON."""
    if not entity.reads_json:
        return KnownColumns()
    state = observe_table(lake, entity.places(lake.settings).silver)
    if not state.columns:
        return KnownColumns()
    types = {each.name.lower(): each.dataType for each in _spark_columns(state.columns).fields}
    return KnownColumns(types, reads_by_type(state.properties, entity))


def with_columns_of(frame: DataFrame, known: KnownColumns, entity: Entity) -> KnownColumns:
    """Return the known columns with those that a slice adds: the next slices must fit them, too."""
    if not entity.reads_json:
        return known
    own = {entity.silver_name(each.name).lower(): each.dataType for each in frame.schema.fields}
    of_table = {name: kind for name, kind in known.types.items() if not is_typeless(kind)}
    return replace(known, types={**own, **of_table})


def declared_types(entity: Entity) -> Mapping[str, DataType]:
    """Return the types that an entity declares for columns of its slices, by their names in lower case."""
    fields = [
        Field(name=column.source.lower(), type=column.type)
        for column in entity.columns
        if column.type is not None and not column.is_calculated
    ]
    return {each.name: each.dataType for each in _spark_columns(fields).fields}


def columns_without_rows(known: KnownColumns, entity: Entity) -> StructType | None:
    """Return the columns that an entity declares, for a slice of JSON that has no rows, and so tells none.

    Those without a declared type have that of the table's column. None is returned if one has neither.
    Optional columns are left out: a slice may lack them.
    """
    from pyspark.sql.types import StructType

    declared, columns = declared_types(entity), StructType()
    for name in (each.source for each in entity.columns if not (each.is_calculated or each.optional)):
        kind = declared.get(name.lower()) or known.types.get(entity.silver_name(name).lower())
        if kind is None:
            return None
        columns.add(name, kind)
    return columns


def _spark_columns(fields: Iterable[Field]) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(as_spark_json(tuple(fields)))
