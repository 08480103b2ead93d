"""Check whether a slice's columns fit its table, without running a query.

Source: `processing-strategies.md`, "Schema Drift"; rules of entities, "Errors".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.columns import fields_of
from lakewright.lake.delta_log import TableState
from lakewright.lake.observation import observe_table, read_table
from lakewright.schema.spark import column_types, type_of
from lakewright.strategies.adoption import adopted_columns, is_adoptable
from lakewright.strategies.compatibility import check_table_compatible
from lakewright.strategies.drift import Alignment, align
from lakewright.strategies.table_properties import canonical_form, is_key_cast, own_properties
from lakewright.transform.expression_safety import check_expressions
from lakewright.transform.pipeline import PreparedSlice, prepare
from lakewright.transform.storable_columns import check_storable
from lakewright.transform.system_columns import SystemColumns
from lakewright.transform.typed_columns import TableTypes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.slice_load import LoadRequest


@dataclass(frozen=True, slots=True)
class SchemaFit:
    """A prepared slice whose columns fit its table.

    Attributes:
        state: The table as it was observed.
        prepared: The prepared slice.
        alignment: How the slice's columns fit the table's; None if there is no table, or one that must be
            adopted first.
        table: The columns of the table as Spark reads them; None if there is none.
    """

    state: TableState
    prepared: PreparedSlice
    alignment: Alignment | None
    table: StructType | None = None

    @property
    def schema_after(self) -> StructType:
        """The columns of the table once the slice is processed."""
        frame = self.prepared.frame
        return (frame if self.alignment is None else self.alignment.applied(frame)).schema

    @property
    def state_after(self) -> TableState:
        """The state of the table once the slice is processed, as far as its columns show."""
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
    prepared = prepare_rows(lake, entity, frame, request, state, table=table)
    for field in prepared.frame.schema.fields:
        is_partition = field.name in prepared.partitions
        check_storable(field.name, type_of(field.dataType), is_partition=is_partition)
    if is_adoptable(entity, state):
        adopted_columns(entity, state, prepared.system)
        return SchemaFit(state, prepared, None)
    if table is None:
        return SchemaFit(state, prepared, None)
    is_allowed = request.permissions.allow_data_loss
    check_table_compatible(state, request.strategy, entity, allow_data_loss=is_allowed, prepared=prepared)
    return SchemaFit(state, prepared, aligned_to(table, prepared, state, entity), table)


def aligned_to(table: StructType, prepared: PreparedSlice, state: TableState, entity: Entity) -> Alignment:
    """Return how the columns of prepared rows are aligned with those of a table."""
    return align(
        column_types(prepared.frame.schema),
        column_types(table),
        policy=entity.settings.schema_drift,
        fixed=[*prepared.system.all, *state.partition_columns],
        delivered=prepared.found,
        zone=prepared.form.zone,
    )


def prepare_rows(
    lake: Lake,
    entity: Entity,
    frame: DataFrame,
    request: LoadRequest,
    state: TableState,
    *,
    table: StructType | None = None,
    place: str | None = None,
) -> PreparedSlice:
    """Return rows with the columns, keys and hashes of an entity's table, as that makes them.

    Args:
        lake: The lake.
        entity: The entity.
        frame: The rows.
        request: The request to process them.
        state: The table.
        table: The columns whose types the values are converted to; None if there are none.
        place: SQL of where a row is from, which the error of a value then names.
    """
    system = SystemColumns(lake.settings.systemfield_prefix, entity.destination)
    policy = entity.settings.schema_drift
    fixed = frozenset(name.lower() for name in (*system.all, *state.partition_columns))
    types = {} if table is None else column_types(table)
    return prepare(
        frame,
        entity,
        system,
        slice_name=request.slice_name,
        at=request.at,
        strategy=request.strategy,
        is_key_cast=is_key_cast(state.properties),
        form=canonical_form(state.properties, lake.settings.timezone),
        table=None
        if table is None
        else TableTypes({name.lower(): kind for name, kind in types.items()}, policy, fixed),
        hashed=state.names if table is not None and policy == "ignore" else None,
        may_lack_columns=request.may_lack_columns,
        place=place,
    )
