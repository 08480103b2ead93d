"""Loading of past versions into a table that has no rows yet, in one commit, before the first slice.

The first slice determines the columns and types, so that a past row with the values of its record has the
same hash, and the record counts as unchanged.

Source: the rules of rewinds, "Rebuild".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.lake.commit import Token
from lakewright.lake.observation import observe_table, read_table
from lakewright.schema.fault import Owner
from lakewright.schema.shape import without_void
from lakewright.schema.spark import column_types
from lakewright.schema.sql import name_sql
from lakewright.schema.types import VOID
from lakewright.spark.engine import materialized
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted, first_of
from lakewright.strategies.drift import value_in
from lakewright.strategies.schema_fit import aligned_to, prepare_rows
from lakewright.strategies.slice_load import SliceLoad
from lakewright.strategies.table_properties import HISTORY_PROPERTY, history_text
from lakewright.strategies.version_rows import (
    END,
    FROM,
    NEXT,
    UNREAD,
    Roles,
    RowCheck,
    check_present,
    check_rows,
    interval_checks,
)
from lakewright.strategies.writing import append, create
from lakewright.transform.bad_rows import CORRUPT, FAULT, NO_COLUMN
from lakewright.transform.steps import find_name, instant_sql
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.adoption import HistoryFrom
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.slice_load import LoadRequest
    from lakewright.transform.pipeline import PreparedSlice


PAST = "past"
"""Key of a commit's content under which it says what was loaded before the first slice."""

FILE = "_lakewright_file"
"""Column of the rows with where a row comes from."""

CARRIED = (FROM, END, UNREAD, FILE)
"""Columns that rows have besides those of a slice."""

_CLOSED, _NEXT_EXPORT, _IS_FIRST, _RUN = (
    f"_lakewright_{name}" for name in ("closed", "next_export", "is_first", "run")
)
_LAST_END, _NEXT_START, _NEXT_DELETED = (
    f"_lakewright_{name}" for name in ("last_end", "next_start", "next_deleted")
)

MOST_NAMED = 5

_REMEDY = "Correct these rows, or the entity's history_from. Nothing was written."


@dataclass(frozen=True, slots=True)
class PastRows:
    """Rows of the past with the columns of a slice, lazily.

    Attributes:
        frame: The rows, with the columns `CARRIED`.
        missing: Columns of the slice that the past lacks although they are not optional; they are null.
        left_out: Columns of the past that the slice lacks.
    """

    frame: DataFrame
    missing: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PastLoad:
    """What was loaded before the first slice.

    Attributes:
        place: The folder or the table.
        counts: Numbers of `rows`, `versions` and `records`, and of rows that begin too `late`.
        missing: Columns of the slice that the past lacks.
        left_out: Columns of the past that the slice lacks.
    """

    place: str
    counts: Mapping[str, int]
    missing: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def text(self) -> str:
        """A sentence on what was loaded, and what was not."""
        counts = self.counts
        found = f"{counted(counts['versions'], 'version')} of {counted(counts['records'], 'record')}"
        notes = {
            "rows left out, which begin at its processing time or later": counts["late"] or None,
            "columns left out, which the slice lacks": first_of(self.left_out, MOST_NAMED),
            "columns of the slice that have no values there": first_of(self.missing, MOST_NAMED),
        }
        said = [f"{name}: {value}" for name, value in notes.items() if value]
        return "; ".join([f"before the first slice, {self.place} gives {found}", *said])


def past_app(app: str) -> str:
    """Return the application id of the commit that loads an entity's past."""
    return f"{app}/{PAST}"


def whole_exports(entity: Entity, history: HistoryFrom) -> bool:
    """Return whether each dated export is the whole source, as each slice of the entity is."""
    settings = entity.settings
    return history.has_exports and settings.delete_missing and settings.delete_scope == "full"


def past_rows(
    frame: DataFrame, slice_: StructType, entity: Entity, history: HistoryFrom, *, zone: str | None, file: str
) -> PastRows:
    """Return rows of the past with the columns and types of a slice.

    Args:
        frame: The rows as they were read.
        slice_: The columns of the first slice, as it was read, with optional ones that it lacks.
        entity: The entity.
        history: The declaration.
        zone: Time zone of times without an offset; None if these can't be read.
        file: SQL of where a row comes from.

    Raises:
        MigrationError: A column with a role, or of the business key, is missing.
        SchemaDriftError: A column has a type that can't become the slice's.
    """
    present = frame.columns
    ends = {} if history.valid_to is None else {"valid_to": history.valid_to}
    roles = {"valid_from": history.valid_from, **ends}
    given = {name.lower(): own for name, own in history.columns.items()}
    check_past_columns(present, [*roles.values(), *given.values()], history, history.place)
    types, columns, missing = column_types(frame.schema), {}, []
    used = {name.lower() for name in roles.values()}
    for name, declared in column_types(slice_).items():
        if name in (CORRUPT, FAULT, NO_COLUMN):
            continue
        own, kind = find_name(present, given.get(name.lower(), name)), without_void(declared)
        if own is None:
            missing.append(name)
        else:
            used.add(own.lower())
        if own is not None and (kind is None or without_void(types[own]) is None):
            columns[name] = name_sql(own)  # one of both has no type
        else:
            wanted = (kind or VOID) if own is None else declared
            source = VOID if own is None else types[own]
            columns[name] = value_in(
                own, source, wanted, column=own or name, zone=zone, owner=Owner.SLICE, place=file
            )
    absent = {name.lower() for name in missing}
    keys = [name for name in entity.business_keys if {name.lower(), name.lower().partition(".")[0]} & absent]
    check_past_columns(present, keys, history, history.place)
    selected = [f"{sql} as {name_sql(name)}" for name, sql in columns.items()]
    exact = {role: find_name(present, name) or name for role, name in roles.items()}
    times = Roles.of(exact, frame.schema, zone, history.sentinel)
    values = (times.instant("valid_from"), times.end(), times.unread(), file)
    rows = frame.selectExpr(
        *selected, *(f"{sql} as {name}" for name, sql in zip(CARRIED, values, strict=True))
    )
    left_out = tuple(name for name in present if name.lower() not in used)
    optional = {column.source.lower() for column in entity.columns if column.optional}
    return PastRows(rows, tuple(name for name in missing if name.lower() not in optional), left_out)


def check_past_columns(
    present: Sequence[str], wanted: Sequence[str], history: HistoryFrom, place: str
) -> None:
    """Check that the table or the folder of past versions has the declared columns.

    Raises:
        MigrationError: A column is missing.
    """
    remedy = "Correct valid_from, valid_to or columns of the entity's history_from."
    check_present(f"history_from: {place}", wanted, present, remedy, place=history.place)


def load_past(
    lake: Lake,
    session: SparkSession,
    entity: Entity,
    past: PastRows,
    *,
    request: LoadRequest,
    history: HistoryFrom,
) -> PastLoad:
    """Write the past versions to a table without rows, in one commit; return what was written.

    Args:
        lake: The lake.
        session: A strict session, in which the rows are read.
        entity: The entity.
        past: The rows.
        request: The request to process the first slice.
        history: The declaration.

    Raises:
        MigrationError: The meaning of rows is not clear; nothing was written.
        TargetError: The rows cannot be prepared as those of a slice are; nothing was written.
    """
    address = entity.places(lake.settings).silver
    state = observe_table(lake, address)
    system = SystemColumns(lake.settings.systemfield_prefix, entity.destination)
    of_past = replace(request, slice_name="", strategy=Strategy.HISTORIC)
    prepared = prepare_rows(lake, _carrying(entity), past.frame, of_past, state, place=FILE)
    timed = materialized(timed_rows(prepared.frame, system, before=request.at))
    counts = check_rows(
        timed,
        _checks(prepared, entity),
        keys=prepared.key_columns,
        refusal=f"history_from: {history.place} can't be loaded",
        counts={"rows": "count(1)"},
    )
    late = past.frame.where(f"{FROM} >= {instant_sql(request.at)}").count()
    rows = versions_of(timed, system, before=request.at, are_exports_whole=whole_exports(entity, history))
    rows = materialized(rows)
    own = rows.selectExpr(
        "count(1) as versions", f"count(distinct {name_sql(system.key)}) as records"
    ).first()
    counted_rows = {**counts, "late": late, **({} if own is None else own.asDict())}
    done = PastLoad(history.place, counted_rows, past.missing, past.left_out)
    prepared = replace(prepared, frame=rows)
    table = read_table(session, address).schema if state.exists else None
    content = {
        "run": request.token.content.get("run"),
        "record": f"{request.token.content.get('record')}/{PAST}",
        PAST: {**counted_rows, "place": history.place},
    }
    load = SliceLoad(
        lake,
        session,
        entity,
        replace(request, token=Token(past_app(request.token.app_id), (state.version or 0) + 1)),
        state,
        prepared,
        alignment=None if table is None else aligned_to(table, prepared, state, entity),
        properties={HISTORY_PROPERTY: history_text(entity, lake.settings) or ""},
    )
    write = create(load, rows) if not state.exists else append(load, load.aligned(rows))
    load.commit_content(content, write)
    return done


def _carrying(entity: Entity) -> Entity:
    """Return the entity as it prepares rows of the past: all rows, with their times, which are not hashed."""
    carrying = entity.with_settings(
        hash_exclude=(*entity.settings.hash_exclude, *CARRIED), duplicates="refuse", on_bad_rows="fail"
    )
    steps = tuple(
        step.model_copy(update={"select": (*step.select, *CARRIED)})
        if step.select and "*" not in step.select
        else step
        for step in entity.transformations
    )
    return carrying.model_copy(update={"transformations": steps})


def _checks(prepared: PreparedSlice, entity: Entity) -> Iterator[RowCheck]:
    """Yield the checks of rows whose meaning would not be clear."""
    keys = [] if entity.settings.null_keys == "allow" else list(prepared.key_columns)
    null_key = " or ".join(f"{name_sql(name)} is null" for name in keys) or "false"
    yield RowCheck("row", "has", "a time that can't be read", UNREAD, _REMEDY)
    yield from interval_checks("row", _REMEDY, may_be_empty=False)
    yield RowCheck("row", "has", "no business key", null_key, _REMEDY)
    yield RowCheck("row", "ends", "after the next one of the record begins", f"{END} > {NEXT}", _REMEDY)


def timed_rows(rows: DataFrame, system: SystemColumns, *, before: datetime) -> DataFrame:
    """Return the rows that begin before an instant, each once, with `NEXT`.

    Rows without a start, or with a time that can't be read, stay; `versions_of` needs rows without such.

    Args:
        rows: Prepared rows with the columns `CARRIED`.
        system: Names of the system columns.
        before: The processing time of the first slice.
    """
    key, hash_, deleted = system.key, system.hash, system.deleted
    found = rows.where(f"{FROM} is null or {FROM} < {instant_sql(before)}")
    found = found.dropDuplicates([key, hash_, deleted, FROM, END, UNREAD])
    return found.selectExpr(
        "*", f"lead({FROM}) over (partition by {name_sql(key)} order by {FROM}) as {NEXT}"
    )


def versions_of(
    rows: DataFrame, system: SystemColumns, *, before: datetime, are_exports_whole: bool
) -> DataFrame:
    """Return the versions that rows are, with the columns of the silver table.

    A row that is flagged as deleted is no version: it ends the one before it. The last version of a record
    is open unless it has an end before the first slice.

    Args:
        rows: What `timed_rows` returns, without faults.
        system: Names of the system columns.
        before: The processing time of the first slice.
        are_exports_whole: Whether rows with the same start are all records of the source, so that a record
            which they lack was deleted.
    """
    key, hash_, deleted = (name_sql(name) for name in (system.key, system.hash, system.deleted))
    end = f"coalesce({END}, {NEXT})"
    if are_exports_whole:
        next_export = f"lead({FROM}) over (order by {FROM}) as {_NEXT_EXPORT}"
        rows = rows.join(rows.select(FROM).distinct().selectExpr(FROM, next_export), FROM)
        end = f"least({end}, {_NEXT_EXPORT})"
    in_order = f"partition by {key} order by {FROM}"
    found = rows.selectExpr("*", f"if({end} < {instant_sql(before)}, {end}, null) as {_CLOSED}")
    is_continued = (
        f"not {deleted} and not lag({deleted}) over ({in_order}) "
        f"and lag({_CLOSED}) over ({in_order}) = {FROM} and lag({hash_}) over ({in_order}) <=> {hash_}"
    )
    found = found.selectExpr("*", f"not coalesce({is_continued}, false) as {_IS_FIRST}")
    found = found.selectExpr("*", f"count_if({_IS_FIRST}) over ({in_order}) as {_RUN}")
    of_run = f"partition by {key}, {_RUN} order by {FROM}"
    last = f"last({_CLOSED}) over ({of_run} rows between unbounded preceding and unbounded following)"
    found = found.selectExpr("*", f"{last} as {_LAST_END}").where(_IS_FIRST)
    found = found.selectExpr(
        "*",
        f"lead({FROM}) over ({in_order}) as {_NEXT_START}",
        f"lead({deleted}) over ({in_order}) as {_NEXT_DELETED}",
    ).where(f"not {deleted}")
    is_replaced = f"coalesce({_NEXT_START} = {_LAST_END} and not {_NEXT_DELETED}, false)"
    values = {
        system.valid_from: FROM,
        system.valid_to: _LAST_END,
        system.is_current: f"{_LAST_END} is null",
        system.deleted: f"({_LAST_END} is not null and not {is_replaced})",
        system.last_seen: FROM,
        system.filename: FILE,
    }
    names = [name for name in rows.columns if not name.startswith("_lakewright_")]
    return found.selectExpr(*(f"{values.get(name, name_sql(name))} as {name_sql(name)}" for name in names))
