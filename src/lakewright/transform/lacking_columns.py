"""Declared columns that a slice lacks, of slices that were processed without them and are applied again.

They are null in the slice's rows. A slice that was not processed before must have all declared columns. The
rules are Lakewright's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.spec.models.types import Chars
from lakewright.transform import steps
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from lakewright.spec.models.column import Column
    from lakewright.spec.models.entity import Entity

__all__ = ["with_lacking_columns"]


def with_lacking_columns(
    frame: DataFrame, entity: Entity, system: SystemColumns, names: Iterable[str]
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the rows after the entity's transformations, with nulls in the columns that they lack.

    Columns without a declared type have none here, either. Columns of the business key, and the primary key,
    are not added.

    Args:
        frame: The rows as they were read.
        entity: The entity.
        system: Names of its system columns.
        names: Names in the source that the entity refers to, which may be paths into other columns.

    Returns:
        The rows, and the names of the columns that were added.
    """
    names = tuple(names)
    wanted = [
        column
        for column in entity.columns
        if not (column.is_calculated or column.is_business_key or column.silver.lower() == system.key.lower())
    ]
    lacking: list[Column] = []
    if not any(step.select for step in entity.transformations):
        # Expressions may refer to the columns; a list of expressions may make them.
        lacking = _lacking(steps.flatten(frame, names), wanted)
        frame = _with_nulls(frame, lacking)
    frame = steps.flatten(steps.inject(frame, entity.transformations), names)
    later = _lacking(frame, wanted)
    made = {step.column.lower() for step in entity.transformations if step.column}
    found = [column.source for column in (*lacking, *later) if column.source.lower() not in made]
    return _with_nulls(frame, later), tuple(found)


def _lacking(frame: DataFrame, columns: Iterable[Column]) -> list[Column]:
    return [column for column in columns if steps.find_name(frame.columns, column.source) is None]


def _with_nulls(frame: DataFrame, columns: Iterable[Column]) -> DataFrame:
    from pyspark.sql import functions

    nulls = {column.source: functions.expr(_null_sql(column)) for column in columns}
    return frame.withColumns(nulls) if nulls else frame


def _null_sql(column: Column) -> str:
    if column.type is None:
        return "null"
    return f"cast(null as {'string' if isinstance(column.type, Chars) else column.type.ddl})"
