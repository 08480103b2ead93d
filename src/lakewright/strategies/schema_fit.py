"""Check whether a slice's columns fit its table, without running a query.

Source: `processing-strategies.md`, "Schema Drift"; rules of entities, "Errors".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakewright.errors import SchemaDriftError
from lakewright.lake.columns import fields_of
from lakewright.lake.observation import observe_table, read_table
from lakewright.lake.table_state import TableState
from lakewright.schema.spark import column_types, type_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import Type
from lakewright.spec.models.places import Address
from lakewright.strategies.adoption.columns import adopted_columns, is_adoptable
from lakewright.strategies.compatibility import check_partitions, check_slice_compatible
from lakewright.strategies.drift import Alignment, align, target_type
from lakewright.strategies.table_properties import canonical_form, is_key_cast, own_properties
from lakewright.transform.expression_safety import check_expressions
from lakewright.transform.pipeline import PreparedSlice, prepare
from lakewright.transform.storable import check_storable
from lakewright.transform.system_columns import SystemColumns
from lakewright.transform.typed_columns import TableTypes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.slice_load import LoadRequest

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
    request: LoadRequest,
    *,
    after: SchemaFit | None = None,
) -> SchemaFit:
    """Prepare a slice and return how its columns fit its table.

    Args:
        lake: The lake.
        session: A strict session, in which `frame` was read.
        entity: The entity.
        frame: The slice's rows, lazily.
        request: The request to process the slice, or to look at it.
        after: The fit of the slice that is processed before this one; None to use the present table.

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
    system = SystemColumns(lake.settings.systemfield_prefix, entity.destination)
    prepared = prepare(
        frame,
        entity,
        system,
        slice_name=request.slice_name,
        at=request.at,
        strategy=request.strategy,
        is_key_cast=is_key_cast(state.properties),
        form=canonical_form(state.properties, lake.settings.timezone),
        table=table_types(table, state, system, entity),
        hashed=state.names if state.exists and entity.settings.schema_drift == "ignore" else None,
        may_lack_columns=request.may_lack_columns,
    )
    prepared = _without_unknown(prepared, table, policy=entity.settings.schema_drift)
    prepared = _without_typeless(prepared, table, policy=entity.settings.schema_drift)
    _check_storable(prepared)
    if is_adoptable(entity, state):
        adopted_columns(entity, state, prepared.system)
        return SchemaFit(address, state, prepared, None)
    if table is None:
        return SchemaFit(address, state, prepared, None)
    allow_data_loss = request.permissions.allow_data_loss
    check_slice_compatible(state, request.strategy, prepared, entity, allow_data_loss=allow_data_loss)
    check_partitions(state.partition_columns, request.strategy, entity)
    alignment = align(
        column_types(prepared.frame.schema),
        column_types(table),
        policy=entity.settings.schema_drift,
        fixed=[*prepared.system.all, *state.partition_columns],
        delivered=prepared.found,
    )
    return SchemaFit(address, state, prepared, alignment, table)


def table_types(
    table: StructType | None, state: TableState, system: SystemColumns, entity: Entity
) -> TableTypes | None:
    """Return the types of a table that the columns of a slice are converted to; None without a table."""
    if table is None:
        return None
    fixed = {name.lower() for name in (*system.all, *state.partition_columns)}
    policy = entity.settings.schema_drift

    def target(own: Type, slice_: Type, name: str) -> Type:
        return target_type(own, slice_, policy=policy, is_fixed=name.lower() in fixed)

    return TableTypes({name.lower(): kind for name, kind in column_types(table).items()}, target)


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


def _without_typeless(prepared: PreparedSlice, table: StructType | None, *, policy: str) -> PreparedSlice:
    """Return the slice without columns that have no type, as far as a table does not have them.

    Columns that the entity declares become texts.
    """
    known = set() if table is None else {field.name.lower() for field in table.fields}
    # What the slice lacks becomes no text in place of the struct that a later one brings.
    left_out = [
        name
        for name, is_free in prepared.typeless.items()
        if name.lower() not in known and ((is_free and policy == "evolve") or name in prepared.filled)
    ]
    return _without(prepared, left_out)


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
        check_storable(field.name, type_of(field.dataType))


_NO_PARTITIONS = ("binary", "array", "map", "struct", "variant")
