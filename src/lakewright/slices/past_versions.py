"""What stands before an entity's first slice: past versions that are loaded, or a table that is adopted.

Source: the rules of rewinds, "Rebuild".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from functools import reduce
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError, MigrationError
from lakewright.lake.commit import Token, strict_session
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.files import files_at
from lakewright.lake.observation import observe_table, read_table
from lakewright.lake.paths import is_stored, join, local_path, parent
from lakewright.reader.files import column_names, folder_columns
from lakewright.reader.source import form_of_slices
from lakewright.schema.sql import text_sql
from lakewright.slices.discovery import find_unchanged_slice, list_bronze, slice_name
from lakewright.slices.reading import read_in_groups, read_slice, read_together, source_of
from lakewright.slices.result import NOT_OF_SLICE
from lakewright.spark.engine import analyzed
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.places import Address
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.spec.words import first_of
from lakewright.strategies.adoption import adopt, is_adoptable
from lakewright.strategies.failures import translate_error
from lakewright.strategies.past_load import (
    PastLoad,
    PastRows,
    check_past_columns,
    load_past,
    past_rows,
    whole_exports,
)
from lakewright.strategies.preparation import lookup_sql
from lakewright.strategies.schema_fit import fit_slice
from lakewright.strategies.slice_load import LoadRequest
from lakewright.transform.lacking_columns import with_optional_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.delta_log import TableState
    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.adoption import HistoryFrom
    from lakewright.spec.models.entity import Entity


MOST_NAMED = 5


def lacks_past(entity: Entity, strategy: Strategy, state: TableState) -> bool:
    """Return whether past versions must be loaded before the next slice: into a table that has no rows."""
    is_historic = strategy is Strategy.HISTORIC
    is_declared = entity.settings.history_from is not None
    return is_declared and is_historic and (not state.exists or bool(state.is_empty))


def planned_past(entity: Entity) -> str:
    """Return the sentence of a plan on the past versions that are loaded before the first slice."""
    history = _declared(entity)
    place = f"{'the folder' if history.folder else 'the table'} {history.place}"
    said = f"past versions from {place} are loaded before the first slice (history_from)"
    if whole_exports(entity, history):
        said += "; each export is the whole source: a record that one lacks ends with it"
    return said


def load_past_before(
    context: ProcessingContext,
    session: SparkSession,
    entity: Entity,
    slice_: Slice,
    request: LoadRequest,
) -> PastLoad | None:
    """Load the past versions before an entity's first slice; return what was loaded, or None if nothing is.

    It is one commit, which is made before that of the slice. If the process dies between both, the next
    attempt finds a table with rows, and continues with the slice.

    Args:
        context: The context of the processing.
        session: A strict session.
        entity: The entity.
        slice_: The first slice, whose columns and types the rows get.
        request: The request to process it.

    Raises:
        MigrationError: The past can't be read, or the meaning of its rows is not clear; nothing was written.
    """
    lake = context.lake
    if entity.settings.history_from is None:
        return None
    state = observe_table(lake, entity.places(lake.settings).silver)
    if not lacks_past(entity, context.strategy_for(entity), state):
        return None
    history = _declared(entity)
    try:
        wanted = with_optional_columns(read_slice(lake, session, slice_, entity), entity).schema
        zone = entity.settings.naive_zone(lake.settings.timezone)
        parts = [
            past_rows(frame, wanted, entity, history, zone=zone, file=file)
            for frame, file in _frames(lake, session, entity, history)
        ]
        reach_failpoint("before_past")
        done = load_past(lake, session, entity, _together(parts), request=request, history=history)
    except Exception as error:
        if context.is_cut_off() or isinstance(error, NOT_OF_SLICE):
            raise
        ours = translate_error(error, entity, history.place)
        raise ours if isinstance(ours, NOT_OF_SLICE) else _not_loaded(history, ours) from error
    reach_failpoint("after_past")
    context.warn(f"{entity.name}: {done.text}")
    return done


def _not_loaded(history: HistoryFrom, error: LakewrightError) -> MigrationError:
    """Return the error for a past that can't be loaded: it is no fault of the first slice."""
    return MigrationError(
        f"history_from: {history.place} can't be loaded: {error.message}",
        remedy="Correct its rows, or the entity's history_from. Nothing was written.",
        details=error.details,
    )


def _declared(entity: Entity) -> HistoryFrom:
    history = entity.settings.history_from
    if history is None:
        raise RuntimeError("the entity declares no history_from")
    return history


def _together(parts: Sequence[PastRows]) -> PastRows:
    """Return the rows of all parts; a column is missing if all parts lack it."""
    frame = reduce(lambda one, other: one.unionByName(other), (part.frame for part in parts))
    missing = tuple(n for n in parts[0].missing if all(n in part.missing for part in parts))
    left_out = tuple(dict.fromkeys(name for part in parts for name in part.left_out))
    return PastRows(frame, missing, left_out)


def _frames(
    lake: Lake, session: SparkSession, entity: Entity, history: HistoryFrom
) -> Iterator[tuple[DataFrame, str]]:
    """Yield rows of the past as they are read, each time with SQL of where a row comes from."""
    if history.table is not None:
        yield _read_table(lake, session, history), text_sql(history.table)
        return
    reader = reader_of(entity, history)
    folder = parent(_folder(lake, history))[1]
    for some in read_in_groups(exports_of(lake, history), reader, lambda each: each):
        names = [text_sql(f"{folder}/{each.name}") for each in some]
        frame, place = read_together(lake, session, some, reader)
        yield frame, names[0] if len(some) == 1 else lookup_sql(names, f"({place})")


def reader_of(entity: Entity, history: HistoryFrom) -> Entity:
    """Return a copy of the entity that reads the exports: with their format, and without a quarantine."""
    own = history.format or entity.settings.slice_format
    return entity.with_settings(on_bad_rows="fail", format=own)


def _read_table(lake: Lake, session: SparkSession, history: HistoryFrom) -> DataFrame:
    from pyspark.errors import AnalysisException

    address = table_of(lake, history)
    try:
        if address.location is not None:
            return analyzed(read_table(session, address))
        return analyzed(session.read.table(address.sql))
    except AnalysisException as error:
        raise unreadable_past(history, str(error).partition("\n")[0]) from error


def table_of(lake: Lake, history: HistoryFrom) -> Address:
    """Return the address of the table of versions: a path has a slash."""
    name = history.table or ""
    return Address(location=_place(lake, name)) if "/" in name else Address(name=name)


def _folder(lake: Lake, history: HistoryFrom) -> str:
    return _place(lake, history.folder or "")


def _place(lake: Lake, path: str) -> str:
    """Return a path or URI as it is; a relative one is below the lake's root folder."""
    path = path.rstrip("/")
    local = local_path(path)
    if is_stored(path) or local is None or local.is_absolute():
        return path
    return join(lake.settings.root_folder, path)


_AT_ONCE = 16
"""Exports that are opened at once."""


def exports_of(lake: Lake, history: HistoryFrom) -> tuple[Slice, ...]:
    """Return the exports in the folder, in the order of their names.

    Raises:
        MigrationError: There is no such folder, or none of it can be read, or one can't be or isn't whole.
    """
    folder = _folder(lake, history)
    try:
        listing = list_bronze(SliceFolder(folder), lake)
    except LakewrightError as error:
        raise unreadable_past(history, error.message) from error
    if not listing.exists:
        raise unreadable_past(history, f"there is no folder {folder}")
    faults = {
        "": [f"{name}: {why}" for name, why in listing.unreadable.items()],
        "still being written: ": listing.incomplete,
        "0 bytes: ": [each.name for each in listing.slices if not each.size],
    }
    for fault, names in faults.items():
        if names:
            raise unreadable_past(history, f"{fault}{first_of(names, MOST_NAMED)}")
    if not listing.slices:
        raise unreadable_past(history, f"the folder {folder} has no files")
    return listing.slices


def unreadable_past(history: HistoryFrom, why: str) -> MigrationError:
    """Return the error for a folder or table that can't be read."""
    return MigrationError(
        f"history_from: {history.place} can't be read: {why}",
        remedy="Correct the place in the entity's history_from, or what is there. Nothing was written.",
    )


def past_fingerprint(lake: Lake, entity: Entity) -> Any:
    """Return what identifies the content of an entity's past without reading it; None without one.

    Raises:
        MigrationError: The folder can't be read.
    """
    history = entity.settings.history_from
    if history is None:
        return None
    if history.folder is not None:
        return [[each.name, each.fingerprint] for each in exports_of(lake, history)]
    address = table_of(lake, history)
    return observe_table(lake, address).version if address.location is not None else None


def check_past(lake: Lake, entity: Entity) -> None:
    """Check that an entity's past can be read, and has the columns that the entity names.

    Raises:
        MigrationError: The folder or table can't be read; or it lacks a column, which `lacks` of the details
            names.
    """
    history = entity.settings.history_from
    if history is None:
        return
    wanted = _wanted(entity, history)
    for place, columns in _columns(lake, entity, history):
        check_past_columns(columns, wanted, history, place)


def _wanted(entity: Entity, history: HistoryFrom) -> list[str]:
    """Return the columns that the past must have, as far as they are known without a slice."""
    roles = [history.valid_from, *(() if history.valid_to is None else (history.valid_to,))]
    given = {name.lower(): own for name, own in history.columns.items()}
    if entity.transformations:
        return [*roles, *given.values()]  # these may make the key's columns
    calculated = {column.source.lower() for column in entity.calculated}
    keys = [name for name in entity.business_keys if name.lower() not in calculated and "." not in name]
    return [*roles, *given.values(), *(given.get(name.lower(), name) for name in keys)]


def _columns(lake: Lake, entity: Entity, history: HistoryFrom) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each place of the past with its columns, where they are known."""
    if history.table is not None:
        address = table_of(lake, history)
        if address.location is None:
            return  # only Spark knows the catalog
        state = observe_table(lake, address)
        if not state.exists:
            raise unreadable_past(history, f"there is no Delta table at {address.location}")
        yield history.place, state.names
        return
    form = form_of_slices(reader_of(entity, history).settings.slice_format)
    exports = exports_of(lake, history)
    sources = [source_of(export, form.kind) for export in exports]
    with ThreadPoolExecutor(_AT_ONCE) as workers:  # in an object store, each waits for an answer
        found = workers.map(lambda each: column_names(files_at(each.place, lake), each, form), sources)
        for export, source in zip(exports, sources, strict=True):
            try:
                columns = next(found)
            except (OSError, ValueError, LakewrightError) as error:
                raise unreadable_past(history, str(error)) from error
            if columns is None:
                return
            yield export.name, (*columns, *folder_columns(source))


def adopt_table(context: ProcessingContext, entity: Entity, item: Item) -> Mapping[str, int]:
    """Adopt an entity's table; return the counts of its rows.

    Args:
        context: The context of the processing.
        entity: The entity.
        item: The item of the next slice, whose columns say how rows are hashed; it is only read.

    Raises:
        TargetError: The slice cannot be read, or the meaning of the table's rows is not clear; nothing was
            written.
    """
    lake, name, session = context.lake, slice_name(item), strict_session(context.lake)
    slice_ = find_unchanged_slice(lake, entity.places(lake.settings).slices, item)
    token = Token(str(context.application), 0, {"run": context.holder.run_id, "before": item.item_id})
    request = LoadRequest(name, entity.strategy, context.clock().astimezone(UTC), token=token)
    try:
        return adopt_first(lake, session, entity, slice_, request) or {}
    except Exception as error:
        raise translate_error(error, entity, name) from error


def adopt_first(
    lake: Lake, session: SparkSession, entity: Entity, slice_: Slice, request: LoadRequest
) -> Mapping[str, int] | None:
    """Adopt the existing table before a slice is applied to it, if the entity asks for it.

    Args:
        lake: The lake.
        session: The session of the load.
        entity: The entity.
        slice_: The slice, whose columns say how rows are hashed; it is only read.
        request: How the slice is applied.

    Returns:
        The counts of the table's rows; None if there is nothing to adopt.
    """
    if not is_adoptable(entity, observe_table(lake, entity.places(lake.settings).silver)):
        return None
    fit = fit_slice(lake, session, entity, read_slice(lake, session, slice_, entity), request)
    return adopt(lake, session, entity, fit.prepared, fit.state, request=request)
