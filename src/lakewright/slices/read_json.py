"""Reading of JSON: in types that follow from the columns, and without types where a slice tells none.

The rules are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.lake.file_probe import has_typeless_json, holds_json_texts, is_near
from lakewright.schema.sql import name_sql
from lakewright.slices.json_columns import columns_without_rows
from lakewright.slices.json_misfits import good_types, variants_of, with_good_values
from lakewright.slices.json_shapes import with_known_shapes
from lakewright.slices.json_suspects import Suspect, suspects_of
from lakewright.slices.json_values import with_typed_values
from lakewright.strategies.drift import convert_sql
from lakewright.transform.bad_rows import CORRUPT, NO_COLUMN
from lakewright.transform.misfits import MISFIT
from lakewright.transform.typeless import texts_by_field, without_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakewright.slices.bronze import Slice
    from lakewright.slices.json_columns import KnownColumns
    from lakewright.spec.models.entity import Entity

__all__ = ["read_json"]


def read_json(
    session: SparkSession,
    slice_: Slice,
    entity: Entity,
    frame: DataFrame,
    *,
    options: Mapping[str, str],
    known: KnownColumns,
) -> DataFrame:
    """Return the rows of a JSON slice, lazily.

    Args:
        session: A strict session.
        slice_: The slice.
        entity: The entity.
        frame: The rows with the columns that Spark infers.
        options: The options with which they were read.
        known: What is known of the columns.
    """
    if not set(frame.columns) - {CORRUPT} and frame.isEmpty():  # `[]`
        empty = columns_without_rows(known, entity)
        reader = session.read.format("json").options(**options)
        return frame if empty is None else reader.schema(_with_corrupt(empty, options)).load(slice_.path)
    shaped = with_known_shapes(frame.schema, known, entity)
    columns = with_typed_values(shaped, known, entity)
    if _types(columns) != _types(frame.schema):
        reader = session.read.format("json").options(**options)
        frame = reader.schema(_with_corrupt(columns, options)).load(slice_.path)
    suspects = suspects_of(shaped, known, entity)
    frame = _with_good_values(session, slice_, frame, options, suspects=suspects, known=known)
    return _without_inferred_texts(session, slice_, frame, options, (entity, shaped))


def _with_good_values(
    session: SparkSession,
    slice_: Slice,
    frame: DataFrame,
    options: Mapping[str, str],
    *,
    suspects: Sequence[Suspect],
    known: KnownColumns,
) -> DataFrame:
    """Return the rows, those without a bad value as if there were no others."""
    if not suspects:
        return frame
    reader = session.read.format("json").options(**options)
    variants = variants_of(frame.schema, suspects)
    own = [field for field in variants.fields if field.name in {each.column for each in suspects}]
    looked_at = reader.schema(_with_corrupt(type(variants)(own), options)).load(slice_.path)
    types = good_types(looked_at, suspects, are_typed=known.are_typed)
    found = [each for each in suspects if each.path in types]
    if not found:
        return frame
    return with_good_values(reader.schema(variants_of(frame.schema, found)).load(slice_.path), found, types)


def _types(columns: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.json()) for field in columns.fields]


def _with_corrupt(columns: StructType, options: Mapping[str, str]) -> StructType:
    """Return the columns with the one for rows that do not parse, if they are kept."""
    from pyspark.sql.types import StringType

    is_kept = options.get("columnNameOfCorruptRecord") == CORRUPT
    return columns.add(CORRUPT, StringType()) if is_kept and CORRUPT not in columns.names else columns


def _without_inferred_texts(
    session: SparkSession,
    slice_: Slice,
    frame: DataFrame,
    options: Mapping[str, str],
    of_entity: tuple[Entity, StructType],
) -> DataFrame:
    """Return the rows with what is only null or empty as typeless; Spark infers it as text.

    Spark infers the columns once more, unless the files are on this machine, and have neither nulls nor empty
    lists, or a text for each field that Spark takes for one.
    """
    from pyspark.sql import functions

    entity, inferred = of_entity
    if all(map(is_near, slice_.paths)) and _has_all_types([Path(path) for path in slice_.paths], inferred):
        return frame
    keys = {part for name in entity.business_keys for part in (name.lower(), name.lower().partition(".")[0])}
    reader = session.read.format("json").options(**options).option("dropFieldIfAllNull", "true")
    typed = {field.name: field.dataType for field in reader.load(slice_.path).schema.fields}
    columns = {}
    for field in frame.schema.fields:
        kind = without_types(field.dataType, typed.get(field.name))
        if kind != field.dataType and field.name.lower() not in {
            *keys,
            CORRUPT.lower(),
            NO_COLUMN.lower(),
            MISFIT,
        }:
            sql = convert_sql(name_sql(field.name), field.dataType, kind, field.name)
            columns[field.name] = functions.expr(sql)
    return frame.withColumns(columns) if columns else frame


def _has_all_types(paths: Sequence[Path], columns: StructType) -> bool:
    """Return whether it is certain that each text that Spark infers from JSON files is one."""
    if not any(map(has_typeless_json, paths)):
        return True
    own = type(columns)([field for field in columns.fields if field.name not in {CORRUPT, NO_COLUMN}])
    texts = texts_by_field(own)
    return texts is not None and holds_json_texts(paths, texts)
