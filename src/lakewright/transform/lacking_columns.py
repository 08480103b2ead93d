"""Declared columns that a slice lacks, and that are null in its rows.

A slice may lack optional columns. A slice that was processed before, and is applied again, may lack all but
those of its keys: they may have been declared since. The rules are Lakewright's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.errors import SpecError, TargetError
from lakewright.schema.types import Chars, Decimal, Type
from lakewright.transform import steps
from lakewright.transform.lacking_fields import FilledColumn, with_fields
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame

    from lakewright.spec.models.column import Column
    from lakewright.spec.models.entity import Entity

__all__ = ["LackingColumns", "with_lacking_columns", "with_optional_columns"]


@dataclass(frozen=True, slots=True)
class LackingColumns:
    """What was added to the rows of a slice, with nulls.

    Attributes:
        columns: The declared columns that the slice lacks, and optional ones of which it has only nulls.
        filled: Columns in which fields were added, because declared columns are paths to them.
    """

    columns: tuple[Column, ...]
    filled: tuple[FilledColumn, ...]

    @property
    def names(self) -> frozenset[str]:
        """Names in the source, in lower case, of the columns that the slice lacks."""
        return frozenset(column.source.lower() for column in self.columns)

    @property
    def filled_names(self) -> frozenset[str]:
        """Names, in lower case, of columns in which fields were added."""
        return frozenset(each.name.lower() for each in self.filled)

    @property
    def told(self) -> tuple[str, ...]:
        """The columns that the slice lacks although they are not optional, by their names in the source."""
        return tuple(column.source for column in self.columns if not column.optional)

    def emptied(self, frame: DataFrame, entity: Entity) -> DataFrame:
        """Return the rows once expressions are computed: fields that were added have no type any more."""
        made = {step.column.lower() for step in entity.transformations if step.column}
        made |= {column.source.lower() for column in entity.calculated}
        for each in self.filled:
            if each.name.lower() not in made:
                frame = each.emptied(frame)
        return frame


def with_lacking_columns(
    frame: DataFrame,
    entity: Entity,
    system: SystemColumns,
    names: Iterable[str],
    *,
    may_lack_columns: bool,
) -> tuple[DataFrame, LackingColumns]:
    """Return the rows after the entity's transformations, with nulls in the columns that they may lack.

    Columns without a declared type have none here, either. Columns of the business key, and the primary key,
    are not added.

    Args:
        frame: The rows as they were read.
        entity: The entity.
        system: Names of its system columns.
        names: Names in the source that the entity refers to, which may be paths into other columns.
        may_lack_columns: Whether they may lack columns that are not optional.

    Returns:
        The rows, and what was added.
    """
    names = tuple(names)
    wanted = [
        column
        for column in entity.columns
        if (column.optional or may_lack_columns)
        and not (column.is_calculated or column.is_business_key)
        and column.silver.lower() != system.key.lower()
    ]
    kind = entity.settings.slice_format.kind
    filled: dict[str, FilledColumn] = {}
    frame, used = _injected(frame, entity, _lacking(steps.flatten(frame, names), wanted), filled)
    frame = steps.flatten(frame, names)
    later = _lacking(frame, wanted)
    frame = _with_nulls(frame, later, kind, filled)
    made = {step.column.lower() for step in entity.transformations if step.column}
    found = {column.source: column for column in (*used, *later) if column.source.lower() not in made}
    in_order = tuple(column for column in wanted if column.source in found)
    return frame, LackingColumns(in_order, tuple(filled.values()))


def with_optional_columns(frame: DataFrame, entity: Entity) -> DataFrame:
    """Return the rows of a slice with nulls in the optional columns that they lack, before any expression."""
    kind = entity.settings.slice_format.kind
    optional = [column for column in entity.columns if column.optional]
    lacking = _lacking(steps.flatten(frame, [column.source for column in optional]), optional)
    frame = _with_columns(frame, [column for column in lacking if "." not in column.source], kind)
    fields = [(column.source, _null_sql(column, kind)) for column in lacking]
    return with_fields(frame, fields, {})


def _lacking(frame: DataFrame, columns: Iterable[Column]) -> list[Column]:
    """Return the columns that the rows lack, and optional ones that are only null, so that JSON has no type.

    Expressions must have the same types for both.
    """
    from pyspark.sql.types import NullType

    found = []
    for column in columns:
        name = steps.find_name(frame.columns, column.source)
        is_optional = column.optional and column.type is not None
        if name is None or (is_optional and isinstance(frame.schema[name].dataType, NullType)):
            found.append(column)
    return found


def _injected(
    frame: DataFrame, entity: Entity, lacking: Sequence[Column], filled: dict[str, FilledColumn]
) -> tuple[DataFrame, list[Column]]:
    """Return the rows after the transformations, and the lacking columns that these use.

    Only those are added before, and those that the slice has: a list of expressions may make the others.
    """
    present = steps.flatten(frame, [column.source for column in lacking]).columns
    used = [column for column in lacking if steps.find_name(present, column.source) is not None]
    first: Exception | None = None
    kind = entity.settings.slice_format.kind
    while True:
        filled.clear()
        try:
            given = _with_nulls(frame, used, kind, filled)
            return steps.inject(given, entity.transformations), used
        except (SpecError, TargetError) as error:
            first = first or error
            asked = _asked_names(error)
            more = [each for each in lacking if each not in used and asked & _parts(each.source)]
            if not more:
                raise first from first.__cause__
            used += more


_UNKNOWN = {
    "UNRESOLVED_COLUMN": "objectName",
    "FIELD_NOT_FOUND": "fieldName",
    "INVALID_EXTRACT_BASE_FIELD_TYPE": "base",
}
"""Spark's conditions of a name that it does not find, to the parameter that has the name."""


def _asked_names(error: Exception) -> frozenset[str]:
    """Return the parts, in lower case, of the name that Spark did not find in an expression."""
    from pyspark.errors import PySparkException

    cause = error.__cause__
    if not isinstance(cause, PySparkException):
        return frozenset()
    name = _UNKNOWN.get((cause.getCondition() or "").partition(".")[0], "")
    return _parts((cause.getMessageParameters() or {}).get(name, ""))


def _parts(name: str) -> frozenset[str]:
    return frozenset(re.findall(r'[^`".]+', name.lower()))


def _with_nulls(
    frame: DataFrame, columns: Sequence[Column], kind: str, filled: dict[str, FilledColumn]
) -> DataFrame:
    """Return the rows with these columns, and with the fields that their names are paths to.

    What is filled is added to `filled`, by names in lower case.
    """
    frame = _with_columns(frame, columns, kind)
    return with_fields(frame, ((column.source, _null_sql(column, kind)) for column in columns), filled)


def _with_columns(frame: DataFrame, columns: Iterable[Column], kind: str) -> DataFrame:
    from pyspark.sql import functions

    nulls = {
        steps.find_name(frame.columns, column.source) or column.source: functions.expr(
            _null_sql(column, kind)
        )
        for column in columns
    }
    return frame.withColumns(nulls) if nulls else frame


def _null_sql(column: Column, kind: str) -> str:
    return "null" if column.type is None else f"cast(null as {_read_type(column.type, kind)})"


_TEXTS_IN_JSON = frozenset(("date", "timestamp", "timestamp_ntz", "binary"))
_EXACT_DIGITS = 15
"""Decimal digits that a double always keeps."""

_WHOLE = frozenset(("tinyint", "smallint", "int", "bigint"))


def _read_type(declared: Type, kind: str) -> str:
    """Return the type in which values of a declared type are read, before they are cast.

    Expressions must have the same types in a slice with the column: source hashes tell types apart.
    """
    ddl = declared.ddl
    if isinstance(declared, Chars) or kind == "csv":
        return "string"
    if kind != "json":
        return ddl
    if isinstance(declared, Decimal):
        is_whole, is_short = declared.scale == 0, declared.precision <= _EXACT_DIGITS
        return "bigint" if is_whole else "double" if is_short else ddl
    if ddl in _TEXTS_IN_JSON:
        return "string"
    return "bigint" if ddl in _WHOLE else "double" if ddl == "float" else ddl
