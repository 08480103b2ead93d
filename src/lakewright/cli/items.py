"""Items of the manifest as they are listed: a row for each application that has to do with one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright.errors import UsageError
from lakewright.manifest.item import Item, Mark, Verdict
from lakewright.manifest.lock import Lock
from lakewright.manifest.record import ANYONE, Application, State, format_instant
from lakewright.manifest.store import Query, Store
from lakewright.slices.discover import natural_key, slice_name
from lakewright.slices.pending import sort_pending
from lakewright.spec.suggestions import suggestion

if TYPE_CHECKING:
    from lakewright.app import App

__all__ = [
    "Choice",
    "Listing",
    "Row",
    "application_named",
    "choice_of",
    "entity_application",
    "project_applications",
    "recorded_application",
]

VERDICTS = {verdict.value: verdict for verdict in Verdict}
BLOCKING = frozenset(verdict for verdict in Verdict if verdict.is_blocking)
STATES = {state.value.lower(): state for state in State}


@dataclass(frozen=True, slots=True)
class Row:
    """What an item is for one application.

    Attributes:
        run_id: The run of the record that the verdict comes from.
        since: When that record was written.
        waits_for: The item that must be processed, resolved or skipped first, if any.
    """

    item: Item
    application: Application
    verdict: Verdict
    lock: Lock | None = None
    waits_for: str | None = None

    @property
    def mark(self) -> Mark | None:
        """The record behind the verdict, where the fold remembers it."""
        if self.verdict is Verdict.LOCKED:
            return self.item.processing
        if self.verdict is Verdict.FAILED:
            return self.item.failed
        done = self.item.processed if self.verdict is Verdict.PROCESSED else self.item.skipped
        matching = [mark for mark in done if mark.application.covers(self.application)]
        return matching[-1] if matching else self.item.resolved or self.item.new

    @property
    def since(self) -> datetime | None:
        """When the item came to this verdict."""
        return self.mark.since if self.mark is not None else self.item.since

    @property
    def slice(self) -> str:
        """The slice's name."""
        return slice_name(self.item)

    @property
    def entity(self) -> str | None:
        """The entity for which the slice was found."""
        named = self.item.new.note.get("entity") if self.item.new is not None else None
        return None if named is None else str(named)

    @property
    def is_stale(self) -> bool:
        """Whether nobody stands behind its lock any more."""
        return self.lock is not None and self.lock.is_stale

    def as_json(self) -> dict[str, Any]:
        """Return the row as `manifest ls -o json` prints it."""
        return {
            "item_id": self.item.item_id,
            "application": str(self.application),
            "verdict": self.verdict.value,
            "state": self.item.state.value if self.item.state else None,
            "run_id": self.mark.run_id if self.mark is not None else None,
            "since": format_instant(self.since) if self.since else None,
            "holder": self.lock.holder if self.lock is not None else None,
            "stale": self.is_stale,
            "sequence": self.item.sequence,
            "slice": self.slice,
            "entity": self.entity,
            "revision": self.item.revision,
            "waits_for": self.waits_for,
        }


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rows are wanted: those with one of the verdicts or states; of none given, all."""

    verdicts: frozenset[Verdict] = frozenset()
    states: frozenset[State] = frozenset()

    def takes(self, row: Row) -> bool:
        """Return whether the row is wanted."""
        is_free = not self.verdicts and not self.states
        return is_free or row.verdict in self.verdicts or row.item.state in self.states


def choice_of(words: Iterable[str]) -> Choice:
    """Return the choice that verdicts and states make, named in any case.

    Some words are both: `failed` is the verdict, which an item that was FAILED and resolved hasn't.

    Raises:
        UsageError: A word is neither, or says that there is no record.
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
            "of what is unknown there is no record to list",
            remedy="`lakewright plan JOB` counts such slices, `lakewright manifest discover` records them.",
        )
    return Choice(frozenset(verdicts), frozenset(states))


class Listing:
    """Makes rows of items; what holds an application's slices back is looked up once."""

    def __init__(self, store: Store, find_lock: Callable[[Item], Lock | None]) -> None:
        self._store = store
        self._find_lock = find_lock
        self._held: dict[Application, Item | None] = {}

    def rows(self, item: Item, only: Application | None = None) -> Iterator[Row]:
        """Yield a row for each application that has to do with the item, or for those `only` stands for."""
        lock = self._find_lock(item) if item.problem is None else None
        for application, verdict in item.verdicts().items():
            if only is None or application == ANYONE or only.covers(application):
                row = Row(item, application, verdict, lock)
                yield replace(row, waits_for=self._obstacle(row)) if verdict is Verdict.READY else row

    def _obstacle(self, row: Row) -> str | None:
        if row.application not in self._held:
            query = Query(application=row.application, verdicts=BLOCKING)
            self._held[row.application] = sort_pending(self._store.select(query), row.application).held
        held = self._held[row.application]
        if held is None or natural_key(Row(held, row.application, Verdict.UNKNOWN).slice) > natural_key(
            row.slice
        ):
            return None
        return held.item_id


def application_named(text: str, known: Iterable[Application]) -> Application:
    """Return the application that a text names: `name:instance`, or `name` for all its instances.

    Raises:
        UsageError: None of `known` is called so.

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
        UsageError: There is none.
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
    from lakewright.slices.application import application_of

    return application_of(app.project.name, app.project.entity(entity))
