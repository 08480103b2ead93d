"""Rules that the rows of a silver table must meet, and the rows that break them.

Source: `processing-strategies.md`, "Merge Strategy" (one row for each key) and "Version Lifecycle" (a version
ends where the next one begins).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.lake.observation import observe_table, read_table
from lakewright.schema.canonical import CanonicalForm
from lakewright.schema.spark import columns_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import StructField
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.table_properties import canonical_form, kept_key
from lakewright.strategies.version_rows import RowCheck
from lakewright.transform.steps import find_name, with_columns
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.delta_log import TableState
    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity
    from lakewright.workspace.workspace import Workspace


_P = "_lakewright_"
OWN_KEY, NEXT, FORMER, SAME, ALIKE = (
    f"{_P}{name}" for name in ("own_key", "next", "former_end", "same", "alike")
)

KEY_ALIKE = "key_alike"
"""Rule that two records do not have equal values of the business key, such as from the texts `7` and `07`."""


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

    @classmethod
    def of(cls, lake: Lake, entity: Entity, session: SparkSession, state: TableState) -> ExaminedTable:
        """Return the rows of an entity's table in the observed version, ready to be examined."""
        settings = lake.settings
        return cls(
            frame=read_table(session, entity.places(settings).silver, state.version),
            entity=entity,
            system=SystemColumns(settings.systemfield_prefix, entity.destination),
            properties=state.properties,
            form=canonical_form(state.properties, settings.timezone),
        )

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
        return with_columns(found, columns)

    def rules(self) -> dict[str, RowCheck]:
        """Return the rules of the entity's strategy by their stable names.

        Their conditions are SQL over the columns of `annotated`.
        """
        system = self.system
        key, hash_, deleted = (name_sql(n) for n in (system.key, system.hash, system.deleted))
        no_hash = f"not coalesce(length({hash_}) = 64, false)"
        other_key = "a primary key that differs from that of the values"
        common = {
            "key_missing": RowCheck("row", "has", "no primary key", f"{key} is null"),
            "key_wrong": RowCheck("row", "has", other_key, f"{key} <> {OWN_KEY}"),
            "hash_missing": RowCheck("row", "has", "no source hash", no_hash),
            "deleted_missing": RowCheck("row", "has", "no deleted flag", f"{deleted} is null"),
        }
        if self.is_key_converted:
            same = "the business key of another record, which the source wrote in another way"
            common[KEY_ALIKE] = RowCheck("row", "has", same, f"{ALIKE} > 1 and {self.is_live}")
        if not self.is_historic:
            is_twice = f"{SAME} > 1 and {key} is not null"
            return {"key_twice": RowCheck("row", "shares", "a key with others", is_twice), **common}
        start, end, current = (name_sql(n) for n in system.temporal)
        is_gap = f"{end} < {NEXT} and {end} >= {start} and not coalesce({deleted}, false)"
        later, at_next = "current although a later one has the same key", "before the next one begins"
        return {
            "current_twice": RowCheck("version", "is", later, f"{end} is null and {NEXT} is not null"),
            "begins_twice": RowCheck(
                "version", "begins", "when the next one of the same key begins", f"{NEXT} = {start}"
            ),
            "overlap": RowCheck("version", "begins", "before the previous one ends", f"{FORMER} > {start}"),
            "backward": RowCheck("version", "ends", "before beginning", f"{end} < {start}"),
            "gap": RowCheck("version", "ends", f"{at_next}, without a delete", is_gap),
            "mark_wrong": RowCheck(
                "version", "has", "a wrong current flag", f"not {current} <=> ({end} is null)"
            ),
            "deleted_current": RowCheck(
                "version", "is", "current and deleted", f"{end} is null and {deleted}"
            ),
            "start_missing": RowCheck("version", "has", "no beginning", f"{start} is null"),
            **common,
        }


def has_rules(lake: Lake, entity: Entity, names: Sequence[str]) -> bool:
    """Return whether a table has the columns that the rules of its entity refer to."""
    system = SystemColumns(lake.settings.systemfield_prefix, entity.destination)
    if entity.strategy is Strategy.FULL:
        return False
    wanted = [system.key, system.hash, system.deleted]
    wanted += system.temporal if entity.strategy is Strategy.HISTORIC else ()
    return all(find_name(names, name) is not None for name in wanted)


def find_violations(table: ExaminedTable, names: Collection[str] | None = None) -> tuple[Finding, ...]:
    """Return the rules that a table's rows break, found by one query.

    Args:
        table: The table.
        names: The rules to check; all rules of the entity's strategy unless given.
    """
    from pyspark.sql import functions

    asked = {name: rule for name, rule in table.rules().items() if names is None or name in names}
    columns = table.key_columns
    key = f"struct({', '.join(f'cast({name_sql(name)} as string)' for name in columns)})"
    wanted = {}
    for name, rule in asked.items():
        wanted[name] = f"count_if(coalesce({rule.condition}, false))"
        for end in ("min", "max"):
            wanted[f"{name} {end}"] = f"{end}(case when {rule.condition} then {key} end)"
    found = table.annotated().agg(*(functions.expr(sql).alias(name) for name, sql in wanted.items()))
    row = found.first()
    values: dict[str, Any] = {} if row is None else row.asDict()
    return tuple(
        Finding(name, f"{rule.subject(count)} {rule.rest}", count, _samples(columns, values, name))
        for name, rule in asked.items()
        if (count := values.get(name))
    )


def _samples(columns: Sequence[str], values: Mapping[str, Any], rule: str) -> tuple[Mapping[str, Any], ...]:
    """Return the least and the greatest key of the rows that break a rule."""
    ends = dict.fromkeys(tuple(values[f"{rule} {end}"]) for end in ("min", "max"))
    return tuple(dict(zip(columns, end, strict=True)) for end in ends)


_INVARIANTS = frozenset(
    ("key_twice", "key_missing", "current_twice", "overlap", "backward", "mark_wrong", "start_missing")
)
"""The rules by which VERIFY judges a table; the others are those of keys, hashes and flags."""


def broken_invariants(workspace: Workspace, entity: Entity) -> tuple[str, ...]:
    """Describe each invariant that an entity's table breaks, with the number of rows.

    Merge: no key occurs twice. Historic: a key has at most one current version, its versions neither overlap
    nor end before they begin, and exactly the versions without an end are flagged as current. The strategy
    Full has no invariants.
    """
    lake = workspace.lake
    state = observe_table(lake, entity.places(lake.settings).silver)
    if not has_rules(lake, entity, state.names):
        return ()
    found = find_violations(ExaminedTable.of(lake, entity, workspace.spark, state), _INVARIANTS)
    return tuple(f"{each.count} {each.words}" for each in found)
