"""The commit that adopts a table.

Source: Delta's documentation, "Replace table schema"; that one commit holds all of it, with a token, is
Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.lake.commit import Token
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import delta_table, read_table
from lakewright.schema.sql import name_sql
from lakewright.strategies.adoption.columns import adopted_columns
from lakewright.strategies.adoption.rows import adopt_rows
from lakewright.strategies.slice_load import SliceLoad
from lakewright.strategies.slice_statistics import SliceStatistics
from lakewright.strategies.table_properties import silver_properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.lake.table_state import TableState
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.slice_load import LoadRequest
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
    request: LoadRequest,
) -> Mapping[str, int]:
    """Make a table the entity's silver table in one commit; return the counts of its rows.

    Args:
        lake: The lake.
        session: A strict session.
        entity: The entity, which declares the meaning of the table's columns.
        prepared: The next slice, whose columns and types say how rows are hashed.
        state: The table as it was observed.
        request: The request to process it. Its time is the latest at which versions may begin or end; the
            number of the commit follows from the table's version.

    Raises:
        MigrationError: The meaning of the table's rows is not clear; nothing was written.
        CommitConflict: The table has changed since it was observed; nothing was written.
    """
    address, token = entity.places(lake.settings).silver, request.token
    columns = adopted_columns(entity, state, prepared.system)
    table = read_table(session, address, state.version)
    adopted = adopt_rows(table, prepared, entity, columns, zone=lake.settings.timezone, at=request.at)
    load = SliceLoad(
        lake=lake,
        session=session,
        entity=entity,
        request=replace(request, token=Token(f"{token.app_id}/adopt", (state.version or 0) + 1)),
        address=address,
        state=state,
        prepared=replace(prepared, frame=adopted.rows),
        statistics=SliceStatistics(adopted.counts["rows"], 0),
        alignment=None,
        is_small=False,
    )
    load.commit_content({**token.content, "adopted": dict(adopted.counts)}, _replacing(load, columns.kept))
    reach_failpoint("after_adopt")
    return adopted.counts


def _replacing(load: SliceLoad, names: Mapping[str, str]) -> Callable[[], None]:
    """Return the write that replaces rows and columns; properties, partitioning and clustering are kept."""
    from pyspark.sql import functions

    writer = load.prepared.frame.writeTo(load.address.sql).using("delta")
    kept = {key: value for key, value in load.state.properties.items() if not key.startswith(_INTERNAL)}
    for key, value in {**kept, **silver_properties(load.entity, load.prepared)}.items():
        writer = writer.tableProperty(key, value)
    detail = delta_table(load.session, load.address).detail().first()
    found = {} if detail is None else detail.asDict()
    partitions, clusters = (
        [names.get(name, name) for name in found.get(layout) or ()]
        for layout in ("partitionColumns", "clusteringColumns")
    )
    if partitions:
        writer = writer.partitionedBy(*(functions.col(name_sql(name)) for name in partitions))
    if clusters:
        writer = writer.clusterBy(*clusters)
    return writer.replace
