"""What must always hold of a silver table.

Source: `processing-strategies.md`, "Merge Strategy" (one row a key), "Historic Strategy" (one current one).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.lake.observation import observe_table, read_table
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.transform.sql import name_sql
from lakewright.transform.system import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["broken_rules"]


def broken_rules(workspace: Workspace, entity: Entity) -> tuple[str, ...]:
    """Return what doesn't hold of an entity's table, one text each; none where all is right.

    Merge: no key is there twice. Historic: a key has at most one current version, its versions neither
    overlap nor go backwards, and the mark of the current one agrees with its end. A table that was loaded by
    Full has no such rules.
    """
    lake = workspace.lake
    silver = entity.places(lake.settings).silver
    system = SystemColumns(lake.settings.systemfield_prefix, entity.destination)
    names = observe_table(lake, silver).names
    frame = read_table(workspace.spark, silver)
    if entity.strategy is Strategy.HISTORIC and system.valid_from in names:
        return _found(_history(frame, system))
    if entity.strategy is Strategy.MERGE and system.key in names:
        return _found(_keys(frame, system))
    return ()


def _keys(frame: DataFrame, system: SystemColumns) -> DataFrame:
    key = name_sql(system.key)
    counted = frame.groupBy(system.key).count()
    return counted.selectExpr(
        f"count_if(count > 1 AND {key} IS NOT NULL) AS `keys are there more than once`",
        f"count_if({key} IS NULL) AS `rows have no key`",
    )


def _history(frame: DataFrame, system: SystemColumns) -> DataFrame:
    key, start, end = (name_sql(name) for name in (system.key, system.valid_from, system.valid_to))
    versions = frame.selectExpr(
        f"{key} AS key",
        f"{start} AS start",
        f"{end} AS end",
        f"{name_sql(system.is_current)} AS is_current",
        f"lag({end}) OVER (PARTITION BY {key} ORDER BY {start}, {end} NULLS LAST) AS former_end",
        f"row_number() OVER (PARTITION BY {key} ORDER BY {start}, {end} NULLS LAST) AS position",
    )
    return versions.selectExpr(
        "count_if(position > 1 AND former_end IS NULL) AS `versions begin while another one is current`",
        "count_if(former_end > start) AS `versions overlap the one before`",
        "count_if(end < start) AS `versions end before they begin`",
        "count_if(is_current <> (end IS NULL)) AS `versions are marked as current wrongly`",
        "count_if(key IS NULL OR start IS NULL) AS `versions have no key or no beginning`",
    )


def _found(counts: DataFrame) -> tuple[str, ...]:
    row = counts.first()
    numbers = {} if row is None else row.asDict()
    return tuple(f"{count} {rule}" for rule, count in numbers.items() if count)
