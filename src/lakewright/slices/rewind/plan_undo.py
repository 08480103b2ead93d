"""The plan of an undo: to which version the table goes back, and which slices are applied again.

Source: the rules of rewinds, "Undo"; Delta's documentation, "Restore a Delta table to an earlier state".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from lakewright.errors import DataLossError, UsageError
from lakewright.lake.commit import Commit
from lakewright.lake.observation import observe_table
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.lock import command, failed_error, locked_error, recovery_advice
from lakewright.manifest.store import Query
from lakewright.slices.chain import (
    AppliedSlice,
    SliceChain,
    each_once,
    foreign_since,
    is_in_table,
    version_before,
)
from lakewright.slices.discover import called_name, item_id, slice_name
from lakewright.slices.lost_table import has_no_commit
from lakewright.slices.rewind.known_slices import as_accepted, check_bronze, check_foreign, check_version
from lakewright.slices.rewind.undo import UndoPlan
from lakewright.slices.time_check import requeueing_undo
from lakewright.spec.suggestions import nearest
from lakewright.strategies.outdated import rebuild_command
from lakewright.strategies.table_properties import HISTORY_PROPERTY

if TYPE_CHECKING:
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["plan_undo"]

MOST_NAMED = 5

_UNSEEN = "and no version shows what it changed by itself"


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
        DataLossError: Commits of other writers would be lost, or the slice's commit is gone from the log.
        SliceError: Slices after it are gone from bronze, or those that are applied again have changed.
    """
    state = observe_table(context.lake, entity.places(context.lake.settings).silver)
    chain = SliceChain.of(context.lake, context.ledger.store, entity, context.application)
    item = _processed_item(context, entity, name, chain.may_hold)
    held = _Held.of(chain, item)
    if not held.is_written:
        _check_unwritten(context, entity, item, is_requeued=is_requeued)
        if len(held.since) == 1 or not (entity.settings.delete_missing and entity.watermarks):
            # Later slices would be applied in the same way without it.
            return UndoPlan(item, None, state, state.version, kept=held.others)
    commits = [
        commit for commit in chain.commits if held.first is not None and commit.version >= held.first.version
    ]
    base = None if held.first is None else version_before(held.first)
    skipped = chain.skipped(held.since)
    has_past = base is None and HISTORY_PROPERTY in state.properties
    unseen = held.unseen_reason(has_past=has_past, is_alone=not skipped)
    plan = UndoPlan(
        item,
        held.undone,
        state,
        base=base,
        since=held.since,
        earlier=tuple(each for each in held.earlier if each.item_id not in skipped),
        skipped=tuple(skipped.values()),
        repeated=held.repeated,
        is_requeued=is_requeued,
        foreign=check_foreign(
            entity, foreign_since(commits, str(context.application)), is_allowed=is_over_foreign
        ),
        kept=held.before,
        version=held.first.version if held.first is not None and unseen is None else None,
        unseen=unseen,
    )
    applied = as_accepted(context, entity, plan.since if plan.is_checked else plan.others)
    check_bronze(
        context,
        entity,
        applied,
        requeued={each.item_id for each in plan.requeued},
        without=lambda last: without_slice(entity, plan, last),
        instead=None if is_requeued else with_requeue(entity, plan),
    )
    check_version(context, entity, plan.base)
    accepted = {each.item_id: each for each in applied}

    def now(slices: tuple[AppliedSlice, ...]) -> tuple[AppliedSlice, ...]:
        return tuple(accepted.get(each.item_id, each) for each in slices)

    return replace(plan, since=now(plan.since), earlier=now(plan.earlier))


@dataclass(frozen=True, slots=True)
class _Held:
    """A slice among those that a table holds.

    Attributes:
        undone: The slice, as its last commit has it, or as the manifest tells it.
        commits: Number of commits that hold it.
        first: The first commit that must go: its own, or that of the first slice after it.
        beside: The slices of that commit, in order.
        before: The slices before that commit, in order.
        since: The slices from that commit on, each once, in the order of their last processing.
        repeated: Names of those of them, but for the slice, that were processed more than once.
    """

    undone: AppliedSlice
    commits: int
    first: Commit | None
    beside: tuple[AppliedSlice, ...]
    before: tuple[AppliedSlice, ...]
    since: tuple[AppliedSlice, ...]
    repeated: tuple[str, ...]

    @classmethod
    def of(cls, chain: SliceChain, item: Item) -> _Held:
        """Return where a slice stands in a table."""
        own = [each for each in chain.slices if each.item_id == item.item_id]
        undone = own[-1] if own else next(each for each in chain.unlogged if each.item_id == item.item_id)
        start = own[0].number if own else undone.number
        first = next(
            (c for c, slices in chain.held if any(s in own if own else s.number > start for s in slices)),
            None,
        )
        before: list[AppliedSlice] = []
        since: list[AppliedSlice] = []
        beside: tuple[AppliedSlice, ...] = ()
        for commit, slices in chain.held:
            is_before = first is None or commit.version < first.version
            (before if is_before else since).extend(slices)
            beside = tuple(slices) if commit is first else beside
        for each in chain.unlogged:
            is_later = each.item_id == item.item_id or (each.number > start and each.is_unwritten)
            (since if is_later else before).append(each)
        since.sort(key=lambda each: each.number)
        once = each_once(since)
        counts = Counter(each.item_id for each in since)
        again = [each for each in once if counts[each.item_id] > 1 and each.item_id != item.item_id]
        return cls(undone, len(own), first, beside, tuple(before), once, tuple(each.name for each in again))

    @property
    def others(self) -> tuple[AppliedSlice, ...]:
        """All slices but the slice."""
        own = self.undone.item_id
        return (*self.before, *(each for each in self.since if each.item_id != own))

    @property
    def is_written(self) -> bool:
        """Whether the slice has a commit."""
        return self.commits > 0

    @property
    def earlier(self) -> tuple[AppliedSlice, ...]:
        """The slices that were applied before it, but in the same commit, and not again since."""
        own = self.undone.item_id
        if not self.is_written:
            return ()
        ahead = takewhile(lambda each: each.item_id != own, self.beside)
        known = {(each.item_id, each.number) for each in ahead}
        return tuple(each for each in self.since if (each.item_id, each.number) in known)

    def unseen_reason(self, *, has_past: bool, is_alone: bool) -> str | None:
        """Return why no version shows what the slice changed by itself, as a clause; None if one does.

        Args:
            has_past: Whether the first commit that must go holds versions of `history_from`.
            is_alone: Whether no slice goes with it that was skipped.
        """
        if not self.is_written:
            return "the slice changed none by itself"
        if len(self.beside) > 1:
            return f"its commit holds other slices, too, {_UNSEEN}"
        if self.commits > 1:
            return f"it was processed more than once, {_UNSEEN}"
        if not is_alone:
            return "what the skipped slices changed goes, too"
        return f"its commit holds the versions of history_from, too, {_UNSEEN}" if has_past else None


def _check_unwritten(context: ProcessingContext, entity: Entity, item: Item, *, is_requeued: bool) -> None:
    """Raise an error unless a slice without a commit changed nothing, and is to be skipped.

    Raises:
        DataLossError: The log does not show the slice's commit any more.
        UsageError: It changed nothing, and is to be processed again.
    """
    if not has_no_commit(context.ledger.store, item, context.application):
        raise _unknown_commit(entity, item)
    if is_requeued:
        name = called_name(entity.called, item)
        raise UsageError(
            f"the slice {slice_name(item)} of {entity.called} changed nothing, so there is nothing to undo",
            remedy=f"`{command('requeue', name)}` has it processed again.",
        )


def check_recorded(context: ProcessingContext, entity: Entity, name: str) -> None:
    """Check that the manifest has a slice of the name, before anything is recorded of its undo.

    Raises:
        UsageError: It has none.
    """
    place = f"{entity.places(context.lake.settings).bronze}/{name}"
    if not context.ledger.item(item_id(place)).revision:
        _processed_item(context, entity, name, lambda _: False)


def _processed_item(
    context: ProcessingContext, entity: Entity, name: str, may_be_held: Callable[[Item], bool]
) -> Item:
    """Return the item of a slice that the application has processed.

    Raises:
        UsageError: It has not.
        ItemLocked, ItemFailed: The slice is being processed, or the table holds it and it has failed since.
    """
    named = called_name(entity.called, name)
    bronze = entity.places(context.lake.settings).bronze
    found = context.ledger.item(item_id(f"{bronze}/{name}"))
    lock = context.ledger.lock(found)
    if lock is not None:
        raise locked_error(lock, named)
    verdict = found.verdict(context.application)
    details = {"item_id": found.item_id, "verdict": verdict.value}
    if found.failed is not None:
        if may_be_held(found):
            raise failed_error(found, refused="undo", name=named)
        raise UsageError(
            f"the slice {name} of {entity.called} failed and is not in the table: there is nothing to undo",
            remedy=recovery_advice(found, named),
            details=details,
        )
    if verdict is Verdict.SKIPPED and may_be_held(found) and _is_held(context, entity, found):
        raise UsageError(
            f"the slice {name} of {entity.called} was skipped, but the table still holds it",
            remedy=f"`{rebuild_command(entity)}` builds the table again without it.",
            details=details,
        )
    if verdict is Verdict.READY and may_be_held(found):
        raise UsageError(
            f"the slice {name} of {entity.called} was requeued, and the table holds its rows until it is "
            "processed again",
            remedy="Undo it after the next run has processed it. To take its rows out now, "
            f"`{command('skip', named)}`, then `{rebuild_command(entity)}`.",
            details=details,
        )
    if verdict is not Verdict.PROCESSED:
        raise UsageError(
            f"the slice {name} of {entity.called} is not in the table: it is {verdict}",
            remedy=undoable(context, bronze, name),
            details=details,
        )
    return found


def _is_held(context: ProcessingContext, entity: Entity, item: Item) -> bool:
    application = context.application
    return item.is_processed_by(application) or is_in_table(
        context.lake, context.ledger.store, entity, application, item
    )


def _unknown_commit(entity: Entity, item: Item) -> DataLossError:
    return DataLossError(
        f"the log of {entity.called} does not show the commit of {slice_name(item)}",
        remedy="It is older than what the log keeps, or the table was written anew since. Build the table "
        f"again without the slice: skip it, then `{rebuild_command(entity)}`.",
        details={"item_id": item.item_id},
    )


def undoable(context: ProcessingContext, bronze: str, name: str) -> str:
    """Return the remedy for a slice that is not in the table, with the name that is probably meant."""
    prefix = item_id(f"{bronze}/")
    query = Query(context.application, frozenset({Verdict.PROCESSED}), prefix=prefix)
    near = nearest(name, [slice_name(item) for item in context.ledger.store.select(query)])
    meant = "" if near is None else f"Did you mean {near!r}? "
    return f"{meant}Only a processed slice can be undone. `lakewright manifest ls` lists the slices."


def without_slice(entity: Entity, plan: UndoPlan, last: AppliedSlice) -> str:
    """Return how to do without the undone slice, as the end of a remedy, if no other is at fault."""
    if last.item_id != plan.item.item_id or plan.since[0].item_id != last.item_id:
        return ""
    return f", or do without it: {_requeue_and_skip(entity, plan)}"


def with_requeue(entity: Entity, plan: UndoPlan) -> Callable[[Collection[str]], str | None]:
    """Return what tells how to undo although slices have changed, given their ids.

    With `--requeue` the next run processes what is there now, which is possible if all of them were applied
    after the slice.
    """
    later = {each.item_id for each in plan.later}
    typed = f", or process what is there now: {_requeue_and_skip(entity, plan)}"
    return lambda changed: typed if later.issuperset(changed) else None


def _requeue_and_skip(entity: Entity, plan: UndoPlan) -> str:
    skipped = command("skip", called_name(entity.called, plan.item))
    return f"`{requeueing_undo(entity.called, plan.slice)}`, then `{skipped}`, then a run"
