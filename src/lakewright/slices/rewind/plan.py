"""The plan of a replay: the version to which a table goes back, and the slices applied from there on.

An undo, a rebuild and what `apply` does to a table are the same replay; they differ in the slices that the
table should hold afterwards. Slices count as bronze and the manifest have them now: one whose present content
an operator has accepted is applied as it is now, if it has the size and the number of files with which it was
processed. Otherwise other rows would be applied than are in the table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from lakewright.errors import DataLossError, SliceError
from lakewright.errors.phrase import Command, Option, Phrase
from lakewright.lake.observation import missing_files, observe_table
from lakewright.manifest.item import Item, has_same_amounts, is_changed
from lakewright.manifest.lock import command
from lakewright.manifest.verdict import Verdict
from lakewright.manifest.watermarks import Watermark
from lakewright.slices.chain import AppliedSlice, foreign_since, since_empty, version_before
from lakewright.slices.discovery import called_name, find_slice, natural_key, slice_name, slice_of_id
from lakewright.slices.past_versions import past_fingerprint
from lakewright.slices.processing_time import APART, TICK
from lakewright.slices.slice_replay import KnownSlice
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted, first_of
from lakewright.strategies.outdated import rebuild_command
from lakewright.strategies.table_properties import HISTORY_PROPERTY

if TYPE_CHECKING:
    from lakewright.lake.commit import Commit
    from lakewright.lake.delta_log import TableState
    from lakewright.manifest.rewind import RewoundSlice
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity


MOST_NAMED = 5

_FAULTS = {"gone": "is gone", "changed": "has changed since it was processed"}


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """A version of a table to go back to, and the slices that are applied again from there on.

    Attributes:
        state: The table as it was observed.
        base: The version whose rows the new table starts with; None for none.
        kept: The slices that the table holds in that version, in order.
        slices: The slices that are applied, in order.
        app: The application id of the commits beside it, the same for replays that can continue each other.
        has_past: Whether the entity's past versions stand before the first of the slices.
        foreign: Commits of other writers, of repairs and of an adoption that are lost.
        skipped: The items of slices that are left out, because they were skipped since they were processed.
        taken_back: The slices that the table does not hold any more, but for `skipped`, and what becomes of
            them.
    """

    state: TableState
    base: int | None
    kept: tuple[AppliedSlice, ...] = ()
    slices: tuple[KnownSlice, ...] = ()
    app: str = ""
    has_past: bool = False
    foreign: tuple[Commit, ...] = ()
    skipped: tuple[Item, ...] = ()
    taken_back: tuple[RewoundSlice, ...] = ()

    @property
    def replay(self) -> RewindPlan:
        """The plan itself, as undos and rebuilds have one."""
        return self

    @property
    def names(self) -> list[str]:
        """Names of the slices that are applied."""
        return [each.name for each in self.slices]

    @property
    def skipped_names(self) -> list[str]:
        """Names of the slices that are left out."""
        return [slice_name(item) for item in self.skipped]

    @property
    def changes_table(self) -> bool:
        """Whether the replay makes a commit."""
        return bool(self.slices) or self.base != self.state.version

    def as_json(self) -> dict[str, Any]:
        """Return the plan as commands print it."""
        return {"version": self.state.version, "base": self.base, "slices": self.names}

    @property
    def rewound_ids(self) -> frozenset[str]:
        """The items whose slices the table does not hold afterwards, or holds by other commits."""
        ids = [each.item_id for each in self.slices]
        ids += [each.item_id for each in self.taken_back]
        return frozenset((*ids, *(item.item_id for item in self.skipped)))


def lasting_commits(
    chain: SliceChain,
    wanted: Sequence[AppliedSlice],
    goes: Callable[[Commit, tuple[AppliedSlice, ...]], bool] = lambda *_: False,
) -> int:
    """Return how many of the commits that a table builds on may stay if it is to hold some slices.

    A slice that was processed more than once counts where it was processed last: its former rows stay if
    the slice does, or is applied again with the same content.

    Args:
        chain: The slices of the table.
        wanted: The slices that it should hold, each once, in order.
        goes: Whether a commit must go whatever slices it holds.
    """
    last = {each.item_id: each for each in chain.order}
    now = {each.item_id: each for each in wanted}
    in_place = _in_place(chain, wanted)

    def stays(applied: AppliedSlice) -> bool:
        before, after = last[applied.item_id], now.get(applied.item_id)
        if applied.item_id in in_place:
            return True
        is_other = after is None or is_changed(before.fingerprint, after.fingerprint)
        return not is_other and applied.number != before.number

    return sum(1 for _ in takewhile(lambda held: not goes(*held) and all(map(stays, held[1])), chain.held))


def _in_place(chain: SliceChain, wanted: Sequence[AppliedSlice]) -> frozenset[str]:
    """Return the ids of the slices with which a table begins, and should."""
    found: set[str] = set()
    for held, other in zip(chain.order, wanted, strict=False):
        is_other = held.item_id != other.item_id or is_changed(held.fingerprint, other.fingerprint)
        if is_other or held.item_id in chain.reverted:
            break
        found.add(held.item_id)
    return frozenset(found)


def starts_over(chain: SliceChain, wanted: Sequence[AppliedSlice], lasting: int) -> bool:
    """Return whether a table has no version to go back to if it is to hold some slices.

    The log does not show the commit of a slice any more that must go, or be applied after another one; or
    files of that version were removed.

    Args:
        chain: The slices of the table.
        wanted: The slices that it should hold, each once, in order.
        lasting: How many of the commits that it builds on would stay.
    """
    in_place = _in_place(chain, wanted)
    hidden = (each for each in chain.unlogged if not each.is_unwritten and each.item_id not in chain.reverted)
    if any(each.item_id not in in_place for each in hidden):
        return True
    base = _base(chain, lasting) if lasting < len(chain.held) else None
    return base is not None and bool(missing_files(chain.lake, chain.silver, base))


def _base(chain: SliceChain, lasting: int) -> int | None:
    """Return the version of a table that some of its commits have made, of which not all stay.

    It is not that before the next one, if this is the RESTORE of another program.
    """
    return chain.held[lasting - 1][0].version if lasting else version_before(chain.held[0][0])


def plan_replay(
    context: ProcessingContext,
    entity: Entity,
    wanted: Sequence[AppliedSlice],
    lasting: int,
    *,
    is_whole: bool = False,
    strategy: Strategy | None = None,
    new: Collection[str] = (),
    taken_back: tuple[RewoundSlice, ...] = (),
    takes_skipped: bool = False,
    may_lose: Callable[[Commit], bool],
) -> RewindPlan:
    """Return how a table comes to hold some slices, each with its processing time; nothing is written.

    Args:
        context: The context of the processing.
        entity: The entity.
        wanted: The slices that the table should hold, each once, in order.
        lasting: How many of the commits that it builds on stay.
        is_whole: Whether all slices are applied again, under today's declaration.
        strategy: The strategy by which they are applied; by default each by its own.
        new: Ids of those that were not processed with the content that they have now.
        taken_back: The slices that the table does not hold any more, and what becomes of them.
        takes_skipped: Whether slices that the manifest has as skipped are applied; otherwise they are left
            out, as far as the table goes back behind them.
        may_lose: Whether a commit that no slice made may be lost.

    Raises:
        DataLossError: Commits of other writers would be lost, files of the version to go back to are gone, or
            the time is not known at which a slice was processed.
        SliceError: Slices are gone from bronze, or have changed.
        MigrationError: The past versions of the entity can't be read.
    """
    chain = context.chain(entity)
    state = observe_table(chain.lake, chain.silver)
    kept, gone = chain.held[: 0 if is_whole else lasting], chain.held[0 if is_whole else lasting :]
    base = None if is_whole else _base(chain, lasting) if gone else state.version
    moved = {each.item_id for each in (wanted if is_whole else moved_slices(chain, wanted, lasting))}.union(
        new
    )
    again = [each for each in wanted if each.item_id in moved]
    skipped = {} if takes_skipped else chain.skipped(again)
    chosen, requeued = _as_in_manifest(
        context, entity, [each for each in again if each.item_id not in skipped], new
    )
    ready = [each.item_id for each in taken_back if not each.is_skipped]
    _check_bronze(context, entity, chosen, ready=ready)
    _check_version(context, entity, base)
    commits = since_empty(chain.log) if is_whole else [each for each, _ in gone]
    held = tuple(each for _, slices in kept for each in slices)
    moved |= {each.item_id for each in taken_back}
    before = () if is_whole else (*held, *(each for each in chain.unlogged if each.item_id not in moved))
    past = past_fingerprint(context.lake, entity) if base is None else None
    same = _in_place(chain, [*before, *chosen])
    chosen = _timed_again(context, chosen, before, same=same, strategy=strategy)
    digest = _digest({"base": base, "entity": entity.model_dump(mode="json"), "past": past})
    return RewindPlan(
        state,
        base,
        before,
        _known_slices(chosen, before, strategy, {*requeued, *new}),
        f"{chain.app}/replay/{digest}",
        has_past=base is None and (is_whole or HISTORY_PROPERTY in state.properties),
        foreign=_check_foreign(entity, foreign_since(commits, chain.app), may_lose),
        skipped=tuple(skipped.values()),
        taken_back=taken_back,
    )


def moved_slices(chain: SliceChain, wanted: Iterable[AppliedSlice], lasting: int) -> Iterator[AppliedSlice]:
    """Yield the slices that are applied again, as their commits go.

    One that changed nothing may change something once those before it are others.
    """
    kept, gone = (
        {(each.item_id, each.number) for _, slices in held for each in slices}
        for held in (chain.held[:lasting], chain.held[lasting:])
    )
    known, first = kept | gone, min((number for _, number in gone), default=None)
    for each in wanted:
        is_hidden = (each.item_id, each.number) not in known
        is_after = each.is_unwritten and first is not None and first < each.number
        if (each.item_id, each.number) in gone or (
            is_hidden and (is_after or each.item_id in chain.reverted)
        ):
            yield each


def _digest(plan: Mapping[str, Any]) -> str:
    """Return a text that is the same for equal plans."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _timed_again(
    context: ProcessingContext,
    slices: Iterable[AppliedSlice],
    before: Iterable[AppliedSlice],
    *,
    same: Collection[str],
    strategy: Strategy | None,
) -> list[AppliedSlice]:
    """Return slices that follow others, each with a time that is later if versions would go backwards.

    A slice that was applied after another one with a later time, because no version was of that time, may
    meet versions of it once the slices before it, or the declaration, are others.

    Args:
        context: The context of the processing.
        slices: The slices.
        before: Those before them, which the table holds.
        same: Ids of the slices that follow the same ones as before.
        strategy: The strategy by which all are applied as they are declared now; None for each by its own.
    """
    last, found = max(filter(None, (each.at for each in before)), default=None), []
    for each in slices:
        is_same = strategy is None and each.item_id in same
        by = strategy or Strategy(each.content.get("strategy", Strategy.HISTORIC))
        found.append(each if is_same else _after(last, each, by))
        if found[-1] is not each:
            context.warn(
                f"{each.name}: its processing time {each.content['processingTime']} is not later than that "
                f"of a slice before it: it gets {found[-1].content['processingTime']}"
            )
        last = max(filter(None, (last, found[-1].at)), default=None)
    return found


def _known_slices(
    slices: Sequence[AppliedSlice],
    before: Iterable[AppliedSlice],
    strategy: Strategy | None,
    new: Collection[str],
) -> tuple[KnownSlice, ...]:
    """Return slices as they are applied, in their order; one is late after a later one, also of those before.

    Raises:
        DataLossError: It is not known at what time a slice was processed.
    """
    last = max((natural_key(each.name) for each in before), default=())
    found = []
    for each in slices:
        at, key = each.at, natural_key(each.name)
        if at is None:
            raise DataLossError(
                f"the processing time of {each.name} is not recorded, so it cannot be applied again",
                remedy="Nothing was written.",
                details={"item_id": each.item_id},
            )
        found.append(
            KnownSlice(
                item_id=each.item_id,
                name=each.name,
                fingerprint=each.fingerprint,
                at=at,
                strategy=strategy or Strategy(each.content["strategy"]),
                is_late=key < last,
                is_new=each.item_id in new,
            )
        )
        last = max(last, key)
    return tuple(found)


def _check_version(context: ProcessingContext, entity: Entity, base: int | None) -> None:
    """Raise an error if files of the version that a table goes back to were removed.

    Raises:
        DataLossError: They were; nothing was written.
    """
    silver = entity.places(context.lake.settings).silver
    gone = [] if base is None else missing_files(context.lake, silver, base)
    if gone:
        raise DataLossError(
            f"version {base} of {silver} is not whole any more: {counted(len(gone), 'file')} of it "
            f"{'was' if len(gone) == 1 else 'were'} removed, such as {gone[0]}",
            remedy=Phrase(
                "VACUUM removes files of old versions. Build the table again from its slices with ",
                rebuild_command(entity),
                ". Nothing was written.",
            ),
            details={"version": base, "files": len(gone)},
        )


def _check_foreign(
    entity: Entity, lost: tuple[Commit, ...], may_lose: Callable[[Commit], bool]
) -> tuple[Commit, ...]:
    """Return the commits that no slice made and that a replay takes out, if they may be lost.

    Raises:
        DataLossError: There are some, and they may not; nothing was written.
    """
    kept = [each for each in lost if not may_lose(each)]
    if not kept:
        return lost
    versions = ", ".join(f"{each.version} ({each.operation})" for each in kept[:MOST_NAMED])
    raise DataLossError(
        f"{counted(len(kept), 'commit')} to {entity.called} that no slice made would be lost: "
        f"version {versions}",
        remedy=Phrase("Give ", Option("--over-foreign"), " if they may be lost. Nothing was written."),
        details={"versions": [each.version for each in kept]},
    )


def watermarks_of(slices: Iterable[AppliedSlice]) -> dict[str, Watermark]:
    """Return the greatest watermark of each column among slices."""
    return {column: Watermark.from_json(mark) for column, mark in greatest_marks(slices).items()}


def watermarks_after(
    context: ProcessingContext, gone: frozenset[str], left: Iterable[AppliedSlice]
) -> dict[str, Any]:
    """Return the watermarks that change: those that came from rewound slices, by the slices that are left.

    A watermark that an operator set, or that came from another slice, stays.

    Args:
        context: The context of the processing.
        gone: Ids of the items that the table does not hold any more, or holds by other commits.
        left: The slices that it holds.
    """
    present = context.ledger.watermarks.all(prefix=f"{context.application}/")
    lost = {each.column for each in present if each.item_id in gone}
    greatest = greatest_marks(left)
    return {column: greatest.get(column) for column in sorted(lost)}


def greatest_marks(slices: Iterable[AppliedSlice]) -> dict[str, dict[str, Any]]:
    """Return the greatest watermark of each column among slices, as JSON with the item that it came from."""
    found: dict[str, dict[str, Any]] = {}
    for each in slices:
        marks: Mapping[str, Any] = each.content.get("watermarks") or {}
        for column, mark in marks.items():
            before = found.get(column)
            if before is None or Watermark.from_json(mark).is_after(Watermark.from_json(before)):
                found[column] = {**mark, "item": each.item_id}
    return found


def _as_in_manifest(
    context: ProcessingContext, entity: Entity, slices: Sequence[AppliedSlice], new: Collection[str]
) -> tuple[list[AppliedSlice], frozenset[str]]:
    """Return slices with the fingerprints that an operator has accepted since they were processed.

    Those that wait, since an operator has requeued them, get the fingerprints with which they wait; the ids
    of these are returned beside. Warnings name the slices that have another one now.
    """
    items = context.ledger.store.read([each.item_id for each in slices])
    accepted: list[str] = []
    requeued: dict[str, str] = {}
    found: list[AppliedSlice] = []
    for each in slices:
        item = items.get(each.item_id, Item(each.item_id))
        now = dict(item.fingerprint or {})
        is_other = each.item_id not in new and is_changed(each.fingerprint, now)
        if is_other and _is_accepted(context, each, item):
            accepted.append(each.name)
        elif is_other and item.verdict(context.application) is Verdict.READY:
            requeued[each.item_id] = each.name
        else:
            is_other = False
        found.append(replace(each, content={**each.content, "fingerprint": now}) if is_other else each)
    if accepted:
        have = "has" if len(accepted) == 1 else "have"
        context.warn(
            f"{entity.called}: {first_of(accepted, MOST_NAMED)} {have} other files than when processed, and "
            "these were accepted: they are applied as they are now"
        )
    if requeued:
        were = "was" if len(requeued) == 1 else "were"
        context.warn(
            f"{entity.called}: {first_of(list(requeued.values()), MOST_NAMED)} changed since the last "
            f"processing, and {were} requeued: what is there now is applied in its place"
        )
    return found, frozenset(requeued)


def _is_accepted(context: ProcessingContext, applied: AppliedSlice, item: Item) -> bool:
    """Return whether an operator has accepted the files that a slice has now as what was processed."""
    is_of_item = item.tokens.get(context.application.key) == applied.number
    is_same_size = has_same_amounts(applied.fingerprint, item.fingerprint or {})
    return item.is_processed_by(context.application) and is_of_item and is_same_size


def _check_bronze(
    context: ProcessingContext, entity: Entity, slices: Sequence[AppliedSlice], *, ready: Sequence[str]
) -> None:
    """Raise an error unless bronze holds slices as they were when they were applied.

    Args:
        context: The context of the processing.
        entity: The entity.
        slices: The slices.
        ready: Ids of further ones, which the next run processes as they are then.

    Raises:
        SliceError: Some are gone or have changed; the error names each.
    """
    bronze = entity.places(context.lake.settings).slices
    faults, same = dict[str, str](), []
    for each in slices:
        found = find_slice(bronze, each.name, context.lake)
        if found is None:
            faults[each.name] = "gone"
        elif is_changed(each.fingerprint, found.fingerprint):
            faults[each.name] = "changed"
            if has_same_amounts(each.fingerprint, found.fingerprint):
                same.append(called_name(entity.called, each.name))
    for name in map(slice_of_id, ready):
        if find_slice(bronze, name, context.lake) is None:
            faults[name] = "gone"
    if not faults:
        return
    accepting = f"If the rows of {first_of(same, MOST_NAMED)} are the same, type "
    raise SliceError(
        f"slices of {entity.called} cannot be applied again from {bronze}: "
        + "; ".join(f"{name} {_FAULTS[what]}" for name, what in faults.items()),
        remedy=Phrase(
            *((accepting, command("accept", *same), ". ") if same else ()),
            "Bring them back as they were, or see what can be decided: ",
            Command("plan"),
            ". Nothing was written.",
        ),
        details={"slices": faults},
    )


@dataclass(frozen=True, slots=True)
class Arriving:
    """A slice that is not in the table with the content that it has now.

    Attributes:
        item_id: Its item.
        fingerprint: Its present fingerprint.
        times: The processing times that it may have; the first between those of its neighbours counts.
    """

    item_id: str
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    times: tuple[datetime, ...] = ()

    @property
    def name(self) -> str:
        """The name of the slice."""
        return slice_of_id(self.item_id)


def in_place(applied: Sequence[AppliedSlice], arriving: Iterable[Arriving]) -> list[AppliedSlice | Arriving]:
    """Return slices with others, each before the first whose name comes after its own.

    A slice of which the table has an earlier processing stands once.
    """
    new = sorted(arriving, key=lambda each: natural_key(each.name))
    again = {each.item_id for each in new}
    found: list[AppliedSlice | Arriving] = [each for each in applied if each.item_id not in again]
    for each in new:
        key = natural_key(each.name)
        later = (number for number, one in enumerate(found) if natural_key(one.name) > key)
        found.insert(next(later, len(found)), each)
    return found


def with_times(
    context: ProcessingContext, slices: Sequence[AppliedSlice | Arriving], strategy: Strategy
) -> list[AppliedSlice]:
    """Return slices in their order, each with a processing time.

    A time that is not between those of the neighbours is replaced by one just after that of the slice before;
    a warning says so. A slice after it whose time would not be later any more follows a microsecond later.

    Args:
        context: The context of the processing.
        slices: The slices.
        strategy: The strategy by which those that arrive are applied.
    """
    found: list[AppliedSlice] = []
    before: datetime | None = None
    is_same = True
    for index, each in enumerate(slices):
        before = max(filter(None, (before, found[-1].at if found else None)), default=None)
        if isinstance(each, AppliedSlice):
            found.append(each if is_same else _after(before, each, strategy))
            continue
        is_same = False
        rest = (one.at for one in slices[index + 1 :] if isinstance(one, AppliedSlice))
        after = next(filter(None, rest), None)
        own = each.times or (() if after is not None else (context.clock(),))
        at = next((one for one in own if _is_between(before, one, after, strategy)), None)
        at = at or _between(before, after) or next(iter(own), None) or context.clock()
        if each.times and at not in each.times:
            context.warn(
                f"{each.name}: its processing time {each.times[0].isoformat()} is not between those of the "
                f"slices before and after it: it gets {at.isoformat()}"
            )
        content = {
            "processingTime": at.isoformat(),
            "strategy": strategy.value,
            "fingerprint": dict(each.fingerprint),
        }
        found.append(AppliedSlice(each.item_id, 0, content))
    return found


def _after(last: datetime | None, each: AppliedSlice, strategy: Strategy) -> AppliedSlice:
    """Return a slice with a time later than the last one before it, which only versions need."""
    if strategy is not Strategy.HISTORIC or last is None or each.at is None or each.at > last:
        return each
    return replace(each, content={**each.content, "processingTime": (last + TICK).isoformat()})


def _is_between(before: datetime | None, at: datetime, after: datetime | None, strategy: Strategy) -> bool:
    """Return whether a time is between two others; only versions need times that differ."""
    if strategy is Strategy.HISTORIC:
        return (before is None or before < at) and (after is None or at < after)
    return (before is None or before <= at) and (after is None or at <= after)


def _between(before: datetime | None, after: datetime | None) -> datetime | None:
    """Return a time just after one, and before the other; None without either."""
    if before is None:
        return None if after is None else after - APART
    if after is None or before + APART < after:
        return before + APART
    return before + max((after - before) / 2, TICK)
