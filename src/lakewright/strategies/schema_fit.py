"""A slice beside its table: whether its columns can become the table's rows. No query is run.

Source: `processing-strategies.md`, "Schema Drift"; rules of entities, "Errors".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.errors import SchemaDriftError
from lakewright.lake.columns import fields_of
from lakewright.lake.observation import observe_table, read_table
from lakewright.lake.table_state import TableState
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.places import Address
from lakewright.strategies.adopting.columns import adopted_columns, is_adoptable
from lakewright.strategies.compatibility import refuse_misfit, refuse_other_partitions
from lakewright.strategies.drift import Alignment, align
from lakewright.strategies.table_properties import own_properties
from lakewright.transform.pipeline import Prepared, prepare
from lakewright.transform.safety import refuse_unsafe
from lakewright.transform.steps import no_way_error, storable_sql
from lakewright.transform.system import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity

__all__ = ["SchemaFit", "fit_slice"]


@dataclass(frozen=True, slots=True)
class SchemaFit:
    """A slice that fits its table as far as columns tell.

    Attributes:
        alignment: How the slice's columns fit the table's; None where there is no table, or one that is to be
            adopted first.
    """

    address: Address
    state: TableState
    prepared: Prepared
    alignment: Alignment | None


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
) -> SchemaFit:
    """Return how a slice fits its table.

    Args:
        lake: The lake.
        session: A strict session, in which `frame` was read.
        entity: The entity.
        frame: The slice's rows, lazily.
        slice_name: For its rows.
        strategy: By which it is to be processed.
        at: The processing time.
        allow_data_loss: Whether Full may replace rows of another strategy.
        after: The slice that is to make the table before this one; None where it is there, or isn't yet.

    Raises:
        SpecError: An expression of the entity reaches for more than a row's columns.
        TargetError: The slice can't be processed by the strategy.
    """
    refuse_unsafe(session, entity)
    address = entity.places(lake.settings).silver
    state = observe_table(lake, address) if after is None else _state_after(after)
    table = None
    if state.exists:
        table = read_table(session, address).schema if after is None else after.prepared.frame.schema
    prepared = prepare(
        frame,
        entity,
        SystemColumns(lake.settings.systemfield_prefix, entity.destination),
        slice_name=slice_name,
        at=at,
        strategy=strategy,
        hashed=state.names if state.exists and entity.settings.schema_drift == "ignore" else None,
    )
    prepared = _with_types(prepared, table, policy=entity.settings.schema_drift)
    _refuse_unstorable(prepared)
    if is_adoptable(entity, state):
        adopted_columns(entity, state, prepared.system)
        return SchemaFit(address, state, prepared, None)
    if table is None:
        return SchemaFit(address, state, prepared, None)
    refuse_misfit(state, strategy, prepared, allow_data_loss=allow_data_loss)
    refuse_other_partitions(state.partition_columns, strategy, entity)
    fixed = [*prepared.system.all, *state.partition_columns]
    alignment = align(prepared.frame.schema, table, policy=entity.settings.schema_drift, fixed=fixed)
    _refuse_ways(prepared.frame, alignment)
    return SchemaFit(address, state, prepared, alignment)


def _with_types(prepared: Prepared, table: StructType | None, *, policy: str) -> Prepared:
    """The slice with columns that have no type in the table's, or left out till one with values comes."""
    from pyspark.sql import functions

    if not prepared.typeless:
        return prepared
    known = {field.name.lower(): field.dataType for field in table.fields} if table is not None else {}
    typed = {
        name: functions.expr(f"cast(null as {storable_sql(known[name.lower()])})")
        for name in prepared.typeless
        if name.lower() in known
    }
    unasked = [name for name, is_unasked in prepared.typeless.items() if is_unasked and name not in typed]
    left_out = unasked if policy == "evolve" else []
    return replace(
        prepared,
        frame=prepared.frame.withColumns(typed).drop(*left_out),
        hashed=tuple(each for each in prepared.hashed if prepared.names.get(each.name) not in left_out),
    )


def _state_after(made: SchemaFit) -> TableState:
    """The table as a first slice makes it."""
    return TableState(
        exists=True,
        columns=fields_of(made.prepared.frame.schema),
        partition_columns=made.prepared.partitions,
        properties=own_properties(made.prepared),
    )


def _refuse_ways(frame: DataFrame, alignment: Alignment) -> None:
    """Refuse a column that Spark knows no way for from its type to the table's."""
    from pyspark.errors import AnalysisException

    try:
        frame.selectExpr(*alignment.columns.values())
    except AnalysisException:
        for name, sql in alignment.columns.items():
            try:
                frame.selectExpr(sql)
            except AnalysisException as error:
                found, given = (alignment.drift.retyped or {})[name]
                raise no_way_error(name, given, found) from error
        raise


def _refuse_unstorable(prepared: Prepared) -> None:
    """Refuse columns whose types, or whose fields' names, no table can hold.

    Raises:
        SchemaDriftError: There are some; the message names the first.
    """
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
    """What a table can't hold of a column: the path to it, and what is wrong there."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if kind.typeName().partition(" ")[0].partition("(")[0] in _UNSTORABLE:
        yield path, f"has the type {kind.simpleString()}, which a table can't hold"
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
                yield inner, "has a field of whose name nothing is left that a table can hold"
            elif names.count(field.name.lower()) > 1:
                yield inner, "comes from several fields, whose names a table can't tell apart"
            yield from _unstorable(inner, field.dataType)
