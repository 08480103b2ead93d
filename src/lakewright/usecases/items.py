"""Items of the manifest as users see them: find, list and show them, one row for each application."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.applications import known_names, named_application, unknown_warnings
from lakewright.manifest.item import Item, Mark
from lakewright.manifest.lock import (
    Lock,
    command,
    failure_words,
    recovery_advice,
    recovery_command,
    stale_advice,
)
from lakewright.manifest.plain_values import document_of
from lakewright.manifest.readiness import BY_ARRIVAL, Readiness
from lakewright.manifest.record import ANYONE, Application, Record, State
from lakewright.manifest.settings import is_taken_over
from lakewright.manifest.standing import standing_of
from lakewright.manifest.store import Query
from lakewright.manifest.verdict import Verdict
from lakewright.slices.application import application_of, applications_before, awaited_of
from lakewright.slices.discovery import called_name, item_id, natural_key, slice_name
from lakewright.slices.inventory import Differences, Inventory
from lakewright.slices.pending_slices import sort_pending
from lakewright.spec.suggestions import suggestion

BLOCKING = frozenset(verdict for verdict in Verdict if verdict.is_blocking)


@dataclass(frozen=True, slots=True)
class Row:
    """An item's verdict for one application.

    Attributes:
        waits_for: The id of the item that must be finished first, or the applications that must be, if any.
        name: The name of the entity that the verdict is for, if the project declares it.
        short_name: `entity/slice`, if commands find the item by it.
        is_taken_over: Whether runs take over stale locks.
    """

    item: Item
    application: Application
    verdict: Verdict
    lock: Lock | None = None
    waits_for: str | None = None
    name: str | None = None
    short_name: str | None = None
    is_taken_over: bool = True

    @property
    def mark(self) -> Mark | None:
        """The record that the verdict comes from, if the item still has it."""
        if self.verdict is Verdict.LOCKED:
            return self.item.processing
        if self.verdict is Verdict.FAILED:
            return self.item.failed
        done = self.item.processed if self.verdict is Verdict.PROCESSED else self.item.skipped
        matching = [mark for mark in done if mark.application.covers(self.application)]
        return matching[-1] if matching else self.item.resolved or self.item.new

    @property
    def since(self) -> datetime | None:
        """When the item got this verdict."""
        return self.mark.since if self.mark is not None else self.item.since

    @property
    def trigger(self) -> str | None:
        """The trigger that started the run that gave the item this verdict, if one did."""
        named = self.mark.note.get("trigger") if self.mark is not None else None
        return None if named is None else str(named)

    @property
    def slice(self) -> str:
        """The slice's name."""
        return slice_name(self.item)

    @property
    def entity(self) -> str | None:
        """The entity that the slice was recorded for, or is known to be one of."""
        if self.name is not None:
            return self.name
        named = self.item.new.note.get("entity") if self.item.new is not None else None
        return None if named is None else str(named)

    @property
    def owner(self) -> str:
        """The entity if the verdict is for it or for everyone, else the application that it is for."""
        is_of_entity = self.application.is_of_entity or self.application == ANYONE
        return (self.entity if is_of_entity else None) or str(self.application)

    @property
    def is_stale(self) -> bool:
        """Whether the item's lock is stale."""
        return self.lock is not None and self.lock.is_stale

    @property
    def typed(self) -> str:
        """What commands call the item: `entity/slice` if that is known to name it, else its id."""
        return self.short_name or self.item.item_id

    @property
    def next_command(self) -> Command | None:
        """The command that lets a failed, stale or damaged item continue, or None if there is none."""
        if self.lock is not None:
            return command("release", self.typed) if self.is_stale else None
        if self.item.problem is not None:
            return command("show", self.typed)
        return None if self.item.failed is None else recovery_command(self.item, self.typed)

    @property
    def advice(self) -> str | None:
        """What to do about a failed, stale or damaged item, with `next_command`; None if there is nothing."""
        typed = self.next_command
        if typed is None or self.item.problem is not None:
            return typed and Phrase(typed)
        if self.lock is None:
            return recovery_advice(self.item, self.typed)
        return stale_advice(self.lock, typed, is_taken_over=self.is_taken_over)

    def as_json(self) -> dict[str, Any]:
        """Return the row as `manifest ls -o json` prints it."""
        return {
            **document_of(self.item, "item_id", "state", "sequence", "revision"),
            **document_of(self, "verdict", "trigger", "since", "slice", "entity", "waits_for"),
            "application": str(self.application),
            "run_id": self.mark.run_id if self.mark is not None else None,
            "holder": self.lock.holder if self.lock is not None else None,
            "stale": self.is_stale,
            "error": failure_words(self.item),
        }


class Rows:
    """Builds rows from items; looks up only once what holds an application's slices back."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._held: dict[Application, Item | None] = {}
        self._row = partial(Row, is_taken_over=is_taken_over(app.project.manifest))
        name = app.project.name
        self._called = {application_of(name, each).key: each.called for each in app.project.entities.values()}

    def of(self, item: Item, only: Application | None = None) -> Iterator[Row]:
        """Yield a row for each application that the item concerns, or for those that `only` covers."""
        lock = self._app.ledger.lock(item) if item.problem is None else None
        for application, verdict in item.verdicts().items():
            if only is None or application == ANYONE or only.covers(application):
                # Entities that read one folder have items together, which one of them has recorded.
                called = self._called.get(application.key)
                typed = typed_name(self._app, item)
                row = self._row(item, application, verdict, lock, name=called, short_name=typed)
                yield replace(row, waits_for=self._obstacle(row)) if verdict is Verdict.READY else row

    def _obstacle(self, row: Row) -> str | None:
        after = declared_after(self._app, row.application)
        if missing := awaited_of(row.item, after):
            return ", ".join(map(str, missing))
        if row.application not in self._held:
            verdicts = BLOCKING | ({Verdict.READY} if after else frozenset())
            found = self._app.store.select(Query(application=row.application, verdicts=verdicts))
            pending = sort_pending(found, row.application, after=after)
            self._held[row.application] = pending.held or pending.awaited
        held = self._held[row.application]
        if held is None or natural_key(slice_name(held)) > natural_key(row.slice):
            return None
        return held.item_id


def declared_after(app: App, application: Application) -> tuple[Application, ...]:
    """Return the applications that an entity declares in `after`, if the application is an entity's."""
    for entity in app.project.entities.values():
        own = application_of(app.project.name, entity)
        if own.name == application.name and own.covers(application):
            return applications_before(entity)
    return ()


def find_item(app: App, text: str) -> Item:
    """Return the item that a text names: by its id, by its path in the lake, or as `entity/slice`.

    Raises:
        UsageError: The manifest has no such item.
    """
    named = _item_of_entity(app, text)
    for candidate in dict.fromkeys((text, text.rstrip("/"), f"{text}/", *named, item_id(text))):
        item = app.ledger.item(candidate)
        if item.sequence:
            return item
    entity, _, name = text.partition("/")
    if name and len(keys := app.project.entity_keys(entity)) > 1:
        raise UsageError(
            f"several entities are named {entity!r}",
            remedy=f"Use an id: {', '.join(f'{key}/{name}' for key in keys)}.",
        )
    raise UsageError(
        f"the manifest has no item {text}",
        remedy=_better_name(app, text)
        or Phrase(
            Command("manifest", "ls"),
            " lists the items; ",
            Command("manifest", "discover"),
            " records new slices.",
        ),
    )


def find_or_record_item(app: App, text: str) -> Item:
    """Return the item that a text names; a slice in bronze that the manifest does not know is recorded first.

    Raises:
        UsageError: The manifest has no such item, and bronze no such slice.
    """
    try:
        return find_item(app, text)
    except UsageError:
        named = _item_of_entity(app, text)
        among = (
            (app.project.entities[text.partition("/")[0]],)
            if named
            else [entity for entity, _ in app.placed_entities()]
        )
        recorded = inventory_of(app).record({*named, item_id(text)}, among)
        if recorded is None:
            raise
        return recorded


def _better_name(app: App, text: str) -> str | None:
    """Return how to name the slices of an entity, or a slice that was named without its entity."""
    if text in app.project.entities:
        return (
            f"{text!r} is an entity: name a slice of it as `{text}/SLICE`, or give `--entity {text}` for all."
        )
    if "/" in text:
        return None
    named = [f"{entity}/{text}" for entity in app.project.entities]
    found = [
        each for each in named if any(app.ledger.item(one).sequence for one in _item_of_entity(app, each))
    ]
    return f"Name it with its entity: {', '.join(f'`{each}`' for each in found[:3])}." if found else None


def typed_name(app: App, item: Item) -> str:
    """Return what commands call an item: `entity/slice` if `find_item` finds it by that, else its id."""
    entity = item.new.note.get("entity") if item.new is not None else None
    text = called_name(app.project.new_names.get(str(entity), str(entity)), item)
    found = _item_of_entity(app, text) if entity is not None else ()
    return text if item.item_id.rstrip("/") in [each.rstrip("/") for each in found] else item.item_id


def _item_of_entity(app: App, text: str) -> tuple[str, ...]:
    """Return the id of the item that `entity/slice` names; nothing if it has no such form."""
    entity, _, name = text.partition("/")
    found = app.project.entities.get(entity) if name else None
    if found is None or "/" in name.rstrip("/"):  # a path such as `../` leads to another entity's slices
        return ()
    return (item_id(found.places(app.project.lake).slices.place(name.rstrip("/"))),)


def inventory_of(app: App, author: str | None = None) -> Inventory:
    """Return the slices of the project's entities in bronze, silver and the manifest.

    Records are written in the name of the author, or of this tool.
    """
    ledger = app.ledger if author is None else app.ledger_of(app.store, author)
    return Inventory(ledger, app.project.entities, lambda entity: app.chain(entity, ledger))


def application_named(text: str, known: Iterable[Application]) -> Application:
    """Return the application that a text names: `name:instance`, or `name` for all its instances.

    Raises:
        UsageError: None of `known` has this name.

    Example:
        >>> orders = Application.named("lakewright/shop/orders", "orders")
        >>> application_named("lakewright/shop/orders", [orders]).instance_id is None
        True
    """
    among = {str(each): Application.named(*each.key) for each in known}
    named = {each.name: Application.named(each.name) for each in among.values()} | among
    if text not in named:
        raise UsageError(f"there is no application {text!r}", remedy=suggestion(text, among))
    return named[text]


def recorded_application(app: App, text: str) -> Application:
    """Return the application of the project or of its manifest that a text names.

    Raises:
        UsageError: There is no such application.
    """
    own = list(project_applications(app))
    try:
        return application_named(text, own)
    except UsageError:
        return application_named(text, [*own, *(application for application, _ in app.store.counts())])


def project_applications(app: App) -> Iterator[Application]:
    """Yield the applications under which the project's entities are processed."""
    return (entity_application(app, name) for name in app.project.entities)


def entity_application(app: App, entity: str) -> Application:
    """Return the application under which an entity's slices are processed.

    Raises:
        SpecError: The project has no such entity.
    """
    return application_of(app.project.name, app.project.entity(entity))


def chosen_application(app: App, application: str | None, entity: str | None) -> Application | None:
    """Return the application that a user filters by: an entity's, the named one, or None for all."""
    if entity is not None:
        return entity_application(app, entity)
    return recorded_application(app, application) if application else None


VERDICTS = {verdict.value: verdict for verdict in Verdict}
STATES = {state.value.lower(): state for state in State}


@dataclass(frozen=True, slots=True)
class Choice:
    """A selection of rows: those with one of these verdicts or states; all rows if there are none."""

    verdicts: frozenset[Verdict] = frozenset()
    states: frozenset[State] = frozenset()

    @classmethod
    def of(cls, words: Iterable[str]) -> Choice:
        """Return the selection for these names of verdicts and states, in any case.

        `failed`, `processed` and `skipped` name both a verdict and a state; here they select the verdict.
        An item that was FAILED and then resolved no longer has that verdict.

        Raises:
            UsageError: A word is neither, or is the verdict of items without records.
        """
        verdicts: set[Verdict] = set()
        states: set[State] = set()
        for word in words:
            if word.lower() in VERDICTS:
                verdicts.add(VERDICTS[word.lower()])
            elif word.lower() in STATES:
                states.add(STATES[word.lower()])
            else:
                raise UsageError(
                    f"{word!r} is neither a verdict nor a state",
                    remedy="Verdicts: ready, locked, failed, skipped, processed, invalid. "
                    "States: new, processing, processed, failed, resolved, skipped.",
                )
        if Verdict.UNKNOWN in verdicts:
            raise UsageError(
                "unknown slices have no record to list",
                remedy=Phrase(
                    Command("plan", "JOB"),
                    " counts such slices, ",
                    Command("manifest", "discover"),
                    " records them.",
                ),
            )
        return cls(frozenset(verdicts), frozenset(states))

    def includes(self, row: Row) -> bool:
        """Return whether the row is selected."""
        is_everything = not self.verdicts and not self.states
        return is_everything or row.verdict in self.verdicts or row.item.state in self.states

    def query(self, application: Application | None) -> Query:
        """Return the query for items with such rows; it may return more items than the selection."""
        # The store requires both the verdict and the state to match; here either is enough.
        is_single = not (self.verdicts and self.states)
        return Query(
            application=application,
            verdicts=self.verdicts if is_single else frozenset(),
            states=self.states if is_single else frozenset(),
        )


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """One item with its verdicts and all its records."""

    item: Item
    rows: Sequence[Row]
    records: Sequence[Record]

    def as_json(self) -> dict[str, Any]:
        """Return the document that `manifest show -o json` prints."""
        return {
            "item_id": self.item.item_id,
            "verdicts": {str(row.application): row.verdict.value for row in self.rows},
            "records": [record.as_json() for record in self.records],
        }


def list_items(
    app: App,
    words: Iterable[str] = (),
    *,
    application: str | None = None,
    entity: str | None = None,
    is_stale: bool = False,
    limit: int | None = None,
) -> list[Row]:
    """Return the items with their verdicts, one row for each application.

    Args:
        app: The project.
        words: Verdicts and states; only rows with one of them are returned. Without words, all rows.
        application: Only rows for this application: `name:instance`, or `name`.
        entity: Only slices of this entity.
        is_stale: Only items with a stale lock.
        limit: The largest number of rows.

    Raises:
        UsageError: There is no such verdict, state or application.
        SpecError: There is no such entity.
    """
    choice = Choice.of(words)
    only = chosen_application(app, application, entity)
    rows = Rows(app)
    found = (
        row
        for item in app.store.select(choice.query(only))
        for row in rows.of(item, only)
        if choice.includes(row) and (row.is_stale or not is_stale)
    )
    return list(islice(found, limit))


def list_backlog(
    app: App, application: str, after: Iterable[str] = (), *, limit: int | None = None
) -> tuple[list[Row], list[str]]:
    """Return the items that an application has before it, in order of arrival, and warnings.

    Each row says what keeps the item from the application: another application, a lock or a failure.

    Args:
        app: The project.
        application: `name:instance`, or `name`; an entity also waits for what it declares.
        after: Applications that must have processed an item first.
        limit: The largest number of rows.
    """
    wanted = named_application(application)
    declared = declared_after(app, wanted)
    awaited = tuple(dict.fromkeys((*declared, *map(named_application, after))))
    readiness = Readiness(wanted, awaited, blocked=BLOCKING, has_waiting=True)
    find_lock = app.ledger.lock
    rows = []
    for item in islice(app.store.select(readiness, BY_ARRIVAL), limit):
        missing = ", ".join(map(str, readiness.waits_for(standing_of(item))))
        rows.append(Row(item, wanted, item.verdict(wanted), find_lock(item), missing or None))
    known = known_names(app.store.standings(), project_applications(app))
    return rows, unknown_warnings((wanted, *awaited), known)


def show_item(app: App, text: str) -> ItemHistory:
    """Return one item with its verdicts and records.

    Raises:
        UsageError: The manifest has no such item.
    """
    item = find_item(app, text)
    return ItemHistory(item, tuple(Rows(app).of(item)), app.store.records(item.item_id))


def count_items(app: App) -> dict[str, dict[str, int]]:
    """Return the number of items by application and verdict."""
    counts: dict[str, dict[str, int]] = {}
    for (application, verdict), count in app.store.counts().items():
        counts.setdefault(str(application), {})[verdict.value] = count
    return counts


def discover_slices(app: App, entities: Sequence[str] = ()) -> Differences:
    """Record new slices of these entities, or of all that are enabled; return every difference found.

    Raises:
        SpecError: There is no such entity.
    """
    project = app.project
    names = entities or tuple(name for name, entity in project.entities.items() if entity.enabled)
    return inventory_of(app).differences([project.entity(name) for name in names])
