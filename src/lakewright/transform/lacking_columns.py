"""Declared columns that a slice lacks, and that are null in its rows.

A slice may lack optional columns. A slice that was processed before, and is applied again, may lack all but
those of its keys: they may have been declared since. Where declared columns are paths to fields of structs,
such as `customer.id`, expressions find these fields, with nulls. After that they have no type, so that they
take that of the table, and are left out if it has none. The rules are Lakewright's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.errors import SpecError, TargetError
from lakewright.schema.conversion import convert
from lakewright.schema.shape import arranged, mapped, united
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import (
    EXACT_DIGITS,
    TEXT,
    VOID,
    Chars,
    Decimal,
    Scalar,
    Struct,
    StructField,
    Type,
)
from lakewright.transform import steps
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from lakewright.spec.models.column import Column
    from lakewright.spec.models.entity import Entity


@dataclass(frozen=True, slots=True)
class LackingColumns:
    """What was added to the rows of a slice, with nulls.

    Attributes:
        columns: The declared columns that the slice lacks, and optional ones of which it has only nulls.
        filled: Columns in which fields were added, because declared columns are paths to them, by their names
            in lower case, to their types without and with these fields.
    """

    columns: tuple[Column, ...]
    filled: Mapping[str, tuple[Type, Type]]

    @property
    def names(self) -> frozenset[str]:
        """Names in the source, in lower case, of the columns that the slice lacks."""
        return frozenset(column.source.lower() for column in self.columns)

    @property
    def notes(self) -> tuple[str, ...]:
        """The columns that the slice lacks although they are not optional, by their names in the source."""
        return tuple(column.source for column in self.columns if not column.optional)

    def emptied(self, frame: DataFrame, entity: Entity) -> DataFrame:
        """Return the rows once expressions are computed: fields that were added have no type any more."""
        made = {step.column.lower() for step in entity.transformations if step.column}
        made |= {column.source.lower() for column in entity.calculated}
        for name, (before, after) in self.filled.items():
            own = steps.find_name(frame.columns, name)
            # A column that has another type by now is kept.
            if name in made or own is None or type_of(frame.schema[own].dataType) != after:
                continue
            wanted = arranged(before, mapped(after, lambda _: VOID))
            sql = "null" if wanted == VOID else convert(name_sql(own), after, wanted, column=own).sql
            frame = steps.with_columns(frame, {own: sql})
        return frame


def with_lacking_columns(
    frame: DataFrame,
    entity: Entity,
    system: SystemColumns,
    names: Sequence[str],
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
    wanted = [
        column
        for column in entity.columns
        if (column.optional or may_lack_columns)
        and not (column.is_calculated or column.is_business_key)
        and column.silver.lower() != system.key.lower()
    ]
    kind = entity.settings.slice_format.kind
    filled: dict[str, tuple[Type, Type]] = {}
    frame, used = _injected(frame, entity, _lacking(steps.flatten(frame, names), wanted), filled)
    frame = steps.flatten(frame, names)
    later = _lacking(frame, wanted)
    frame = _with_nulls(frame, later, kind, filled)
    made = {step.column.lower() for step in entity.transformations if step.column}
    found = {column.source: column for column in (*used, *later) if column.source.lower() not in made}
    in_order = tuple(column for column in wanted if column.source in found)
    return frame, LackingColumns(in_order, filled)


def with_optional_columns(frame: DataFrame, entity: Entity) -> DataFrame:
    """Return the rows of a slice with nulls in the optional columns that they lack, before any expression."""
    kind = entity.settings.slice_format.kind
    optional = [column for column in entity.columns if column.optional]
    lacking = _lacking(steps.flatten(frame, [column.source for column in optional]), optional)
    frame = _with_columns(frame, [column for column in lacking if "." not in column.source], kind)
    return _with_fields(frame, lacking, kind, {})


def _lacking(frame: DataFrame, columns: Iterable[Column]) -> list[Column]:
    """Return the columns that the rows lack, and optional ones that are only null, so that JSON has no type.

    Expressions must have the same types for both.
    """
    found = []
    for column in columns:
        name = steps.find_name(frame.columns, column.source)
        is_optional = column.optional and column.type is not None
        if name is None or (is_optional and type_of(frame.schema[name].dataType) == VOID):
            found.append(column)
    return found


def _injected(
    frame: DataFrame, entity: Entity, lacking: Sequence[Column], filled: dict[str, tuple[Type, Type]]
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
    frame: DataFrame, columns: Sequence[Column], kind: str, filled: dict[str, tuple[Type, Type]]
) -> DataFrame:
    """Return the rows with these columns, and with the fields that their names are paths to."""
    return _with_fields(_with_columns(frame, columns, kind), columns, kind, filled)


def _with_columns(frame: DataFrame, columns: Iterable[Column], kind: str) -> DataFrame:
    nulls = {
        steps.find_name(frame.columns, column.source) or column.source: _null_sql(_read_type(column, kind))
        for column in columns
    }
    return steps.with_columns(frame, nulls)


def _with_fields(
    frame: DataFrame, columns: Iterable[Column], kind: str, filled: dict[str, tuple[Type, Type]]
) -> DataFrame:
    """Return rows with the fields of columns that are paths into structs, or into columns without a type.

    Columns that are filled are added to `filled`, by their names in lower case.
    """
    for column in columns:
        head, *rest = column.source.split(".")
        if not rest or not all((head, *rest)):
            continue
        found = steps.find_name(frame.columns, head)
        own, name = VOID if found is None else type_of(frame.schema[found].dataType), found or head
        shape = _read_type(column, kind)
        for part in reversed(rest):
            shape = Struct((StructField(part, shape),))
        wanted = united(own, shape, lambda one, other: other if one == VOID else one) or own
        if wanted == own:
            continue  # it has the field, or can't have it
        made = _null_sql(wanted) if own == VOID else convert(name_sql(name), own, wanted, column=name).sql
        frame = steps.with_columns(frame, {name: made})
        before, _ = filled.get(name.lower(), (own, wanted))
        filled[name.lower()] = (before, wanted)
    return frame


def _null_sql(kind: Type) -> str:
    return "null" if kind == VOID else f"cast(null as {kind.ddl})"


_IN_JSON: Mapping[str, Type] = {
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz", "binary"), TEXT),
    **dict.fromkeys(("tinyint", "smallint", "int"), Scalar("bigint")),
    "float": Scalar("double"),
}
"""Types, in Spark's SQL, whose values JSON has in another one."""


def _read_type(column: Column, kind: str) -> Type:
    """Return the type in which values of a declared column are read, before they are cast.

    Expressions must have the same types in a slice with the column: source hashes tell types apart.
    """
    declared = column.type or VOID
    if declared != VOID and (isinstance(declared, Chars) or kind == "csv"):
        return TEXT
    if kind != "json":
        return declared
    if isinstance(declared, Decimal) and declared.scale == 0:
        return Scalar("bigint")
    if isinstance(declared, Decimal) and declared.precision <= EXACT_DIGITS:
        return Scalar("double")
    return _IN_JSON.get(declared.ddl, declared)
