"""List the manifest's items with their verdicts, show one with its records, count them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.applications import known_names, named_application, unknown_warnings
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.readiness import Readiness
from lakewright.manifest.record import Application, Record, State
from lakewright.manifest.standing import standing_of
from lakewright.manifest.store import Query
from lakewright.slices.inventory import Differences
from lakewright.usecases.items import (
    BLOCKING,
    Row,
    Rows,
    chosen_application,
    declared_after,
    find_item,
    inventory_of,
    project_applications,
)

__all__ = ["ItemHistory", "count_items", "discover_slices", "list_backlog", "list_items", "show_item"]

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
    for item in islice(app.store.queue(readiness), limit):
        standing = standing_of(item)
        if standing is not None:
            missing = ", ".join(map(str, readiness.waits_for(standing)))
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
