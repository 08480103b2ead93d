"""Processing of several slices in one commit, each under its own lock.

The commit carries every item with its metrics, and their common number; each item gets its own PROCESSED. If
a slice can't be processed, those before it are folded, and it fails by itself.

Source: `processing-manifest.md`, "State"; the fold is Lakewright's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

from lakewright.errors import (
    BadRowsError,
    JvmEnded,
    LakewrightError,
    LeaseLost,
    MigrationError,
    NotInstalled,
    RetryableError,
    SparkUnavailable,
    StoreUnavailable,
)
from lakewright.errors.phrase import Option, Phrase
from lakewright.lake.commit import Token, is_superseded
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import observe_table
from lakewright.slices.attempt import retried
from lakewright.slices.discovery import slice_name
from lakewright.slices.reading import (
    read_in_groups,
    read_together,
    table_types,
    with_types_of,
)
from lakewright.slices.result import SliceReport, SliceResult
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted
from lakewright.strategies.adoption import is_adoptable
from lakewright.strategies.fold import NotFoldable, apply_fold
from lakewright.strategies.preparation import BadSlice, FoldSource, prepare_fold
from lakewright.strategies.table_properties import followed_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.manifest.claim import Claim
    from lakewright.manifest.item import Item
    from lakewright.slices.attempt import SliceProcessor
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.discovery import Slice
    from lakewright.spec.models.entity import Entity
    from lakewright.stores.heartbeat import Heartbeat
    from lakewright.strategies.slice_load import LoadRequest, SliceLoad
    from lakewright.strategies.summary import Summary


FEWEST = 4
"""Number of slices from which on a fold is made: it costs about as much as two slices one by one."""

MOST = 250
"""Number of slices of one fold: the commit names each of them, in about 600 bytes."""

MOST_BYTES = 128 << 20
"""Bytes of the slices of one fold, as files; chosen, not measured. Spark moves what it can't hold to disk."""


@dataclass(frozen=True, slots=True)
class FoldChoice:
    """The next slices to process.

    Attributes:
        count: How many of them are folded; 1 for a slice that is processed by itself.
        number: The number of the commit that one of them has from an earlier attempt; None for a new one.
    """

    count: int
    number: int | None = None


_OF_NO_SLICE = (JvmEnded, MigrationError, NotInstalled, RetryableError, SparkUnavailable)
"""Errors that no smaller fold avoids."""


@dataclass(frozen=True, slots=True)
class FoldResult:
    """The end of a fold.

    Attributes:
        slices: The slices that were processed, in order.
        alone: The claim of the first slice if that must be processed by itself; its lock is held.
        version: Version of the commit; None if nothing was written.
        reason: Why the entity's slices can't be folded; None if they can.
        passed: Number of slices before them that another run has processed meanwhile.
        unrecorded: Names of the slices whose end the manifest could not record.
        error: Why it could not.
    """

    slices: tuple[SliceResult, ...] = ()
    alone: Claim | None = None
    version: int | None = None
    reason: str | None = None
    passed: int = 0
    unrecorded: tuple[str, ...] = ()
    error: StoreUnavailable | None = None


@dataclass(frozen=True, slots=True)
class _ClaimedSlice:
    """A slice of a fold with its claim and its request."""

    claim: Claim
    slice_: Slice
    request: LoadRequest


def fold_slices(processor: SliceProcessor, claims: Sequence[Claim], heartbeat: Heartbeat) -> FoldResult:
    """Process as many of the claimed slices as one commit can hold; the claims of all others are ended.

    The heartbeat renews the claims already.
    Slices that are not processed are ready again, except the first one if it must be processed by itself.

    Raises:
        LakewrightError: No slice was processed, and none is at fault.
        KeyboardInterrupt: The run was interrupted; no slice was processed.
    """
    held = list(claims)
    reason = None
    alone: Claim | None = None
    try:
        reach_failpoint("after_lock")
        while len(held) > 1:
            try:
                return replace(_fold(processor, held, heartbeat), reason=reason)
            except BadSlice as bad:
                kept = bad.position or 1
                if not bad.is_known:  # else the slice itself says why
                    what = f"{len(held)} slices could not be folded, half of them are tried: {bad.error}"
                    processor.context.warn(f"{processor.entity.name}: {what}")
            except NotFoldable as error:
                kept, reason = 1, str(error)
            _give_back(processor, held[kept:], heartbeat, "it is processed after the slices before it")
            held = held[:kept]
        alone = held[0]
        return FoldResult(alone=alone, reason=reason)
    except StoreUnavailable as error:
        return FoldResult(unrecorded=_names(held), error=error)
    except BaseException as error:
        ours = _after_error(processor, held, heartbeat, error)
        if ours is error:
            raise  # `raise ours from error` would lose the error's own cause
        raise ours from error
    finally:
        for claim in claims:
            if claim is not alone:
                heartbeat.drop(claim.lease)


def _after_error(
    processor: SliceProcessor, held: Sequence[Claim], heartbeat: Heartbeat, error: BaseException
) -> BaseException:
    """Make the slices ready again after an error that is the fault of none; return the error to raise."""
    if isinstance(error, LeaseLost):
        with suppress(LakewrightError):
            # Those that another run has taken over are left to it.
            _give_back(processor, held, heartbeat, "the lock on a slice of the same commit is lost")
        return error
    if not isinstance(error, Exception) or processor.context.is_cut_off():
        _give_back(processor, held, heartbeat, "the run was interrupted")
        return KeyboardInterrupt() if isinstance(error, Exception) else error
    name = held[0].item_id.rpartition("/")[2]
    ours = processor.translated(error, name)
    _give_back(processor, held, heartbeat, f"not done: {ours.message}")
    return ours


def _give_back(processor: SliceProcessor, claims: Sequence[Claim], heartbeat: Heartbeat, reason: str) -> None:
    for claim in claims:
        processor.release(claim, heartbeat, reason)


def _fold(processor: SliceProcessor, claims: Sequence[Claim], heartbeat: Heartbeat) -> FoldResult:
    """Fold the claimed slices; start over if another writer was faster.

    Raises:
        BadSlice: They can't be folded as they are; it names how many of them to try next.
    """

    def check_leases() -> None:
        for claim in claims:
            heartbeat.check(claim.lease)

    def attempt() -> FoldResult:
        return _attempt(processor, claims, check_leases, heartbeat)

    return retried(processor.context, processor.entity.name, check_leases, attempt)


def _attempt(
    processor: SliceProcessor,
    claims: Sequence[Claim],
    check_leases: Callable[[], None],
    heartbeat: Heartbeat,
) -> FoldResult:
    started = time.monotonic()
    claimed = _claimed_slices(processor, claims)
    try:
        loads, summaries, version = _apply(processor, claimed, check_leases)
    except Exception as error:
        ours = _blaming(processor, claims, error)
        if ours is error:
            raise
        raise ours from error
    seconds = round((time.monotonic() - started) / len(claimed), 3)
    done: list[SliceResult] = []
    for number, (each, load, summary) in enumerate(zip(claimed, loads, summaries, strict=True)):
        whole = replace(summary, delta_version=version, seconds=seconds)
        reach_failpoint("before_processed")
        content = {**processor.record_content(each.slice_, load, whole), "folded": len(claimed)}
        try:
            processor.context.ledger.processed(each.claim, content)
        except StoreUnavailable as error:
            return FoldResult(tuple(done), version=version, unrecorded=_names(claims[number:]), error=error)
        heartbeat.drop(each.claim.lease)
        done.append(_result(processor, each, load, whole))
    return FoldResult(tuple(done), version=version)


def _names(claims: Sequence[Claim]) -> tuple[str, ...]:
    return tuple(slice_name(claim.item) for claim in claims)


def _blaming(processor: SliceProcessor, claims: Sequence[Claim], error: Exception) -> Exception:
    """Return the error to raise: of one that names no slice, that half of the slices are tried next."""
    cause = error.error if isinstance(error, BadSlice) else error
    if cause is None or isinstance(error, NotFoldable):
        return error
    if processor.context.is_cut_off():
        return cause
    ours = processor.translated(cause, slice_name(claims[0].item))
    if isinstance(ours, _OF_NO_SLICE):
        return ours
    return error if isinstance(error, BadSlice) else BadSlice(len(claims) // 2, ours, is_known=False)


def _claimed_slices(processor: SliceProcessor, claims: Sequence[Claim]) -> tuple[_ClaimedSlice, ...]:
    """Return the slices with their requests, as if each were processed by itself.

    Raises:
        BadSlice: A slice has changed, is gone or has no processing time.
    """
    found: list[_ClaimedSlice] = []
    for position, claim in enumerate(claims):
        try:
            slice_ = processor.unchanged_slice(claim)
            before = found[-1].request.at if found else None
            request = processor.request(claim, slice_, lambda: None, before)
            found.append(_ClaimedSlice(claim, slice_, request))
        except StoreUnavailable:
            raise
        except LakewrightError as error:
            raise BadSlice(position, error) from error
    return tuple(found)


def _apply(
    processor: SliceProcessor, claimed: Sequence[_ClaimedSlice], check_leases: Callable[[], None]
) -> tuple[Sequence[SliceLoad], Sequence[Summary], int | None]:
    entity, lake = processor.entity, processor.context.lake

    def check_locks() -> None:
        check_leases()
        for each in claimed:
            each.request.check_lock()

    last = claimed[-1].claim
    token = Token(processor.app_id, last.token, {"run": last.run_id, "record": last.record_id})
    processor.load_past(claimed[0].slice_, replace(claimed[0].request, check_lock=check_locks))
    slices = [(each.slice_, each.request) for each in claimed]
    sources = fold_sources(lake, processor.session, entity, slices, note=processor.note)
    reach_failpoint("after_read")
    fold = prepare_fold(lake, processor.session, entity, sources, token=token, check_lock=check_locks)
    reach_failpoint("after_facts")
    if entity.settings.on_bad_rows == "quarantine":
        check_locks()
        fold = replace(fold, slices=tuple(_with_saved_rows(processor, claimed, fold.slices)))
        reach_failpoint("after_quarantine")
    return fold.slices, *apply_fold(fold)


def fold_sources(
    lake: Lake,
    session: SparkSession,
    entity: Entity,
    slices: Sequence[tuple[Slice, LoadRequest]],
    *,
    note: Callable[[str], None] = lambda _: None,
) -> tuple[FoldSource, ...]:
    """Return slices as the sources of a fold; those with the same columns that follow each other are one.

    Args:
        lake: The lake.
        session: A strict session.
        entity: The entity.
        slices: The slices with their requests.
        note: Receives what a user must know of columns that are left out.

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


def _with_saved_rows(
    processor: SliceProcessor, claimed: Sequence[_ClaimedSlice], loads: Sequence[SliceLoad]
) -> Iterator[SliceLoad]:
    """Yield the slices after their bad rows were put aside."""
    for number, (each, load) in enumerate(zip(claimed, loads, strict=True)):
        try:
            yield processor.with_saved_rows(each.slice_, load)
        except BadRowsError as error:
            raise BadSlice(number, error) from error


def _result(processor: SliceProcessor, each: _ClaimedSlice, load: SliceLoad, summary: Summary) -> SliceResult:
    """Return the result of one slice, after it was reported."""
    name, item_id = each.slice_.name, each.claim.item_id
    warnings = processor.warn_of(each.slice_, load, summary)
    done = SliceResult(name, item_id, summary, revision=each.claim.item.revision, warnings=warnings)
    processor.context.report(SliceReport(processor.entity.called, name, item_id, result=done))
    return done


def one_by_one_reason(context: ProcessingContext, entity: Entity) -> str | None:
    """Return why an entity's slices are always processed one by one; None if they may be folded."""
    settings, strategy = entity.settings, context.strategy_for(entity)
    if not settings.fold:
        return "the entity sets fold: false"
    if strategy is not entity.strategy:
        return f"the strategy {strategy} is not the entity's own"
    if settings.sequence_by is not None:
        return "sequence_by compares each slice with the table before it"
    if strategy is not Strategy.FULL and settings.delete_missing and settings.delete_scope != "full":
        return "the window of delete_missing follows from the slice before"
    if strategy is Strategy.HISTORIC and context.options.permissions.allow_backdated:
        return Phrase(Option("--allow-backdated"), " compares each slice with the table before it")
    state = observe_table(context.lake, entity.places(context.lake.settings).silver)
    followed = followed_by({**state.properties, **settings.table_properties})
    return f"readers follow each slice's changes ({followed})" if followed else None


def one_by_one_text(reason: str) -> str:
    """Return the sentence that slices are not folded.

    Example:
        >>> one_by_one_text("the entity sets fold: false")
        'the slices are processed one by one: the entity sets fold: false'
    """
    return f"the slices are processed one by one: {reason}"


def choose_fold(
    context: ProcessingContext, entity: Entity, items: Sequence[Item], *, late: Collection[str]
) -> FoldChoice:
    """Return how many of the next items are folded, if the entity's slices may be.

    Items in one commit share its number. An item that another attempt numbered is therefore only folded with
    items that have the same number, or none.
    """
    chain, application = context.chain(entity), context.application
    if is_adoptable(entity, observe_table(chain.lake, chain.silver)):
        return FoldChoice(1)
    number: int | None = None
    count = size = 0
    for item in items[:MOST]:
        own = item.tokens.get(application.key)
        if own is not None and is_superseded(chain.lake, chain.silver, chain.app, own, item.item_id):
            own = None
        is_other = own is not None and number is not None and own != number
        size += (own_size := _size(item.fingerprint))
        is_single = not own_size or item.item_id in late or chain.has_landed(item)
        if is_single or is_other or (count and size > MOST_BYTES):
            break
        number = own if number is None else number
        count += 1
    return FoldChoice(count, number) if count >= FEWEST else FoldChoice(1)


def fitting(fingerprints: Iterable[Mapping[str, Any]]) -> int:
    """Return how many slices with these fingerprints, from the first on, fit into one fold."""
    sizes = map(_size, islice(fingerprints, MOST))
    return sum(1 for total in accumulate(sizes) if total <= MOST_BYTES)


def planned_folds(
    context: ProcessingContext, entity: Entity, items: Sequence[Item], *, late: Collection[str]
) -> str | None:
    """Return how many slices would be folded, or why none would be; None if there are too few to fold."""
    if len(items) < FEWEST:
        return None
    reason = one_by_one_reason(context, entity)
    if reason is not None:
        return one_by_one_text(reason)
    rest, folds, folded = list(items), 0, 0
    while rest:
        count = choose_fold(context, entity, rest, late=late).count
        folds, folded = (folds + 1, folded + count) if count > 1 else (folds, folded)
        rest = rest[count:]
    if not folds:
        return None
    return (
        f"{counted(folded, 'slice')} {'is' if folded == 1 else 'are'} folded into {counted(folds, 'commit')}"
    )


def _size(fingerprint: Mapping[str, Any] | None) -> int:
    """Return the bytes of a slice; 0 if they are not known."""
    return int((fingerprint or {}).get("size") or 0)
