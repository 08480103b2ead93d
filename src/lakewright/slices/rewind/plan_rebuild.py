"""The plan of a rebuild: the slices that are applied again under today's declaration, in which order.

Source: the rules of rewinds, "Rebuild".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import dropwhile, islice
from typing import TYPE_CHECKING, Any, ClassVar

from lakewright.errors import DataLossError, UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.observation import missing_files, observe_table
from lakewright.manifest.item import Verdict
from lakewright.manifest.lock import command
from lakewright.manifest.record import format_instant
from lakewright.manifest.store import Query
from lakewright.slices.chain import (
    AppliedSlice,
    each_once,
    foreign_since,
    since_empty,
    version_before,
)
from lakewright.slices.discover import called_name, item_id, natural_key, slice_name
from lakewright.slices.past import past_fingerprint
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
from lakewright.spec.words import first_of
from lakewright.strategies.outdated import rebuild_command

if TYPE_CHECKING:
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["RebuildPlan", "RebuildStart", "plan_rebuild"]

MOST_NAMED = 5


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
class RebuildPlan(RewindPlan):
    """How a table is built again.

    Attributes:
        included: Names of the slices that waited, and are applied, too.
        requeued: Names of slices that were requeued, and are left out: the table has no commit of theirs.
        missing: Data files that the table's last version lacks, so that its rows can't be read.
    """

    operation: ClassVar[str] = "rebuild"

    included: tuple[str, ...] = ()
    requeued: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def included_times(self) -> dict[str, datetime]:
        """The processing times of the slices that waited, by name."""
        return {known.name: known.at for known in self.slices if known.name in self.included}

    def as_json(self) -> dict[str, Any]:
        """Return the plan as `rebuild -o json` prints it."""
        return {
            "version": self.state.version,
            "base": self.base,
            "slices": [known.name for known in self.slices],
            "skipped": self.skipped_names,
            "included": list(self.included),
            "included_times": {name: format_instant(at) for name, at in self.included_times.items()},
            "requeued": list(self.requeued),
            "foreign_commits": [commit.version for commit in self.foreign],
        }


def plan_rebuild(
    context: ProcessingContext,
    entity: Entity,
    start: RebuildStart,
    *,
    included: Sequence[AppliedSlice] = (),
    is_over_foreign: bool = False,
) -> RebuildPlan:
    """Return how an entity's table is built again from its slices; nothing is written.

    Slices are applied in the order in which they were, each with its recorded processing time. A slice that
    was processed more than once is applied where it was processed last. One that was skipped since then is
    left out.

    Args:
        context: The context of the processing.
        entity: The entity.
        start: Where the rebuild starts.
        included: Slices that wait, each of which is applied before those with a later processing time. Only a
            rebuild of all slices has some.
        is_over_foreign: Whether commits of other writers may be lost.

    Raises:
        UsageError: No slice was processed, or none from the start on.
        DataLossError: Commits of other writers would be lost, or files of the version to start with are gone.
        SliceError: Slices are gone from bronze, or have changed.
        MigrationError: The past versions of the entity can't be read.
    """
    chain = context.chain(entity)
    silver, app = chain.silver, chain.app
    state = observe_table(context.lake, silver)
    applied = _with_included(_in_order(chain), included)
    skipped = chain.skipped(applied)
    starts = (n for n, each in enumerate(applied) if each.item_id not in skipped and start.includes(each))
    first = next(starts, None)
    is_whole = start == RebuildStart()
    if first is None and applied and is_whole:
        raise _all_skipped(entity, applied)
    if first is None:
        raise UsageError(
            f"{entity.called} has no processed slice{start.words if applied else ''}",
            remedy=Phrase(Command("manifest", "ls", "--entity", entity.called), " lists the slices."),
        )
    base = None if is_whole else _base(entity, chain, applied[first])
    kept = () if is_whole else tuple(applied[:first])
    _check_not_reverted(entity, chain, kept)
    rest = applied[len(kept) :]
    again = [each for each in rest if each.item_id not in skipped]
    chosen, requeued = as_in_manifest(context, entity, again, takes_requeued=True)
    new = requeued.union(each.item_id for each in included)
    rebuild = rebuild_command(entity) if is_whole else None

    def advice(faulty: Sequence[AppliedSlice], changed: Sequence[AppliedSlice]) -> str:
        behind = list(dropwhile(lambda each: each.item_id != faulty[-1].item_id, chosen))[1:]
        keeping = _keeping(context, entity, chain, behind, frozenset(each.item_id for each in included))
        return Phrase(requeue_advice(entity, changed, rebuild), keeping)

    check_bronze(context, entity, chosen, advice)
    check_version(context, entity, base)
    since = (
        since_empty(chain.log)
        if is_whole
        else [each for each in chain.commits if base is None or each.version > base]
    )
    lost = check_foreign(entity, foreign_since(since, app), is_allowed=is_over_foreign)
    past = past_fingerprint(context.lake, entity) if base is None else None
    digest = plan_digest({"base": base, "entity": entity.model_dump(mode="json"), "past": past})
    return RebuildPlan(
        state,
        base,
        kept,
        known_slices(chosen, before=kept, strategy=entity.strategy, new=new),
        f"{app}/rebuild/{digest}",
        has_past=base is None,
        foreign=lost,
        skipped=tuple(skipped[each.item_id] for each in rest if each.item_id in skipped),
        included=tuple(each.name for each in included),
        requeued=_requeued(context, entity, applied),
        missing=() if state.version is None else tuple(missing_files(context.lake, silver, state.version)),
    )


def _requeued(context: ProcessingContext, entity: Entity, applied: Sequence[AppliedSlice]) -> tuple[str, ...]:
    """Return the names of requeued slices that wait, and that are not among those which the table holds.

    Their former processing changed no row, was undone, or failed.
    """
    prefix = f"{item_id(entity.places(context.lake.settings).bronze)}/"
    held = {each.item_id for each in applied}
    found = context.ledger.store.select(Query(verdicts=frozenset({Verdict.READY}), prefix=prefix))
    waiting = (item for item in found if item.verdict(context.application) is Verdict.READY)
    names = (slice_name(item) for item in waiting if item.revision > 1 and item.item_id not in held)
    return tuple(sorted(names, key=natural_key))


def _with_included(applied: Sequence[AppliedSlice], included: Sequence[AppliedSlice]) -> list[AppliedSlice]:
    """Return processed slices with others, each before the first of a later processing time.

    A slice of which the table has an earlier processing stands once.
    """
    again = {each.item_id for each in included}
    found = [each for each in applied if each.item_id not in again]
    for each in included:
        later = (n for n, one in enumerate(found) if one.at and each.at and one.at > each.at)
        found.insert(next(later, len(found)), each)
    return found


def _in_order(chain: SliceChain) -> list[AppliedSlice]:
    """Return all processed slices, each once, in the order in which they were last applied.

    A RESTORE of another program may have reverted the commit that applied some of them last, as a rebuild
    does for all: they keep the order that they have there.
    """
    once = each_once(sorted((*chain.slices, *chain.unlogged), key=lambda each: each.number))
    items = chain.store.read([each.item_id for each in once])
    tokens = {name: item.tokens.get(chain.application.key) for name, item in items.items()}
    places = {
        (each.item_id, each.number): (each.number, index)
        for _, slices in chain.logged
        for index, each in enumerate(slices)
    }

    def place(applied: AppliedSlice) -> tuple[int, int]:
        own = (applied.item_id, applied.number)
        # One that was requeued since has no number in the manifest.
        return places.get((applied.item_id, tokens.get(applied.item_id) or -1), places.get(own, (own[1], 0)))

    return sorted(once, key=place)


def _base(entity: Entity, chain: SliceChain, first: AppliedSlice) -> int | None:
    """Return the version that a table had before a slice.

    Raises:
        DataLossError: The log does not show it, or one commit holds it with slices before it.
    """
    for commit, slices in reversed(chain.held):
        if any(each.item_id == first.item_id for each in slices):
            if slices[0].item_id == first.item_id:
                return version_before(commit)
            raise DataLossError(
                f"version {commit.version} of {entity.called} holds {first.name} together with slices "
                "before it, so there is no version without it",
                remedy=f"Start with {slices[0].name}, or build the table from all slices.",
            )
    raise DataLossError(
        f"the log of {entity.called} does not show the commit of {first.name}",
        remedy="Start with a later slice, or build the table from all slices.",
    )


def _check_not_reverted(entity: Entity, chain: SliceChain, kept: Sequence[AppliedSlice]) -> None:
    """Check that the version to start with holds the slices before the start.

    Raises:
        DataLossError: A RESTORE has reverted the commit of one.
    """
    held = {each.item_id for each in chain.slices}
    committed = {each.item_id for _, slices in chain.logged for each in slices}
    gone = [each.name for each in kept if each.item_id in committed - held]
    if gone:
        raise DataLossError(
            f"{first_of(gone, MOST_NAMED)} of {entity.called} {'is' if len(gone) == 1 else 'are'} not in the "
            "table since it was restored, so that no version holds all slices before the start",
            remedy=Phrase(
                rebuild_command(entity).plus("--over-foreign"),
                " builds the table from all slices. Nothing was written.",
            ),
            details={"slices": gone},
        )


def _all_skipped(entity: Entity, applied: Sequence[AppliedSlice]) -> UsageError:
    """Return the error of a table whose slices were all skipped: there is nothing to build it from."""
    name = applied[-1].name
    unskip, called = command("unskip", called_name(entity.called, name)), entity.called
    return UsageError(
        f"every slice that the table of {entity.called} holds was skipped: nothing is left to build it from",
        remedy=Phrase(
            Phrase.joined(", then ", (unskip, Command("process", called), Command("undo", called, name))),
            f" takes the rows of {name} out",
            ", and so on, the newest first." if len(applied) > 1 else ".",
        ),
        details={"slices": [each.name for each in applied]},
    )


def _keeping(
    context: ProcessingContext,
    entity: Entity,
    chain: SliceChain,
    behind: Sequence[AppliedSlice],
    included: frozenset[str],
) -> str:
    """Return how to keep the rows of slices that can't be applied again, as the end of a remedy.

    Slices that wait are applied by a rebuild that starts with a later slice only if the table holds them.
    Otherwise those after them are undone, so that the next run takes all in their order.

    Args:
        context: The context of the processing.
        entity: The entity.
        chain: The slices of the table.
        behind: The slices behind those that can't be applied again, in the order of a rebuild.
        included: Ids of the slices that wait, and are to be applied, too.
    """
    order = [each.item_id for each in behind]
    if not included <= set(order):  # what is included comes before one that can't be applied
        return ""
    first = min(map(order.index, included), default=len(order))
    waiting = included - {each.item_id for each in chain.slices}
    if waiting and waiting != included:
        return ""
    after = (each for each in behind[first:] if each.item_id not in included)
    later = _first_start(context, entity, chain, islice(after, 1) if waiting else behind[: first + 1])
    if later is None:
        return ""
    started = Phrase(rebuild_command(entity).plus("--from", later))
    typed = Phrase(requeueing_undo(entity.called, later), ", then a run") if waiting else started
    return Phrase(f", or keep the rows before {later}: ", typed)


def _first_start(
    context: ProcessingContext, entity: Entity, chain: SliceChain, slices: Iterable[AppliedSlice]
) -> str | None:
    """Return the name of the first of some slices with which a rebuild can start; None if there is none."""
    for each in slices:
        try:
            check_version(context, entity, _base(entity, chain, each))
        except DataLossError:
            continue
        return each.name
    return None
