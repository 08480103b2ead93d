"""The plans of an undo and of a rebuild.

After an undo, a table holds the slices that it would hold if one had never been processed; after a rebuild,
all processed slices, or those from one on, under today's declaration.

Source: the rules of rewinds, "Undo" and "Rebuild"; Delta's documentation, "Restore a Delta table to an
earlier state".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from lakewright.errors import DataLossError, UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.observation import missing_files
from lakewright.manifest.item import Item
from lakewright.manifest.lock import command, failed_error, locked_error, recovery_advice
from lakewright.manifest.record import format_instant
from lakewright.manifest.rewind import RewoundSlice
from lakewright.manifest.store import Query
from lakewright.manifest.verdict import Verdict
from lakewright.slices.chain import recorded_slice
from lakewright.slices.discovery import called_name, find_slice, item_id, natural_key, slice_name, slice_of_id
from lakewright.slices.rewind.plan import (
    Arriving,
    RewindPlan,
    in_place,
    lasting_commits,
    moved_slices,
    plan_replay,
    with_times,
)
from lakewright.spec.suggestions import nearest
from lakewright.strategies.outdated import rebuild_command
from lakewright.strategies.summary import deleted_rows, plain_names

if TYPE_CHECKING:
    from lakewright.slices.chain import AppliedSlice, SliceChain
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity, Strategy


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """How a slice is undone.

    Attributes:
        replay: What becomes of the table.
        item: The item of the slice.
        undone: The slice as the table holds it; None if it changed nothing by itself.
        is_requeued: Whether the slice, and those after it, are to be processed again by the next run.
        version: The version that the slice made by itself; None if no version shows what it changed.
        repeated: Names of slices that were applied more than once, and are applied once again.
    """

    replay: RewindPlan
    item: Item
    undone: AppliedSlice | None
    is_requeued: bool = False
    version: int | None = None
    repeated: tuple[str, ...] = ()

    @property
    def slice(self) -> str:
        """Name of the slice."""
        return slice_name(self.item)

    @property
    def requeued(self) -> list[str]:
        """The slices that are ready again: the slice, and those after it."""
        return [slice_of_id(each.item_id) for each in self.replay.taken_back if not each.is_skipped]

    @property
    def counts(self) -> dict[str, int]:
        """What the slice inserted, updated and deleted, as its commit says; empty if it does not."""
        metrics = plain_names({} if self.undone is None else self.undone.content.get("metrics") or {})
        counts = {name: metrics.get(name) or 0 for name in ("inserted", "updated")}
        counts["deleted"] = deleted_rows(metrics)
        return {name: count for name, count in counts.items() if count}

    def as_json(self) -> dict[str, Any]:
        """Return the plan as `undo -o json` prints it."""
        replay = self.replay
        return {
            "slice": self.slice,
            "item": self.item.item_id,
            "version": replay.state.version,
            "back_to": replay.base,
            "counts": self.counts,
            "replayed": replay.names,
            "repeated": list(self.repeated),
            "requeued": self.requeued,
            "skipped": replay.skipped_names,
            "foreign_commits": [commit.version for commit in replay.foreign],
        }


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
    item = _processed_item(context, entity, name, chain)
    own = [each for each in chain.slices if each.item_id == item.item_id]
    wanted = [each for each in chain.order if each.item_id not in {item.item_id, *chain.reverted}]
    if own:
        lasting = lasting_commits(chain, wanted)
    else:
        _check_unwritten(context, entity, item, is_requeued=is_requeued)
        lasting = _lasting_without(chain, item)
    gone = chain.held[lasting:]
    taken_back: tuple[RewoundSlice, ...] = (RewoundSlice(item.item_id, item.revision, is_skipped=True),)
    if is_requeued:
        wanted, later = _split(chain, wanted, lasting, item)
        taken_back = _made_ready(context, entity, [own[-1], *later])
    replay = plan_replay(
        context, entity, wanted, lasting, taken_back=taken_back, may_lose=lambda _: is_over_foreign
    )
    is_alone = bool(gone) and len(own) == len(gone[0][1]) == 1 and not (replay.skipped or replay.has_past)
    counts = Counter(each.item_id for _, slices in gone for each in slices)
    return UndoPlan(
        replay,
        item,
        own[-1] if own else None,
        is_requeued,
        gone[0][0].version if is_alone else None,
        tuple(each.name for each in replay.slices if counts[each.item_id] > 1),
    )


def _lasting_without(chain: SliceChain, item: Item) -> int:
    """Return how many commits stay without a slice that changed nothing.

    Later slices are applied in the same way without it, unless deletes were inferred from it.
    """
    if not (chain.entity.settings.delete_missing and chain.entity.watermarks):
        return len(chain.held)
    number = item.tokens[chain.application.key]
    return sum(1 for _ in takewhile(lambda held: all(each.number < number for each in held[1]), chain.held))


def _split(
    chain: SliceChain, others: Sequence[AppliedSlice], lasting: int, item: Item
) -> tuple[list[AppliedSlice], list[AppliedSlice]]:
    """Return the slices that a table holds before one, and those after it, which the next run processes."""
    beside = chain.held[lasting][1]
    ahead = {(one.item_id, one.number) for one in takewhile(lambda one: one.item_id != item.item_id, beside)}
    moved = moved_slices(chain, others, lasting)
    later = [one for one in moved if (one.item_id, one.number) not in ahead]
    ids = {one.item_id for one in later}
    return [one for one in others if one.item_id not in ids], later


def _made_ready(
    context: ProcessingContext, entity: Entity, slices: Sequence[AppliedSlice]
) -> tuple[RewoundSlice, ...]:
    """Return slices that the next run processes again, at times that are kept for them, if it can.

    It takes them by their names. What was skipped since it was processed stays so.
    """
    skipped = context.chain(entity).skipped(slices)
    left = [each for each in slices if each.item_id not in skipped]
    items = context.ledger.store.read([each.item_id for each in left])
    is_in_order = left == sorted(left, key=lambda each: natural_key(each.name))
    bronze = entity.places(context.lake.settings).slices
    found = []
    for each in left:
        # Any of them may have changed since it was processed: the next run takes what is there now.
        present, at = find_slice(bronze, each.name, context.lake), each.content.get("processingTime")
        note: dict[str, Any] = {"fingerprint": {} if present is None else present.fingerprint}
        if at is not None and is_in_order:
            note["processing_time"] = at
        found.append(RewoundSlice(each.item_id, items[each.item_id].revision, note=note))
    return tuple(found)


def _check_unwritten(context: ProcessingContext, entity: Entity, item: Item, *, is_requeued: bool) -> None:
    """Raise an error unless a slice without a commit changed nothing, and is to be skipped.

    Raises:
        DataLossError: The log does not show the slice's commit any more.
        UsageError: It changed nothing, and is to be processed again.
    """
    recorded = recorded_slice(context.ledger.store, item, context.application)
    if recorded is None or not recorded.is_unwritten:
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
    place = entity.places(context.lake.settings).slices.place(name)
    if not context.ledger.item(item_id(place)).revision:
        _processed_item(context, entity, name, None)


def _processed_item(context: ProcessingContext, entity: Entity, name: str, chain: SliceChain | None) -> Item:
    """Return the item of a slice that the application has processed.

    Raises:
        UsageError: It has not.
        ItemLocked, ItemFailed: The slice is being processed, or the table holds it and it has failed since.
    """
    named, application = called_name(entity.called, name), context.application
    slices = entity.places(context.lake.settings).slices
    found = context.ledger.item(item_id(slices.place(name)))
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
        what, remedy = f"is not in the table: it is {verdict}", _undoable(context, str(slices), name)
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


@dataclass(frozen=True, slots=True)
class RebuildStart:
    """Where a rebuild starts: with the first slice, a named one, or the first of a time.

    Attributes:
        slice: Name of the first slice that is applied again; what was in the table before it stays.
        time: The processing time from which on slices are applied again.
    """

    slice: str | None = None
    time: datetime | None = None

    @property
    def words(self) -> str:
        """Return which slices it starts with, as the end of a sentence about slices."""
        if self.slice is not None:
            return f" {self.slice}"
        return "" if self.time is None else f" of {self.time.isoformat()} or later"

    def includes(self, applied: AppliedSlice) -> bool:
        """Return whether the rebuild starts with a slice, if it has not started before."""
        if self.slice is not None:
            return applied.name == self.slice
        if self.time is not None:
            return applied.at is not None and applied.at >= self.time
        return True


@dataclass(frozen=True, slots=True)
class RebuildPlan:
    """How a table is built again.

    Attributes:
        replay: What becomes of the table.
        included: Names of the slices that waited, and are applied, too.
        requeued: Names of slices that were requeued, and are left out: the table has no commit of theirs.
        missing: Data files that the table's last version lacks, so that its rows can't be read.
    """

    replay: RewindPlan
    included: tuple[str, ...] = ()
    requeued: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def included_times(self) -> dict[str, datetime]:
        """The processing times of the slices that waited, by name."""
        return {known.name: known.at for known in self.replay.slices if known.name in self.included}

    def as_json(self) -> dict[str, Any]:
        """Return the plan as `rebuild -o json` prints it."""
        replay = self.replay
        return {
            "version": replay.state.version,
            "base": replay.base,
            "slices": replay.names,
            "skipped": replay.skipped_names,
            "included": list(self.included),
            "included_times": {name: format_instant(at) for name, at in self.included_times.items()},
            "requeued": list(self.requeued),
            "foreign_commits": [commit.version for commit in replay.foreign],
        }


def plan_rebuild(
    context: ProcessingContext,
    entity: Entity,
    start: RebuildStart,
    *,
    included: Sequence[Arriving] = (),
    strategy: Strategy | None = None,
    is_over_foreign: bool = False,
) -> RebuildPlan:
    """Return how an entity's table is built again from its slices; nothing is written.

    Slices are applied in the order in which they were, each with its recorded processing time. A slice that
    was processed more than once is applied where it was processed last. One that was skipped since then is
    left out.

    Args:
        context: The context of the processing.
        entity: The entity.
        start: Where the rebuild starts; slices before it in the same commit are applied again, too.
        included: Slices that wait, which are applied in their places. Only a rebuild of all slices has some.
        strategy: The strategy by which they are applied; the entity's own unless given.
        is_over_foreign: Whether commits of other writers may be lost.

    Raises:
        UsageError: No slice was processed, or none from the start on.
        DataLossError: Commits of other writers would be lost, or files of the version to start with are gone.
        SliceError: Slices are gone from bronze, or have changed.
        MigrationError: The past versions of the entity can't be read.
    """
    chain, is_whole = context.chain(entity), start == RebuildStart()
    strategy = strategy or entity.strategy
    wanted = with_times(context, in_place(chain.order, included), strategy)
    skipped = chain.skipped(wanted)
    first = next((each for each in wanted if each.item_id not in skipped and start.includes(each)), None)
    if first is None and not (wanted and is_whole):
        raise UsageError(
            f"{entity.called} has no processed slice{start.words if wanted else ''}",
            remedy=Phrase(Command("manifest", "ls", "--entity", entity.called), " lists the slices."),
        )
    lasting = 0 if is_whole or first is None else _lasting(chain, wanted, first)
    replay = plan_replay(
        context,
        entity,
        wanted,
        lasting,
        is_whole=is_whole,
        strategy=strategy,
        new=[each.item_id for each in included],
        may_lose=lambda _: is_over_foreign,
    )
    version = replay.state.version
    return RebuildPlan(
        replay,
        tuple(each.name for each in included),
        _requeued(chain, wanted),
        () if version is None else tuple(missing_files(chain.lake, chain.silver, version)),
    )


def _lasting(chain: SliceChain, wanted: Sequence[AppliedSlice], first: AppliedSlice) -> int:
    """Return how many commits stay if a table is built again from a slice on.

    Raises:
        DataLossError: The log does not show the commit of the slice.
    """
    own = next((commit.version for commit, slices in chain.held if first in slices), None)
    if own is None:
        raise DataLossError(
            f"the log of {chain.entity.called} does not show the commit of {first.name}",
            remedy="Start with a later slice, or build the table from all slices.",
        )
    return lasting_commits(chain, wanted, lambda commit, _: commit.version == own)


def _requeued(chain: SliceChain, applied: Sequence[AppliedSlice]) -> tuple[str, ...]:
    """Return the names of requeued slices that wait, and that are not among those which the table holds.

    Their former processing changed no row, was undone, or failed.
    """
    held = {each.item_id for each in applied}
    waiting = (
        item for item in chain.items(Verdict.READY) if item.verdict(chain.application) is Verdict.READY
    )
    names = (slice_name(item) for item in waiting if item.revision > 1 and item.item_id not in held)
    return tuple(sorted(names, key=natural_key))
