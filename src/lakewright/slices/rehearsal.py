"""Rehearsal of one slice: it is applied to a shallow clone of its entity's table, and nothing is recorded.

The clone stands beside the table, copies no rows, and is removed at the end, or by the next rehearsal if the
process was killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakewright.errors import (
    BackdatedError,
    DeleteBrakeError,
    LakewrightError,
    LeaseHeld,
    NotInstalled,
    RetryableError,
    SliceError,
    SparkUnavailable,
    UsageError,
)
from lakewright.lake.commit import Token, strict_session
from lakewright.lake.commit_lock import commit_lock
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import observe_table
from lakewright.lake.paths import local_path
from lakewright.lake.table import drop_table, remove_uncommitted
from lakewright.manifest.item import Item, is_changed
from lakewright.manifest.verdict import Verdict
from lakewright.slices.chain import place_of
from lakewright.slices.column_time import BEFORE_ALL, latest_in_slice, time_without_rows
from lakewright.slices.deviations import late_error
from lakewright.slices.discovery import (
    check_not_empty,
    find_slice,
    list_bronze,
    natural_key,
    slice_name,
    without_unsettled,
)
from lakewright.slices.past_versions import adopt_first, load_past_before
from lakewright.slices.pending_slices import find_pending
from lakewright.slices.processing_time import future_warning
from lakewright.slices.rewind.side_table import REHEARSAL, begin_beside
from lakewright.slices.slice_commit import commit_slices, slice_error, slice_request
from lakewright.slices.time_check import check_column_time, check_processing_times, is_late_allowed
from lakewright.spec.models.places import Address
from lakewright.spec.suggestions import hint
from lakewright.spec.words import counted
from lakewright.strategies.bad_rows import check_bad_rows, rows_text
from lakewright.strategies.delete_inference import (
    DeletePreview,
    empty_slice_warning,
    late_slice_warning,
    preview_deletes,
)
from lakewright.strategies.outdated import narrowed_columns
from lakewright.strategies.slice_load import LoadRequest, SliceLoad

if TYPE_CHECKING:
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.summary import Summary


_ENVIRONMENT = (RetryableError, NotInstalled, SparkUnavailable)
"""Errors that say nothing about the slice."""

_REASONS = {
    Verdict.PROCESSED: "it is processed already; this is its effect on the table as it is now",
    Verdict.FAILED: "it has failed before; a run takes it once it is resolved",
    Verdict.SKIPPED: "it is skipped; a run takes it once it is requeued",
    Verdict.LOCKED: "another run is processing it now",
    Verdict.INVALID: "its records in the manifest are invalid; a run takes it once they are repaired",
}
"""What to say of a slice that the next run would not simply take."""


@dataclass(frozen=True, slots=True, repr=False)
class Rehearsal:
    """A slice that was applied to a clone of its table.

    Attributes:
        entity: Name of the entity.
        slice: Name of the slice.
        item_id: Its item.
        state: What the manifest says of it: `ready`, `processed`, `failed`, `skipped` or `locked`.
        strategy: The strategy by which it would be applied.
        processing_time: The processing time that it was given.
        version: The version of the table that it was applied to; None if there is no table yet.
        summary: Its metrics; None if it can't be applied.
        deletes: The deletes that it would infer; None if it infers none.
        notes: What the reader must know of the slice and of those beside it.
        warnings: What a run would warn of.
        error: The error with which a run would end; None if it would succeed. With the error of the brake and
            those about order and time, the effect is that of a run that is allowed to go on.
    """

    entity: str
    slice: str
    item_id: str
    state: str
    strategy: str
    processing_time: datetime
    version: int | None
    summary: Summary | None
    deletes: DeletePreview | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    error: LakewrightError | None


@contextmanager
def rehearsed(context: ProcessingContext, entity: Entity, name: str) -> Iterator[tuple[Rehearsal, Entity]]:
    """Apply a slice to a clone of its table; return the entity with the place of the clone, too.

    The clone is there until the block ends.

    Nothing is written to the table, the manifest or bronze, so that no lease is taken and runs go on.

    Raises:
        UsageError: There is no such slice, or the processing time is no time.
        LeaseHeld: Another process of this machine is rehearsing a slice of the entity.
    """
    lake = context.lake
    slice_ = _find(context, entity, name)
    (item,) = context.chain(entity).in_bronze((slice_,)).values()
    side = entity.beside(lake.settings, REHEARSAL)
    silver = entity.places(lake.settings).silver
    with _alone(context, entity, silver):
        state = observe_table(lake, silver)
        base = state.version if state.exists else None
        app = f"{context.application}/rehearsal/{context.holder.run_id}"
        try:
            begin_beside(context, entity, side, base, app=app, slices=())
            reach_failpoint("after_clone")
            warnings = [*narrowed_columns(state, entity)]
            yield _Attempt(context, entity, side, slice_, item, app, warnings=warnings).rehearse(base), side
        finally:
            address = side.places(lake.settings).silver
            drop_table(lake, address)
            remove_uncommitted(address)


def _find(context: ProcessingContext, entity: Entity, name: str) -> Slice:
    """Return a slice that is complete.

    Raises:
        UsageError: There is none of that name.
    """
    bronze = entity.places(context.lake.settings).slices
    listing = list_bronze(bronze, context.lake)
    listing = without_unsettled(listing, context.options.settle, context.clock())
    slice_ = next((each for each in listing.slices if each.name == name), None)
    if slice_ is not None:
        return slice_
    if name in listing.incomplete:
        raise UsageError(
            f"the slice {name} is still being written", remedy="Rehearse it once it is complete."
        )
    if name in listing.unreadable:
        raise SliceError(f"the slice {name} can't be read: {listing.unreadable[name]}")
    known = [each.name for each in listing.slices]
    raise UsageError(
        f"there is no slice {name} in {bronze.pattern}",
        remedy=hint(name, known) if known else "The folder has no slices.",
    )


@contextmanager
def _alone(context: ProcessingContext, entity: Entity, silver: Address) -> Iterator[None]:
    """Keep other processes of this machine from rehearsing slices of the entity meanwhile.

    Tables that have no local path have no such lock.
    """
    path = None if silver.location is None else local_path(silver.location)
    if path is None:
        yield
        return
    turn = Address(location=str(path.with_name(f"{path.name}{REHEARSAL}_turn")))
    has_folder = path.parent.exists()
    try:
        with commit_lock(turn, str(context.holder), patience=0):
            yield
    except LeaseHeld as held:
        if held.details.get("key") != str(turn):
            raise
        raise LeaseHeld(
            f"{held.details['holder']} is rehearsing a slice of {entity.name}",
            remedy="Wait for it to end, then rehearse again.",
            details=held.details,
        ) from None
    finally:
        if not has_folder and path.parent.exists() and not any(path.parent.iterdir()):
            path.parent.rmdir()


@dataclass(slots=True)
class _Attempt:
    """One slice on its way to the clone.

    Attributes:
        errors: Errors with which a run would end, the first first.
        warnings: What a run would warn of.
        deletes: The deletes that the slice would infer.
    """

    context: ProcessingContext
    entity: Entity
    side: Entity
    slice: Slice
    item: Item
    app: str
    errors: list[LakewrightError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    deletes: DeletePreview | None = None

    def rehearse(self, base: int | None) -> Rehearsal:
        """Apply the slice to the clone."""
        context, warn = self.context, self.warnings.append
        at = self._time()
        has_time = not self.errors
        if future := future_warning(at, context.clock(), context.strategy_for(self.entity)):
            warn(future)
        last = context.chain(self.entity).last_processed()
        comes_late = last is not None and place_of(self.item) < last
        if comes_late and not is_late_allowed(context, self.entity, self.item):
            by = context.strategy_for(self.entity)
            self.errors.append(late_error(self.entity, by, self.slice.name, last))
        self._check_time(at)
        request = self._request(at, is_late=comes_late)
        summary = self._applied(request) if has_time else None
        if summary is None and isinstance(self.errors[-1], DeleteBrakeError):
            # Whoever rehearses wants to see what the brake keeps from being deleted.
            permissions = replace(request.permissions, allow_deletes=True)
            summary = self._applied(replace(request, permissions=permissions))
        return Rehearsal(
            entity=self.entity.name,
            slice=self.slice.name,
            item_id=self.item.item_id,
            state=self.item.verdict(self.context.application).value,
            strategy=context.strategy_for(self.entity).value,
            processing_time=at,
            version=base,
            summary=summary,
            deletes=self.deletes,
            notes=tuple(self._notes()),
            warnings=tuple(dict.fromkeys(self.warnings)),
            error=self.errors[0] if self.errors else None,
        )

    def _time(self) -> datetime:
        """Return the slice's processing time; if it has none, that of now, and the error is noted."""
        context = self.context
        times = context.times(self.entity)
        if times.column is None:
            return (times.of_item(self.item) or context.clock()).astimezone(UTC)
        lake, request = context.lake, self._request(BEFORE_ALL, is_late=False)
        try:
            check_not_empty(self.slice)
            session = strict_session(lake)
            latest = latest_in_slice(lake, session, self.side, self.slice, times.column, request=request)
        except Exception as error:
            self._note_error(error)
            return context.clock().astimezone(UTC)
        return latest or time_without_rows(context.chain(self.entity))

    def _check_time(self, at: datetime) -> None:
        """Note the error with which a run would refuse the slice's processing time."""
        late = frozenset({self.item.item_id} if self.errors else ())
        try:
            check_processing_times(self.context, self.entity, (self.item,), late)
            if not late and self.context.times(self.entity).column is not None:
                check_column_time(self.context, self.entity, self.item, at)
        except BackdatedError as error:
            self.errors.append(error)

    def _request(self, at: datetime, *, is_late: bool) -> LoadRequest:
        content = {"run": self.context.holder.run_id, "record": f"{self.app}/1", "slice": self.slice.name}
        request = slice_request(self.context, self.entity, self.slice, at, is_late=is_late)
        is_same = not is_changed(self.item.fingerprint or {}, self.slice.fingerprint)
        return replace(
            request,
            token=Token(self.app, 1, content),
            check_lock=self._check,
            may_lack_columns=self.item.is_processed_by(self.context.application) and is_same,
        )

    def _check(self) -> None:
        """Raise an error if the rehearsal must end, or the slice has changed since it began."""
        if self.context.is_cut_off():
            raise KeyboardInterrupt
        bronze = self.entity.places(self.context.lake.settings).slices
        now = find_slice(bronze, self.slice.name, self.context.lake)
        if now is None or now.fingerprint != self.slice.fingerprint:
            raise SliceError(f"the slice {self.slice.name} changed while it was read")

    def _applied(self, request: LoadRequest) -> Summary | None:
        """Apply the slice to the clone; return its metrics, or None and note the error."""
        try:
            check_not_empty(self.slice)
            return self._apply(request)
        except Exception as error:
            self._note_error(error)
            return None

    def _note_error(self, error: Exception) -> None:
        """Note an error of the slice.

        Raises:
            LakewrightError: It says nothing about the slice.
        """
        ours = slice_error(self.context, self.side, self.slice.name, error)
        if isinstance(ours, _ENVIRONMENT):
            raise ours from error
        self.errors.append(ours)

    def _apply(self, request: LoadRequest) -> Summary:
        lake, session, side = self.context.lake, strict_session(self.context.lake), self.side
        adopted = adopt_first(lake, session, side, self.slice, request)
        if adopted is not None:
            self.warnings.append(f"the table would be adopted first, {counted(adopted['rows'], 'row')}")
        past = load_past_before(
            replace(self.context, warn=lambda _: None), session, side, self.slice, request
        )
        if past is not None:
            self.warnings.append(past.text)
        ((_, summary),) = commit_slices(
            lake,
            session,
            side,
            [(self.slice, request)],
            token=request.token,
            check_lock=request.check_lock,
            prepared=self._noted,
        )
        return summary

    def _noted(self, _: Slice, load: SliceLoad) -> SliceLoad:
        check_bad_rows(load.bad_rows, self.side, load.state, records=load.statistics.records)
        self._note_load(load)
        return load

    def _note_load(self, load: SliceLoad) -> None:
        """Note drift, bad rows, and the deletes that the slice would infer."""
        self.warnings.extend(load.column_notes)
        if load.bad_rows:
            text = f"{counted(len(load.bad_rows), 'bad row')} would be put aside"
            self.warnings.append(f"{text}: {rows_text(load.bad_rows)}")
        late = late_slice_warning(self.entity, load.request.strategy) if load.request.is_late else None
        self.warnings.extend(() if late is None else (f"the slice is late: {late}",))
        is_unordered = load.request.is_late and self.entity.settings.sequence_by is not None
        if self.entity.settings.delete_missing and not load.bad_rows and not is_unordered:
            # With the brake off, the first count stands: it says what the brake says.
            self.deletes = self.deletes or preview_deletes(load)
            records, strategy = load.statistics.records, load.request.strategy
            empty = empty_slice_warning(self.entity, strategy, records=records, is_first=load.is_first)
            self.warnings.extend(() if empty is None else (empty,))

    def _notes(self) -> Iterator[str]:
        """Yield what the reader must know of the slice and of those beside it."""
        verdict = self.item.verdict(self.context.application)
        if verdict in _REASONS:
            yield _REASONS[verdict]
        recorded = self.item.fingerprint
        if recorded is not None and dict(recorded) != self.slice.fingerprint:
            yield "it has changed since it was recorded; its present content is rehearsed"
        pending = find_pending(
            replace(self.context, warn=self.warnings.append), self.entity, is_recorded=False
        )
        own = natural_key(self.slice.name)
        waiting = (*pending.ready, *pending.waiting)
        before = [slice_name(each) for each in waiting if natural_key(slice_name(each)) < own]
        if before:
            verb = "comes" if len(before) == 1 else "come"
            number = counted(len(before), "slice")
            yield (
                f"{number} before it, from {before[0]} on, {verb} first in a run; the rehearsal leaves "
                f"{'it' if len(before) == 1 else 'them'} out"
            )
