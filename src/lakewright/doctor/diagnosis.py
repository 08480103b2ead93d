"""What can be wrong with the rows of a silver table, and which rows it is wrong with.

Source: `processing-strategies.md`, "Merge Strategy" (one row a key) and "Version Lifecycle" (a version ends
where the next one begins).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.spec.models.entity import Strategy
from lakewright.strategies.table_properties import KEY_PROPERTY
from lakewright.transform.hash import hash_of, value_class
from lakewright.transform.sql import name_sql
from lakewright.transform.steps import find

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.spec.models.entity import Entity
    from lakewright.transform.system import SystemColumns

__all__ = ["FORMER", "NEXT", "OWN_KEY", "Finding", "Patient", "Rule", "diagnose", "has_rules"]

_P = "_lakewright_"
OWN_KEY, NEXT, FORMER, SAME = (f"{_P}{name}" for name in ("own_key", "next", "former_end", "same"))


@dataclass(frozen=True, slots=True)
class Rule:
    """What rows may not be.

    Attributes:
        name: Stable.
        words: What to say of the rows of which the condition holds.
        condition: Over the table's columns and those about neighbours.
    """

    name: str
    words: str
    condition: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that doesn't hold.

    Attributes:
        count: Rows of which it doesn't.
        samples: Business keys, or else primary keys, of the first and the last of them.
    """

    rule: str
    words: str
    count: int
    samples: tuple[Mapping[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the finding as `doctor -o json` prints it."""
        return {"rule": self.rule, "rows": self.count, "words": self.words, "samples": list(self.samples)}


@dataclass(frozen=True, slots=True)
class Patient:
    """A table's rows, and by which names and rules they are looked at.

    Attributes:
        properties: Of the table.
    """

    frame: DataFrame
    entity: Entity
    system: SystemColumns
    properties: Mapping[str, str]

    @property
    def is_historic(self) -> bool:
        """Whether rows are versions."""
        return self.entity.strategy is Strategy.HISTORIC

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Columns of the business key that the table has, in silver's names; else the primary key."""
        names = (c.silver for c in self.entity.columns if c.is_business_key)
        found = tuple(n for name in names if (n := find(self.frame.columns, name)) is not None)
        return found or (self.system.key,)

    def own_key(self) -> str | None:
        """Return the SQL of the primary key that a row's values give; None where they alone don't tell."""
        fields = {field.name.lower(): field for field in self.frame.schema.fields}
        classes = json.loads(self.properties.get(KEY_PROPERTY, "{}"))
        columns = {c.source.lower(): fields.get(c.silver.lower()) for c in self.entity.columns}
        values = []
        for source, kind in classes.items():
            field = columns.get(source)
            if field is None or value_class(field.dataType) != kind:
                return None
            values.append((_named(source, field), name_sql(field.name)))
        return hash_of(values) if values else None

    def annotated(self) -> DataFrame:
        """Return the rows with what rules ask of their neighbours under the same key."""
        from pyspark.sql import functions

        key = name_sql(self.system.key)
        found = self.frame.withColumn(OWN_KEY, functions.expr(self.own_key() or "cast(null as string)"))
        if not self.is_historic:
            return found.withColumn(SAME, functions.expr(f"count(1) over (partition by {key})"))
        start, end = name_sql(self.system.valid_from), name_sql(self.system.valid_to)
        over = f"over (partition by {key} order by {start}, {end} nulls last)"
        columns = {NEXT: f"lead({start}) {over}", FORMER: f"lag({end}) {over}"}
        return found.withColumns({name: functions.expr(sql) for name, sql in columns.items()})

    def rules(self) -> Sequence[Rule]:
        """Return what holds of such a table."""
        system = self.system
        key, hash_, deleted = (name_sql(n) for n in (system.key, system.hash, system.deleted))
        common = [
            Rule("key_missing", "rows have no primary key", f"{key} is null"),
            Rule(
                "key_wrong", "rows have a primary key that isn't that of their values", f"{key} <> {OWN_KEY}"
            ),
            Rule("hash_missing", "rows have no source hash", f"not coalesce(length({hash_}) = 64, false)"),
            Rule("deleted_missing", "rows don't say whether they are deleted", f"{deleted} is null"),
        ]
        if not self.is_historic:
            return [Rule("key_twice", "rows share their key", f"{SAME} > 1 and {key} is not null"), *common]
        start, end, current = (name_sql(n) for n in system.temporal)
        return [
            Rule(
                "current_twice",
                "versions are current though another one of their key follows",
                f"{end} is null and {NEXT} is not null",
            ),
            Rule("begins_twice", "versions begin when the next one of their key does", f"{NEXT} = {start}"),
            Rule("overlap", "versions begin before the one before them ends", f"{FORMER} > {start}"),
            Rule("backward", "versions end before they begin", f"{end} < {start}"),
            Rule(
                "gap",
                "versions end before the next one begins, and no delete says why",
                f"{end} < {NEXT} and {end} >= {start} and not coalesce({deleted}, false)",
            ),
            Rule(
                "mark_wrong", "versions are marked as current wrongly", f"not {current} <=> ({end} is null)"
            ),
            Rule("deleted_current", "versions are current and deleted", f"{end} is null and {deleted}"),
            Rule("start_missing", "versions have no beginning", f"{start} is null"),
            *common,
        ]


def has_rules(entity: Entity, names: Sequence[str], system: SystemColumns) -> bool:
    """Return whether a table has the columns that its entity's rules ask for."""
    if entity.strategy is Strategy.FULL:
        return False
    wanted = [system.key, system.hash, system.deleted]
    wanted += system.temporal if entity.strategy is Strategy.HISTORIC else ()
    return all(find(names, name) is not None for name in wanted)


def diagnose(patient: Patient, rules: Sequence[Rule] | None = None) -> tuple[Finding, ...]:
    """Return the rules that don't hold of a table's rows, by one query."""
    from pyspark.sql import functions

    asked = patient.rules() if rules is None else rules
    columns = patient.key_columns
    key = f"struct({', '.join(f'cast({name_sql(name)} as string)' for name in columns)})"
    wanted = {}
    for rule in asked:
        wanted[rule.name] = f"count_if(coalesce({rule.condition}, false))"
        for end in ("min", "max"):
            wanted[f"{rule.name} {end}"] = f"{end}(case when {rule.condition} then {key} end)"
    found = patient.annotated().agg(*(functions.expr(sql).alias(name) for name, sql in wanted.items()))
    row = found.first()
    values: dict[str, Any] = {} if row is None else row.asDict()
    return tuple(
        Finding(rule.name, rule.words, values[rule.name], _samples(columns, values, rule))
        for rule in asked
        if values.get(rule.name)
    )


def _samples(columns: Sequence[str], values: Mapping[str, Any], rule: Rule) -> tuple[Mapping[str, Any], ...]:
    """The least and the greatest key of rows that a rule doesn't hold of."""
    ends = dict.fromkeys(tuple(values[f"{rule.name} {end}"]) for end in ("min", "max"))
    return tuple(dict(zip(columns, end, strict=True)) for end in ends)


def _named(name: str, field: Any) -> Any:
    from pyspark.sql.types import StructField

    return StructField(name, field.dataType)
