"""Processing an entity's pending slices: lock, strategy, release, one slice after the other.

Source: `processing-manifest.md`, "State"; `processing-strategies.md`. What lies between lock and release is
safe to repeat: the table tells whether an attempt's commit landed.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakewright.errors import (
    BackdatedError,
    CommitConflict,
    ItemLocked,
    LakewrightError,
    LateSliceError,
    LeaseLost,
    OperatorError,
    SequenceConflict,
    SliceError,
    StoreUnavailable,
    UsageError,
)
from lakewright.lake.commit import CommitFact, landed, strict_session
from lakewright.lake.failpoint import pass_point
from lakewright.lake.table import last_number, latest_from
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.ledger import Takeover
from lakewright.manifest.lock import failed_error, invalid_error, locked_error
from lakewright.manifest.payload import failure
from lakewright.manifest.record import Author, Draft, State
from lakewright.manifest.store import Query
from lakewright.slices.discover import Slice, discovered, find_slice, item_id, list_slices, refuse_unreadable
from lakewright.slices.pending import Pending, slice_name, sort_out
from lakewright.slices.read import read_slice
from lakewright.slices.result import ProcessResult, SliceResult
from lakewright.slices.times import parse_processing_time
from lakewright.spec.entity import Strategy
from lakewright.spec.function import Surroundings
from lakewright.stores.heartbeat import Heartbeat
from lakewright.strategies.apply import Applied, Order, apply
from lakewright.strategies.failures import full_text, translated
from lakewright.strategies.summary import Summary
from lakewright.strategies.work import Leave
from lakewright.transform.system import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.manifest.claim import Claim, Discovered
    from lakewright.manifest.lease import Holder
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Application
    from lakewright.spec.entity import Entity
    from lakewright.spec.places import Places

__all__ = ["Bench", "Wishes", "held_error", "look_for_slices", "process_pending"]

ATTEMPTS = 3
"""Times that a slice is compared anew because the table changed meanwhile."""

TICK = timedelta(microseconds=1)
PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller asks for.

    Attributes:
        strategy: Instead of the entity's own.
        processing_time: ISO 8601 text, for one slice.
        late: Whether a slice older than one already processed is applied.
        backdated: Whether the processing time may lie before what the table holds.
        data_loss: Whether Full may replace rows of another strategy.
        wait: Whether to wait for a slice that another run processes.
    """

    strategy: Strategy | None = None
    processing_time: str | None = None
    late: bool = False
    backdated: bool = False
    data_loss: bool = False
    wait: bool = False


@dataclass(frozen=True, slots=True)
class Bench:
    """What processing works with.

    Attributes:
        application: The entity's target: on whose behalf slices are processed.
        clock: Tells the present instant, in UTC.
        lease: How long a lock lasts without a heartbeat.
        takeover: Who may take over a stale lock.
        is_stopping: Tells whether to stop before the next slice.
        warn: Takes a warning.
    """

    lake: Lake
    ledger: Ledger
    holder: Holder
    application: Application
    clock: Callable[[], datetime]
    lease: timedelta = timedelta(seconds=60)
    takeover: Takeover = Takeover.AUTO
    is_stopping: Callable[[], bool] = lambda: False
    warn: Callable[[str], None] = lambda text: None
    sleep: Callable[[float], None] = time.sleep
    wishes: Wishes = field(default_factory=Wishes)


def look_for_slices(
    bench: Bench, entity: Entity, *, is_recorded: bool = True
) -> tuple[Pending, tuple[Slice, ...]]:
    """Return what is to be done about an entity's slices, and the slices that bronze holds.

    Args:
        bench: What to work with.
        entity: The entity.
        is_recorded: Whether slices that the manifest doesn't know are recorded there; otherwise they only
            count as if they were.
    """
    places = entity.places(bench.lake.settings)
    slices = list_slices(places.bronze, bench.lake)
    if is_recorded:
        found = bench.ledger.discover(
            discovered(slices, bench.application, entity.name), run_id=bench.holder.run_id
        )
        items = {item.item_id: item for item in (*found.new, *found.known)}
    else:
        items = _unrecorded(bench, entity, slices)
    for item in _open_items(bench, places):
        items.setdefault(item.item_id, item)
    return sort_out(items.values(), bench.application, takeable=_takeable(bench, items.values())), slices


def _takeable(bench: Bench, items: Iterable[Item]) -> frozenset[str]:
    """Ids of items whose lock nobody stands behind any more, where runs may take such locks over."""
    if bench.takeover is not Takeover.AUTO:
        return frozenset()
    locked = ((item, bench.ledger.lock(item)) for item in items if item.processing is not None)
    return frozenset(item.item_id for item, lock in locked if lock is not None and lock.is_stale)


def process_pending(bench: Bench, entity: Entity, *, slice: str | None = None) -> ProcessResult:
    """Return what processing an entity's pending slices, or one of them, came to.

    Slices are processed in order. One that fails stops its entity here, but for a late one, which holds
    nothing back.

    Raises:
        UsageError: There is no such slice, or one processing time is given for several.
        BackdatedError: The processing time isn't later than all that the table holds; nothing was locked.
        SpecError: The entity's places are wrong.
    """
    pending, _ = look_for_slices(bench, entity)
    chosen = _chosen(bench, pending, slice, entity)
    given, warnings = _given_time(bench)
    strategy = bench.wishes.strategy or entity.strategy
    if strategy is Strategy.HISTORIC and given is not None and len(chosen) > 1:
        raise UsageError(
            f"one processing time is given for {len(chosen)} pending slices of {entity.name}",
            remedy="Name the slice, or process them without --processing-time.",
        )
    waiting = tuple(slice_name(item) for item in pending.waiting)
    if not chosen:
        errors = () if pending.held is None else (held_error(bench, pending.held),)
        return ProcessResult(errors=errors, waiting=waiting, warnings=warnings)
    run = _Run(bench, entity, strategy, pending, given)
    run.refuse_backdated(chosen[0])
    result = run.process(chosen)
    held = () if pending.held is None or result.errors else (held_error(bench, pending.held),)
    return replace(
        result, errors=(*result.errors, *held), waiting=(*result.waiting, *waiting), warnings=warnings
    )


class _Run:
    """One pass over slices that are ready."""

    def __init__(
        self, bench: Bench, entity: Entity, strategy: Strategy, pending: Pending, given: datetime | None
    ) -> None:
        self.bench = bench
        self.entity = entity
        self.strategy = strategy
        self.late = pending.late
        self.given = given
        self.places = entity.places(bench.lake.settings)
        self.app_id = str(bench.application)
        self.last_time: datetime | None = None
        self._session: SparkSession | None = None

    @property
    def session(self) -> SparkSession:
        if self._session is None:
            self._session = strict_session(self.bench.lake)
        return self._session

    def refuse_backdated(self, first: Item) -> None:
        """Refuse a time that isn't later than every version's beginning and end.

        Where the first slice's commit has landed already, its versions don't count against it.
        """
        if self.strategy is not Strategy.HISTORIC or self.bench.wishes.backdated or self._is_in_table(first):
            return
        at = self.given or self.bench.clock()
        system = SystemColumns(self.bench.lake.settings.systemfield_prefix, self.entity.destination)
        newest = latest_from(self.bench.lake, self.places.silver, (system.valid_from, system.valid_to), at)
        if newest is not None:
            raise BackdatedError(
                f"the processing time {at.isoformat()} isn't later than {newest.isoformat()}, "
                f"up to which the versions in {self.places.silver} go",
                details={"processing_time": at.isoformat(), "newest": newest.isoformat()},
            )

    def _is_in_table(self, item: Item) -> bool:
        """Whether an earlier attempt at an item committed."""
        number = item.tokens.get(self.bench.application.key)
        last = None if number is None else last_number(self.bench.lake, self.places.silver, self.app_id)
        return number is not None and last is not None and last >= number

    def process(self, items: Sequence[Item]) -> ProcessResult:
        done: list[SliceResult] = []
        failed: list[str] = []
        errors: list[LakewrightError] = []
        with Heartbeat(self.bench.ledger.store, self.bench.lease) as heartbeat:
            for position, item in enumerate(items):
                rest = tuple(slice_name(other) for other in items[position:])
                if self.bench.is_stopping():
                    return ProcessResult(tuple(done), tuple(failed), tuple(errors), rest, is_stopped=True)
                try:
                    claim = self._claim(item)
                except (OperatorError, StoreUnavailable) as error:
                    return ProcessResult(tuple(done), tuple(failed), (*errors, error), rest)
                if claim is None:
                    continue
                try:
                    done.append(self._process_claimed(claim, heartbeat))
                except LakewrightError as error:
                    failed.append(slice_name(item))
                    errors.append(error)
                    if not isinstance(error, LateSliceError):
                        return ProcessResult(tuple(done), tuple(failed), tuple(errors), rest[1:])
        return ProcessResult(tuple(done), tuple(failed), tuple(errors))

    def _claim(self, item: Item) -> Claim | None:
        """The lock on an item, or None where another run has done it meanwhile."""
        bench = self.bench
        floor = last_number(bench.lake, self.places.silver, self.app_id) or 0
        while True:
            try:
                return bench.ledger.acquire(
                    item.item_id,
                    bench.application,
                    bench.holder,
                    duration=bench.lease,
                    token_counter=f"table {self.places.silver}",
                    token_floor=floor,
                    takeover=bench.takeover,
                )
            except SequenceConflict as conflict:
                if conflict.details.get("verdict") in {Verdict.PROCESSED, Verdict.SKIPPED}:
                    return None
                raise
            except ItemLocked:
                if not bench.wishes.wait or bench.is_stopping():
                    raise
                bench.sleep(PAUSE)

    def _process_claimed(self, claim: Claim, heartbeat: Heartbeat) -> SliceResult:
        heartbeat.keep(claim.lease)
        name = slice_name(claim.item)
        try:
            pass_point("after_lock")
            return self._attempt(claim, lambda: heartbeat.check(claim.lease))
        except (LeaseLost, StoreUnavailable):
            raise
        except OperatorError as error:
            heartbeat.drop(claim.lease)
            self.bench.ledger.release(claim.item_id, f"not begun: {error.message}", is_forced=True)
            raise
        except Exception as error:
            heartbeat.drop(claim.lease)
            ours = translated(error, self.entity, name)
            self._record_failure(claim, ours, error)
            raise ours from error
        except BaseException:
            heartbeat.drop(claim.lease)
            self.bench.ledger.release(claim.item_id, "the run was interrupted", is_forced=True)
            raise
        finally:
            heartbeat.drop(claim.lease)

    def _record_failure(self, claim: Claim, ours: LakewrightError, error: Exception) -> None:
        trace = "".join(traceback.format_exception(error, limit=20)) + "\n" + full_text(error)
        holds_back = not isinstance(ours, LateSliceError)
        self.bench.ledger.failed(
            claim, failure(ours, stack_trace=trace, holds_back=holds_back), holds_back=holds_back
        )

    def _attempt(self, claim: Claim, check: Callable[[], None]) -> SliceResult:
        """Find the slice's commit, or make it; whoever was in between, the table is asked again."""
        lake, silver = self.bench.lake, self.places.silver
        for attempt in range(1, ATTEMPTS + 1):
            fact = landed(lake, silver, self.app_id, claim.token)
            if fact is not None:
                return self._adopt(claim, fact)
            try:
                return self._apply(claim, check)
            except (CommitConflict, LeaseLost) as error:
                check()
                if attempt == ATTEMPTS:
                    raise
                self.bench.warn(f"{slice_name(claim.item)}: {error.message}; compared anew")
        raise AssertionError("the last attempt returns or raises")

    def _adopt(self, claim: Claim, fact: CommitFact) -> SliceResult:
        """Tell the manifest of a commit that landed before it could be told."""
        metrics = {**fact.content.get("metrics", {}), "deltaVersion": fact.version}
        metrics.setdefault("strategy", self.strategy.value)
        summary = Summary.from_json(metrics)
        content = {
            key: fact.content[key] for key in ("fingerprint", "watermarks", "drift") if key in fact.content
        }
        self._record(claim, summary, {**content, "adopted": True, "commit_run": fact.content.get("run")})
        return SliceResult(slice_name(claim.item), claim.item_id, summary, is_adopted=True)

    def _apply(self, claim: Claim, check: Callable[[], None]) -> SliceResult:
        started = time.monotonic()
        self._refuse_late(claim)
        slice_ = self._unchanged_slice(claim)
        at = self._next_time()
        name = slice_name(claim.item)
        try:
            frame = read_slice(self.session, slice_, self.entity)
            pass_point("after_read")
            applied = apply(
                self.bench.lake, self.session, self.entity, frame, self._order(claim, slice_, at, check)
            )
        except Exception as error:
            raise translated(error, self.entity, name) from error
        summary = replace(applied.summary, seconds=round(time.monotonic() - started, 3))
        self._record(claim, summary, self._content(slice_, at, applied))
        warnings = () if applied.drift is None else applied.drift.messages
        for warning in warnings:
            self.bench.warn(f"{name}: {warning}")
        return SliceResult(name, claim.item_id, summary, warnings=warnings)

    def _record(self, claim: Claim, summary: Summary, content: Mapping[str, Any]) -> None:
        metrics = {"metrics": summary.as_json(), "delta_version": summary.delta_version}
        pass_point("before_processed")
        self.bench.ledger.processed(claim, {**content, **metrics})

    def _refuse_late(self, claim: Claim) -> None:
        noted = claim.item.new is not None and claim.item.new.note.get("allow_late") is True
        if (
            claim.item_id not in self.late
            or self.bench.wishes.late
            or noted
            or self.entity.late_slices == "apply"
        ):
            return
        raise LateSliceError(
            f"the slice {slice_name(claim.item)} is older than one that {self.bench.application} already processed",
            remedy=f"Apply it with `lakewright manifest requeue {claim.item_id} --late`, or skip the item.",
        )

    def _unchanged_slice(self, claim: Claim) -> Slice:
        """The slice, as it was when it was recorded."""
        name = slice_name(claim.item)
        found = find_slice(self.places.bronze, name, self.bench.lake)
        if found is None:
            raise SliceError(
                f"the slice {name} is gone from {self.places.bronze}",
                remedy="Bring it back, then resolve the item; or skip it.",
            )
        recorded = claim.item.fingerprint
        if recorded is not None and dict(recorded) != found.fingerprint:
            raise SliceError(
                f"the slice {name} has changed since it was discovered",
                remedy="If it is right as it is now, resolve the item.",
                details={"recorded": dict(recorded), "found": found.fingerprint},
            )
        refuse_unreadable(found)
        return found

    def _next_time(self) -> datetime:
        """The processing time of the next slice: later than that of the last one of this run."""
        at = self.given or self.bench.clock().astimezone(UTC)
        if self.last_time is not None and self.given is None:
            at = max(at, self.last_time + TICK)
        self.last_time = at
        return at

    def _order(self, claim: Claim, slice_: Slice, at: datetime, check: Callable[[], None]) -> Order:
        def check_all() -> None:
            check()
            if self._unchanged_slice(claim).fingerprint != slice_.fingerprint:
                raise SliceError(f"the slice {slice_.name} changed while it was read")

        return Order(
            slice_name=slice_.name,
            slice_size=slice_.size,
            strategy=self.strategy,
            at=at,
            app_id=self.app_id,
            number=claim.token,
            check=check_all,
            holder=str(self.bench.holder),
            content=self._commit_content(claim, slice_, at),
            lower_ends=dict(self._lower_ends()),
            leave=Leave(data_loss=self.bench.wishes.data_loss, backdated=self.bench.wishes.backdated),
        )

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

    def _content(self, slice_: Slice, at: datetime, applied: Applied) -> dict[str, Any]:
        content: dict[str, Any] = {
            "slice": slice_.name,
            "strategy": self.strategy.value,
            "processing_time": at.isoformat(),
            "fingerprint": slice_.fingerprint,
            "watermarks": {column: mark.as_json() for column, mark in applied.watermarks.items()},
        }
        return content if applied.drift is None else {**content, "drift": applied.drift.as_json()}

    def _lower_ends(self) -> Iterator[tuple[str, object]]:
        last = self.bench.ledger.watermarks.last(self.bench.application)
        for mark in self.entity.watermarks:
            if mark.column_name in last:
                surroundings = Surroundings(clock=self.bench.clock)
                yield mark.column_name, mark.lower_end(last[mark.column_name].python, surroundings)


def _chosen(bench: Bench, pending: Pending, name: str | None, entity: Entity) -> tuple[Item, ...]:
    """The items to process: all that are ready, or the one that was named."""
    if name is None:
        return pending.ready
    named = [item for item in pending.ready if slice_name(item) == name]
    if named:
        earlier = [slice_name(item) for item in pending.ready[: pending.ready.index(named[0])]]
        if earlier:
            bench.warn(f"{name} is processed before {', '.join(earlier)}, which will then be late")
        return tuple(named)
    if any(slice_name(item) == name for item in pending.waiting):
        return ()
    return _refused_slice(bench, name, entity)


def _refused_slice(bench: Bench, name: str, entity: Entity) -> tuple[Item, ...]:
    place = entity.places(bench.lake.settings).bronze
    item = bench.ledger.item(item_id(f"{place}/{name}"))
    verdict = item.verdict(bench.application)
    if verdict is Verdict.UNKNOWN:
        raise UsageError(
            f"there is no slice {name} in {place}", remedy="Slices are listed by `lakewright manifest ls`."
        )
    if verdict in {Verdict.PROCESSED, Verdict.SKIPPED}:
        raise UsageError(
            f"the slice {name} is {verdict} for {bench.application} already",
            remedy=f"To process it again: `lakewright manifest requeue {item.item_id}`.",
        )
    raise held_error(bench, item)


def held_error(bench: Bench, item: Item) -> LakewrightError:
    """Return the error that says who or what holds an item."""
    lock = bench.ledger.lock(item)
    if item.problem is not None:
        return invalid_error(item)
    return locked_error(lock) if lock is not None else failed_error(item)


def _given_time(bench: Bench) -> tuple[datetime | None, tuple[str, ...]]:
    text = bench.wishes.processing_time
    if text is None:
        return None, ()
    found = parse_processing_time(text, bench.lake.settings.zone)
    if found is not None:
        return found, ()
    warning = f"the processing time {text!r} isn't ISO 8601; the current time is used"
    bench.warn(warning)
    return None, (warning,)


def _open_items(bench: Bench, places: Places) -> Iterator[Item]:
    """Items of the entity that aren't done, also where their slices are gone."""
    verdicts = frozenset((Verdict.READY, Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID))
    prefix = item_id(places.bronze) + "/"
    yield from bench.ledger.store.select(Query(verdicts=verdicts, prefix=prefix))


def _unrecorded(bench: Bench, entity: Entity, slices: Iterable[Slice]) -> dict[str, Item]:
    """Items of the slices in bronze, those that nobody has recorded as if they were new."""
    found = {each.item_id: each for each in discovered(slices, bench.application, entity.name)}
    known = bench.ledger.store.read(list(found))
    return {item_id: known.get(item_id) or _as_new(each) for item_id, each in found.items()}


def _as_new(found: Discovered) -> Item:
    """The item that discovery would make of a slice."""
    content = {"entity": found.entity, "slice": found.slice, "fingerprint": dict(found.fingerprint)}
    draft = Draft(
        record_id="",
        item_id=found.item_id,
        state=State.NEW,
        application=found.application,
        author=Author.named("lakewright"),
        payload={"schema": "lakewright/new/1", "data": content},
    )
    return Item(found.item_id).after(draft.recorded(sequence=1, now=datetime.min.replace(tzinfo=UTC)))
