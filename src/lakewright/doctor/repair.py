"""Repair of a silver table: the commit of a planned repair, and its entry in the history of runs.

Source: `processing-strategies.md`, "Version Lifecycle".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lakewright.doctor.plan_repair import RepairPlan
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import Token, carrying_token
from lakewright.lake.observation import observe_table
from lakewright.manifest.journal import Run
from lakewright.schema.sql import name_sql, text_sql
from lakewright.slices.application import application_of
from lakewright.strategies.slice_load import check_unchanged, table_lock
from lakewright.targets.lease import hold_leases, table_resource

if TYPE_CHECKING:
    from lakewright.manifest.journal import Journal
    from lakewright.spec.models.entity import Entity
    from lakewright.targets.context import Context

__all__ = ["repair"]

PHASE = "REPAIR"
"""Phase under which a repair is listed in the history of runs."""

MOST_KEYS = 2_000
"""Keys up to which only their rows are replaced, and not the whole table: the query lists them."""


def repair(
    context: Context, entity: Entity, plan: RepairPlan, journal: Journal, *, author: str, reason: str
) -> int | None:
    """Make a planned repair in one commit, listed in the history of runs; return the table's version after.

    Raises:
        LeaseHeld: A run writes to the table.
        CommitConflict: The table has changed since the repair was planned; nothing was written.
    """
    facts = {"author": author, "reason": reason, "changed": plan.changed, "removed": plan.removed}
    run = journal.start_run(
        Run(
            run_id=context.run_id,
            project=context.workspace.project.name,
            job=f"doctor {entity.name}",
            phase=PHASE,
            parameters={},
            started=context.clock(),
            holder=context.leases.holder,
            facts=facts,
        )
    )
    status = "FAILED"
    try:
        with hold_leases(context, frozenset({table_resource(plan.address)})):
            version = _commit(context, entity, plan, facts)
        status = "SUCCESS"
        return version
    finally:
        journal.finish_run(run, status, finished=context.clock())


def _commit(context: Context, entity: Entity, plan: RepairPlan, facts: Mapping[str, Any]) -> int | None:
    lake, address = context.workspace.lake, plan.address
    application = application_of(context.workspace.project.name, entity)
    content = {"run": context.run_id, "repair": dict(facts)}
    remedy = Phrase("Look again with ", Command("doctor"), ", then repair.")
    with table_lock(lake, address, str(context.leases.holder)):
        check_unchanged(lake, address, plan.state, "since the repair was planned", remedy=remedy)
        token = Token(f"{application}/repair", (plan.state.version or 0) + 1, content)
        with carrying_token(plan.session, token):
            _overwrite(plan)
    return observe_table(lake, address).version


def _overwrite(plan: RepairPlan) -> None:
    """Replace the rows of the plan's keys in one commit of its session."""
    from pyspark.sql import functions

    key = name_sql(plan.table.system.key)
    rows, condition = plan.rows, "true"
    keys = [row[0] for row in plan.keys.limit(MOST_KEYS + 1).collect()]
    if len(keys) > MOST_KEYS:
        others = plan.table.frame.join(plan.keys, functions.expr(f"{key} <=> k"), "left_anti")
        rows = rows.unionByName(others)
    else:
        named = ", ".join(text_sql(value) for value in keys if value is not None) or "null"
        condition = f"{key} in ({named})" + (f" or {key} is null" if None in keys else "")
    # Without this check: a repaired row may have another key than the one under which it is replaced.
    plan.session.conf.set("spark.databricks.delta.replaceWhere.constraintCheck.enabled", "false")
    writer = rows.write.format("delta").mode("overwrite")
    writer = writer.option("replaceWhere", condition).option("partitionOverwriteMode", "static")
    if plan.address.location is not None:
        writer.save(plan.address.location)
    else:
        writer.saveAsTable(plan.address.sql)
