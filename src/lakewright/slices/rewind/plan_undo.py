"""The plan of an undo: to which version the table goes back, and which slices are applied again.

Source: the rules of rewinds, "Undo"; Delta's documentation, "Restore a Delta table to an earlier state".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from lakewright.errors import DataLossError, UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.observation import observe_table
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.lock import command, failed_error, locked_error, recovery_advice
from lakewright.manifest.rewind import RewoundSlice
from lakewright.manifest.store import Query
from lakewright.slices.chain import AppliedSlice, each_once, foreign_since, version_before
from lakewright.slices.discover import called_name, find_slice, item_id, natural_key, slice_name, slice_of_id
from lakewright.slices.lost_table import has_no_commit
from lakewright.slices.rewind.plan import (
    RewindPlan,
    as_in_manifest,
    check_bronze,
    check_foreign,
    check_version,
    known_slices,
    plan_digest,
    requeue_advice,
)
from lakewright.slices.time_check import requeueing_undo
from lakewright.spec.suggestions import nearest
from lakewright.strategies.outdated import rebuild_command
from lakewright.strategies.summary import deleted_rows, plain_names
from lakewright.strategies.table_properties import HISTORY_PROPERTY

if TYPE_CHECKING:
    from lakewright.manifest.record import Application
    from lakewright.slices.chain import HeldSlices, SliceChain
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["UndoPlan", "check_recorded", "plan_undo"]

_UNSEEN = "and no version shows what it changed by itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPlan(RewindPlan):
    """How a slice is undone.

    Attributes:
        item: The item of the slice.
        undone: The slice as the table holds it; None if it changed nothing, so that the table stays.
        since: The slices that were applied from the first commit on that must go, itself among them: each
            once, in the order of their last processing.
        earlier: Those of them that the slice's commit holds, too, and that were applied before it.
        is_requeued: Whether the slice, and those after it, are to be processed again by the next run.
        version: The version that the slice made by itself; None if no version shows what it changed.
        unseen: Why none shows it, as a clause; None if one does.
        repeated: Names of slices that were applied after it more than once. Applied once, they must give the
            table as it is.
    """

    operation: ClassVar[str] = "undo"

    item: Item
    undone: AppliedSlice | None
    since: tuple[AppliedSlice, ...] = ()
    earlier: tuple[AppliedSlice, ...] = ()
    is_requeued: bool = False
    version: int | None = None
    unseen: str | None = None
    repeated: tuple[str, ...] = ()

    @property
    def slice(self) -> str:
        """Name of the slice."""
        return slice_name(self.item)

    @property
    def changes_table(self) -> bool:
        """Whether the undo makes a commit."""
        return self.undone is not None

    @property
    def others(self) -> tuple[AppliedSlice, ...]:
        """The slices of `since` without the slice, and without those that are skipped."""
        left_out = {self.item.item_id, *(item.item_id for item in self.skipped)}
        return tuple(each for each in self.since if each.item_id not in left_out)

    @property
    def later(self) -> tuple[AppliedSlice, ...]:
        """The slices that were applied after it, each once."""
        earlier = {each.item_id for each in self.earlier}
        return tuple(each for each in self.others if each.item_id not in earlier)

    @property
    def replayed(self) -> tuple[AppliedSlice, ...]:
        """The slices that are applied again before the table changes."""
        return self.earlier if self.is_requeued else self.others

    @property
    def requeued(self) -> tuple[AppliedSlice, ...]:
        """The slices that are ready again: the slice, and those after it."""
        own = () if self.undone is None else (self.undone,)
        return (*own, *self.later) if self.is_requeued else ()

    @property
    def is_checked(self) -> bool:
        """Whether the slices, each applied once, must first be shown to give the table as it is.

        Slices that are requeued are applied once, as they are then, and those before them were.
        """
        return bool(self.replayed and self.repeated) and not self.is_requeued

    @property
    def counts(self) -> dict[str, int]:
        """What the slice inserted, updated and deleted, as its commit says; empty if it does not."""
        metrics = plain_names({} if self.undone is None else self.undone.content.get("metrics") or {})
        counts = {name: metrics.get(name) or 0 for name in ("inserted", "updated")}
        counts["deleted"] = deleted_rows(metrics)
        return {name: count for name, count in counts.items() if count}

    @property
    def rewound_ids(self) -> frozenset[str]:
        """The items whose slices the table does not hold afterwards, or holds by other commits."""
        return frozenset((self.item.item_id, *(each.item_id for each in self.since)))

    def applying(self, application: Application, slices: Sequence[AppliedSlice]) -> UndoPlan:
        """Return the plan with slices that are applied beside the table.

        Raises:
            DataLossError: It is not known at what time one was processed.
        """
        known = known_slices(slices, before=self.kept)
        digest = plan_digest({"base": self.base, "slices": [asdict(each) for each in known]})
        return replace(self, slices=known, app=f"{application}/undo/{digest}")

    def taken_back(self, context: ProcessingContext, entity: Entity) -> tuple[RewoundSlice, ...]:
        """Return the slice, skipped; or it and those after it, ready again with their processing times."""
        if not self.is_requeued:
            return (RewoundSlice(self.item.item_id, self.item.revision, is_skipped=True),)
        times = {each.item_id: each.content.get("processingTime") for each in self.requeued}
        if list(times) != sorted(times, key=lambda each: natural_key(slice_of_id(each))):
            # The next run takes them by their names, so that the times would not follow each other.
            times = dict.fromkeys(times)
        return tuple(_made_ready(context, entity, times))

    def as_json(self) -> dict[str, Any]:
        """Return the plan as `undo -o json` prints it."""
        return {
            "slice": self.slice,
            "item": self.item.item_id,
            "version": self.state.version,
            "back_to": self.base,
            "counts": self.counts,
            "replayed": [each.name for each in self.replayed],
            "repeated": list(self.repeated) if self.is_checked else [],
            "requeued": [each.name for each in self.requeued],
            "skipped": self.skipped_names,
            "foreign_commits": [commit.version for commit in self.foreign],
        }


def _made_ready(
    context: ProcessingContext, entity: Entity, times: dict[str, str | None]
) -> Iterator[RewoundSlice]:
    """Yield slices that the next run processes again, at times that are kept for them."""
    bronze, items = entity.places(context.lake.settings).bronze, context.ledger.store.read(list(times))
    for name, at in times.items():
        # Any of them may have changed since it was processed: the next run takes what is there now.
        present = find_slice(bronze, slice_of_id(name), context.lake)
        note: dict[str, Any] = {"fingerprint": {} if present is None else present.fingerprint}
        if at is not None:
            note["processing_time"] = at
        yield RewoundSlice(name, items[name].revision, note=note)


def plan_undo(
    context: ProcessingContext,
    entity: Entity,
    name: str,
    *,
    is_requeued: bool = False,
    is_over_foreign: bool = False,
) -> UndoPlan:
    """Return how a slice of an entity is undone; nothing is written.

    Slices after it that were skipped since they were processed are left out, as a rebuild does.

    Args:
        context: The context of the processing.
        entity: The entity.
        name: Name of the slice.
        is_requeued: Whether the slice and those after it are to be processed again.
        is_over_foreign: Whether commits of other writers may be lost.

    Raises:
        UsageError: The slice is not in the table.
        ItemLocked, ItemFailed: The slice is being processed, or has failed.
        DataLossError: Commits of other writers would be lost, the slice's commit is gone from the log, or the
            time is not known at which a later slice was processed.
        SliceError: Slices after it are gone from bronze, or those that are applied again have changed.
    """
    chain = context.chain(entity)
    state = observe_table(chain.lake, chain.silver)
    item = _processed_item(context, entity, name, chain)
    own = [each for each in chain.slices if each.item_id == item.item_id]
    undone = own[-1] if own else next(each for each in chain.unlogged if each.item_id == item.item_id)
    start = (own or [undone])[0].number
    gone = next(
        (
            index
            for index, (_, slices) in enumerate(chain.held)
            if any(each in own if own else each.number > start for each in slices)
        ),
        len(chain.held),
    )
    first, beside = chain.held[gone] if gone < len(chain.held) else (None, ())
    late = [s for s in chain.unlogged if s.item_id == item.item_id or (s.number > start and s.is_unwritten)]
    before = (*_slices_of(chain.held[:gone]), *(each for each in chain.unlogged if each not in late))
    since = sorted((*_slices_of(chain.held[gone:]), *late), key=lambda each: each.number)
    if not own:
        _check_unwritten(context, entity, item, is_requeued=is_requeued)
        if len(since) == 1 or not (entity.settings.delete_missing and entity.watermarks):
            # Later slices would be applied in the same way without it.
            kept = (*before, *(each for each in since if each.item_id != item.item_id))
            return UndoPlan(state, state.version, kept, item=item, undone=None)
    once = each_once(since)
    skipped = chain.skipped(once)
    base = state.version if first is None else version_before(first)
    ahead = takewhile(lambda each: each.item_id != item.item_id, beside if own else ())
    numbers = {each.item_id: each.number for each in ahead}
    has_past = base is None and HISTORY_PROPERTY in state.properties
    unseen = _unseen_reason(own, len(beside), has_past=has_past, is_alone=not skipped)
    commits = [each for each in chain.commits if first is not None and each.version >= first.version]
    lost = foreign_since(commits, str(context.application))
    plan = UndoPlan(
        state,
        base,
        before,
        has_past=has_past,
        foreign=check_foreign(entity, lost, is_allowed=is_over_foreign),
        skipped=tuple(skipped.values()),
        item=item,
        undone=undone,
        since=once,
        earlier=tuple(
            each for each in once if numbers.get(each.item_id) == each.number and each.item_id not in skipped
        ),
        is_requeued=is_requeued,
        version=first.version if first is not None and unseen is None else None,
        unseen=unseen,
        repeated=_repeated(since, once, item),
    )
    accepted, _ = as_in_manifest(context, entity, plan.since if plan.is_checked else plan.others)
    _check_bronze(context, entity, plan, accepted)
    check_version(context, entity, base)
    now = {each.item_id: each for each in accepted}
    plan = replace(
        plan,
        since=tuple(now.get(each.item_id, each) for each in plan.since),
        earlier=tuple(now.get(each.item_id, each) for each in plan.earlier),
    )
    return plan.applying(context.application, plan.replayed)


def _slices_of(held: Iterable[HeldSlices]) -> Iterator[AppliedSlice]:
    for _, slices in held:
        yield from slices


def _repeated(since: Sequence[AppliedSlice], once: Sequence[AppliedSlice], item: Item) -> tuple[str, ...]:
    """Return the names of slices that were applied more than once, but for the one of an item."""
    counts = Counter(each.item_id for each in since)
    again = (each for each in once if counts[each.item_id] > 1 and each.item_id != item.item_id)
    return tuple(each.name for each in again)


def _unseen_reason(own: Sequence[AppliedSlice], beside: int, *, has_past: bool, is_alone: bool) -> str | None:
    """Return why no version shows what a slice changed by itself, as a clause; None if one does.

    Args:
        own: The slice, as often as it was applied.
        beside: Number of slices in the first commit that must go.
        has_past: Whether that commit holds versions of `history_from`.
        is_alone: Whether no slice goes with it that was skipped.
    """
    if not own:
        return "the slice changed none by itself"
    if beside > 1:
        return f"its commit holds other slices, too, {_UNSEEN}"
    if len(own) > 1:
        return f"it was processed more than once, {_UNSEEN}"
    if not is_alone:
        return "what the skipped slices changed goes, too"
    return f"its commit holds the versions of history_from, too, {_UNSEEN}" if has_past else None


def _check_bronze(
    context: ProcessingContext, entity: Entity, plan: UndoPlan, slices: Sequence[AppliedSlice]
) -> None:
    """Raise an error unless bronze holds slices as they were; the next run takes those that are requeued.

    Raises:
        SliceError: It does not; the remedy names the undo with `--requeue` where that is possible.
    """
    skipping = command("skip", called_name(entity.called, plan.item))
    typed = Phrase(requeueing_undo(entity.called, plan.slice), ", then ", skipping, ", then a run")
    later = {each.item_id for each in plan.later}

    def advice(faulty: Sequence[AppliedSlice], changed: Sequence[AppliedSlice]) -> str:
        # The next run processes what is there now, which is possible if all of them were applied after it.
        is_later = len(changed) == len(faulty) and later.issuperset(each.item_id for each in changed)
        told = requeue_advice(entity, changed)
        if is_later and not plan.is_requeued:
            told = Phrase(", or process what is there now: ", typed)
        is_alone = faulty[-1].item_id == plan.since[0].item_id == plan.item.item_id
        return Phrase(told, ", or do without it: ", typed) if is_alone else told

    check_bronze(context, entity, slices, advice, requeued={each.item_id for each in plan.requeued})


def _check_unwritten(context: ProcessingContext, entity: Entity, item: Item, *, is_requeued: bool) -> None:
    """Raise an error unless a slice without a commit changed nothing, and is to be skipped.

    Raises:
        DataLossError: The log does not show the slice's commit any more.
        UsageError: It changed nothing, and is to be processed again.
    """
    if not has_no_commit(context.ledger.store, item, context.application):
        raise DataLossError(
            f"the log of {entity.called} does not show the commit of {slice_name(item)}",
            remedy=Phrase(
                "It is older than what the log keeps, or the table was written anew since. Build the "
                "table again without the slice: skip it, then ",
                rebuild_command(entity),
                ".",
            ),
            details={"item_id": item.item_id},
        )
    if is_requeued:
        name = called_name(entity.called, item)
        raise UsageError(
            f"the slice {slice_name(item)} of {entity.called} changed nothing, so there is nothing to undo",
            remedy=Phrase(command("requeue", name), " has it processed again."),
        )


def check_recorded(context: ProcessingContext, entity: Entity, name: str) -> None:
    """Check that the manifest has a slice of the name, before anything is recorded of its undo.

    Raises:
        UsageError: It has none.
    """
    place = f"{entity.places(context.lake.settings).bronze}/{name}"
    if not context.ledger.item(item_id(place)).revision:
        _processed_item(context, entity, name, None)


def _processed_item(context: ProcessingContext, entity: Entity, name: str, chain: SliceChain | None) -> Item:
    """Return the item of a slice that the application has processed.

    Raises:
        UsageError: It has not.
        ItemLocked, ItemFailed: The slice is being processed, or the table holds it and it has failed since.
    """
    named, application = called_name(entity.called, name), context.application
    bronze = entity.places(context.lake.settings).bronze
    found = context.ledger.item(item_id(f"{bronze}/{name}"))
    lock = context.ledger.lock(found)
    if lock is not None:
        raise locked_error(lock, named)
    verdict, may_be_held = found.verdict(application), chain is not None and chain.may_hold(found)
    is_held = found.is_processed_by(application) or (chain is not None and chain.holds(found.item_id))
    if found.failed is not None and may_be_held:
        raise failed_error(found, refused="undo", name=named)
    if found.failed is not None:
        what = "failed and is not in the table: there is nothing to undo"
        remedy = recovery_advice(found, named)
    elif verdict is Verdict.PROCESSED:
        return found
    elif verdict is Verdict.SKIPPED and may_be_held and is_held:
        what = "was skipped, but the table still holds it"
        remedy = Phrase(rebuild_command(entity), " builds the table again without it.")
    elif verdict is Verdict.READY and may_be_held:
        what = "was requeued, and the table holds its rows until it is processed again"
        remedy = Phrase(
            "Undo it after the next run has processed it. To take its rows out now, ",
            command("skip", named),
            ", then ",
            rebuild_command(entity),
            ".",
        )
    else:
        what, remedy = f"is not in the table: it is {verdict}", _undoable(context, bronze, name)
    details = {"item_id": found.item_id, "verdict": verdict.value}
    raise UsageError(f"the slice {name} of {entity.called} {what}", remedy=remedy, details=details)


def _undoable(context: ProcessingContext, bronze: str, name: str) -> str:
    """Return the remedy for a slice that is not in the table, with the name that is probably meant."""
    query = Query(context.application, frozenset({Verdict.PROCESSED}), prefix=item_id(f"{bronze}/"))
    near = nearest(name, [slice_name(item) for item in context.ledger.store.select(query)])
    meant = "" if near is None else f"Did you mean {near!r}? "
    return Phrase(
        f"{meant}Only a processed slice can be undone. ", Command("manifest", "ls"), " lists the slices."
    )
