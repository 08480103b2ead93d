"""Processing of one slice under its lock: the slice is read, applied to its table and recorded.

A commit that an earlier attempt left in the table is recorded instead. Everything between lock and release is
safe to repeat, because the table knows whether an attempt's commit landed.

Source: `processing-manifest.md`, "State".
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from lakewright.errors import (
    BackdatedError,
    CommitConflict,
    ExecutorLost,
    JvmEnded,
    LakewrightError,
    LateSliceError,
    LeaseLost,
    SliceError,
    SliceUnsettled,
    StoreUnavailable,
)
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.commit import LandedCommit, Token, find_commit, strict_session
from lakewright.lake.failpoint import reach_failpoint
from lakewright.manifest.payload import failure
from lakewright.slices.column_time import BEFORE_ALL, latest_in_slice, time_without_rows
from lakewright.slices.deviations import late_error
from lakewright.slices.discovery import find_unchanged_slice, slice_name
from lakewright.slices.past_versions import adopt_first, load_past_before
from lakewright.slices.processing_time import TICK, future_warning
from lakewright.slices.quarantine import name_bad_rows, quarantine_folder, save_bad_rows
from lakewright.slices.reading import read_slice
from lakewright.slices.result import (
    SliceResult,
    commit_facts,
    is_slice_at_fault,
    metrics_content,
    summary_from_commit,
)
from lakewright.slices.time_check import check_column_time, is_late_allowed
from lakewright.spark.jvm import full_text
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted, first_of
from lakewright.strategies.delete_inference import empty_slice_warning, late_slice_warning, lower_bounds
from lakewright.strategies.failures import translate_error
from lakewright.strategies.preparation import prepare_load
from lakewright.strategies.slice_load import LoadRequest, SliceLoad
from lakewright.strategies.summary import Summary
from lakewright.strategies.writing import apply_slice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.manifest.claim import Claim
    from lakewright.manifest.item import Item
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.entity import Entity
    from lakewright.stores.heartbeat import Heartbeat


T = TypeVar("T")

ATTEMPTS = 3
"""Number of times that a slice is compared with its table, if other writers change the table meanwhile."""


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


@dataclass(frozen=True, slots=True)
class _Applied:
    """A slice that was applied to its table, and the counts of the table's rows if it was adopted first."""

    load: SliceLoad
    summary: Summary
    adopted: Mapping[str, int] | None


def retried(
    context: ProcessingContext, name: str, check_lease: Callable[[], None], attempt: Callable[[], T]
) -> T:
    """Return the result of an attempt, which starts over if another writer was faster."""
    for left in reversed(range(ATTEMPTS)):
        try:
            return attempt()
        except (CommitConflict, ExecutorLost, LeaseLost) as error:
            check_lease()
            if not left:
                raise
            context.warn(f"{name}: {error.message}; comparing again")
    raise AssertionError("the last attempt returns or raises")


class SliceProcessor:
    """Processes slices of one entity, one after the other.

    Args:
        context: The context of the processing.
        entity: The entity.
        late: Ids of items that are older than one already processed.
    """

    def __init__(self, context: ProcessingContext, entity: Entity, *, late: frozenset[str]) -> None:
        self.context = context
        self.entity = entity
        self.strategy = context.strategy_for(entity)
        self.times = context.times(entity)
        self.late = late
        self.places = entity.places(context.lake.settings)
        self.app_id = str(context.application)
        self.last_time: datetime | None = None
        self._noted: set[str] = set()
        self._column_times: dict[str, tuple[Mapping[str, Any], datetime | None]] = {}

    @cached_property
    def session(self) -> SparkSession:
        """The Spark session of this entity, started when its first slice is read."""
        return strict_session(self.context.lake)

    def process(self, claim: Claim, heartbeat: Heartbeat) -> SliceResult:
        """Process a claimed slice; the claim is ended in every case.

        Raises:
            LakewrightError: The slice could not be processed. The manifest has its item as failed, or as
                ready if the slice is not to blame.
            KeyboardInterrupt: The run was interrupted; the manifest has the item as ready.
        """
        heartbeat.keep(claim.lease)
        name = slice_name(claim.item)
        try:
            reach_failpoint("after_lock")
            return self._find_or_apply(claim, lambda: heartbeat.check(claim.lease))
        except (LeaseLost, StoreUnavailable):
            raise
        except Exception as error:
            if self.context.is_cut_off():
                self.release(claim, heartbeat, "the run was interrupted")
                raise KeyboardInterrupt from error
            ours = self.translated(error, name)
            if self.is_at_fault(ours):
                heartbeat.drop(claim.lease)
                self._record_failure(claim, ours, error)
            else:
                found = ours.details.get("found") if isinstance(ours, SliceUnsettled) else None
                self.release(claim, heartbeat, f"not done: {ours.message}", fingerprint=found)
            if ours is error:
                raise  # `raise ours from error` would lose the error's own cause
            raise ours from error
        except BaseException:
            self.release(claim, heartbeat, "the run was interrupted")
            raise
        finally:
            heartbeat.drop(claim.lease)

    def is_at_fault(self, error: LakewrightError) -> bool:
        """Return whether an error is the fault of the slice, which is then recorded as failed."""
        if isinstance(error, BackdatedError):
            return self.times.column is not None  # the time is in its rows
        return is_slice_at_fault(self.context.lake, self.entity, error)

    def release(
        self,
        claim: Claim,
        heartbeat: Heartbeat,
        reason: str,
        *,
        fingerprint: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the item ready again, unless another claim holds it by now; it adopts a given fingerprint."""
        heartbeat.drop(claim.lease)
        self.context.ledger.give_back(claim, reason, fingerprint=fingerprint)

    def _record_failure(self, claim: Claim, ours: LakewrightError, error: Exception) -> None:
        """End a claim with FAILED: `ours` is shown to users, `error` is what caused it."""
        trace = "".join(traceback.format_exception(error, limit=20)) + "\n" + full_text(error)
        holds_back = not isinstance(ours, LateSliceError)
        declared = self.entity.declared_digest
        content = failure(ours, stack_trace=trace, holds_back=holds_back, declared=declared)
        try:
            self.context.ledger.failed(claim, content)
        except StoreUnavailable:
            name = slice_name(claim.item)
            self.context.warn(
                f"{self.entity.name}: {name} failed, which could not be recorded: {ours.message}"
            )
            raise

    def _find_or_apply(self, claim: Claim, check_lease: Callable[[], None]) -> SliceResult:
        """Find the slice's commit in the table, or make it; start over if another writer was faster."""

        def attempt() -> SliceResult:
            lake, silver = self.context.lake, self.places.silver
            fact = find_commit(lake, silver, self.app_id, claim.token, claim.item_id)
            return self._apply(claim, check_lease) if fact is None else self._record_landed(claim, fact)

        return retried(self.context, slice_name(claim.item), check_lease, attempt)

    def _record_landed(self, claim: Claim, fact: LandedCommit) -> SliceResult:
        """Record a commit that landed but that the manifest does not show."""
        summary, content = summary_from_commit(fact, self.strategy)
        self._record(claim, {**content, **metrics_content(summary)})
        revision = claim.item.revision
        return SliceResult(slice_name(claim.item), claim.item_id, summary, is_adopted=True, revision=revision)

    def _apply(self, claim: Claim, check_lease: Callable[[], None]) -> SliceResult:
        """Read the slice, apply its strategy and record the result."""
        started = time.monotonic()
        self._check_not_late(claim)
        slice_ = self.unchanged_slice(claim)
        request = self.request(claim, slice_, check_lease)
        lake = self.context.lake
        try:
            frame = read_slice(lake, self.session, slice_, self.entity, note=self.note)
            reach_failpoint("after_read")
            applied = self._apply_strategy(frame, request, slice_)
        except Exception as error:
            ours = self.translated(error, slice_.name)
            named = name_bad_rows(ours, slice_, request, lake=lake, session=self.session, entity=self.entity)
            if named is error:
                raise
            raise named from error
        summary = replace(applied.summary, seconds=round(time.monotonic() - started, 3))
        adopted = {} if applied.adopted is None else {"adopted_table": dict(applied.adopted)}
        self._record(claim, {**self.record_content(slice_, applied.load, summary), **adopted})
        if applied.adopted is not None:
            self.context.warn(f"{self.entity.name}: the table was adopted, {applied.adopted['rows']} rows")
        warnings, revision = self.warn_of(slice_, applied.load, applied.summary), claim.item.revision
        return SliceResult(slice_.name, claim.item_id, summary, revision=revision, warnings=warnings)

    def _apply_strategy(self, frame: DataFrame, request: LoadRequest, slice_: Slice) -> _Applied:
        """Apply the strategy in one commit, or in none if nothing changes.

        Before it, the table is adopted, or past versions are loaded, if the entity asks for it.
        """
        adopted = adopt_first(self.context.lake, self.session, self.entity, frame, request)
        self.load_past(slice_, request)
        load = prepare_load(self.context.lake, self.session, self.entity, frame, request)
        reach_failpoint("after_facts")
        if self.entity.settings.on_bad_rows == "quarantine":
            request.check_lock()
            load = self.with_saved_rows(slice_, load)
            reach_failpoint("after_quarantine")
        return _Applied(load, apply_slice(load), adopted)

    def with_saved_rows(self, slice_: Slice, load: SliceLoad) -> SliceLoad:
        """Return a slice after its bad rows were put aside."""
        lake, records = self.context.lake, load.statistics.records
        rows = save_bad_rows(lake, self.entity, slice_, load.bad_rows, table=load.state, records=records)
        return replace(load, bad_rows=rows)

    def load_past(self, slice_: Slice, request: LoadRequest) -> None:
        """Load what stands before the first slice, if this is the first one."""
        load_past_before(self.context, self.session, self.entity, slice_, request)

    def note(self, text: str) -> None:
        """Warn of what the slices of the entity have in common, once."""
        if text not in self._noted:
            self._noted.add(text)
            self.context.warn(Phrase(f"{self.entity.name}: ", text))

    def warn_of(self, slice_: Slice, load: SliceLoad, summary: Summary) -> tuple[str, ...]:
        """Warn of drift and of all else that the user must know of a slice; return the warnings."""
        own = load_warnings(self.context, self.entity, load, summary)
        warnings = (*own, *self._bad_row_warnings(load))
        for warning in warnings:
            self.context.show(Phrase(f"{self.entity.name}: {slice_.name}: ", warning))
        return warnings

    def _bad_row_warnings(self, load: SliceLoad) -> tuple[str, ...]:
        """Return what the user must know about rows put aside."""
        if not load.bad_rows:
            return ()
        folder = quarantine_folder(self.context.lake, self.entity, load.request.slice_name)
        was = "was" if len(load.bad_rows) == 1 else "were"
        text = f"{counted(len(load.bad_rows), 'bad row')} {was} put aside in {folder}"
        if self.entity.settings.delete_missing and self.strategy is not Strategy.FULL:
            text += ", and no deletes are inferred"
        return (f"{text}: {first_of([row.text() for row in load.bad_rows], 3, '; ')}",)

    def _record(self, claim: Claim, content: Mapping[str, Any]) -> None:
        reach_failpoint("before_processed")
        self.context.ledger.processed(claim, content)

    def _check_not_late(self, claim: Claim) -> None:
        """Raise `LateSliceError` for a late slice unless the entity, the run or the requeue allows it."""
        if claim.item_id not in self.late or is_late_allowed(self.context, self.entity, claim.item):
            return
        last = self.context.chain(self.entity).last_processed()
        raise late_error(self.entity, self.strategy, slice_name(claim.item), last)

    def unchanged_slice(self, claim: Claim) -> Slice:
        """Return the claimed slice if it is unchanged since it was recorded."""
        lake, sleep = self.context.lake, self.context.sleep
        return find_unchanged_slice(lake, self.places.slices, claim.item, sleep=sleep)

    def _time(self, claim: Claim, slice_: Slice, before: datetime | None) -> datetime:
        """Return the processing time of the next slice; see `request`."""
        if self.times.column is None:
            return self._next_time(claim.item)
        at = self._latest(claim, slice_, self.times.column)
        if at is None:
            return time_without_rows(self.context.chain(self.entity), before)
        check_column_time(self.context, self.entity, claim.item, at, before)
        return at

    def _latest(self, claim: Claim, slice_: Slice, column: str) -> datetime | None:
        """Return the latest value of a column in a slice, which is read once; None without rows."""
        known = self._column_times.get(claim.item_id)
        if known is None or known[0] != slice_.fingerprint:
            context, entity, is_late = self.context, self.entity, claim.item_id in self.late
            request = slice_request(context, entity, slice_, BEFORE_ALL, is_late=is_late)
            latest = latest_in_slice(
                context.lake, self.session, entity, slice_, column, request=request, note=self.note
            )
            known = self._column_times[claim.item_id] = (slice_.fingerprint, latest)
        return known[1]

    def _next_time(self, item: Item) -> datetime:
        """Return the processing time of the next slice: later than that of this run's previous slice."""
        given = self.times.of_item(item)
        at = given or self.context.clock().astimezone(UTC)
        if self.last_time is not None and given is None:
            at = max(at, self.last_time + TICK)
        self.last_time = at
        return at

    def request(
        self,
        claim: Claim,
        slice_: Slice,
        check_lease: Callable[[], None],
        before: datetime | None = None,
    ) -> LoadRequest:
        """Return the request to process a claimed slice; the slice gets its processing time.

        Args:
            claim: The claim.
            slice_: The slice.
            check_lease: Raises an error if the claim is lost.
            before: The time of the slice before it in the same commit; None if it is the first one.

        Raises:
            BackdatedError: The time, which the slice gives itself, is too early.
            LakewrightError: The time can't be read.
        """

        def check_lock() -> None:
            check_lease()
            if self.unchanged_slice(claim).fingerprint != slice_.fingerprint:
                raise SliceError(f"the slice {slice_.name} changed while it was read")

        at = self._time(claim, slice_, before)
        token = Token(self.app_id, claim.token, self._commit_content(claim, slice_, at))
        is_late = claim.item_id in self.late
        request = slice_request(self.context, self.entity, slice_, at, is_late=is_late)
        return replace(request, token=token, check_lock=check_lock)

    def _commit_content(self, claim: Claim, slice_: Slice, at: datetime) -> dict[str, Any]:
        return {
            "item": claim.item_id,
            "revision": claim.item.revision,
            "run": claim.run_id,
            "record": claim.record_id,
            "strategy": self.strategy.value,
            "processingTime": at.isoformat(),
            "fingerprint": slice_.fingerprint,
        }

    def record_content(self, slice_: Slice, load: SliceLoad, summary: Summary) -> dict[str, Any]:
        """Return what the manifest records of a slice that was applied."""
        return {"slice": slice_.name, **commit_facts(load.content(summary)), **metrics_content(summary)}

    def translated(self, error: Exception, name: str) -> LakewrightError:
        """Return the error to raise for an error that occurred while a slice was processed."""
        return translate_error(error, self.entity, name, table=self.places.silver.location or "")
