"""Examination of silver tables: broken rules, and since when; and their repair.

The plan of a repair has the rows that the table should have. Only rows under the keys with broken rules are
examined, and no row is removed unless that is allowed.

Source: `processing-strategies.md`, "Version Lifecycle" (a version ends where the next one begins); Delta's
documentation, "Query an older snapshot of a table (time travel)".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import Commit, Token, carrying_token, read_commits, strict_session
from lakewright.lake.observation import observe_table, read_table
from lakewright.manifest.plain_values import document_of
from lakewright.schema.spark import columns_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import StructField
from lakewright.slices.application import application_of
from lakewright.slices.chain import foreign_commits
from lakewright.spark.engine import materialized
from lakewright.strategies.slice_load import check_unchanged, table_lock
from lakewright.targets.entity.table_rules import OWN_KEY, ExaminedTable, Finding, find_violations, has_rules
from lakewright.targets.lease import hold_leases, table_resource
from lakewright.transform.steps import find_name, with_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.delta_log import TableState
    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Address
    from lakewright.targets.context import Context


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of examining an entity's table.

    Attributes:
        version: The version that was examined; None if there is no table, or its rows have no rules.
        findings: The broken rules.
        since: Rule to the first commit with which it is broken; None if that is not known.
        foreign_commits: Commits of other writers that changed rows.
    """

    version: int | None
    findings: tuple[Finding, ...] = ()
    since: Mapping[str, Commit | None] = field(default_factory=dict)
    foreign_commits: tuple[Commit, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong; commits of other writers alone are not wrong."""
        return not self.findings

    def as_json(self) -> dict[str, Any]:
        """Return the diagnosis as `doctor -o json` prints it."""
        return {
            "version": self.version,
            "findings": [
                {**finding.as_json(), "since": _commit_json(self.since.get(finding.rule))}
                for finding in self.findings
            ],
            "written_by_others": [_commit_json(commit) for commit in self.foreign_commits],
        }


def examine(context: Context, entity: Entity) -> Diagnosis:
    """Return what is wrong with an entity's table; nothing is written."""
    lake = context.workspace.lake
    address = entity.places(lake.settings).silver
    state = observe_table(lake, address)
    if not state.exists:
        return Diagnosis(None)
    log = read_commits(lake, address)
    if not has_rules(lake, entity, state.names):
        return Diagnosis(None, foreign_commits=foreign_commits(log))
    session = strict_session(lake)
    table = ExaminedTable.of(lake, entity, session, state)
    findings = find_violations(table)
    since = _since(lake, table, session, findings, log) if findings else {}
    return Diagnosis(state.version, findings, since, foreign_commits(log))


def _since(
    lake: Lake,
    table: ExaminedTable,
    session: SparkSession,
    findings: tuple[Finding, ...],
    log: tuple[Commit, ...],
) -> dict[str, Commit | None]:
    """Return the first commit with which each rule is broken, by examining earlier versions."""
    from pyspark.errors import PySparkException

    broken, address = [each.rule for each in findings], table.entity.places(lake.settings).silver

    def count_at(version: int) -> Mapping[str, int] | None:
        try:
            frame = read_table(session, address, version)
            if not has_rules(lake, table.entity, frame.columns):
                return {}
            earlier = replace(table, frame=frame)
            return {finding.rule: finding.count for finding in find_violations(earlier, broken)}
        except PySparkException:
            return None

    by_version = {commit.version: commit for commit in log}
    found = first_broken(broken, sorted(by_version), count_at)
    return {rule: None if version is None else by_version[version] for rule, version in found.items()}


def first_broken(
    rules: Iterable[str], versions: Sequence[int], count_at: Callable[[int], Mapping[str, int] | None]
) -> dict[str, int | None]:
    """Return the first version in which each rule is broken; None if that is not known.

    A bisection finds it, which assumes that a broken rule stays broken. Each version is examined at most
    once.

    Args:
        rules: Rules that are broken in the last version.
        versions: Versions of the table, in order.
        count_at: Returns the number of rows that break each rule in a version; None if the version can no
            longer be read.

    Example:
        >>> first_broken(["gap"], [0, 1, 2, 3, 4], lambda version: {"gap": int(version >= 3)})
        {'gap': 3}
    """
    seen = cache(count_at)

    def first(rule: str) -> int | None:
        def is_broken(version: int) -> bool:
            return bool((seen(version) or {}).get(rule))

        found = bisect_left(versions, True, hi=len(versions) - 1, key=is_broken)
        is_known = found == 0 or seen(versions[found - 1]) is not None
        return versions[found] if is_known else None

    return {rule: first(rule) for rule in rules}


def _commit_json(commit: Commit | None) -> dict[str, Any] | None:
    if commit is None:
        return None
    items = [content["item"] for content in commit.items]
    return {
        "version": commit.version,
        "at": commit.at.isoformat() if commit.at else None,
        "operation": commit.operation,
        "item": items[-1] if items else None,
        "items": items,
        "run": commit.content.get("run"),
        "is_own": "app" in commit.content,
    }


SHOWN = 20
"""Number of changed rows that a plan shows."""
_P = "_lakewright_"
NEXT, KEPT, WAS = (f"{_P}{name}" for name in ("following", "kept", "was_"))


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """A repair that can be made.

    Attributes:
        session: The Spark session in which the rows were computed.
        address: The table.
        state: The table's state when the repair was planned.
        table: The rows of that version.
        rows: All rows of the affected keys after the repair, already computed.
        keys: Primary keys, as `k`, whose rows are replaced; null stands for rows without a key.
        changed: Number of rows that would change.
        removed: Number of rows that would be removed.
        doubled: Number of rows that only a removal can repair; they stay unless removal is allowed.
        shown: Some of the changed rows: their key, their beginning, and column to values before and after.
        left: Rules that would still be broken.
    """

    session: SparkSession
    address: Address
    state: TableState
    table: ExaminedTable
    rows: DataFrame
    keys: DataFrame
    changed: int
    removed: int
    doubled: int
    shown: tuple[Mapping[str, Any], ...]
    left: tuple[Finding, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the plan as `doctor -o json` prints it."""
        named = ("changed", "removed", "left")
        return document_of(self, *named, needs_data_loss=self.doubled, rows=self.shown)


def plan_repair(context: Context, entity: Entity) -> RepairPlan | None:
    """Return the repair of an entity's table, or None if nothing is wrong; nothing is written.

    A version ends where the next one of its key begins; the last one is current unless it has an end, or is
    flagged as deleted. Missing or wrong keys and hashes are computed from the row's values. Of rows that
    share a key, or begin at the same instant, only the one last seen can stay; with `sequence_by`, the one
    with the greatest value.
    """
    lake = context.workspace.lake
    address = entity.places(lake.settings).silver
    state = observe_table(lake, address)
    if not state.exists or not has_rules(lake, entity, state.names):
        return None
    session = strict_session(lake)
    table = ExaminedTable.of(lake, entity, session, state)
    mended = materialized(_mended(table))
    doubled = mended.where(f"not {KEPT}").count()
    columns = _mended_columns(table)
    allow_data_loss = context.options.permissions.allow_data_loss
    kept = mended.where(KEPT) if allow_data_loss else with_columns(mended, _reverted(table, columns))
    is_changed = " or ".join(f"not {name_sql(name)} <=> {name_sql(WAS + name)}" for name in columns)
    changed = kept.where(is_changed)
    rows = kept.select(*(name_sql(name) for name in table.frame.columns))
    plan = RepairPlan(
        session=session,
        address=address,
        state=state,
        table=table,
        rows=rows,
        keys=mended.selectExpr(f"{name_sql(WAS + table.system.key)} as k").distinct(),
        changed=changed.count(),
        removed=doubled if allow_data_loss else 0,
        doubled=0 if allow_data_loss else doubled,
        shown=_shown(table, changed, columns),
        left=find_violations(replace(table, frame=rows)),
    )
    return plan if plan.changed or plan.removed or plan.doubled or plan.left else None


def _mended(table: ExaminedTable) -> DataFrame:
    """Return all rows under keys with broken rules in their repaired form, with their former values."""
    from pyspark.sql import functions

    rows = table.annotated()
    condition = " or ".join(f"coalesce({rule.condition}, false)" for rule in table.rules().values())
    own = f"coalesce({OWN_KEY}, {name_sql(table.system.key)})"
    broken = rows.where(condition)
    keys = broken.selectExpr(f"inline(array(struct({own} as k), struct({name_sql(table.system.key)} as k)))")
    found = table.frame.withColumn(OWN_KEY, functions.expr(table.own_key() or "cast(null as string)"))
    concerned = found.join(keys.distinct(), functions.expr(f"{own} <=> k"), "left_semi")
    return _mended_versions(table, concerned) if table.is_historic else _mended_records(table, concerned)


def _reverted(table: ExaminedTable, columns: Sequence[str]) -> dict[str, str]:
    """Return the former columns for keys of which a row would be removed, and repaired ones for others."""
    lost = f"count_if(not {KEPT}) over (partition by {name_sql(table.system.key)})"
    return {name: f"if({lost} > 0, {name_sql(WAS + name)}, {name_sql(name)})" for name in columns}


def _mended_columns(table: ExaminedTable) -> tuple[str, ...]:
    """Return the columns that a repair may change."""
    system = table.system
    times = system.temporal if table.is_historic else ()
    return (system.key, system.hash, *times, system.deleted)


def _prepared(table: ExaminedTable, rows: DataFrame) -> DataFrame:
    """Return the rows with repaired key, hash and flag, together with the former values."""
    system = table.system
    key, hash_, deleted = (name_sql(n) for n in (system.key, system.hash, system.deleted))
    was = {WAS + name: name_sql(name) for name in _mended_columns(table)}
    made = {
        system.key: f"coalesce({OWN_KEY}, {key})",
        system.hash: f"if(length({hash_}) = 64, {hash_}, {_row_hash(table)})",
        system.deleted: f"coalesce({deleted}, false)",
    }
    return with_columns(with_columns(rows, was), made)


def _row_hash(table: ExaminedTable) -> str:
    """Return SQL of the hash of a row's values in silver, under the names of the source."""
    sources = {column.silver.lower(): column.source for column in table.entity.columns}
    excluded = {name.lower() for name in table.entity.settings.hash_exclude}
    values = []
    for column in columns_of(table.frame.schema):
        source = sources.get(column.name.lower(), column.name)
        if column.name.lower() in table.system.all or {source.lower(), column.name.lower()} & excluded:
            continue
        values.append((StructField(source, column.type), name_sql(column.name)))
    return table.form.hash_of(values)


def _mended_records(table: ExaminedTable, rows: DataFrame) -> DataFrame:
    """Return repaired rows of Merge; of rows with the same key, the latest or last seen one is kept."""
    system = table.system
    key, seen, hash_ = (name_sql(n) for n in (system.key, system.last_seen, system.hash))
    latest = "".join(f"{name_sql(name)} desc nulls last, " for name in _sequence(table))
    over = f"over (partition by {key} order by {latest}{seen} desc nulls last, {hash_})"
    return with_columns(_prepared(table, rows), {KEPT: f"{key} is null or row_number() {over} = 1"})


def _sequence(table: ExaminedTable) -> tuple[str, ...]:
    """Return the column of `sequence_by`, if the entity has one and the table too."""
    declared = table.entity.settings.sequence_by
    found = None if declared is None else find_name(table.frame.columns, table.entity.silver_name(declared))
    return () if found is None else (found,)


def _mended_versions(table: ExaminedTable, rows: DataFrame) -> DataFrame:
    """Return repaired versions of Historic; of versions that begin at the same time, the last is kept."""
    system = table.system
    start, end, current = (name_sql(n) for n in system.temporal)
    key, seen, deleted = (name_sql(n) for n in (system.key, system.last_seen, system.deleted))
    found = with_columns(_prepared(table, rows), {system.valid_from: f"coalesce({start}, {seen})"})
    latest = "".join(f"{name_sql(name)} nulls first, " for name in _sequence(table))
    order = f"{start}, {end} is null, {end}, {latest}{seen} nulls first, {name_sql(system.hash)}"
    over = f"over (partition by {key} order by {order})"
    found = with_columns(found, {NEXT: f"lead({start}) {over}"})
    mended = f"""case
        when {NEXT} is null and {end} is null and {deleted} then greatest({seen}, {start})
        when {NEXT} is null and {end} < {start} then if({current}, null, {start})
        when {NEXT} is null then {end}
        when {end} is null or {end} < {start} or {end} > {NEXT} or not {deleted} then {NEXT}
        else {end} end"""
    found = with_columns(found, {KEPT: f"{key} is null or {NEXT} is null or {NEXT} <> {start}"})
    found = with_columns(found, {system.valid_to: mended})
    return with_columns(found, {system.is_current: f"{end} is null"})


def _shown(table: ExaminedTable, changed: DataFrame, columns: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    names = table.key_columns
    begin = (table.system.valid_from,) if table.is_historic else ()
    picked = [*(f"cast({name_sql(n)} as string) as {name_sql('key ' + n)}" for n in (*names, *begin))]
    for name in columns:
        before, after = name_sql(WAS + name), name_sql(name)
        picked += [
            f"not {before} <=> {after} as {name_sql('is ' + name)}",
            f"cast({before} as string) as {name_sql('before ' + name)}",
            f"cast({after} as string) as {name_sql('after ' + name)}",
        ]
    ordered = changed.selectExpr(*picked).orderBy(*(name_sql("key " + n) for n in (*names, *begin)))
    return tuple(
        {
            "key": {name: row["key " + name] for name in names},
            **({"valid_from": row["key " + begin[0]]} if begin else {}),
            "changes": {
                name: [row["before " + name], row["after " + name]] for name in columns if row["is " + name]
            },
        }
        for row in ordered.limit(SHOWN).collect()
    )


MOST_KEYS = 2_000
"""Keys up to which only their rows are replaced, and not the whole table: the query lists them."""


def repair(context: Context, entity: Entity, plan: RepairPlan, facts: Mapping[str, Any]) -> int | None:
    """Make a planned repair in one commit, which has some facts of it; return the table's version after.

    Raises:
        LeaseHeld: A run writes to the table.
        CommitConflict: The table has changed since the repair was planned; nothing was written.
    """
    lake, address = context.workspace.lake, plan.address
    application = application_of(context.workspace.project.name, entity)
    content = {"run": context.run_id, "repair": dict(facts)}
    remedy = Phrase("Look again with ", Command("doctor"), ", then repair.")
    leased = hold_leases(context, frozenset({table_resource(address)}))
    with leased, table_lock(lake, address, str(context.leases.holder)):
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
