"""Adoption of tables that other tools made: their columns and rows, checked and then written in one commit.

Columns are kept, renamed, replaced, dropped or added. All rows are rewritten once, because each gets a
primary key and a hash. The table's earlier versions stay readable.

Source: `processing-strategies.md`, "Historic Strategy (SCD Type 2)", "Version Lifecycle" and "Behavior" of
Merge and Historic (an existing table is continued); Delta's documentation, "Replace table schema"; adoption
is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.errors import MigrationError, SchemaDriftError
from lakewright.lake.commit import Token
from lakewright.lake.delta_sql import table_detail
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import read_table
from lakewright.schema.spark import columns_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import TEXT, VOID, StructField
from lakewright.spec.models.adoption import LIKE
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.compatibility import check_partitions
from lakewright.strategies.slice_load import LoadRequest, SliceLoad
from lakewright.strategies.table_properties import STRATEGY_PROPERTY, silver_properties
from lakewright.strategies.version_rows import (
    END,
    FROM,
    NEXT,
    SAME,
    UNREAD,
    Roles,
    RowCheck,
    check_present,
    check_rows,
    interval_checks,
)
from lakewright.transform.steps import instant_sql, with_columns
from lakewright.transform.storable_columns import final_names
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.delta_log import TableState
    from lakewright.lake.lake import Lake
    from lakewright.spec.models.adoption import Adoption
    from lakewright.spec.models.entity import Entity
    from lakewright.transform.pipeline import PreparedSlice


_PARTITIONED = (
    "Map the declared columns to the table's in `adopt: columns`; or declare those by which the table is "
    "partitioned, or rewrite the table with the declared ones first."
)


@dataclass(frozen=True, slots=True)
class AdoptedColumns:
    """The effect of an adoption on a table's columns.

    Attributes:
        adoption: The declaration.
        roles: Role of a column (`valid_from`, …) to its name in the table.
        kept: Name in the table to the name in silver.
        replaced: System columns of the table whose values are computed again.
        dropped: Columns that are dropped.
        added: System columns that are added.
    """

    adoption: Adoption
    roles: Mapping[str, str]
    kept: Mapping[str, str]
    replaced: tuple[str, ...]
    dropped: tuple[str, ...]
    added: tuple[str, ...]

    def changes(self, system: SystemColumns, rows: int | None) -> Iterator[str]:
        """Yield a text for each change that adoption makes, for a plan."""
        renamed = {name: getattr(system, role) for role, name in self.roles.items()}
        renamed |= {old: new for old, new in self.kept.items() if old != new}
        count = "" if rows is None else f" of at most {rows:,} rows"
        yield f"adopt the table{count}: each row gets its key and hash, all in one commit"
        yield from (f"rename column {old} to {new}" for old, new in renamed.items() if old != new)
        yield from (f"add column {name}" for name in self.added)
        yield from (f"replace column {name}" for name in self.replaced)
        yield from (f"drop column {name}" for name in self.dropped)


def is_adoptable(entity: Entity, state: TableState) -> bool:
    """Return whether the entity declares an adoption, and the table was made by another tool."""
    is_ours = STRATEGY_PROPERTY in state.properties
    return entity.settings.adopt is not None and state.exists and not is_ours


def adopted_columns(entity: Entity, state: TableState, system: SystemColumns) -> AdoptedColumns:
    """Return what adoption does to a table's columns.

    Raises:
        MigrationError: A column that the entity names does not exist, or a partition column would be dropped,
            or the entity declares other partition columns.
    """
    adoption = entity.settings.adopt
    if adoption is None:
        raise RuntimeError("the entity declares no adoption")
    is_historic = entity.strategy is Strategy.HISTORIC
    declared = adoption.roles(state.names, prefix=system.prefix, with_times=is_historic)
    own = adoption.columns
    wanted = [*declared.values(), *own.values(), *adoption.drop]
    if is_historic and "valid_from" not in declared:
        wanted.append(LIKE.get(adoption.like or "", {}).get("valid_from", "").format(prefix=system.prefix))
    check_present("the table to adopt", wanted, state.names, "Correct the names in the entity's `adopt`.")
    exact = {name.lower(): name for name in state.names}
    roles = {role: exact[name.lower()] for role, name in declared.items()}
    given = {exact[name.lower()]: silver for silver, name in own.items()}
    dropped = tuple(name for name in state.names if name.lower() in {n.lower() for n in adoption.dropped})
    others = [name for name in state.names if name not in {*roles.values(), *dropped}]
    made = {name.lower() for name in _made(system, is_historic=is_historic)}
    replaced = tuple(name for name in others if name.lower() in made)
    kept = _final_names([name for name in others if name not in replaced], given, system)
    _check_partitions_kept(state, kept)
    partitions = [kept[name] for name in state.partition_columns]
    check_partitions(partitions, entity.strategy, entity, remedy=_PARTITIONED)
    there = {name.lower() for name in (*replaced, *(getattr(system, role) for role in roles))}
    added = tuple(name for name in _made(system, is_historic=is_historic) if name.lower() not in there)
    return AdoptedColumns(adoption, roles, kept, replaced, dropped, added)


def _made(system: SystemColumns, *, is_historic: bool) -> tuple[str, ...]:
    """Return the system columns that adoption computes, in order; an existing file name is kept."""
    times = system.temporal if is_historic else ()
    return (system.hash, *times, system.key, system.deleted, system.last_seen)


def _final_names(names: Sequence[str], given: Mapping[str, str], system: SystemColumns) -> dict[str, str]:
    taken = [name for name in system.all if name != system.filename.lower()]
    try:
        return final_names(names, given, taken)
    except SchemaDriftError as error:
        remedy = "List it in `adopt`: by its role, in `columns` with another name, or in `drop`."
        raise MigrationError(error.message, remedy=remedy, details=error.details) from None


def _check_partitions_kept(state: TableState, kept: Mapping[str, str]) -> None:
    lost = [name for name in state.partition_columns if name not in kept]
    if lost:
        raise MigrationError(
            f"the table is partitioned by {', '.join(lost)}, which adoption would drop",
            remedy="Rewrite the table without these partitions first, or keep the columns.",
            details={"columns": lost},
        )


_KEY, _CURRENT, _DELETED, _SEEN, _FORMER, _FLAG, _OPEN, _NEXT_FLAG = (
    f"_lakewright_{name}"
    for name in ("key", "current", "deleted", "seen", "former", "flag", "open", "next_flag")
)
"""Further columns of the rows while their intervals are derived."""

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
    zone = entity.settings.naive_zone(lake.settings.timezone)
    rows, counts = _adopted_rows(table, prepared, entity, columns, zone=zone, at=request.at)
    numbered = replace(request, token=Token(f"{token.app_id}/adopt", (state.version or 0) + 1))
    load = SliceLoad(lake, session, entity, numbered, state, replace(prepared, frame=rows))
    load.commit_content({**token.content, "adopted": dict(counts)}, _replacing(load, columns.kept))
    reach_failpoint("after_adopt")
    return counts


def _replacing(load: SliceLoad, names: Mapping[str, str]) -> Callable[[], None]:
    """Return the write that replaces rows and columns; properties, partitioning and clustering are kept."""
    from pyspark.sql import functions

    writer = load.prepared.frame.writeTo(load.address.sql).using("delta")
    kept = {key: value for key, value in load.state.properties.items() if not key.startswith(_INTERNAL)}
    for key, value in {**kept, **silver_properties(load.entity, load.prepared)}.items():
        writer = writer.tableProperty(key, value)
    found = table_detail(load.session, load.address)
    partitions, clusters = (
        [names.get(name, name) for name in found.get(layout) or ()]
        for layout in ("partitionColumns", "clusteringColumns")
    )
    if partitions:
        writer = writer.partitionedBy(*(functions.col(name_sql(name)) for name in partitions))
    if clusters:
        writer = writer.clusterBy(*clusters)
    return writer.replace


def _adopted_rows(
    table: DataFrame,
    prepared: PreparedSlice,
    entity: Entity,
    columns: AdoptedColumns,
    *,
    zone: str | None,
    at: datetime,
) -> tuple[DataFrame, dict[str, int]]:
    """Return the rows of a table after its adoption, after checking them, and the counts for the record.

    The next slice determines how rows are hashed: which columns of the source, with which types. A row with
    the values of a record of the slice gets that record's hash, so that it counts as unchanged.

    Args:
        table: The table's present rows.
        prepared: The next slice.
        entity: The entity.
        columns: The effect of the adoption on the table's columns.
        zone: Time zone of times without an offset; None if these can't be read.
        at: The latest instant at which versions may begin or end.

    Raises:
        MigrationError: The meaning of rows is not clear: keys that occur more than once, intervals that
            overlap or go backwards, times or flags that cannot be read.
    """
    adoption = columns.adoption
    roles = Roles.of(columns.roles, table.schema, zone, adoption.sentinels)
    rows = _Rows(prepared, columns, roles, is_historic=entity.strategy is Strategy.HISTORIC)
    found = rows.keyed(table)
    found = rows.timed(found) if rows.is_historic else rows.flagged(found)
    is_current = f"{END} is null" if rows.is_historic else "true"
    counts = {
        "rows": "count(1)",
        "current": f"count_if({is_current} and not coalesce({_DELETED}, false))",
        "deleted": f"count_if(coalesce({_DELETED}, false))",
    }
    refusal = "the table can't be adopted"
    numbers = check_rows(found, rows.checks(at), keys=prepared.key_columns, refusal=refusal, counts=counts)
    if rows.is_historic and adoption.are_deletes_rows:
        found = found.where(f"not coalesce({_FLAG}, false)")
    return rows.finished(found), numbers


@dataclass(frozen=True, slots=True)
class _Rows:
    """The steps from the present rows of a table to its adopted rows; each is lazy."""

    prepared: PreparedSlice
    columns: AdoptedColumns
    roles: Roles
    is_historic: bool

    def _require_keys(self, types: Mapping[str, StructField]) -> None:
        if not self.prepared.key_columns:
            raise MigrationError(
                f"the slice has a primary key of its own, {self.prepared.system.key}: it can adopt no table",
                remedy="Declare the business key's columns instead.",
            )
        remedy = "Map the columns of the business key to the table's in `adopt: columns`."
        present = [field.name for field in types.values()]
        check_present("the table to adopt", self.prepared.key_columns, present, remedy)

    def keyed(self, table: DataFrame) -> DataFrame:
        """Return the rows with primary key and hash, under silver names; columns with roles are unchanged.

        A row with the values of a record of the slice has the primary key and the hash of that.
        """
        table = table.toDF(*(self.columns.kept.get(name, name) for name in table.columns))
        types = {field.name.lower(): field for field in columns_of(table.schema)}
        self._require_keys(types)
        form = self.prepared.form
        found = {
            _KEY: form.hash_of(self._hashable(self.prepared.key_fields, types)),
            self.prepared.system.hash: form.hash_of(self._hashable(self.prepared.hashed, types)),
        }
        return with_columns(table.drop(*self.columns.replaced), found)

    def _hashable(
        self, fields: Iterable[StructField], types: Mapping[str, StructField]
    ) -> Iterator[tuple[StructField, str]]:
        """Yield the values of the table that are hashed, under the names that columns have in the source.

        A value is in its own type if equal values have equal hashes in both, otherwise in the slice's; one
        that cannot be cast is added as text, so that it differs from null.
        """
        form = self.prepared.form
        for field in fields:
            own = types.get(self.prepared.names.get(field.name, field.name).lower())
            if own is None:
                continue
            value = name_sql(own.name)
            if field.type == VOID or form.class_of(own.type) == form.class_of(field.type):
                yield StructField(field.name, own.type), value
                continue
            cast = f"try_cast({value} as {field.type.ddl})"
            yield field, cast
            yield StructField(field.name, TEXT), f"if({cast} is null, cast({value} as string), null)"

    def flagged(self, rows: DataFrame) -> DataFrame:
        """Return rows of Merge with the deleted flag and the time when they were last seen."""
        made = {_DELETED: self.roles.flag("deleted", "false"), _SEEN: self.roles.instant("last_seen")}
        made[SAME] = f"count(1) over (partition by {_KEY})"
        return with_columns(rows, {**made, UNREAD: self.roles.unread()})

    def timed(self, rows: DataFrame) -> DataFrame:
        """Return versions of Historic with their intervals, and those of the neighbours of each record."""
        over, roles = f"over (partition by {_KEY} order by {FROM}, {END} nulls last)", self.roles
        found = with_columns(
            rows,
            {
                FROM: roles.instant("valid_from"),
                _SEEN: roles.instant("last_seen"),
                _CURRENT: roles.flag("is_current"),
                _FLAG: roles.flag("deleted"),
                UNREAD: roles.unread(),
                END: roles.end(),
            },
        )
        found = with_columns(found, {NEXT: f"lead({FROM}) {over}", _OPEN: f"{END} is null"})
        found = with_columns(found, {END: self._closed()})
        neighbours = {
            NEXT: f"lead({FROM}) {over}",
            _FORMER: f"lag({END}) {over}",
            _NEXT_FLAG: f"lead({_FLAG}) {over}",
        }
        return with_columns(with_columns(found, neighbours), {_DELETED: self._deleted()})

    def _closed(self) -> str:
        """Return SQL of a version's end, derived from the next version or the delete if necessary."""
        end, names = END, self.roles.names
        if "valid_to" not in names and "is_current" in names:
            end = f"if({_CURRENT}, null, {NEXT})"
        elif self.columns.adoption.ends == "inclusive":
            next_ = f"{NEXT} > {END} and {NEXT} <= {self.roles.day_after(END)}"
            end = f"if({next_}, {NEXT}, {self.roles.after_end(END)})"
        if self.columns.adoption.are_deletes_rows or "last_seen" not in names:
            return end
        return f"if({end} is null and {_FLAG}, greatest({_SEEN}, {FROM}), {end})"

    def _deleted(self) -> str:
        """Return SQL of the deleted flag: set in flagged versions, and in those that a delete closed."""
        closed = f"{END} is not null and not {NEXT} <=> {END}"
        if self.columns.adoption.are_deletes_rows:
            closed = f"({closed}) or (coalesce({_NEXT_FLAG}, false) and {NEXT} <=> {END})"
        return f"coalesce({_FLAG}, false) or {closed}"

    def checks(self, at: datetime) -> Iterator[RowCheck]:
        """Yield the checks of rows whose meaning would not be clear.

        Args:
            at: The latest instant at which versions may begin or end.
        """
        times = "Correct the table first, for example by restoring its last good version."
        yield RowCheck("row", "has", "a value that can't be read as a time or a flag", UNREAD, times)
        if not self.is_historic:
            keys = "Correct the table, or the entity's business key."
            yield RowCheck("row", "shares its key", "with another one", f"{SAME} > 1", keys)
            return
        yield from interval_checks("version", times, may_be_empty=True)
        is_not_last = f"{END} is null and {NEXT} is not null"
        yield RowCheck("version", "is", "current although a later one has the same key", is_not_last, times)
        yield RowCheck("version", "overlaps", "the one before", f"{_FORMER} > {FROM}", times)
        if "valid_to" in self.roles.names:
            flagged = "flagged as current with an end, or not flagged without one"
            yield RowCheck("version", "is", flagged, f"{_CURRENT} <> {_OPEN}", times)
        elif "is_current" in self.roles.names:
            ended, has_no_end = "not current, with no later one at which it ends", f"{END} is null"
            name = "Name the column with the ends of versions as `valid_to` in `adopt`, or correct the table."
            yield RowCheck("version", "is", ended, f"{has_no_end} and not coalesce({_CURRENT}, false)", name)
        is_future = f"{FROM} > {instant_sql(at)} or {END} > {instant_sql(at)}"
        declare = "If such a time stands for no end, declare it as `sentinel` in `adopt`."
        yield RowCheck("version", "begins or ends", "in the future", is_future, declare)
        if self.columns.adoption.are_deletes_rows:
            yield RowCheck(
                "deleted row",
                "does",
                "not begin where a version of the same key ends",
                f"coalesce({_FLAG}, false) and not {_FORMER} <=> {FROM}",
                "Set `deletes: flag` in `adopt` if the flag belongs to the version that was closed.",
            )
        else:
            yield RowCheck(
                "version",
                "is",
                "current and flagged as deleted",
                f"{END} is null and {_FLAG}",
                "Set `deletes: row` in `adopt` if these rows begin with the delete; or declare `last_seen`.",
            )

    def finished(self, rows: DataFrame) -> DataFrame:
        """Return the rows with only the columns of the silver table."""
        system = self.prepared.system
        made: dict[str, str] = {}
        if self.is_historic:
            made = {system.valid_from: FROM, system.valid_to: END, system.is_current: f"{END} is null"}
        if self.columns.kept and system.filename not in self.columns.kept.values():
            made[system.filename] = "cast(null as string)"
        made |= {system.key: _KEY, system.deleted: f"coalesce({_DELETED}, false)", system.last_seen: _SEEN}
        kept = [name_sql(name) for name in self.columns.kept.values()]
        return rows.selectExpr(
            *kept, name_sql(system.hash), *(f"{sql} as {name_sql(name)}" for name, sql in made.items())
        )
