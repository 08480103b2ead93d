"""Processing of claimed slices under their locks: one commit applies them to their table, each is recorded.

A commit that an earlier attempt left in the table is recorded instead. Everything between lock and release is
safe to repeat, because the table knows whether an attempt's commit landed.

Source: `processing-manifest.md`, "State".
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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
    MigrationError,
    NotInstalled,
    RetryableError,
    SliceError,
    SliceUnsettled,
    SparkUnavailable,
    StoreUnavailable,
)
from lakewright.errors.phrase import Phrase
from lakewright.lake.commit import LandedCommit, Token, find_commit, strict_session
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.tracing import span
from lakewright.manifest.lock import add_recovery
from lakewright.manifest.payload import failure
from lakewright.slices.column_time import BEFORE_ALL, latest_in_slice, time_without_rows
from lakewright.slices.deviations import late_error
from lakewright.slices.discovery import called_name, find_unchanged_slice, slice_name
from lakewright.slices.past_versions import adopt_first, load_past_before
from lakewright.slices.processing_time import TICK
from lakewright.slices.quarantine import name_bad_rows, quarantine_folder, save_bad_rows
from lakewright.slices.result import (
    ProcessResult,
    SliceReport,
    SliceResult,
    is_slice_at_fault,
    landed_content,
    processed_content,
)
from lakewright.slices.slice_commit import commit_slices, load_warnings, slice_request
from lakewright.slices.time_check import check_column_time, is_late_allowed
from lakewright.spark.jvm import full_text
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted, first_of
from lakewright.strategies.failures import translate_error
from lakewright.strategies.fold import NotFoldable
from lakewright.strategies.preparation import BadSlice
from lakewright.strategies.slice_load import LoadRequest, SliceLoad
from lakewright.strategies.summary import Summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.manifest.claim import Claim
    from lakewright.manifest.item import Item
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.entity import Entity
    from lakewright.stores.heartbeat import Heartbeat


T = TypeVar("T")

ATTEMPTS = 3
"""Number of times that a slice is compared with its table, if other writers change the table meanwhile."""


_OF_NO_SLICE = (JvmEnded, MigrationError, NotInstalled, RetryableError, SparkUnavailable)
"""Errors that no smaller fold avoids."""


@dataclass(frozen=True, slots=True)
class _ClaimedSlice:
    """A slice with its claim and its request."""

    claim: Claim
    slice_: Slice
    request: LoadRequest


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
    """Processes slices of one entity, one after the other, or several in one commit.

    Args:
        context: The context of the processing.
        entity: The entity.
        late: Ids of items that are older than one already processed.

    Attributes:
        one_by_one: Why no commit may hold several of the slices; None if one may.
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
        self.one_by_one: str | None = None
        self._noted: set[str] = set()
        self._column_times: dict[str, tuple[Mapping[str, Any], datetime | None]] = {}

    @cached_property
    def session(self) -> SparkSession:
        """The Spark session of this entity, started when its first slice is read."""
        return strict_session(self.context.lake)

    def process(self, claims: Sequence[Claim], heartbeat: Heartbeat) -> ProcessResult:
        """Process claimed slices in one commit, or as many of the first ones as it can hold.

        The heartbeat renews the claims already. All of them are ended, and a result names the slices of which
        the manifest could not record how. Slices that are not processed are ready again, but for one alone
        that is at fault, which has failed.

        Raises:
            KeyboardInterrupt: The run was interrupted; the manifest has the items as ready.
        """
        held = list(claims)
        try:
            return self._process(held, heartbeat)
        except StoreUnavailable as error:
            self._report_error(held, error)
            return ProcessResult(errors=(error,), unrecorded=_names(held))
        finally:
            for claim in claims:
                heartbeat.drop(claim.lease)

    def _process(self, held: list[Claim], heartbeat: Heartbeat) -> ProcessResult:
        """Process claimed slices; those that others must be processed before are removed from the list."""
        try:
            reach_failpoint("after_lock")
            while True:
                try:
                    return self._commit(held, heartbeat)
                except BadSlice as bad:
                    kept = bad.position or 1
                    if not bad.is_known:  # else the slice itself says why
                        what = f"{len(held)} slices could not be folded, half of them are tried: {bad.error}"
                        self.context.warn(f"{self.entity.name}: {what}")
                except NotFoldable as error:
                    kept, self.one_by_one = 1, str(error)
                self.release(held[kept:], heartbeat, "it is processed after the slices before it")
                del held[kept:]
        except StoreUnavailable:
            raise
        except BaseException as error:
            return self._ended_by(error, held, heartbeat)

    def _ended_by(self, error: BaseException, held: Sequence[Claim], heartbeat: Heartbeat) -> ProcessResult:
        """End claims after an error: with FAILED if it is the fault of the one slice, else it is ready again.

        Raises:
            BaseException: The error, if the run was interrupted.
        """
        if not isinstance(error, Exception) or (
            self.context.is_cut_off() and not isinstance(error, LeaseLost)
        ):
            self.release(held, heartbeat, "the run was interrupted")
            if isinstance(error, Exception):
                raise KeyboardInterrupt from error
            raise error
        if isinstance(error, LeaseLost):
            if len(held) > 1:
                with suppress(LakewrightError):
                    # Those that another run has taken over are left to it.
                    self.release(held, heartbeat, "the lock on a slice of the same commit is lost")
            self._report_error(held, error)
            return ProcessResult(errors=(error,))
        name = slice_name(held[0].item)
        ours = self.translated(error, name)
        if ours is not error:
            ours.__cause__ = error
        if len(held) > 1 or not self.is_at_fault(ours):
            found = ours.details.get("found") if isinstance(ours, SliceUnsettled) else None
            fingerprint = found if len(held) == 1 else None
            self.release(held, heartbeat, f"not done: {ours.message}", fingerprint=fingerprint)
            self._report_error(held, ours)
            return ProcessResult(errors=(ours,))
        heartbeat.drop(held[0].lease)
        failed = self._record_failure(held[0], ours, error)
        self._report_error(held, ours, is_failed=True)
        add_recovery(ours, failed, called_name(self.entity.called, name))
        return ProcessResult(failed=(name,), errors=(ours,))

    def _report_error(
        self, held: Sequence[Claim], error: LakewrightError, *, is_failed: bool = False
    ) -> None:
        """Report why a slice alone was not processed; of several, none is to blame."""
        if len(held) == 1:
            named = (self.entity.called, slice_name(held[0].item), held[0].item_id)
            self.context.report(SliceReport(*named, error=error, is_failed=is_failed))

    def is_at_fault(self, error: LakewrightError) -> bool:
        """Return whether an error is the fault of the slice, which is then recorded as failed."""
        if isinstance(error, BackdatedError):
            return self.times.column is not None  # the time is in its rows
        return is_slice_at_fault(self.context.lake, self.entity, error)

    def release(
        self,
        claims: Sequence[Claim],
        heartbeat: Heartbeat,
        reason: str,
        *,
        fingerprint: Mapping[str, Any] | None = None,
    ) -> None:
        """Make items ready again, unless other claims hold them by now; they adopt a given fingerprint."""
        for claim in claims:
            heartbeat.drop(claim.lease)
            self.context.ledger.give_back(claim, reason, fingerprint=fingerprint)

    def _record_failure(self, claim: Claim, ours: LakewrightError, error: Exception) -> Item:
        """End a claim with FAILED: `ours` is shown to users, `error` is what caused it; return the item."""
        trace = "".join(traceback.format_exception(error, limit=20)) + "\n" + full_text(error)
        holds_back = not isinstance(ours, LateSliceError)
        declared = self.entity.declared_digest
        content = failure(ours, stack_trace=trace, holds_back=holds_back, declared=declared)
        try:
            return self.context.ledger.failed(claim, content)
        except StoreUnavailable:
            name = slice_name(claim.item)
            self.context.warn(
                f"{self.entity.name}: {name} failed, which could not be recorded: {ours.message}"
            )
            raise

    def _commit(self, claims: Sequence[Claim], heartbeat: Heartbeat) -> ProcessResult:
        """Find or make the commit of claimed slices, and record it; start over if another writer was faster.

        Raises:
            BadSlice: Several can't be folded as they are; it names how many of them to try next.
            NotFoldable: They must be processed one by one.
        """

        def check_leases() -> None:
            for claim in claims:
                heartbeat.check(claim.lease)

        def attempt() -> ProcessResult:
            if len(claims) == 1:
                (claim,) = claims
                lake, silver = self.context.lake, self.places.silver
                fact = find_commit(lake, silver, self.app_id, claim.token, claim.item_id)
                if fact is not None:
                    return ProcessResult((self._record_landed(claim, fact),))
            return self._apply(claims, check_leases, heartbeat)

        about: dict[str, object] = {"slices": len(claims)}
        name, called = "fold", self.entity.name
        if len(claims) == 1:
            called = slice_name(claims[0].item)
            name, about = f"slice {called}", {"item": claims[0].item_id}
        with span(name, entity=self.entity.name, **about) as traced:
            done = retried(self.context, called, check_leases, attempt)
            traced.note(version=done.slices[0].summary.delta_version if done.slices else None)
        return done

    def _record_landed(self, claim: Claim, fact: LandedCommit) -> SliceResult:
        """Record a commit that landed but that the manifest does not show."""
        summary, content = landed_content(slice_name(claim.item), fact.version, fact.content, self.strategy)
        self._record(claim, content)
        return self._result(claim, summary, is_adopted=True)

    def _apply(
        self, claims: Sequence[Claim], check_leases: Callable[[], None], heartbeat: Heartbeat
    ) -> ProcessResult:
        """Read slices, apply them in one commit, and record each."""
        started = time.monotonic()
        claimed = self._claimed(claims)
        try:
            applied, adopted = self._apply_strategy(claimed, check_leases)
        except Exception as error:
            ours = self._blaming(claimed, error)
            if ours is error:
                raise  # `raise ours from error` would lose the error's own cause
            raise ours from error
        if adopted:
            rows = adopted["adopted_table"]["rows"]
            self.context.warn(f"{self.entity.name}: the table was adopted, {rows} rows")
        seconds = round((time.monotonic() - started) / len(claimed), 3)
        shared = {"folded": len(claimed)} if len(claimed) > 1 else {}
        done: list[SliceResult] = []
        unrecorded, errors = tuple[str, ...](), tuple[LakewrightError, ...]()
        for each, (load, summary) in zip(claimed, applied, strict=True):
            whole = replace(summary, seconds=seconds)
            content = {**processed_content(each.slice_.name, load.content(whole)), **shared, **adopted}
            try:
                self._record(each.claim, content)
            except StoreUnavailable as error:
                if len(claimed) == 1:
                    raise
                unrecorded, errors = _names(claims[len(done) :]), (error,)
                break
            heartbeat.drop(each.claim.lease)
            warnings = self.warn_of(each.slice_, load, whole)
            done.append(self._result(each.claim, whole, warnings=warnings))
        notes = () if len(claimed) == 1 else (_folded_text(_names(claims), applied[0][1].delta_version),)
        return ProcessResult(tuple(done), errors=errors, notes=notes, unrecorded=unrecorded)

    def _claimed(self, claims: Sequence[Claim]) -> tuple[_ClaimedSlice, ...]:
        """Return the slices with their requests, as if each were processed by itself.

        Raises:
            BadSlice: One of several has changed, is gone or has no processing time.
        """
        found: list[_ClaimedSlice] = []
        for claim in claims:
            try:
                self._check_not_late(claim)
                slice_ = self.unchanged_slice(claim)
                before = found[-1].request.at if found else None
                found.append(_ClaimedSlice(claim, slice_, self.request(claim, slice_, before)))
            except LakewrightError as error:
                if len(claims) == 1 or isinstance(error, StoreUnavailable):
                    raise
                raise BadSlice(len(found), error) from error
        return tuple(found)

    def _apply_strategy(
        self, claimed: Sequence[_ClaimedSlice], check_leases: Callable[[], None]
    ) -> tuple[list[tuple[SliceLoad, Summary]], dict[str, Any]]:
        """Apply the strategy in one commit, or in none if nothing changes.

        Before it, the table is adopted, or past versions are loaded, if the entity asks for it.

        Returns:
            Each slice with its metrics, and what the records say of the adoption.
        """

        def check_locks() -> None:
            check_leases()
            for each in claimed:
                each.request.check_lock()

        lake, first, last = self.context.lake, claimed[0], claimed[-1].claim
        request = replace(first.request, check_lock=check_locks)
        adopted = adopt_first(lake, self.session, self.entity, first.slice_, request)
        load_past_before(self.context, self.session, self.entity, first.slice_, request)
        applied = commit_slices(
            lake,
            self.session,
            self.entity,
            [(each.slice_, each.request) for each in claimed],
            token=Token(self.app_id, last.token, {"run": last.run_id, "record": last.record_id}),
            check_lock=check_locks,
            prepared=self.with_saved_rows,
            note=self.note,
        )
        return applied, {} if adopted is None else {"adopted_table": dict(adopted)}

    def _blaming(self, claimed: Sequence[_ClaimedSlice], error: Exception) -> Exception:
        """Return the error to raise: of several that name no slice, that half of these are tried next."""
        cause = error.error if isinstance(error, BadSlice) else error
        if cause is None or isinstance(error, NotFoldable):
            return error
        only, lake = claimed[0], self.context.lake
        if len(claimed) > 1 and self.context.is_cut_off():
            return cause
        ours = self.translated(cause, only.slice_.name)
        if len(claimed) == 1:
            return name_bad_rows(
                ours, only.slice_, only.request, lake=lake, session=self.session, entity=self.entity
            )
        if isinstance(ours, _OF_NO_SLICE):
            return ours
        return error if isinstance(error, BadSlice) else BadSlice(len(claimed) // 2, ours, is_known=False)

    def _result(
        self, claim: Claim, summary: Summary, *, is_adopted: bool = False, warnings: tuple[str, ...] = ()
    ) -> SliceResult:
        """Return the result of one slice, after it was reported."""
        name, item, revision = slice_name(claim.item), claim.item_id, claim.item.revision
        done = SliceResult(name, item, summary, is_adopted, revision, warnings)
        self.context.report(SliceReport(self.entity.called, name, item, result=done))
        return done

    def with_saved_rows(self, slice_: Slice, load: SliceLoad) -> SliceLoad:
        """Return a slice after its bad rows were put aside, if the entity has a quarantine."""
        if self.entity.settings.on_bad_rows != "quarantine":
            return load
        lake, records = self.context.lake, load.statistics.records
        rows = save_bad_rows(lake, self.entity, slice_, load.bad_rows, table=load.state, records=records)
        return replace(load, bad_rows=rows)

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

    def request(self, claim: Claim, slice_: Slice, before: datetime | None = None) -> LoadRequest:
        """Return the request to process a claimed slice; the slice gets its processing time.

        Args:
            claim: The claim.
            slice_: The slice.
            before: The time of the slice before it in the same commit; None if it is the first one.

        Raises:
            BackdatedError: The time, which the slice gives itself, is too early.
            LakewrightError: The time can't be read.
        """

        def check_lock() -> None:
            if self.unchanged_slice(claim).fingerprint != slice_.fingerprint:
                why = f"the slice {slice_.name} changed while it was read"
                raise SliceError(why, subject=slice_.name)

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

    def translated(self, error: Exception, name: str) -> LakewrightError:
        """Return the error to raise for an error that occurred while a slice was processed."""
        return translate_error(error, self.entity, name, table=self.places.silver.location or "")


def _names(claims: Sequence[Claim]) -> tuple[str, ...]:
    return tuple(slice_name(claim.item) for claim in claims)


def _folded_text(names: Sequence[str], version: int | None) -> str:
    commit = "no commit: they change nothing" if version is None else f"version {version}"
    return f"{len(names)} slices, {names[0]} to {names[-1]}, were folded into {commit}"
