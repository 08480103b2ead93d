"""The types of a slice's columns, and its values in them: exactly, or as faults of their rows.

A column's type is the declared one; else that of the table; else what the values of the slice agree on, which
the reader notes with the column; else its own.

Source: the rules of reading, "Two steps"; `processing-strategies.md`, "Common Processing Pipeline" (Cast
columns).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakewright.schema.conversion import Conversion, convert
from lakewright.schema.fault import Owner, Reason
from lakewright.schema.fits import widened
from lakewright.schema.rules import ValueRules
from lakewright.schema.shape import joined_shape, plain_type, with_names, without_void
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import BOOLEAN, TEXT, VOID, Type
from lakewright.spec.models.column import normal_name
from lakewright.spec.models.type_text import parse_sql_type
from lakewright.transform.steps import find_name, incompatible_type_error, with_columns
from lakewright.transform.storable_columns import check_storable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

    from lakewright.spec.models.entity import Entity
    from lakewright.transform.system_columns import SystemColumns


INFERRED = "inferred"
"""Key of a column's metadata: the type, in Spark's SQL, on which all values of the slice agree."""


def target_type(table: Type, slice_: Type, *, policy: str, is_fixed: bool) -> Type:
    """Return the type that a column of a table has once a slice is written to it."""
    return widened(table, slice_) if policy == "evolve" and not is_fixed else table


@dataclass(frozen=True, slots=True)
class TableTypes:
    """The types of the columns of a table that a slice is converted to.

    Attributes:
        types: By names in silver, in lower case.
        policy: The entity's `schema_drift`.
        fixed: Names, in lower case, of columns whose types never change.
    """

    types: Mapping[str, Type]
    policy: str
    fixed: frozenset[str]

    def target(self, own: Type, slice_: Type, name: str) -> Type:
        """Return the type of a column of the table once a slice is written to it."""
        return target_type(own, slice_, policy=self.policy, is_fixed=name.lower() in self.fixed)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column that is converted.

    Attributes:
        name: Its name in the source.
        found: The type that the slice gives it.
        target: The type that its values are converted to.
        conversion: How its values are converted.
        may_be_lost: Whether the values of a record that arrives deleted need not fit.
    """

    name: str
    found: Type
    target: Type
    conversion: Conversion
    may_be_lost: bool = False


@dataclass(frozen=True, slots=True)
class TypedColumns:
    """The columns of a slice whose values are converted.

    Attributes:
        columns: The columns.
        is_deleted: SQL of whether a row arrives deleted.
        noted: Names of the columns whose metadata have an inferred type.
    """

    columns: tuple[_Column, ...]
    is_deleted: str = "false"
    noted: tuple[str, ...] = ()

    @property
    def found(self) -> Mapping[str, Type]:
        """The types that the slice gave the columns, by their names in the source."""
        return {each.name: each.found for each in self.columns}

    def faults(self) -> Iterator[str]:
        """Yield SQL of the faults that the columns of a row may have."""
        for each in self.columns:
            for fault in each.conversion.faults:
                yield f"if({self.is_deleted}, null, {fault})" if each.may_be_lost else fault

    def applied(self, frame: DataFrame, *, has_faults: bool) -> DataFrame:
        """Return the rows with their values converted.

        Args:
            frame: The rows.
            has_faults: Whether rows may have faults, which then fail the query.
        """
        made = {}
        for each in self.columns:
            found = each.conversion
            sql = found.strict if has_faults else found.sql
            if has_faults and each.may_be_lost and found.fault is not None:
                sql = f"if({self.is_deleted}, {found.sql}, {sql})"
            made[each.name] = sql
        frame = with_columns(frame, made)
        for name in self.noted:
            if name not in made:
                frame = frame.withMetadata(name, {})
        return frame


def typed_columns(
    frame: DataFrame,
    entity: Entity,
    system: SystemColumns,
    names: Mapping[str, str],
    *,
    table: TableTypes | None,
    zone: str | None,
    kept: Collection[str],
    place: str | None = None,
) -> TypedColumns:
    """Return the columns of a slice whose types are not their own.

    Args:
        frame: The rows after injected and calculated columns.
        entity: The entity.
        system: Names of its system columns.
        names: Name of each column in the source to its name in silver.
        table: The types of the table; None if there is none.
        zone: Time zone of times without an offset; None if these are no instants.
        kept: Names in silver, in lower case, of columns whose values must fit even in a record that arrives
            deleted.
        place: SQL of where a row is from, which the error of a value then names.

    Raises:
        SchemaDriftError: No value of a column can fit its type, and rows are not put aside.
    """
    puts_aside = entity.settings.on_bad_rows == "quarantine"
    typing = _Typing(entity, names, table, zone, frozenset(kept))
    flag = find_name(frame.columns, system.deleted)
    found, is_deleted = [], "false"
    for field in frame.schema.fields:
        own, name = type_of(field.dataType), field.name
        if name == flag:
            conversion = convert(name_sql(name), own, BOOLEAN, column=name)
            is_deleted = f"coalesce({conversion.sql}, false)"
            column = _Column(name, BOOLEAN, BOOLEAN, conversion)
        elif name.lower() == system.key.lower():
            column = _Column(name, TEXT, TEXT, convert(name_sql(name), own, TEXT, column=name))
        else:
            column = typing.column(field)
        # Numbers without a unit fail the query: one of their values shows which unit it may be.
        if column.conversion.why_never not in (None, Reason.NO_UNIT) and not puts_aside:
            raise incompatible_type_error(name, own.ddl, column.target.ddl)
        if column.conversion.sql != name_sql(name):
            placed = column.conversion if place is None else column.conversion.placed(place)
            found.append(replace(column, conversion=placed))
    noted = (field.name for field in frame.schema.fields if INFERRED in field.metadata)
    return TypedColumns(tuple(found), is_deleted, tuple(noted))


@dataclass(frozen=True, slots=True)
class _Typing:
    """What gives the columns of a slice their types; for the attributes see `typed_columns`."""

    entity: Entity
    names: Mapping[str, str]
    table: TableTypes | None
    zone: str | None
    kept: frozenset[str]

    def column(self, field: StructField) -> _Column:
        """Return a column of the slice as it is converted."""
        own, name = type_of(field.dataType), field.name
        for column in self.entity.columns:
            if column.source.lower() == name.lower() and column.type is not None:
                rules = column.rules(self.zone)
                made = convert(name_sql(name), own, column.type, column=name, rules=rules)
                return _Column(name, column.type, column.type, made)
        return self._undeclared(field, own)

    def _undeclared(self, field: StructField, own: Type) -> _Column:
        """Return a column that is not declared: in the type of the table, or on which its values agree."""
        inferred = (field.metadata or {}).get(INFERRED)
        silver = self.names.get(field.name, field.name)
        known = None if self.table is None else self.table.types.get(silver.lower())
        given = with_names(own if inferred is None else parse_sql_type(inferred), normal_name)
        check_storable(field.name, given)
        given = without_void(given, known) or VOID
        if inferred is not None and known is not None:
            given = joined_shape(given, known)  # what is null in all records of JSON is absent
        if self.table is None or known is None:
            # A column without any type is one of texts until a slice brings values.
            target, rules = (
                TEXT if given == VOID else given,
                ValueRules(self.zone, Owner.SLICE, is_bounded=True),
            )
        else:
            target = self.table.target(known, given, silver)
            rules = ValueRules(self.zone, Owner.TABLE, is_bounded=True)
        value, own = _with_table_names(name_sql(field.name), own)
        made = convert(value, own, target, column=field.name, rules=rules)
        may_be_lost = known is not None and silver.lower() not in self.kept
        return _Column(field.name, given, target, made, may_be_lost)


def _with_table_names(value: str, own: Type) -> tuple[str, Type]:
    """Return a value, and its type, with the names of fields that a table can hold."""
    named = with_names(own, normal_name)
    return (value, own) if named == own else (f"cast({value} as {plain_type(named).ddl})", named)
