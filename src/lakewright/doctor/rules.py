"""Rules that the rows of a silver table must meet, and the rows that break them.

Source: `processing-strategies.md`, "Merge Strategy" (one row for each key) and "Version Lifecycle" (a version
ends where the next one begins).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.schema.canonical import CanonicalForm
from lakewright.schema.spark import columns_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import StructField
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.table_properties import kept_key
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.spec.models.entity import Entity
    from lakewright.transform.system_columns import SystemColumns

__all__ = ["KEY_ALIKE", "OWN_KEY", "ExaminedTable", "Finding", "Rule", "find_violations", "has_rules"]

_P = "_lakewright_"
OWN_KEY, NEXT, FORMER, SAME, ALIKE = (
    f"{_P}{name}" for name in ("own_key", "next", "former_end", "same", "alike")
)

KEY_ALIKE = "key_alike"
"""Rule that two records do not have equal values of the business key, such as from the texts `7` and `07`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, given by the condition of the rows that break it.

    Attributes:
        name: Stable name.
        singular: Subject and verb of the sentence on one row that meets the condition.
        plural: The same on several rows.
        rest: The rest of that sentence.
        condition: SQL over the columns of `ExaminedTable.annotated`.
    """

    name: str
    singular: str
    plural: str
    rest: str
    condition: str

    def words(self, count: int) -> str:
        """Return what is wrong with a number of rows, to follow that number."""
        return f"{self.singular if count == 1 else self.plural} {self.rest}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule.

    Attributes:
        rule: Name of the rule.
        words: The fault of the rows that break it, as text.
        count: Number of rows that break it.
        samples: The least and the greatest business key, or primary key, of these rows.
    """

    rule: str
    words: str
    count: int
    samples: tuple[Mapping[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the finding as `doctor -o json` prints it."""
        return {"rule": self.rule, "rows": self.count, "words": self.words, "samples": list(self.samples)}


@dataclass(frozen=True, slots=True)
class ExaminedTable:
    """The rows of a table in one version, with what is needed to examine them.

    Attributes:
        frame: The rows.
        entity: The entity of the table.
        system: Names of the system columns.
        properties: Properties of the table.
        form: The canonical form of its hashes.
    """

    frame: DataFrame
    entity: Entity
    system: SystemColumns
    properties: Mapping[str, str]
    form: CanonicalForm

    @property
    def is_historic(self) -> bool:
        """Whether rows are versions of records."""
        return self.entity.strategy is Strategy.HISTORIC

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The silver columns of the business key that the table has; the primary key if it has none."""
        names = (c.silver for c in self.entity.columns if c.is_business_key)
        found = tuple(n for name in names if (n := find_name(self.frame.columns, name)) is not None)
        return found or (self.system.key,)

    def own_key(self) -> str | None:
        """Return SQL that computes the primary key from a row's values; None if they do not suffice.

        They do not if a key column is missing, or has another type than in the source.
        """
        fields = {field.name.lower(): field for field in columns_of(self.frame.schema)}
        classes = kept_key(self.properties)
        columns = {c.source.lower(): fields.get(c.silver.lower()) for c in self.entity.columns}
        values = []
        for source, kind in classes.items():
            field = columns.get(source)
            if field is None or self.form.class_of(field.type) != kind:
                return None
            values.append((StructField(source, field.type), name_sql(field.name)))
        return self.form.hash_of(values) if values else None

    @property
    def is_key_converted(self) -> bool:
        """Whether the business key has other types than in the source, so that its hash can't be computed."""
        names = [column.silver for column in self.entity.columns if column.is_business_key]
        return bool(names) and len(self.key_columns) == len(names) and self.own_key() is None

    @property
    def is_live(self) -> str:
        """SQL of whether a row is the current one of a record; a missing deleted flag counts as false."""
        return f"coalesce({self.system.current_sql(has_history=self.is_historic)}, true)"

    def annotated(self) -> DataFrame:
        """Return the rows with columns about their neighbours under the same key, which rules refer to."""
        from pyspark.sql import functions

        key = name_sql(self.system.key)
        found = self.frame.withColumn(OWN_KEY, functions.expr(self.own_key() or "cast(null as string)"))
        if self.is_key_converted:
            values = ", ".join(map(name_sql, self.key_columns))
            alike = f"size(collect_set(if({self.is_live}, {key}, null)) over (partition by {values}))"
            found = found.withColumn(ALIKE, functions.expr(alike))
        if not self.is_historic:
            return found.withColumn(SAME, functions.expr(f"count(1) over (partition by {key})"))
        start, end = name_sql(self.system.valid_from), name_sql(self.system.valid_to)
        over = f"over (partition by {key} order by {start}, {end} nulls last)"
        columns = {NEXT: f"lead({start}) {over}", FORMER: f"lag({end}) {over}"}
        return found.withColumns({name: functions.expr(sql) for name, sql in columns.items()})

    def rules(self) -> Sequence[Rule]:
        """Return the rules of the entity's strategy."""
        system = self.system
        key, hash_, deleted = (name_sql(n) for n in (system.key, system.hash, system.deleted))
        common = [
            Rule("key_missing", "row has", "rows have", "no primary key", f"{key} is null"),
            Rule(
                "key_wrong",
                "row has",
                "rows have",
                "a primary key that differs from that of the values",
                f"{key} <> {OWN_KEY}",
            ),
            Rule(
                "hash_missing",
                "row has",
                "rows have",
                "no source hash",
                f"not coalesce(length({hash_}) = 64, false)",
            ),
            Rule("deleted_missing", "row has", "rows have", "no deleted flag", f"{deleted} is null"),
        ]
        if self.is_key_converted:
            same = "the business key of another record, which the source wrote in another way"
            common += [Rule(KEY_ALIKE, "row has", "rows have", same, f"{ALIKE} > 1 and {self.is_live}")]
        if not self.is_historic:
            return [
                Rule(
                    "key_twice",
                    "row shares",
                    "rows share",
                    "a key with others",
                    f"{SAME} > 1 and {key} is not null",
                ),
                *common,
            ]
        start, end, current = (name_sql(n) for n in system.temporal)
        return [
            Rule(
                "current_twice",
                "version is",
                "versions are",
                "current although a later one has the same key",
                f"{end} is null and {NEXT} is not null",
            ),
            Rule(
                "begins_twice",
                "version begins",
                "versions begin",
                "when the next one of the same key begins",
                f"{NEXT} = {start}",
            ),
            Rule(
                "overlap",
                "version begins",
                "versions begin",
                "before the previous one ends",
                f"{FORMER} > {start}",
            ),
            Rule("backward", "version ends", "versions end", "before beginning", f"{end} < {start}"),
            Rule(
                "gap",
                "version ends",
                "versions end",
                "before the next one begins, without a delete",
                f"{end} < {NEXT} and {end} >= {start} and not coalesce({deleted}, false)",
            ),
            Rule(
                "mark_wrong",
                "version has",
                "versions have",
                "a wrong current flag",
                f"not {current} <=> ({end} is null)",
            ),
            Rule(
                "deleted_current",
                "version is",
                "versions are",
                "current and deleted",
                f"{end} is null and {deleted}",
            ),
            Rule("start_missing", "version has", "versions have", "no beginning", f"{start} is null"),
            *common,
        ]


def has_rules(entity: Entity, names: Sequence[str], system: SystemColumns) -> bool:
    """Return whether a table has the columns that the rules of its entity refer to."""
    if entity.strategy is Strategy.FULL:
        return False
    wanted = [system.key, system.hash, system.deleted]
    wanted += system.temporal if entity.strategy is Strategy.HISTORIC else ()
    return all(find_name(names, name) is not None for name in wanted)


def find_violations(table: ExaminedTable, rules: Sequence[Rule] | None = None) -> tuple[Finding, ...]:
    """Return the rules that a table's rows break, found by one query.

    Args:
        table: The table.
        rules: The rules to check; all rules of the entity's strategy unless given.
    """
    from pyspark.sql import functions

    asked = table.rules() if rules is None else rules
    columns = table.key_columns
    key = f"struct({', '.join(f'cast({name_sql(name)} as string)' for name in columns)})"
    wanted = {}
    for rule in asked:
        wanted[rule.name] = f"count_if(coalesce({rule.condition}, false))"
        for end in ("min", "max"):
            wanted[f"{rule.name} {end}"] = f"{end}(case when {rule.condition} then {key} end)"
    found = table.annotated().agg(*(functions.expr(sql).alias(name) for name, sql in wanted.items()))
    row = found.first()
    values: dict[str, Any] = {} if row is None else row.asDict()
    return tuple(
        Finding(rule.name, rule.words(values[rule.name]), values[rule.name], _samples(columns, values, rule))
        for rule in asked
        if values.get(rule.name)
    )


def _samples(columns: Sequence[str], values: Mapping[str, Any], rule: Rule) -> tuple[Mapping[str, Any], ...]:
    """Return the least and the greatest key of the rows that break a rule."""
    ends = dict.fromkeys(tuple(values[f"{rule.name} {end}"]) for end in ("min", "max"))
    return tuple(dict(zip(columns, end, strict=True)) for end in ends)
