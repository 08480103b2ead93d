"""The commit that adopts a table.

Source: Delta's documentation, "Replace table schema"; that one commit holds all of it, with a token, is
Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.lake.commit import Token, carrying_token
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import delta_table, read_table
from lakewright.schema.sql import name_sql
from lakewright.spec.models.places import Address
from lakewright.strategies.adoption.columns import adopted_columns
from lakewright.strategies.adoption.rows import adopt_rows
from lakewright.strategies.table_guard import check_unchanged, table_lock
from lakewright.strategies.table_properties import silver_properties

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.lake.table_state import TableState
    from lakewright.spec.models.entity import Entity
    from lakewright.transform.pipeline import PreparedSlice

__all__ = ["adopt"]

_INTERNAL = ("delta.columnMapping.maxColumnId", "delta.rowTracking.materialized", "delta.feature.")


def adopt(
    lake: Lake,
    session: SparkSession,
    entity: Entity,
    prepared: PreparedSlice,
    state: TableState,
    *,
    at: datetime,
    token: Token,
    check: Callable[[], None],
) -> Mapping[str, int]:
    """Make a table the entity's silver table in one commit; return the counts of its rows.

    Args:
        lake: The lake.
        session: A strict session.
        entity: The entity, which declares the meaning of the table's columns.
        prepared: The next slice, whose columns and types say how rows are hashed.
        state: The table as it was observed.
        at: The latest instant at which versions may begin or end.
        token: Application and content of the commit; its number follows from the table's version.
        check: Raises `LeaseLost` if the lock is no longer held.

    Raises:
        MigrationError: The meaning of the table's rows is not clear; nothing was written.
        CommitConflict: The table has changed since it was observed; nothing was written.
    """
    address = entity.places(lake.settings).silver
    columns = adopted_columns(entity, state, prepared.system)
    table = read_table(session, address, state.version)
    adopted = adopt_rows(table, prepared, entity, columns, zone=lake.settings.timezone, at=at)
    content = {**token.content, "adopted": dict(adopted.counts)}
    numbered = Token(f"{token.app_id}/adopt", (state.version or 0) + 1, content)
    properties = _properties(state, entity, replace(prepared, frame=adopted.rows))
    write = _replacing(session, address, adopted.rows, properties, columns.kept)
    with table_lock(lake, address, str(token.content.get("run", ""))):
        check_unchanged(lake, address, state, "while it was adopted")
        check()
        reach_failpoint("before_adopt")
        with carrying_token(session, numbered):
            write()
        reach_failpoint("after_adopt")
    return adopted.counts


def _replacing(
    session: SparkSession,
    address: Address,
    rows: DataFrame,
    properties: Mapping[str, str],
    names: Mapping[str, str],
) -> Callable[[], None]:
    """Return the write that replaces rows and columns; partitioning and clustering are kept."""
    from pyspark.sql import functions

    writer = rows.writeTo(address.sql).using("delta")
    for key, value in properties.items():
        writer = writer.tableProperty(key, value)
    detail = delta_table(session, address).detail().first()
    found = {} if detail is None else detail.asDict()
    partitions, clusters = (
        [functions.col(name_sql(names.get(name, name))) for name in found.get(layout) or ()]
        for layout in ("partitionColumns", "clusteringColumns")
    )
    if partitions:
        writer = writer.partitionedBy(*partitions)
    if clusters:
        writer = writer.clusterBy(*(names.get(name, name) for name in found["clusteringColumns"]))
    return writer.replace


def _properties(state: TableState, entity: Entity, prepared: PreparedSlice) -> dict[str, str]:
    """Return the table's properties with those that say how its rows were made."""
    kept = {key: value for key, value in state.properties.items() if not key.startswith(_INTERNAL)}
    return {**kept, **silver_properties(entity, prepared)}
