"""An entity's pending slices: found in bronze, recorded in the manifest, and sorted by what may be processed.

Source: `processing-manifest.md`, "Item" and "State"; that a held slice holds back only the slices that must
follow it is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import filterfalse
from typing import TYPE_CHECKING

from lakewright.due.facts import Effect
from lakewright.due.slices import Standing, line_up
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.applications import known_names, unknown_warnings
from lakewright.manifest.item import Item
from lakewright.manifest.ledger import Takeover
from lakewright.manifest.lock import command, failed_error, invalid_error, locked_error
from lakewright.manifest.record import Application
from lakewright.manifest.verdict import Verdict
from lakewright.plan.reason import Code, note
from lakewright.slices.application import applications_before, awaited_of
from lakewright.slices.chain import OPEN, Place, place_of, processed_items
from lakewright.slices.deviations import NOTHING, Deviations, effect_of, find_deviations
from lakewright.slices.discovery import (
    called_name,
    item_id,
    list_bronze,
    natural_key,
    slice_name,
    without_unsettled,
)
from lakewright.slices.log_recovery import record_log, unrecorded_items
from lakewright.slices.lost_table import former_name_error, moved_lake_error
from lakewright.slices.time_check import is_late_allowed
from lakewright.spec.reason import Reason

if TYPE_CHECKING:
    from lakewright.errors import LakewrightError
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.context import ProcessingContext, SliceSelection
    from lakewright.spec.models.entity import Entity


COMPARED = 8
"""Bytes of a slice that is compared with its table which are as much work as a byte of one that is loaded.

Its rows need not be hashed, which is what Java's second compiler pays off for (`spark.conf.LONG_WORK`): with
both compilers, 270 MiB of Parquet of which 1 % changed took 54 s of processor time; with the first one, 34 s.
"""


@dataclass(frozen=True, slots=True)
class Pending:
    """An entity's items that an application has not finished, in the order of their slices.

    Attributes:
        ready: Items that may be processed now, one after the other.
        waiting: Items that must wait for `held`.
        held: The first item that holds back those after it, or None.
        late: Ids of ready items that are older than one already processed.
        deviations: How bronze deviates from what the manifest has recorded.
        others: Items that are left to other targets and instances, and are ready or wait.
        awaited: The first item that another application must process before the entity; it and those after
            it are among `waiting`.
        waits_for: What is awaited; empty if nothing is.
        unrecorded: Items as a run first records them from the table's log, as the manifest lacks slices or
            rewinds of the table; empty if that was done.
    """

    ready: tuple[Item, ...] = ()
    waiting: tuple[Item, ...] = ()
    held: Item | None = None
    late: frozenset[str] = frozenset()
    deviations: Deviations = NOTHING
    others: tuple[Item, ...] = ()
    awaited: Item | None = None
    waits_for: tuple[Reason, ...] = ()
    unrecorded: tuple[Item, ...] = ()

    def taken_by(self, selection: SliceSelection) -> Pending:
        """Return the items that a selection takes; those it leaves are in `others`.

        A locked or failed item that is not taken only counts if an item that is taken waits for it.
        """
        if not selection.is_limited:
            return self
        ready = tuple(item for item in self.ready if selection.takes(slice_name(item)))
        waiting = tuple(item for item in self.waiting if selection.takes(slice_name(item)))
        is_held = self.held is not None and (waiting or selection.takes(slice_name(self.held)))
        others = tuple(item for item in (*self.ready, *self.waiting) if not selection.takes(slice_name(item)))
        return replace(
            self,
            ready=ready,
            waiting=waiting,
            held=self.held if is_held else None,
            awaited=self.awaited if waiting else None,
            others=(*self.others, *others),
            unrecorded=tuple(item for item in self.unrecorded if selection.takes(slice_name(item))),
        )

    def all_waiting(self) -> Pending:
        """Return the items with those that are ready among those that wait."""
        return replace(self, ready=(), waiting=(*self.ready, *self.waiting))

    def overtaken(self) -> tuple[Item, ...]:
        """Return the items left to others that will be late, because a newer one is ready."""
        if not self.ready:
            return ()
        last = natural_key(slice_name(self.ready[-1]))
        return tuple(item for item in self.others if natural_key(slice_name(item)) < last)


def find_pending(
    context: ProcessingContext, entity: Entity, *, is_recorded: bool = True, looks_at_log: bool = True
) -> Pending:
    """Return an entity's pending items, limited to the context's selection.

    Args:
        context: The context of the processing.
        entity: The entity.
        is_recorded: Whether slices that the manifest does not know are recorded there; otherwise they are
            only treated as if they were.
        looks_at_log: Whether the table's log is asked for what the manifest lacks.

    Raises:
        LakeMoved: The slices were processed under another place, or into the table under another name.
    """
    chain = context.chain(entity)
    listing = list_bronze(chain.folder, context.lake)
    listing = without_unsettled(listing, context.options.settle, context.clock())
    slices = listing.slices
    names = {each.name for each in slices}
    moved = moved_lake_error(chain, lambda: names)
    if moved is None and slices:
        moved = former_name_error(chain)
    if moved is not None:
        raise moved
    unrecorded: dict[str, Item] = {}
    if is_recorded:
        found = context.ledger.discover(chain.discovered(slices), run_id=context.holder.run_id)
        items = {item.item_id: item for item in (*found.new, *found.known)}
        items |= record_log(context, entity, items)
    else:
        items = chain.in_bronze(slices)
        unrecorded = unrecorded_items(chain, items.values()) if looks_at_log else {}
        items |= unrecorded
    selection = context.options.selection
    gone = _add_open_items(chain, items)
    if slices and effect_of(entity, context.strategy_for(entity)) is Effect.LAST:
        gone = tuple(name for name in gone if natural_key(name) > natural_key(slices[-1].name))
    deviations = find_deviations(chain, listing, items, gone=gone, takes=selection.takes)
    takeable = _takeable(context, items.values())
    before = applications_before(entity)
    # The last processed slice matters only to those that are ready.
    is_ready = any(item.verdict(context.application) is Verdict.READY for item in items.values())
    last = chain.last_processed(items) if is_ready else None
    pending = sort_pending(
        items.values(),
        context.application,
        takeable=takeable,
        after=before,
        last=last,
        to_come={*listing.unsettled, *gone},
    )
    pending = _left_to_apply(context, entity, pending)
    pending = replace(
        pending,
        deviations=deviations,
        unrecorded=tuple(sorted(unrecorded.values(), key=place_of)),
    )
    pending = pending.taken_by(selection)
    if pending.awaited is not None:
        pending = replace(pending, waits_for=_awaited_reasons(context, pending, pending.awaited, before))
    sizes = ((item.fingerprint or {}).get("size") for item in pending.ready)
    size = sum(int(size or 0) for size in sizes)
    is_compared = len(pending.ready) == 1 and chain.first_processed is not None
    context.lake.expect(entity.name, size // COMPARED if is_compared else size)
    return pending


def _add_open_items(chain: SliceChain, items: dict[str, Item]) -> tuple[str, ...]:
    """Add items of the entity that are not finished, including those whose slices are gone.

    Items without a fingerprint are not added until their slice is in bronze.

    Returns:
        Names of slices that must be processed again, but are gone, in order. An item of the first revision
        is not one of them: another application has announced it, and its slice is still to come.
    """
    gone = []
    for item in chain.items(*OPEN):
        is_awaited = item.verdict(chain.application) is Verdict.READY and item.fingerprint is None
        if not is_awaited:
            items.setdefault(item.item_id, item)
        elif item.item_id not in items and item.revision > 1:
            gone.append(slice_name(item))
    return tuple(sorted(gone, key=natural_key))


def _left_to_apply(context: ProcessingContext, entity: Entity, pending: Pending) -> Pending:
    """Return pending items without the late ones that `apply` puts in their places, or leaves out."""
    if entity.settings.late_slices not in ("place", "skip"):
        return pending
    late = (item for item in pending.ready if item.item_id in pending.late)
    left = tuple(item for item in late if not is_late_allowed(context, entity, item))
    return replace(pending, ready=tuple(item for item in pending.ready if item not in left), others=left)


def _awaited_reasons(
    context: ProcessingContext, pending: Pending, awaited: Item, after: tuple[Application, ...]
) -> tuple[Reason, ...]:
    """Return what slices wait for; an application without any record may be misspelt, so that is said."""
    missing = awaited_of(awaited, after)
    number = len(pending.waiting)
    first, applications = slice_name(pending.waiting[0]), list(map(str, missing))
    params = {"number": number, "slice": first, "applications": applications}
    warnings = unknown_warnings(missing, known_names(context.ledger.store.standings()))
    return Reason(Code.WAITS_FOR if number == 1 else Code.WAIT_FOR, params), *map(note, warnings)


def sort_pending(
    items: Iterable[Item],
    application: Application,
    *,
    takeable: frozenset[str] = frozenset(),
    after: tuple[Application, ...] = (),
    last: Place | None = None,
    to_come: Collection[str] = (),
) -> Pending:
    """Return which of an entity's items are ready for an application, which wait, and what they wait for.

    Args:
        items: Items of one entity, in any order.
        application: The application.
        takeable: Ids of locked items whose lock may be taken over; they count as ready.
        after: Applications that must have processed an item first.
        last: The place of the last processed slice, if it may not be among the items.
        to_come: Names of slices that are still being written, or are to be processed again and are gone:
            processed before them, those after them would make them late.
    """
    found, unwritten = list(items), set(map(natural_key, to_come))
    done = (place_of(item) for item in found if item.verdict(application) is Verdict.PROCESSED)
    newest = max((*done, *(() if last is None else (last,))), default=None)
    until = min((place for place in unwritten if newest is None or place > newest), default=None)
    still_open = (
        item for item in found if item.verdict(application) is Verdict.READY or item.holds_back(application)
    )

    def is_free(item: Item) -> bool:
        return item.blocked is None or item.item_id in takeable

    def is_held(item: Item, _: bool) -> bool:
        place = place_of(item)
        is_unwritten = place in unwritten or (until is not None and place > until)
        return is_unwritten or not is_free(item) or bool(awaited_of(item, after))

    line: dict[Standing, list[Item]] = {standing: [] for standing in Standing}
    for item, standing in line_up(still_open, place_of, newest, is_held):
        line[standing].append(item)
    late, held = line[Standing.LATE], line[Standing.HELD]
    return Pending(
        ready=(*late, *line[Standing.DUE]),
        waiting=tuple(filter(is_free, (*held, *line[Standing.WAITS]))),
        held=next(filterfalse(is_free, held), None),
        late=frozenset(item.item_id for item in late),
        awaited=next((item for item in filter(is_free, held) if awaited_of(item, after)), None),
    )


def choose_slices(
    context: ProcessingContext, entity: Entity, pending: Pending, name: str | None
) -> tuple[Item, ...]:
    """Return the items to process: all that are ready, or the named one; none if that one must wait.

    Raises:
        UsageError: There is no slice of that name, or it is processed or skipped already.
        OperatorError: The slice is locked or failed.
    """
    if name is None:
        return pending.ready
    late = (item for item in pending.others if item.item_id in pending.late)
    named = next((item for item in (*pending.ready, *late) if slice_name(item) == name), None)
    if named is not None:
        earlier = [slice_name(item) for item in pending.ready if place_of(item) < place_of(named)]
        if earlier:
            context.warn(f"{name} is processed before {', '.join(earlier)}, which will then be late")
        return (named,)
    if any(slice_name(item) == name for item in pending.waiting):
        return ()
    raise _not_ready_error(context, name, entity)


def _not_ready_error(context: ProcessingContext, name: str, entity: Entity) -> LakewrightError:
    slices = entity.places(context.lake.settings).slices
    item = context.ledger.item(item_id(slices.place(name)))
    verdict = item.verdict(context.application)
    if verdict is Verdict.UNKNOWN:
        return UsageError(
            f"there is no slice {name} in {slices.pattern}",
            remedy=Phrase("Slices are listed by ", Command("manifest", "ls"), "."),
        )
    if verdict in {Verdict.PROCESSED, Verdict.SKIPPED}:
        return UsageError(
            f"the slice {name} is {verdict} for {context.application} already",
            remedy=Phrase("To process it again: ", command("requeue", called_name(entity.called, name)), "."),
        )
    return held_error(context, entity, item)


def holding_error(context: ProcessingContext, entity: Entity, pending: Pending) -> LakewrightError | None:
    """Return the error that says what holds back an entity's slices, or None if nothing does."""
    return None if pending.held is None else held_error(context, entity, pending.held)


def held_error(context: ProcessingContext, entity: Entity, item: Item) -> LakewrightError:
    """Return the error that says who or what holds an item."""
    lock = context.ledger.lock(item)
    name = called_name(entity.called, item)
    if item.problem is not None:
        return invalid_error(item, name)
    if lock is not None:
        return locked_error(lock, name)
    failed = item.failed
    is_others = failed is not None and failed.application.key != context.application.key
    owner = str(failed.application) if failed is not None and is_others else None
    error = failed_error(item, name=name, run_id=context.holder.run_id, owner=owner)
    error.subject = slice_name(item)
    return error


def requeue_processed(context: ProcessingContext, entity: Entity, reason: str) -> tuple[str, ...]:
    """Requeue every slice that the application has processed, and reset its watermarks.

    This follows the removal of the entity's rows from silver, so that BUILD starts over. Both kinds of record
    state the reason.

    Returns:
        Names of slices that stay processed because another application has processed them too: a new revision
        would be processed by that one again.

    Raises:
        ItemLocked: One of the slices is being processed; those before it are requeued.
    """
    kept: list[str] = []
    prefix = context.chain(entity).prefix
    for item in list(processed_items(context.ledger.store, context.application, prefix)):
        others = [mark for mark in item.processed if not mark.application.covers(context.application)]
        if others:
            kept.append(slice_name(item))
        else:
            # Without a fingerprint: files may be removed and delivered again, and the new files are then
            # the slice.
            context.ledger.requeue(item.item_id, reason, fingerprint={}, emptied_by=context.holder.run_id)
    for column in context.ledger.watermarks.last(context.application):
        context.ledger.set_watermark(context.application, column, None, reason)
    return tuple(kept)


def _takeable(context: ProcessingContext, items: Iterable[Item]) -> frozenset[str]:
    """Return the ids of items with a stale lock, if runs may take over such locks."""
    if context.takeover is not Takeover.AUTO:
        return frozenset()
    return frozenset(lock.item_id for lock in context.ledger.stale_locks(items))
