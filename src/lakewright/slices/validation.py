"""Validation of pending slices before any of them is processed, and the deletes that the next one infers.

A plan cannot know these deletes from names alone.

Source: rules of entities, "Errors": VALIDATE reads each pending slice's footer; a fault is recorded for that
slice and stops nothing else. `processing-strategies.md`, "Delete Inference".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING

from lakewright.errors import (
    LakewrightError,
    NotInstalled,
    OperatorError,
    RetryableError,
    SequenceConflict,
    SliceError,
    SparkUnavailable,
    SpecError,
)
from lakewright.lake.commit import strict_session
from lakewright.lake.observation import observe_table
from lakewright.lake.parquet_footer import schema_fingerprint
from lakewright.lake.paths import local_path
from lakewright.manifest.lock import add_recovery
from lakewright.manifest.payload import MAY_SKIP, failure
from lakewright.manifest.verdict import Verdict
from lakewright.slices.chain import counter_of
from lakewright.slices.discovery import called_name, check_not_empty, find_unchanged_slice, slice_name
from lakewright.slices.past_versions import lacks_past
from lakewright.slices.reading import read_slice
from lakewright.slices.result import is_slice_at_fault
from lakewright.slices.slice_commit import slice_error, slice_request
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted
from lakewright.strategies.adoption import is_adoptable
from lakewright.strategies.bad_rows import check_bad_rows
from lakewright.strategies.delete_inference import empty_slice_warning, preview_deletes
from lakewright.strategies.preparation import prepare_load
from lakewright.strategies.schema_fit import SchemaFit, fit_slice

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.discovery import Slice
    from lakewright.slices.pending_slices import Pending
    from lakewright.spec.models.entity import Entity


_WITHOUT_HEADER = "json"
"""Format whose columns are known only after all of it was read."""


def fail_invalid_slices(
    context: ProcessingContext, entity: Entity, pending: Pending
) -> tuple[LakewrightError, ...]:
    """Record the ready slices that cannot be processed as failed; return their errors.

    These are files whose footers cannot be read, and slices whose columns do not fit: keys that are missing
    or of another type, drift that the entity refuses, names and types that a table cannot hold. Of the slices
    after an invalid one, which then wait, only the footers are read. Columns are checked once for all slices
    that have the same, and not at all if a slice with these columns was just processed.

    Raises:
        LakewrightError: The declaration or the access is at fault, and no slice.
    """
    slices = pending.deviations.listing.slices
    by_id = {slice_.item_id: slice_ for slice_ in slices}
    validator = _Validator(context, entity)
    validator.accept(_last_processed(context, pending, slices))
    found: list[LakewrightError] = []
    for item in _unprocessed(context, entity, pending):
        slice_ = by_id.get(item.item_id)
        if slice_ is None:
            continue  # processing reports that the slice is gone
        is_next = not found and item.item_id not in pending.late
        error = validator.problem(slice_, is_next=is_next)
        if error is not None and _record(context, entity, item.item_id, error):
            found.append(error)
    return tuple(found)


def _unprocessed(context: ProcessingContext, entity: Entity, pending: Pending) -> Iterator[Item]:
    """Yield the ready items whose commit has not landed; the others only wait to be recorded."""
    chain = context.chain(entity)
    yield from (item for item in pending.ready if not chain.has_landed(item))


def _last_processed(context: ProcessingContext, pending: Pending, slices: Sequence[Slice]) -> Slice | None:
    """Return the slice before the first ready one, if its present content was processed."""
    ready = {item.item_id for item in pending.ready}
    before = list(takewhile(lambda slice_: slice_.item_id not in ready, slices))
    if not ready or not before:
        return None
    item = context.ledger.item(before[-1].item_id)
    is_processed = item.verdict(context.application) is Verdict.PROCESSED
    return before[-1] if is_processed and item.fingerprint == before[-1].fingerprint else None


class _Validator:
    """Checks one entity's slices, each as if those before it were processed."""

    def __init__(self, context: ProcessingContext, entity: Entity) -> None:
        self.context = context
        self.entity = entity
        self.fitting: set[tuple[str, ...]] = set()
        self.first: SchemaFit | None = None

    def accept(self, processed: Slice | None) -> None:
        """Accept slices with the same columns as a processed one without checking them."""
        with suppress(SliceError):
            columns = self._columns(processed) if processed is not None else ()
            if columns:
                self.fitting.add(columns)

    def problem(self, slice_: Slice, *, is_next: bool) -> LakewrightError | None:
        """Return why a slice cannot be processed, or None; columns are checked only if it is the next one."""
        try:
            check_not_empty(slice_)
            columns = self._columns(slice_)
        except SliceError as error:
            return error
        if (
            not is_next
            or self.entity.settings.slice_format.kind == _WITHOUT_HEADER
            or (columns and columns in self.fitting)
        ):
            return None
        session = strict_session(self.context.lake)
        request = slice_request(self.context, self.entity, slice_, self.context.clock(), is_late=False)
        try:
            fit = fit_slice(
                self.context.lake,
                session,
                self.entity,
                read_slice(self.context.lake, session, slice_, self.entity),
                request,
                after=self.first,
            )
        except (NotInstalled, SparkUnavailable, SpecError):
            raise
        except Exception as error:
            ours = slice_error(self.context, self.entity, slice_.name, error)
            if isinstance(ours, NotInstalled | SpecError):
                raise ours from error
            earlier = self.first.prepared.frame.columns if self.first is not None else ()
            if is_slice_at_fault(self.context.lake, self.entity, ours, earlier=earlier):
                return ours
            if isinstance(ours, OperatorError | RetryableError):
                return None
            raise ours from error
        if not fit.state.exists:
            self.first = fit
        if columns:
            self.fitting.add(columns)
        return None

    def _columns(self, slice_: Slice) -> tuple[str, ...]:
        """Return texts that are equal for slices with the same columns; none if the columns are not known."""
        if self.entity.settings.slice_format.kind != "parquet":
            return ()
        marks = set()
        for file, place in zip(slice_.files, slice_.paths, strict=True):
            path = local_path(place)
            if path is None:
                return ()
            try:
                marks.add(schema_fingerprint(path))
            except (ValueError, OSError) as error:
                raise SliceError(
                    f"the slice {slice_.name} can't be read: {error}",
                    remedy="Deliver it again.",
                    details={"path": slice_.path, MAY_SKIP: True},
                    subject=slice_.name,
                ) from error
            marks.update(part for part in file.name.split("/")[:-1])
        return tuple(sorted(marks))


def _record(context: ProcessingContext, entity: Entity, item: str, error: LakewrightError) -> bool:
    """Claim an item and end the claim as failed; return False if another run has the item.

    The error gets the commands to type, and the item among its details.
    """
    chain = context.chain(entity)
    try:
        claim = context.ledger.acquire(
            item,
            context.application,
            context.holder,
            duration=context.lease,
            token_counter=counter_of(chain.silver),
            token_floor=chain.last_number or 0,
            takeover=context.takeover,
        )
    except (OperatorError, SequenceConflict):
        return False
    failed = context.ledger.failed(claim, failure(error, declared=entity.declared_digest))
    add_recovery(error, failed, called_name(entity.called, slice_name(failed)))
    return True


def preview_next_slice(context: ProcessingContext, entity: Entity, pending: Pending) -> str | None:
    """Return a sentence on the deletes that an entity's next slice would infer; None if it infers none.

    Later slices are left out, because their deletes depend on the table after this one. Nothing is written.
    If the slice cannot be processed, the sentence says why.
    """
    strategy = context.strategy_for(entity)
    if not entity.settings.delete_missing or strategy is Strategy.FULL or not pending.ready:
        return None
    state = observe_table(context.lake, entity.places(context.lake.settings).silver)
    if is_adoptable(entity, state):
        return "deletes can be counted once the table is adopted"
    if lacks_past(entity, strategy, state):
        return "deletes can be counted once the versions of history_from are loaded; --rehearse counts them"
    item = pending.ready[0]
    try:
        return _preview(context, entity, item, strategy, is_late=item.item_id in pending.late)
    except LakewrightError as error:
        return f"{slice_name(item)} would fail: {error.message}"


def _preview(
    context: ProcessingContext, entity: Entity, item: Item, strategy: Strategy, *, is_late: bool
) -> str | None:
    slice_ = find_unchanged_slice(context.lake, entity.places(context.lake.settings).slices, item)
    session = strict_session(context.lake)
    request = slice_request(context, entity, slice_, context.clock(), is_late=is_late)
    if is_late and entity.settings.sequence_by is not None:
        return None  # the plan says so of every late slice
    try:
        frame = read_slice(context.lake, session, slice_, entity)
        load = prepare_load(context.lake, session, entity, frame, request)
        check_bad_rows(load.bad_rows, entity, load.state, records=load.statistics.records)
        found = preview_deletes(load)
    except Exception as error:
        raise slice_error(context, entity, slice_.name, error) from error
    if load.bad_rows:
        rows = counted(len(load.bad_rows), "bad row")
        return f"{slice_.name} has {rows} that would be put aside, so that it infers no deletes"
    if found is not None:
        return found.text(slice_.name, strategy)
    records = load.statistics.records
    empty = empty_slice_warning(entity, strategy, records=records, is_first=load.is_first)
    return None if empty is None else f"{slice_.name}: {empty}"
