"""Invariants of silver tables, which VERIFY checks.

Source: `processing-strategies.md`, "Merge Strategy" (one row for each key) and "Historic Strategy" (one
current version for each key).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lakewright.lake.observation import observe_table, read_table
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.transform.sql import name_sql
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["broken_invariants"]


def broken_invariants(workspace: Workspace, entity: Entity) -> tuple[str, ...]:
    """Describe each invariant that an entity's table breaks, with the number of rows.

    Merge: no key occurs twice. Historic: a key has at most one current version, its versions neither overlap
    nor end before they begin, and exactly the versions without an end are flagged as current. The strategy
    Full has no invariants.
    """
    lake = workspace.lake
    silver = entity.places(lake.settings).silver
    system = SystemColumns(lake.settings.systemfield_prefix, entity.destination)
    names = observe_table(lake, silver).names
    frame = read_table(workspace.spark, silver)
    if entity.strategy is Strategy.HISTORIC and system.valid_from in names:
        return _broken_history_rules(frame, system)
    if entity.strategy is Strategy.MERGE and system.key in names:
        return _broken_key_rules(frame, system)
    return ()


class _Rule(NamedTuple):
    """A rule: a violation in the singular and the plural, and the SQL condition of a row that breaks it."""

    singular: str
    plural: str
    condition: str


def _broken(rows: DataFrame, rules: Sequence[_Rule]) -> tuple[str, ...]:
    """Describe each rule that rows break; all are counted in one pass."""
    row = rows.selectExpr(*(f"count_if({rule.condition})" for rule in rules)).first()
    counts = [0] * len(rules) if row is None else list(row)
    return tuple(
        f"{count} {rule.singular if count == 1 else rule.plural}"
        for rule, count in zip(rules, counts, strict=True)
        if count
    )


def _broken_key_rules(frame: DataFrame, system: SystemColumns) -> tuple[str, ...]:
    key = name_sql(system.key)
    occurs = ("key occurs more than once", "keys occur more than once")
    rules = (
        _Rule(*occurs, f"count > 1 AND {key} IS NOT NULL"),
        _Rule("row has no key", "rows have no key", f"{key} IS NULL"),
    )
    return _broken(frame.groupBy(system.key).count(), rules)


_HISTORY_RULES = (
    _Rule(
        "version begins while another one is current",
        "versions begin while another one is current",
        "position > 1 AND previous_end IS NULL",
    ),
    _Rule("version overlaps the one before", "versions overlap the one before", "previous_end > start"),
    _Rule("version ends before it begins", "versions end before they begin", "end < start"),
    _Rule(
        "version is wrongly marked as current or as ended",
        "versions are wrongly marked as current or as ended",
        "is_current <> (end IS NULL)",
    ),
    _Rule(
        "version has no key or no beginning",
        "versions have no key or no beginning",
        "key IS NULL OR start IS NULL",
    ),
)


def _broken_history_rules(frame: DataFrame, system: SystemColumns) -> tuple[str, ...]:
    key, start, end = (name_sql(name) for name in (system.key, system.valid_from, system.valid_to))
    versions = frame.selectExpr(
        f"{key} AS key",
        f"{start} AS start",
        f"{end} AS end",
        f"{name_sql(system.is_current)} AS is_current",
        f"lag({end}) OVER (PARTITION BY {key} ORDER BY {start}, {end} NULLS LAST) AS previous_end",
        f"row_number() OVER (PARTITION BY {key} ORDER BY {start}, {end} NULLS LAST) AS position",
    )
    return _broken(versions, _HISTORY_RULES)
