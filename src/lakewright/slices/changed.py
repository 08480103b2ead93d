"""Processed slices that have changed: found in bronze, and requeued if the entity asks for it.

Source: `processing-manifest.md`, "Use cases" (command post). `changed_slices` is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.lock import command
from lakewright.manifest.record import Author, Draft, State
from lakewright.manifest.store import Query
from lakewright.plan.other_runs import commands_of
from lakewright.slices.chain import archived_for_undo
from lakewright.slices.deviations import (
    MOST_NAMED,
    CorrectedSlices,
    Deviations,
    Repetition,
    changed_items,
    later_processed,
)
from lakewright.slices.discover import called_name, discovered, natural_key, slice_name
from lakewright.slices.late_advice import late_slices_in
from lakewright.slices.processed import continued_in, place_of
from lakewright.slices.processing_time import MOST_TYPED
from lakewright.slices.time_check import rebuild_with, repetition_commands, requeueing_undo
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import first_of

if TYPE_CHECKING:
    from lakewright.manifest.discovery import DiscoveredSlice
    from lakewright.slices.bronze import Slice
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.discover import Listing
    from lakewright.spec.models.entity import Entity

__all__ = [
    "find_deviations",
    "is_folder_missed",
    "is_requeued_here",
    "items_in_bronze",
    "new_item",
    "requeue_changed",
    "vanished_slices",
]


def find_deviations(
    context: ProcessingContext, entity: Entity, listing: Listing, items: Mapping[str, Item]
) -> Deviations:
    """Return how bronze deviates from the recorded items of the slices that it holds."""
    chain = context.chain(entity)
    takes = context.options.selection.takes
    verdicts = [(item, item.verdict(context.application)) for item in items.values()]
    skipped = [item for item, verdict in verdicts if verdict is Verdict.SKIPPED]
    found = Deviations(
        entity=entity.called,
        bronze=chain.bronze,
        listing=listing,
        skipped=sum(takes(slice_name(item)) for item in skipped),
        vanished=vanished_slices(chain, items).count,
        is_lost=not listing.exists and is_folder_missed(chain),
    )
    if entity.settings.changed_slices == "ignore":
        return found
    processed = (item for item, verdict in verdicts if verdict is Verdict.PROCESSED)
    changed = sorted(changed_items(processed, listing.slices), key=place_of)
    corrected = changed_items(skipped, listing.slices)
    return replace(
        found,
        changed=tuple(changed),
        repetition=_repetition(context, entity, found, changed, items) if changed else None,
        corrected=_corrected(context, entity, found, corrected, items),
    )


def _corrected(
    context: ProcessingContext,
    entity: Entity,
    deviations: Deviations,
    corrected: Iterable[Item],
    items: Mapping[str, Item],
) -> CorrectedSlices | None:
    """Return skipped slices that have changed, with what has the first of them processed; None for none."""
    changed = tuple(sorted(corrected, key=place_of))
    if not changed:
        return None
    number = len(changed[:MOST_TYPED])
    it = "it" if len(changed) == 1 else "them" if number == len(changed) else f"the first {number}"
    first = changed[:MOST_TYPED]
    jobs = _jobs(context, list(map(slice_name, first)))
    later = later_processed(first[0], items.values(), context.application)
    late = late_slices_in(context, entity, first)
    is_older, said = False, ""
    if not later:
        requeue = command("requeue", *late.typed)
        said = Phrase(f"To process {it}: ", requeue, _then(jobs), ".")
    elif late.rebuild is not None:
        unskip, after = command("unskip", *late.typed), slice_name(later[0])
        place = "its place" if len(first) == 1 else "their places"
        last: tuple[Command, ...] = (late.rebuild,)
        if _archived_for_undo(context, entity, deviations, after) == ():
            runs = _jobs(context, list(map(slice_name, (*first, *later))))
            last = (requeueing_undo(entity.called, after), *runs)
        said = Phrase(
            f"To put {it} in {place}: ",
            unskip,
            ", then, before the next run, ",
            last[0],
            _then(last[1:]),
            ".",
        )
    elif late.command == late.requeue:
        is_older = not late.is_safe
        said = Phrase(f"To process {it}: ", late.requeue, _then(jobs), f"; that {late.effect}.")
    else:
        said = f"Later slices are processed, whose rows stand for {it}: nothing need be processed."
    return CorrectedSlices(entity.called, changed, said, is_older)


def _then(commands: Iterable[Command]) -> str:
    """Return commands that are typed after others, as the end of a sentence."""
    return Phrase(*(part for typed in commands for part in (", then ", typed)))


def _archived_for_undo(
    context: ProcessingContext, entity: Entity, deviations: Deviations, name: str
) -> tuple[str, ...] | None:
    """Return the gone slices that an undo needs; None if none is gone, as a rebuild then applies all."""
    return archived_for_undo(context.chain(entity), name, deviations.listing) if deviations.vanished else None


def _repetition(
    context: ProcessingContext,
    entity: Entity,
    found: Deviations,
    changed: Sequence[Item],
    items: Mapping[str, Item],
) -> Repetition:
    """Return how changed slices are processed again: at their own times if a run would refuse these."""
    again, names = _again(context, entity, changed, items), list(map(slice_name, changed))
    typed, it = [called_name(entity.called, name) for name in names], "it" if len(names) == 1 else "them"
    jobs, words = _jobs(context, again), f"process {it} again with"
    processes = repetition_commands(context, entity, again)
    overtakes = _overtakes(context, entity, changed, items, has_archived=found.vanished > 0)
    if processes is not None and entity.strategy is Strategy.HISTORIC:
        needed = _archived_for_undo(context, entity, found, names[0])
        if needed is None:  # a rebuild applies all slices, also those that are gone
            requeue, rebuild = command("requeue", *typed).plus("--late"), rebuild_with(entity.called, names)
            both = Phrase(requeue, ", then ", rebuild, ", which keeps the slices' own times")
            return Repetition((requeue, rebuild), Phrase(f"{words} ", both))
        undo = requeueing_undo(entity.called, names[0])
        if needed:
            archived = first_of(needed, MOST_NAMED)
            words = f"bring {archived} back first, which the undo needs, and {words}"
        return Repetition((undo, *jobs), Phrase(f"{words} ", undo, _then(jobs)), overtakes)
    requeue = _requeue_command(context, entity, changed, items)
    if processes is not None:
        return Repetition((requeue,), Phrase(f"{words} ", requeue, ", then with later times ", processes))
    note = overtakes
    if context.strategy_for(entity) is not Strategy.FULL and not entity.settings.delete_missing:
        note += Phrase(
            " Records that only the former content had stay when it is processed again; ",
            requeueing_undo(entity.called, names[0]),
            " instead takes them out.",
        )
    if jobs and entity.settings.changed_slices == "requeue":
        return Repetition(jobs, Phrase(f"{words} ", Phrase.joined(" and ", jobs)), note)
    return Repetition((requeue, *jobs), Phrase(f"{words} ", requeue, _then(jobs)), note)


def is_folder_missed(chain: SliceChain) -> bool:
    """Return whether slices of a bronze folder are recorded, so that it has been there.

    A slice that another application has only announced does not count.
    """
    verdicts = frozenset({Verdict.PROCESSED, Verdict.READY, Verdict.FAILED})
    query = Query(application=chain.application, verdicts=verdicts, prefix=chain.prefix)
    return any(item.fingerprint is not None for item in chain.store.select(query))


@dataclass(frozen=True, slots=True)
class VanishedSlices:
    """Processed slices that are no longer in bronze.

    Attributes:
        count: Their number, for which they are not read.
        names: Their names, in no order, read as they are asked for.
    """

    count: int
    names: Iterable[str] = ()


def vanished_slices(chain: SliceChain, present: Mapping[str, Item]) -> VanishedSlices:
    """Return the slices that an application processed, but that are not among the items in bronze, by id.

    Items of a place that the lake was moved from don't count if their slices have items in bronze.
    """
    store, application = chain.store, chain.application
    there = sum(1 for item in present.values() if item.verdict(application) is Verdict.PROCESSED)
    recorded = store.counts().get((application, Verdict.PROCESSED), 0)
    if recorded > there:  # the items may be as they are once a run has recorded what the table's log tells
        now = store.read(list(present)).values()
        there = max(there, sum(1 for item in now if item.verdict(application) is Verdict.PROCESSED))
    if recorded <= there:
        return VanishedSlices(0)
    query = Query(application=application, verdicts=frozenset({Verdict.PROCESSED}))
    elsewhere = [each for each in store.candidates(query) if not each.startswith(chain.prefix)]
    processed = (i for i in store.read(elsewhere).values() if i.verdict(application) is Verdict.PROCESSED)
    continued = continued_in(store, (item.item_id for item in processed), chain.bronze)
    known = present.keys() | continued.keys()
    gone = (slice_name(item) for item in store.select(query) if item.item_id not in known)
    return VanishedSlices(recorded - there - len(continued), gone)


def _requeue_command(
    context: ProcessingContext, entity: Entity, changed: Sequence[Item], items: Mapping[str, Item]
) -> Command:
    """Return the command that has changed slices processed again, with those after them if needed.

    Slices that are ready count too: the run that names the command may have processed them by its end.
    Processed ones that are no longer in bronze can't be processed again, so that what comes before is late.
    """
    names = [called_name(entity.called, item) for item in changed]
    if entity.settings.late_slices == "apply":
        return command("requeue", *names)
    first, last_here = place_of(changed[0]), max(map(place_of, items.values()))
    last = context.chain(entity).last_processed(items)
    if last is not None and last > last_here:
        return command("requeue", *names).plus("--late")
    is_first = last_here > first
    return command("requeue", names[0]).plus("--cascade") if is_first else command("requeue", *names)


def _overtakes(
    context: ProcessingContext,
    entity: Entity,
    changed: Sequence[Item],
    items: Mapping[str, Item],
    *,
    has_archived: bool,
) -> str:
    """Return what changed slices do to rows of later ones if they are applied after them.

    It is a sentence that follows others, with the other way, a rebuild; it includes all that are requeued.
    Empty if they do nothing to them.
    """
    if entity.settings.late_slices != "apply":
        return ""
    later = later_processed(changed[0], items.values(), context.application)
    if all(each in changed for each in later):
        return ""
    found = late_slices_in(context, entity, changed)
    if found.warning is None:
        return ""
    one = len(changed) == 1
    told = f" Processing {'it' if one else 'them'} again {found.overwrites}"
    if found.rebuild is None or has_archived:  # a rebuild applies all slices
        return f"{told}."
    placed = "it in its place" if one else "them in their places"
    requeue = _requeue_command(context, entity, changed, items)
    return Phrase(f"{told}; ", requeue, ", then ", found.rebuild, f" instead puts {placed}.")


def _again(
    context: ProcessingContext, entity: Entity, changed: Sequence[Item], items: Mapping[str, Item]
) -> list[str]:
    """Return the names of the slices that are processed again if the changed ones are, in order."""
    names = list(map(slice_name, changed))
    if entity.settings.late_slices == "apply":
        return names
    first = natural_key(names[0])
    later = {
        slice_name(i) for i in items.values() if natural_key(slice_name(i)) > first and _is_done(context, i)
    }
    return sorted({names[0], *later}, key=natural_key)


def _is_done(context: ProcessingContext, item: Item) -> bool:
    """Return whether an item is processed by the end of the run, which takes those that are ready."""
    is_taken = context.options.selection.takes(slice_name(item))
    is_ready = item.verdict(context.application) is Verdict.READY
    return item.is_processed_by(context.application) or (is_taken and is_ready)


def _jobs(context: ProcessingContext, names: Sequence[str]) -> tuple[Command, ...]:
    """Return the commands of the runs that take slices; none if this run takes them all."""
    options = context.options
    return () if all(map(options.selection.takes, names)) else commands_of(options.other_runs(names))


def is_requeued_here(context: ProcessingContext, entity: Entity, deviations: Deviations) -> bool:
    """Return whether this run requeues changed slices: the entity asks for it, and it takes the first one.

    Another run would leave the requeued slices, and make them late by processing newer ones.
    """
    if not deviations.changed or entity.settings.changed_slices != "requeue":
        return False
    return context.options.selection.takes(slice_name(deviations.changed[0]))


def requeue_changed(
    context: ProcessingContext,
    entity: Entity,
    deviations: Deviations,
    items: Mapping[str, Item],
    *,
    is_recorded: bool,
) -> tuple[Deviations, dict[str, Item]]:
    """Requeue changed slices, and those after them unless late slices are applied; return the new items."""
    first, changed = deviations.changed[0], deviations.changed
    is_alone = entity.settings.late_slices == "apply"
    later = () if is_alone else later_processed(first, items.values(), context.application)
    again = changed if is_alone else (first, *later)
    found = {
        each.item_id: each
        for each in discovered(deviations.listing.slices, context.application, entity.called)
        if any(item.item_id == each.item_id for item in again)
    }
    if is_recorded:
        fingerprints = {name: each.fingerprint for name, each in found.items()}
        reason = f"changed after it was processed: {', '.join(map(slice_name, changed[:MOST_NAMED]))}"
        for item in changed if is_alone else (first,):
            context.ledger.requeue(
                item.item_id,
                reason,
                fingerprint=fingerprints[item.item_id],
                cascade=tuple(other.item_id for other in later),
                fingerprints=fingerprints,
            )
        new = dict(context.ledger.store.read([item.item_id for item in again]))
    else:
        new = {name: new_item(each) for name, each in found.items()}
    names = tuple(map(slice_name, again))
    return replace(deviations, changed=(), repetition=None, requeued=names), {**items, **new}


def items_in_bronze(chain: SliceChain, slices: Iterable[Slice]) -> dict[str, Item]:
    """Return the items of slices by id; those that the manifest does not know are as if just recorded."""
    new = {each.item_id: new_item(each) for each in chain.discovered(slices)}
    return {**new, **chain.store.read(list(new))}


def new_item(found: DiscoveredSlice) -> Item:
    """Return the item of a slice as if it had just been recorded."""
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
