"""Repairing a silver table's rows: what they should be, worked out from what they are.

Only rows under the keys with which something is wrong are looked at. No row goes, unless that is allowed.

Source: `processing-strategies.md`, "Version Lifecycle" (a version ends where the next one begins).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakewright.doctor.diagnosis import OWN_KEY, Finding, Patient, diagnose
from lakewright.transform.hash import hash_of
from lakewright.transform.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.spec.models.places import Address

__all__ = ["Treatment", "overwrite", "treat"]

SHOWN = 20
"""Rows of a treatment that are shown."""

MOST_KEYS = 2_000
"""Keys up to which only their rows are replaced, and not the whole table."""

_P = "_lakewright_"
NEXT, KEPT, WAS = (f"{_P}{name}" for name in ("following", "kept", "was_"))


@dataclass(frozen=True, slots=True)
class Treatment:
    """What a repair would do.

    Attributes:
        rows: All rows of the keys concerned as they would be, put down.
        keys: Primary keys, as `k`, under which rows are replaced; null stands for rows without one.
        changed: Rows that would be different.
        removed: Rows that would go.
        doubled: Rows that only going would mend, and that therefore stay as long as that isn't allowed.
        shown: Some of the changed rows: their key, when they begin, and column to its value before and after.
        left: What would still be wrong afterwards.
    """

    rows: DataFrame
    keys: DataFrame
    changed: int
    removed: int
    doubled: int
    shown: tuple[Mapping[str, Any], ...]
    left: tuple[Finding, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the treatment as `doctor -o json` prints it."""
        return {
            "changed": self.changed,
            "removed": self.removed,
            "needs_data_loss": self.doubled,
            "rows": list(self.shown),
            "left": [finding.as_json() for finding in self.left],
        }


def treat(patient: Patient, *, allow_data_loss: bool) -> Treatment:
    """Return what makes a table's rows right again, as far as they themselves tell; nothing is written.

    A version ends where the next one of its key begins; the last one is current unless it has an end, or is
    flagged as deleted. Keys and hashes that are missing or wrong are made from the row's values. Of rows that
    share a key, or begin at the same instant, only the one last seen can stay.
    """
    from pyspark.sql import functions

    rules = patient.rules()
    rows = patient.annotated()
    condition = " or ".join(f"coalesce({rule.condition}, false)" for rule in rules)
    own = f"coalesce({OWN_KEY}, {name_sql(patient.system.key)})"
    flagged = rows.where(condition)
    keys = flagged.selectExpr(
        f"inline(array(struct({own} as k), struct({name_sql(patient.system.key)} as k)))"
    )
    found = patient.frame.withColumn(OWN_KEY, functions.expr(patient.own_key() or "cast(null as string)"))
    concerned = found.join(keys.distinct(), functions.expr(f"{own} <=> k"), "left_semi")
    mended = _historic(patient, concerned) if patient.is_historic else _merged(patient, concerned)
    return _treatment(patient, mended.localCheckpoint(), allow_data_loss=allow_data_loss)


def _treatment(patient: Patient, mended: DataFrame, *, allow_data_loss: bool) -> Treatment:
    doubled = mended.where(f"not {KEPT}").count()
    columns = _mended_columns(patient)
    kept = mended.where(KEPT) if allow_data_loss else _with(mended, _reverted(patient, columns))
    is_changed = " or ".join(f"not {name_sql(name)} <=> {name_sql(WAS + name)}" for name in columns)
    changed = kept.where(is_changed)
    rows = kept.select(*(name_sql(name) for name in patient.frame.columns))
    keys = mended.selectExpr(f"{name_sql(WAS + patient.system.key)} as k").distinct()
    return Treatment(
        rows=rows,
        keys=keys,
        changed=changed.count(),
        removed=doubled if allow_data_loss else 0,
        doubled=0 if allow_data_loss else doubled,
        shown=_shown(patient, changed, columns),
        left=diagnose(replace(patient, frame=rows)),
    )


def _reverted(patient: Patient, columns: Sequence[str]) -> dict[str, str]:
    """Columns as they were, for keys of which a row would have to go; as they are mended for others."""
    lost = f"count_if(not {KEPT}) over (partition by {name_sql(patient.system.key)})"
    return {name: f"if({lost} > 0, {name_sql(WAS + name)}, {name_sql(name)})" for name in columns}


def _mended_columns(patient: Patient) -> tuple[str, ...]:
    system = patient.system
    times = system.temporal if patient.is_historic else ()
    return (system.key, system.hash, *times, system.deleted)


def _prepared(patient: Patient, rows: DataFrame) -> DataFrame:
    """The rows with key, hash and flag made right, beside what these were."""
    system = patient.system
    key, hash_, deleted = (name_sql(n) for n in (system.key, system.hash, system.deleted))
    was = {WAS + name: name_sql(name) for name in _mended_columns(patient)}
    made = {
        system.key: f"coalesce({OWN_KEY}, {key})",
        system.hash: f"if(length({hash_}) = 64, {hash_}, {_row_hash(patient)})",
        system.deleted: f"coalesce({deleted}, false)",
    }
    return _with(_with(rows, was), made)


def _row_hash(patient: Patient) -> str:
    """The hash of a row's values as they are in silver, under the source's names."""
    from pyspark.sql.types import StructField

    sources = {column.silver.lower(): column.source for column in patient.entity.columns}
    excluded = {name.lower() for name in patient.entity.settings.hash_exclude}
    values = []
    for field in patient.frame.schema.fields:
        source = sources.get(field.name.lower(), field.name)
        if field.name.lower() in patient.system.all or {source.lower(), field.name.lower()} & excluded:
            continue
        values.append((StructField(source, field.dataType), name_sql(field.name)))
    return hash_of(values)


def _merged(patient: Patient, rows: DataFrame) -> DataFrame:
    system = patient.system
    key, seen, hash_ = (name_sql(n) for n in (system.key, system.last_seen, system.hash))
    over = f"over (partition by {key} order by {seen} desc nulls last, {hash_})"
    return _with(_prepared(patient, rows), {KEPT: f"{key} is null or row_number() {over} = 1"})


def _historic(patient: Patient, rows: DataFrame) -> DataFrame:
    system = patient.system
    start, end, current = (name_sql(n) for n in system.temporal)
    key, seen, deleted = (name_sql(n) for n in (system.key, system.last_seen, system.deleted))
    found = _with(_prepared(patient, rows), {system.valid_from: f"coalesce({start}, {seen})"})
    order = f"{start}, {end} is null, {end}, {seen} nulls first, {name_sql(system.hash)}"
    over = f"over (partition by {key} order by {order})"
    found = _with(found, {NEXT: f"lead({start}) {over}"})
    mended = f"""case
        when {NEXT} is null and {end} is null and {deleted} then greatest({seen}, {start})
        when {NEXT} is null and {end} < {start} then if({current}, null, {start})
        when {NEXT} is null then {end}
        when {end} is null or {end} < {start} or {end} > {NEXT} or not {deleted} then {NEXT}
        else {end} end"""
    found = _with(found, {KEPT: f"{key} is null or {NEXT} is null or {NEXT} <> {start}"})
    found = _with(found, {system.valid_to: mended})
    return _with(found, {system.is_current: f"{end} is null"})


def _shown(patient: Patient, changed: DataFrame, columns: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    names = patient.key_columns
    begin = (patient.system.valid_from,) if patient.is_historic else ()
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


def overwrite(session: SparkSession, address: Address, patient: Patient, treatment: Treatment) -> None:
    """Have the rows of a treatment's keys replaced in one commit of the session."""
    from pyspark.sql import functions

    key = name_sql(patient.system.key)
    rows, condition = treatment.rows, "true"
    keys = [row[0] for row in treatment.keys.limit(MOST_KEYS + 1).collect()]
    if len(keys) > MOST_KEYS:
        others = patient.frame.join(treatment.keys, functions.expr(f"{key} <=> k"), "left_anti")
        rows = rows.unionByName(others)
    else:
        named = ", ".join(text_sql(value) for value in keys if value is not None) or "null"
        condition = f"{key} in ({named})" + (f" or {key} is null" if None in keys else "")
    # Rows may come to have another key than the one under which they are replaced.
    session.conf.set("spark.databricks.delta.replaceWhere.constraintCheck.enabled", "false")
    writer = rows.write.format("delta").mode("overwrite")
    writer = writer.option("replaceWhere", condition).option("partitionOverwriteMode", "static")
    if address.location is not None:
        writer.save(address.location)
    else:
        writer.saveAsTable(address.sql)


def _with(frame: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import functions

    return frame.withColumns({name: functions.expr(sql) for name, sql in columns.items()})
