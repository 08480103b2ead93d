"""Operate the manifest's items: resolve, release, skip, unskip, requeue, accept. Each appends records.

Each function names one item. `select_items` finds those that an action on several is for, and
`requeue_items` requeues several in the right order.

Source: `processing-manifest.md`, "Use cases" (command post).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.due.facts import Effect
from lakewright.errors import Fault, SequenceConflict, StorageUnavailable, UsageError
from lakewright.errors.phrase import Command, Option, Phrase
from lakewright.manifest.applications import known_names, named_application, unknown_warnings
from lakewright.manifest.claim import COUNTER, raise_counter
from lakewright.manifest.item import Item
from lakewright.manifest.lock import Lock, command
from lakewright.manifest.record import ANYONE, Application, Record, State
from lakewright.manifest.record_feed import RecordFeed
from lakewright.manifest.store import Damage, Query
from lakewright.manifest.verdict import Verdict
from lakewright.slices.application import application_of
from lakewright.slices.audit import Repair, audit, repairs
from lakewright.slices.chain import counter_of
from lakewright.slices.deviations import effect_of
from lakewright.slices.discovery import called_name, item_id, natural_key, slice_name
from lakewright.slices.other_runs import strategy_of_jobs
from lakewright.spec.words import first_of
from lakewright.upkeep.relocation import Relocated, relocate
from lakewright.usecases.items import (
    Row,
    Rows,
    application_named,
    chosen_application,
    find_item,
    find_or_record_item,
    inventory_of,
    list_items,
    project_applications,
)

if TYPE_CHECKING:
    from lakewright.manifest.ledger import Ledger
    from lakewright.spec.models.entity import Entity


log = logging.getLogger(__name__)


MOST_NAMED = 10

_SHOWN = Phrase(Command("plan"), " shows what is due")


@dataclass(frozen=True, slots=True)
class Operated:
    """What an action on items did.

    Attributes:
        rows: Their new verdicts.
        notes: What the operator must know.
        later: Ids of later items that were already processed: processed again after requeued ones, or left in
            doubt.
    """

    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    later: tuple[str, ...] = ()


def _end_rewinds(app: App, items: Iterable[Item], author: str) -> None:
    """End undos and rebuilds that died, and whose entities process items: they may give these another state.

    Raises:
        LeaseHeld: An undo or a rebuild goes on that applies slices which were processed.
    """
    taken, rewinds = list(items), app.ledger.rewinds()
    for entity in app.project.entities.values() if rewinds else ():
        places = entity.places(app.project.lake)
        rewind = rewinds.get(counter_of(places.silver))
        if rewind is None:
            continue
        application = application_of(app.project.name, entity)
        is_processed = any(item.is_processed_by(application) for item in taken)
        prefix = item_id(places.bronze) + "/"
        if not app.ledger.is_rewinding(rewind):
            if is_processed or any(item.item_id.startswith(prefix) for item in taken):
                from lakewright.usecases.rewinding import end_rewind  # few need what processes slices

                end_rewind(app, entity, author=author)
        elif is_processed:
            raise rewind.error()


def resolve_item(app: App, text: str, *, author: str, reason: str) -> Operated:
    """Make a failed item ready again, with the current content of its slice.

    Raises:
        UsageError: The manifest has no such item, or it has not failed.
    """
    item = find_item(app, text)
    now = inventory_of(app).fingerprint_now(item)
    return _done(app, item, author, lambda ledger: ledger.resolve(item.item_id, reason, fingerprint=now))


def accept_item(app: App, text: str, *, author: str, reason: str) -> Operated:
    """Accept the present content of an item's slice without processing it again.

    Raises:
        UsageError: The manifest has no such item, or its slice is gone or has not changed.
        ItemLocked, ItemFailed: The item must be released or resolved first.
        LeaseHeld: An undo or a rebuild of the table goes on.
    """
    item = find_item(app, text)
    _end_rewinds(app, [item], author)
    now = inventory_of(app).fingerprint_now(item)
    if now is None:
        raise UsageError(
            f"the slice of {item.item_id} is not in bronze, so there is nothing to accept",
            remedy="Bring it back first. A slice that was processed may be removed.",
        )
    return _done(app, item, author, lambda ledger: ledger.accept(item.item_id, reason, fingerprint=now))


def release_item(app: App, text: str, *, is_forced: bool = False, author: str, reason: str) -> Operated:
    """Remove the stale lock of an item, or with `is_forced` any lock.

    Raises:
        UsageError: The manifest has no such item, or it is not locked.
        ItemLocked: The holder of the lock is alive.
    """
    item = find_item(app, text)
    return _done(app, item, author, lambda ledger: ledger.release(item.item_id, reason, is_forced=is_forced))


def skip_item(app: App, text: str, *, application: str | None = None, author: str, reason: str) -> Operated:
    """Skip an item for one application, or for all, so that later items continue.

    A slice in bronze that no run has seen yet is recorded first.

    Raises:
        UsageError: There is no such item or slice, or no such application.
        LeaseHeld: It was processed, and an undo or a rebuild of the table goes on.
    """
    item = find_or_record_item(app, text)
    _end_rewinds(app, [item], author)
    whom = _application(app, item, application, may_come_later=True)
    done = _done(app, item, author, lambda ledger: ledger.skip(item.item_id, reason, application=whom))
    was_begun = bool(item.processed) or item.revision > 1
    return replace(done, notes=(Phrase("it was processed before; ", _SHOWN),) if was_begun else ())


def unskip_item(app: App, text: str, *, application: str | None = None, author: str, reason: str) -> Operated:
    """Undo a skip: the item is ready again, as a new revision with the present content of its slice.

    Without an application, the skip for everyone is undone, or else the only one that there is.

    Raises:
        UsageError: The manifest has no such item, or there is no such application.
        LeaseHeld: It was processed, and an undo or a rebuild of the table goes on.
    """
    item = find_item(app, text)
    _end_rewinds(app, [item], author)
    whom = _application(app, item, application)
    skipped = {mark.application for mark in item.skipped}
    if application is None and len(skipped) == 1:
        (whom,) = skipped
    ledger = app.ledger_of(app.store, author)
    now: dict[str, Any] | None = None
    unread: tuple[str, ...] = ()
    try:
        now = inventory_of(app).fingerprint_now(item)
    except StorageUnavailable as error:
        unread = (f"its present content is not recorded, as it can't be read: {error.message}",)
    ready = _written(item, lambda: ledger.unskip(item.item_id, reason, application=whom, fingerprint=now))
    _, later = inventory_of(app).later_items(ready)
    notes = (Phrase("later slices are processed; ", _SHOWN),) if later else ()
    return Operated(_rows(app, ready), (*unread, *notes))


def select_items(
    app: App,
    action: str,
    states: Sequence[str] = (),
    *,
    entity: str | None = None,
    is_forced: bool = False,
) -> tuple[Row, ...]:
    """Return the items that an action on several is for, each once, in the order of their slices.

    Args:
        app: The project.
        action: One of `ACTIONS`.
        states: Verdicts and states of the items; by default those that the action is meant for.
        entity: Only slices of this entity.
        is_forced: For `release`: whether locks of living holders count too.

    Raises:
        UsageError: There is no such verdict or state.
        SpecError: There is no such entity.
    """
    words = states or tuple(verdict.value for verdict in ACTIONS[action].verdicts)
    rows = list_items(app, words, entity=entity, is_stale=action == "release" and not is_forced)
    by_id = {row.item.item_id: row for row in rows}
    if action == "accept":
        chosen = app.project.entities.values() if entity is None else (app.project.entity(entity),)
        changed = {item.item_id for item in inventory_of(app).changed(chosen)}
        by_id = {name: row for name, row in by_id.items() if name in changed}
    return tuple(sorted(by_id.values(), key=lambda row: (row.entity or "", natural_key(row.slice))))


def requeue_items(
    app: App,
    texts: Sequence[str],
    *,
    cascade: bool = False,
    late: bool = False,
    author: str,
    reason: str,
) -> Operated:
    """Requeue items, so that they are processed again with the current content of their slices.

    All are checked first; if one must not be requeued, none is. Slices in bronze that no run has seen yet are
    recorded first: a plan names late ones.

    Args:
        app: The project.
        texts: Ids of the items, their paths, or `entity/slice`.
        cascade: Later items that were already processed are processed again after them.
        late: They are processed even though later items were already processed.
        author: Who requeues them.
        reason: Why.

    Raises:
        UsageError: Both `cascade` and `late` are given, there is no such item or slice, it is gone from
            bronze, or later items were already processed and neither is given.
        LeaseHeld: One was processed, and an undo or a rebuild of the table goes on.
    """
    if cascade and late:
        raise UsageError(
            Phrase(
                *(Option("--cascade"), " processes later slices again after this one, "),
                *(Option("--late"), " leaves them as they are"),
            ),
            remedy="Give one of the two.",
        )
    inventory = inventory_of(app)
    items = {item.item_id: item for item in (find_or_record_item(app, text) for text in texts)}
    _end_rewinds(app, items.values(), author)
    later_of: dict[str, tuple[str, ...]] = {}
    entities: dict[str, Entity] = {}
    present: dict[str, dict[str, Any] | None] = {}
    gone: dict[str, Entity] = {}
    for item in items.values():
        entity, found = inventory.later_items(item)
        later = tuple(other for other in found if other not in items)
        refuses = entity is not None and entity.settings.late_slices != "end"
        if later and not cascade and not late and refuses:
            raise _later_error(entity, later)
        later_of[item.item_id] = later
        if entity is not None:
            again = [each for each in (item.item_id, *(later if cascade else ())) if each not in present]
            asked = app.store.read(again)
            present |= {each: inventory.fingerprint_now(asked[each]) for each in again}
            if present[item.item_id] is None:
                raise _gone_error(app, entity, item)
            if cascade:
                gone |= {each: entity for each in later if present[each] is None}
                later_of[item.item_id] = tuple(each for each in later if each not in gone)
            entities |= dict.fromkeys((each for each in again if each not in gone), entity)
    ledger = app.ledger_of(app.store, author)
    rows: list[Row] = []
    done: set[str] = set()
    for item in items.values():
        others = tuple(other for other in later_of[item.item_id] if other not in done) if cascade else ()
        requeue = partial(
            ledger.requeue,
            item.item_id,
            reason,
            names=inventory.names(item),
            fingerprint=present.get(item.item_id),
            allow_late=late,
            cascade=others,
            fingerprints={name: now for name in others if (now := present.get(name)) is not None},
        )
        done.update(others)
        rows += _rows(app, _written(item, requeue))
    in_doubt = tuple(dict.fromkeys(name for each in later_of.values() for name in each))
    overtaking = [items[each] for each, later in later_of.items() if later and not cascade]
    notes = (*_order_notes(app, overtaking, entities), *_gone_notes(app, gone))
    return Operated(tuple(rows), notes, in_doubt)


def _order_notes(app: App, items: Iterable[Item], entities: Mapping[str, Entity]) -> Iterator[str]:
    """Yield that items are applied after later slices, where that makes a difference."""
    for item in items:
        entity = entities[item.item_id]
        if effect_of(entity, strategy_of_jobs(app.project, entity)) is Effect.IN_ORDER:
            called = called_name(entity.called, item)
            yield f"{called}: it is applied after later slices: its older rows may become the current ones"


def _gone_notes(app: App, gone: Mapping[str, Entity]) -> Iterator[str]:
    """Yield that later slices, whose entities are given, are not processed again, as they are gone."""
    for item in app.store.read(list(gone)).values():
        yield (
            f"{called_name(gone[item.item_id].called, item)}: the slice is not in bronze, or not complete "
            "there, so it is not processed again; records of it may get the rows of earlier slices"
        )


def _gone_error(app: App, entity: Entity, item: Item) -> UsageError:
    """Return that a slice is not in bronze, or not complete: the next run would fail it."""
    return UsageError(
        f"{slice_name(item)} of {entity.called} is not in {entity.places(app.project.lake).bronze}, or not "
        "complete there",
        remedy="Bring it back first: a run has nothing else to process. Its rows in the table stay.",
    )


def _later_error(entity: Entity | None, later: Sequence[str]) -> UsageError:
    of = "" if entity is None else f" of {entity.name}"
    return UsageError(
        f"later slices{of} are processed, {len(later)} in all: {first_of(later, MOST_NAMED)}",
        remedy=Phrase(
            *("Give ", Option("--cascade"), " to process them again as well, or "),
            *(Option("--late"), " to apply this one after them. ", Command("plan"), " shows what is due."),
        ),
        details={"later": list(later)},
    )


def _written(item: Item, action: Callable[[], Item]) -> Item:
    """Return the item after an action on it, which is tried once more if the item has changed meanwhile.

    The action reads the item again: if another operator has done the same, its error says so.

    Raises:
        SequenceConflict: The item has changed during both attempts.
    """
    try:
        return action()
    except SequenceConflict:
        pass
    try:
        return action()
    except SequenceConflict as error:
        shown = command("show", item.item_id)
        error.remedy = Phrase(
            "Other programs write to this item now. ", shown, " shows its state; then try again."
        )
        raise


def _done(app: App, item: Item, author: str, action: Callable[[Ledger], Item]) -> Operated:
    """Return what an action on an item did, of which the author is recorded."""
    ledger = app.ledger_of(app.store, author)
    return Operated(_rows(app, _written(item, lambda: action(ledger))))


def _rows(app: App, item: Item) -> tuple[Row, ...]:
    return tuple(Rows(app).of(item))


def _application(app: App, item: Item, text: str | None, *, may_come_later: bool = False) -> Application:
    """Return the application that a skip is for: any, or the named one, with a warning if it is unknown.

    A program may be started only after its first item is skipped for it.
    """
    if text is None:
        return ANYONE
    try:
        return application_named(text, chain(project_applications(app), item.concerned))
    except UsageError:
        if not may_come_later or text.startswith(f"lakewright/{app.project.name}/"):
            raise  # the project declares its entities, so that one is misspelt
        named = named_application(text)
    known = known_names(app.store.standings(), project_applications(app))
    for warning in unknown_warnings([named], known):
        log.warning("%s", warning)
    return named


@dataclass(frozen=True, slots=True)
class Action:
    """What an operator can do with items.

    Attributes:
        act: Does it, and returns what was done.
        verdicts: The verdicts of the items that it selects unless other states are given.
    """

    act: Callable[..., Operated]
    verdicts: frozenset[Verdict]


ACTIONS: Mapping[str, Action] = {
    "resolve": Action(resolve_item, frozenset({Verdict.FAILED})),
    "release": Action(release_item, frozenset({Verdict.LOCKED})),
    "skip": Action(skip_item, frozenset({Verdict.READY})),
    "unskip": Action(unskip_item, frozenset({Verdict.SKIPPED})),
    "requeue": Action(requeue_items, frozenset({Verdict.PROCESSED})),
    "accept": Action(accept_item, frozenset({Verdict.PROCESSED, Verdict.SKIPPED})),
}


@dataclass(frozen=True, slots=True)
class ManifestCheck:
    """The result of a check.

    Attributes:
        found: Damage that the check found.
        repairs: The repairs of it, planned or made.
        left: Damage that remains after the repairs, if any were made.
        is_repaired: Whether the repairs were made.
    """

    found: Sequence[Damage]
    repairs: Sequence[Repair]
    left: Sequence[Damage]
    is_repaired: bool


def check_manifest(app: App, *, repairs_it: bool, author: str) -> ManifestCheck:
    """Check the manifest of the project.

    Nothing else should write to it during the check. Records are never changed: an item with an illegal
    record gets a new revision.

    Args:
        app: The project.
        repairs_it: Make the repairs, then check again.
        author: The author of the repairs.
    """
    found = tuple(audit(app.store))
    planned = tuple(repairs(inventory_of(app, author), found)) if found else ()
    if not (repairs_it and planned):
        return ManifestCheck(found, planned, found, is_repaired=False)
    for repair in planned:
        repair.apply()
    return ManifestCheck(found, planned, tuple(audit(app.store)), is_repaired=True)


class ManifestWatch:
    """Watches the manifest for new records and stale locks.

    Args:
        app: The project.
        states: Only records of these states. Without PROCESSING, stale locks are left out.
        application: Only records for this application: `name:instance`, or `name`.
        entity: Only slices of this entity.

    Raises:
        UsageError, SpecError: There is no such application or entity.
    """

    def __init__(
        self,
        app: App,
        states: frozenset[State] = frozenset(State),
        *,
        application: str | None = None,
        entity: str | None = None,
    ) -> None:
        self._app = app
        self._states = states
        self._application = chosen_application(app, application, entity)
        self._feed = RecordFeed(app.store, self._application)
        self._stale: frozenset[str] = frozenset()

    def news(self) -> Iterator[Record | Lock]:
        """Yield the records added since the last call, then each lock that has become stale, once."""
        for record in self._feed.new_records():
            if record.state in self._states:
                yield record
        if State.PROCESSING in self._states:
            yield from self._newly_stale()

    def _newly_stale(self) -> Iterator[Lock]:
        query = Query(application=self._application, verdicts=frozenset({Verdict.LOCKED}))
        stale = {
            lock.processing.record_id: lock
            for lock in self._app.ledger.stale_locks(self._app.store.select(query))
        }
        known, self._stale = self._stale, frozenset(stale)
        yield from (lock for record_id, lock in stale.items() if record_id not in known)


@dataclass(frozen=True, slots=True)
class Moved:
    """Items that were moved.

    Attributes:
        goal: The location that they are below now.
        items: Their new ids.
        faults: Why the other items could not be moved.
    """

    goal: str
    items: tuple[str, ...]
    faults: tuple[Fault, ...]


def move_items(app: App, old: str, new: str) -> Moved:
    """Copy the records of slices below one location to slices of the same names below another.

    This is for a lake that was moved or copied. The records below the old location are kept. The numbers of
    commits to the tables of the moved slices continue.

    Raises:
        UsageError: Both are the same location, or the manifest has no item below the old one.
    """
    source, goal = (item_id(place.rstrip("/")) for place in (old, new))
    if source == goal:
        raise UsageError(f"OLD and NEW are the same place: {source}", remedy="Name two places.")
    found = list(relocate(app.store, source, goal, app.ids))
    if not found:
        raise UsageError(
            f"the manifest has no item below {source}",
            remedy=Phrase(Command("manifest", "ls"), " lists the items."),
        )
    moved = [each for each in found if each.fault is None]
    _continue_numbers(app, moved)
    return Moved(
        goal,
        items=tuple(each.new for each in moved),
        faults=tuple(each.fault for each in found if each.fault is not None),
    )


def _continue_numbers(app: App, moved: Sequence[Relocated]) -> None:
    """Raise the counters of the tables of moved slices to the numbers that were given where they were."""
    for entity, places in app.placed_entities():
        here, application = f"{item_id(places.bronze)}/", application_of(app.project.name, entity)
        own = [each for each in moved if each.new.startswith(here)]
        counters = {name for each in own for name in each.counters}
        items = app.store.read([each.new for each in own]).values()
        given = [item.tokens.get(application.key, 0) for item in items]
        seen = app.store.look_up([], [(COUNTER, name) for name in counters]).documents.values()
        last = max((*given, *(document.value["last"] for document in seen)), default=0)
        if last:
            raise_counter(app.store, counter_of(places.silver), last)
