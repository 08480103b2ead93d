"""Check whether a slice's columns fit its table, without running a query.

Source: `processing-strategies.md`, "Schema Drift"; rules of entities, "Errors".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.errors import SchemaDriftError
from lakewright.lake.columns import fields_of
from lakewright.lake.observation import observe_table, read_table
from lakewright.lake.table_state import TableState
from lakewright.schema.sql import name_sql
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.places import Address
from lakewright.strategies.adoption.columns import adopted_columns, is_adoptable
from lakewright.strategies.compatibility import check_partitions, check_slice_compatible
from lakewright.strategies.drift import Alignment, align, convert_sql
from lakewright.strategies.table_properties import canonical_form, is_key_cast, own_properties
from lakewright.transform.bad_rows import bad_rows, without_bad_rows
from lakewright.transform.expression_safety import check_expressions
from lakewright.transform.nested_faults import table_fault_sql
from lakewright.transform.pipeline import PreparedSlice, prepare, union_of
from lakewright.transform.sequence import IS_KEPT, IS_LATEST, kept_rows, rank_by_sequence
from lakewright.transform.steps import incompatible_type_error
from lakewright.transform.system_columns import SystemColumns
from lakewright.transform.typeless import is_typeless, settled

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity

__all__ = ["SchemaFit", "fit_slice"]


@dataclass(frozen=True, slots=True)
class SchemaFit:
    """A prepared slice whose columns fit its table.

    Attributes:
        address: The table.
        state: The table as it was observed.
        prepared: The prepared slice.
        alignment: How the slice's columns fit the table's; None if there is no table, or one that must be
            adopted first.
        table: The columns of the table as Spark reads them; None if there is none.
    """

    address: Address
    state: TableState
    prepared: PreparedSlice
    alignment: Alignment | None
    table: StructType | None = None

    @property
    def schema_after(self) -> StructType:
        """The columns of the table once the slice is processed."""
        frame = self.prepared.frame
        if self.alignment is None:
            return frame.schema
        columns = self.alignment.columns.items()
        return frame.selectExpr(*(f"{sql} as {name_sql(name)}" for name, sql in columns)).schema

    @property
    def state_after(self) -> TableState:
        """The state of the table once the slice is processed, as far as its columns tell."""
        return TableState(
            exists=True,
            columns=fields_of(self.schema_after),
            partition_columns=self.state.partition_columns if self.state.exists else self.prepared.partitions,
            properties={**self.state.properties, **own_properties(self.prepared)},
        )


def fit_slice(
    lake: Lake,
    session: SparkSession,
    entity: Entity,
    frame: DataFrame,
    *,
    slice_name: str,
    strategy: Strategy,
    at: datetime,
    allow_data_loss: bool,
    after: SchemaFit | None = None,
    may_lack_columns: bool = False,
) -> SchemaFit:
    """Prepare a slice and return how its columns fit its table.

    Args:
        lake: The lake.
        session: A strict session, in which `frame` was read.
        entity: The entity.
        frame: The slice's rows, lazily.
        slice_name: Name of the slice, for its rows.
        strategy: The strategy to process it by.
        at: The processing time.
        allow_data_loss: Whether Full may replace rows of another strategy.
        after: The fit of the slice that is processed before this one; None to use the present table.
        may_lack_columns: Whether the slice may lack columns that are not optional.

    Raises:
        SpecError: An expression of the entity uses more than a row's columns.
        TargetError: The strategy cannot process the slice.
    """
    check_expressions(session, entity)
    address = entity.places(lake.settings).silver
    state = observe_table(lake, address) if after is None else after.state_after
    table = None
    if state.exists:
        table = read_table(session, address).schema if after is None else after.schema_after
    prepared = prepare(
        frame,
        entity,
        SystemColumns(lake.settings.systemfield_prefix, entity.destination),
        slice_name=slice_name,
        at=at,
        strategy=strategy,
        is_key_cast=is_key_cast(state.properties),
        form=canonical_form(state.properties, lake.settings.timezone),
        hashed=state.names if state.exists and entity.settings.schema_drift == "ignore" else None,
        may_lack_columns=may_lack_columns,
    )
    prepared = _without_unknown(prepared, table, policy=entity.settings.schema_drift)
    prepared = _with_types(prepared, table, policy=entity.settings.schema_drift)
    _check_storable(prepared)
    if is_adoptable(entity, state):
        adopted_columns(entity, state, prepared.system)
        return SchemaFit(address, state, prepared, None)
    if table is None:
        return SchemaFit(address, state, prepared, None)
    check_slice_compatible(state, strategy, prepared, entity, allow_data_loss=allow_data_loss)
    check_partitions(state.partition_columns, strategy, entity)
    fixed = [*prepared.system.all, *state.partition_columns]
    alignment = align(prepared.frame.schema, table, policy=entity.settings.schema_drift, fixed=fixed)
    _check_casts(prepared.frame, alignment)
    if entity.settings.on_bad_rows == "quarantine":
        prepared = _without_misfits(prepared, alignment)
    return SchemaFit(address, state, prepared, alignment, table)


def _without_misfits(prepared: PreparedSlice, alignment: Alignment) -> PreparedSlice:
    """Return the slice without rows whose values do not fit the types of the table's columns.

    Records that arrive deleted may have any values.
    """
    found = {field.name.lower(): field for field in prepared.frame.schema.fields}
    deleted = name_sql(prepared.system.deleted)
    faults = []
    for name, target in alignment.types.items():
        own = found[name.lower()]
        fault = table_fault_sql(name_sql(own.name), own.dataType, target, column=name)
        if fault is not None:
            faults.append(f"if({deleted}, null, {fault})")
    if not faults:
        return prepared
    source = prepared.frame if prepared.ranked is None else prepared.ranked.drop(IS_KEPT, IS_LATEST)
    frame = without_bad_rows(source, faults)
    ranked = None
    if prepared.ranked is not None and prepared.sequence is not None:
        ranked = rank_by_sequence(frame, prepared.system, prepared.sequence)
        frame = kept_rows(ranked)
    bad = union_of(prepared.bad, bad_rows(source, faults, prepared.key_columns, prepared.delivered))
    return replace(prepared, frame=frame, ranked=ranked, bad=bad)


def _without_unknown(prepared: PreparedSlice, table: StructType | None, *, policy: str) -> PreparedSlice:
    """Return the slice without columns that it lacks, as far as a table does not have them, and gets none."""
    if table is None or policy == "evolve":
        return prepared
    known = {field.name.lower() for field in table.fields}
    return _without(prepared, [name for name in prepared.added if name.lower() not in known])


def _without(prepared: PreparedSlice, names: Collection[str]) -> PreparedSlice:
    """Return the slice without columns, given by their names in silver."""
    if not names:
        return prepared
    return replace(
        prepared,
        frame=prepared.frame.drop(*names),
        ranked=None if prepared.ranked is None else prepared.ranked.drop(*names),
        hashed=tuple(each for each in prepared.hashed if prepared.names.get(each.name) not in names),
        typeless={name: is_free for name, is_free in prepared.typeless.items() if name not in names},
    )


def _with_types(prepared: PreparedSlice, table: StructType | None, *, policy: str) -> PreparedSlice:
    """Return the slice with what has no type in the table's type, or left out if the table has none.

    This holds for whole columns, and for fields and elements inside them.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import NullType

    if not prepared.typeless:
        return prepared
    known = {field.name.lower(): field.dataType for field in table.fields} if table is not None else {}
    typed: dict[str, Column] = {}
    left_out: list[str] = []
    for name, is_free in prepared.typeless.items():
        # The pipeline makes a text of a whole column that has no type.
        own = prepared.frame.schema[name].dataType
        own = own if is_typeless(own) else NullType()
        # What the slice lacks becomes no text in place of the struct that a later one brings.
        is_kept = (policy != "evolve" or not is_free) and name not in prepared.filled
        target = settled(own, known.get(name.lower()), is_kept=is_kept)
        if target is None:
            left_out.append(name)
        else:
            typed[name] = functions.expr(convert_sql(name_sql(name), own, target, name))
    ranked = prepared.ranked
    prepared = replace(
        prepared,
        frame=prepared.frame.withColumns(typed),
        ranked=None if ranked is None else ranked.withColumns(typed),
    )
    return _without(prepared, left_out)


def _check_casts(frame: DataFrame, alignment: Alignment) -> None:
    """Raise `SchemaDriftError` if Spark cannot cast a column to the table's type."""
    from pyspark.errors import AnalysisException

    try:
        frame.selectExpr(*alignment.columns.values())
    except AnalysisException:
        for name, sql in alignment.columns.items():
            try:
                frame.selectExpr(sql)
            except AnalysisException as error:
                found, given = (alignment.drift.retyped or {})[name]
                raise incompatible_type_error(name, given, found) from error
        raise


def _check_storable(prepared: PreparedSlice) -> None:
    """Raise `SchemaDriftError` for the first column whose type, or a field's name, no table can hold."""
    for field in prepared.frame.schema.fields:
        if field.name in prepared.partitions and field.dataType.typeName() in _NO_PARTITIONS:
            raise SchemaDriftError(
                f"column {field.name!r} has the type {field.dataType.simpleString()}, by which no table is "
                "partitioned",
                remedy="Partition by another column, or by an expression that makes a text of it.",
                details={"column": field.name},
            )
        for path, problem in _unstorable(field.name, field.dataType):
            raise SchemaDriftError(
                f"column {path!r} {problem}",
                remedy="Convert the column with an expression in the entity, or correct the slice.",
                details={"column": path},
            )


_NO_PARTITIONS = ("binary", "array", "map", "struct", "variant")
_UNSTORABLE = ("interval", "time", "calendarinterval", "daytimeinterval", "yearmonthinterval")


def _unstorable(path: str, kind: DataType) -> Iterator[tuple[str, str]]:
    """Yield what a table cannot hold of a column: the path to it, and what is wrong with it."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if kind.typeName().partition(" ")[0].partition("(")[0] in _UNSTORABLE:
        yield path, f"has the type {kind.simpleString()}, which a table cannot hold"
    elif isinstance(kind, ArrayType):
        yield from _unstorable(path, kind.elementType)
    elif isinstance(kind, MapType):
        yield from _unstorable(path, kind.keyType)
        yield from _unstorable(path, kind.valueType)
    elif isinstance(kind, StructType):
        names = [field.name.lower() for field in kind.fields]
        for field in kind.fields:
            inner = f"{path}.{field.name}"
            if not field.name:
                yield inner, "has a field whose name consists only of characters that a table cannot hold"
            elif names.count(field.name.lower()) > 1:
                yield inner, "comes from several fields whose names a table cannot tell apart"
            yield from _unstorable(inner, field.dataType)
