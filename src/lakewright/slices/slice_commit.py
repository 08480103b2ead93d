"""Slices, read, prepared and applied to their table in one commit: one by itself, or several in a fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.errors import BadRowsError, JvmEnded, LakewrightError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.failpoint import reach_failpoint
from lakewright.slices.processing_time import future_warning
from lakewright.slices.reading import (
    read_in_groups,
    read_slice,
    read_together,
    table_types,
    with_types_of,
)
from lakewright.strategies.delete_inference import empty_slice_warning, late_slice_warning, lower_bounds
from lakewright.strategies.failures import translate_error
from lakewright.strategies.fold import apply_fold
from lakewright.strategies.preparation import BadSlice, FoldSource, prepare_fold, prepare_load
from lakewright.strategies.slice_load import LoadRequest, SliceLoad
from lakewright.strategies.writing import apply_slice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.commit import Token
    from lakewright.lake.lake import Lake
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.summary import Summary


def slice_request(
    context: ProcessingContext, entity: Entity, slice_: Slice, at: datetime, *, is_late: bool
) -> LoadRequest:
    """Return the request to look at a slice as a run would apply it at a time, without a token or a lock."""
    last_values = context.ledger.watermarks.last(context.application)
    return LoadRequest(
        slice_name=slice_.name,
        slice_size=slice_.size,
        strategy=context.strategy_for(entity),
        at=at,
        holder=str(context.holder),
        lower_bounds=lower_bounds(entity, last_values, context.clock),
        permissions=context.options.permissions,
        is_late=is_late,
    )


def slice_error(context: ProcessingContext, entity: Entity, name: str, error: Exception) -> LakewrightError:
    """Return the error to raise for one that occurred while a slice was read or applied.

    Raises:
        KeyboardInterrupt: The run was interrupted.
        JvmEnded: Spark's JVM failed.
    """
    if context.is_cut_off():
        raise KeyboardInterrupt from error
    ours = translate_error(error, entity, name)
    if isinstance(ours, JvmEnded):
        raise ours from error
    return ours


def load_warnings(
    context: ProcessingContext, entity: Entity, load: SliceLoad, summary: Summary
) -> Iterator[str]:
    """Yield what the user must know of a slice: drift, a time in the future, deletes that are not inferred.

    Args:
        context: The context of the processing.
        entity: The entity.
        load: The slice, which was applied.
        summary: Its metrics.
    """
    if load.drift:
        yield from load.drift.messages
    request = load.request
    future = future_warning(request.at, context.clock(), request.strategy)
    if future is not None:
        undo = Command("undo", entity.called, request.slice_name)
        yield Phrase(f"{future}. If its date is wrong: ", undo)
    if load.bad_rows:
        return
    records, is_first = summary.records_in_slice, summary.is_first
    empty = empty_slice_warning(entity, request.strategy, records=records, is_first=is_first)
    if empty is not None:
        yield empty
    elif request.is_late and (late := late_slice_warning(entity, request.strategy)) is not None:
        yield f"the slice is late: {late}"


def commit_slices(
    lake: Lake,
    session: SparkSession,
    entity: Entity,
    slices: Sequence[tuple[Slice, LoadRequest]],
    *,
    token: Token,
    check_lock: Callable[[], None],
    prepared: Callable[[Slice, SliceLoad], SliceLoad],
    note: Callable[[str], None] = lambda _: None,
) -> list[tuple[SliceLoad, Summary]]:
    """Apply slices to a table in one commit, or in none if nothing changes; return each with its metrics.

    Args:
        lake: The lake.
        session: A strict session.
        entity: The entity.
        slices: The slices in order, each with its request, whose token says what the commit holds of it.
        token: The token of the commit, with what it holds besides that.
        check_lock: Raises an error if the commit must not be made any more.
        prepared: Receives each slice before anything is written, and puts its bad rows aside.
        note: Receives what a user must know of columns that are left out.

    Raises:
        BadSlice: One of several slices can't be applied; those before it can.
        NotFoldable: Several slices must be applied one by one.
    """
    if len(slices) == 1:
        ((slice_, request),) = slices
        content = {**request.token.content, **token.content}
        request = replace(request, token=replace(token, content=content), check_lock=check_lock)
        frame = read_slice(lake, session, slice_, entity, note=note)
        reach_failpoint("after_read")
        load = prepare_load(lake, session, entity, frame, request)
        reach_failpoint("after_facts")
        (load,) = _looked_at(entity, slices, [load], check_lock, prepared)
        return [(load, apply_slice(load))]
    sources = _fold_sources(lake, session, entity, slices, note)
    reach_failpoint("after_read")
    fold = prepare_fold(lake, session, entity, sources, token=token, check_lock=check_lock)
    reach_failpoint("after_facts")
    loads = _looked_at(entity, slices, fold.slices, check_lock, prepared)
    summaries, version = apply_fold(replace(fold, slices=tuple(loads)))
    return [(load, replace(own, delta_version=version)) for load, own in zip(loads, summaries, strict=True)]


def _looked_at(
    entity: Entity,
    slices: Sequence[tuple[Slice, LoadRequest]],
    loads: Sequence[SliceLoad],
    check_lock: Callable[[], None],
    prepared: Callable[[Slice, SliceLoad], SliceLoad],
) -> list[SliceLoad]:
    """Return the slices as `prepared` does; it may write into the quarantine, which needs the lock."""
    puts_aside = entity.settings.on_bad_rows == "quarantine"
    if puts_aside:
        check_lock()
    found: list[SliceLoad] = []
    for (slice_, _), load in zip(slices, loads, strict=True):
        try:
            found.append(prepared(slice_, load))
        except BadRowsError as error:
            if len(slices) == 1:
                raise
            raise BadSlice(len(found), error) from error
    if puts_aside:
        reach_failpoint("after_quarantine")
    return found


def _fold_sources(
    lake: Lake,
    session: SparkSession,
    entity: Entity,
    slices: Sequence[tuple[Slice, LoadRequest]],
    note: Callable[[str], None],
) -> tuple[FoldSource, ...]:
    """Return slices as the sources of a fold; those with the same columns that follow each other are one.

    Raises:
        BadSlice: A slice can't be read.
    """
    sources: list[FoldSource] = []
    known = table_types(lake, entity)  # with the columns of each slice for the next one
    for together in read_in_groups(slices, entity, lambda each: each[0]):
        each, requests = zip(*together, strict=True)
        try:
            frame, place = read_together(lake, session, each, entity, known=known, note=note)
        except Exception as error:
            raise BadSlice(sum(len(each.requests) for each in sources), error) from error
        sources.append(FoldSource(frame, requests, place))
        known = with_types_of(frame, known, entity)
    return tuple(sources)
