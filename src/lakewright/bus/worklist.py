"""The work list of an application: one claim after the other, for any number of threads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from threading import Lock

from lakewright.errors import (
    ItemFailed,
    ItemLocked,
    ItemWaits,
    LakewrightError,
    ManifestCorrupt,
    SequenceConflict,
    UsageError,
)
from lakewright.manifest.applications import named_application
from lakewright.manifest.claim import Claim
from lakewright.manifest.item import Item
from lakewright.manifest.lease import Holder
from lakewright.manifest.ledger import Ledger, Takeover
from lakewright.manifest.readiness import BY_ARRIVAL, Readiness
from lakewright.manifest.record import Application
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.verdict import Verdict

BLOCKED = frozenset({Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID})

NOT_FREE = (ItemFailed, ItemLocked, ItemWaits, ManifestCorrupt, SequenceConflict)
"""The errors for an item that can't be claimed."""


def own_application(text: str) -> Application:
    """Return the application that a text names, on whose behalf a program may write records.

    Raises:
        UsageError: The text names none, or an entity of a project.
    """
    application = named_application(text)
    if application.is_of_entity:
        raise UsageError(
            f"{text} is an entity's application: only Lakewright writes its records",
            remedy="Choose a name that doesn't start with lakewright/.",
        )
    return application


@dataclass(frozen=True, slots=True)
class Demand:
    """What an application wants to process.

    Attributes:
        after: The applications that must have processed an item first.
        match: Only items whose id matches this pattern of a shell; None for all.
        limit: The largest number of items to claim; None for any.
        is_in_order: Whether an item waits for all that arrived before it.
        takeover: Who may take over a stale lock.
    """

    application: Application
    after: tuple[Application, ...] = ()
    match: str | None = None
    limit: int | None = None
    is_in_order: bool = False
    takeover: Takeover = Takeover.OPERATOR

    @property
    def prefix(self) -> str:
        """The text that the ids of all these items start with."""
        return re.split(r"[*?[]", self.match or "", maxsplit=1)[0]

    def includes(self, item: Item) -> bool:
        """Return whether an item is one of those that it wants."""
        return self.match is None or fnmatchcase(item.item_id, self.match)

    def queue(self) -> Readiness:
        """Return the queue of the items to try, in order."""
        is_taking = self.takeover is Takeover.AUTO
        taken = frozenset({Verdict.LOCKED}) if is_taking else frozenset[Verdict]()
        return Readiness(
            self.application,
            self.after,
            blocked=BLOCKED if self.is_in_order else taken,
            has_waiting=self.is_in_order,
            prefix=self.prefix,
        )

    def acquire(self, ledger: Ledger, item_id: str, holder: Holder, duration: timedelta) -> Claim:
        """Return the claim on an item; see `Ledger.acquire`."""
        return ledger.acquire(
            item_id,
            self.application,
            holder,
            duration=duration,
            token_counter=None,
            takeover=self.takeover,
            after=self.after,
        )


class Worklist:
    """Gives out claims on an application's items, in the order in which they arrived, until there is none.

    Threads may share it. Items that another process has taken meanwhile are passed over.

    Attributes:
        obstacle: Why no later item may be claimed, if items are processed in order.

    Args:
        demand: What to process.
        ledger: The manifest.
        holder: This process and its run.
        duration: How long a lease lasts without a heartbeat.
    """

    def __init__(self, demand: Demand, ledger: Ledger, holder: Holder, *, duration: timedelta) -> None:
        self.obstacle: LakewrightError | None = None
        self._demand = demand
        self._acquire: Callable[[str], Claim] = lambda item_id: demand.acquire(
            ledger, item_id, holder, duration
        )
        self._lock = Lock()
        self._is_ended = False
        self._claimed = 0
        found = ledger.store.select(demand.queue(), BY_ARRIVAL)
        self._items: Iterator[Item] = (item for item in found if demand.includes(item))

    def next_claim(self) -> Claim | None:
        """Return a claim on the next item, or None if there is none or the list was stopped."""
        with self._lock:
            while not self._is_ended:
                item = None if self._claimed == self._demand.limit else next(self._items, None)
                if item is None:
                    break
                claim = self._try(item)
                if claim is not None:
                    self._claimed += 1
                    return claim
            self._is_ended = True
            return None

    def stop(self) -> None:
        """Give out no further claim."""
        self._is_ended = True

    def _try(self, item: Item) -> Claim | None:
        try:
            return self._acquire(item.item_id)
        except NOT_FREE as error:
            is_passed = isinstance(error, SequenceConflict)  # processed or skipped by someone else meanwhile
            if self._demand.is_in_order and not is_passed:
                self.obstacle = error
                self._is_ended = True
            return None


@dataclass(slots=True)
class Backlog:
    """How many items an application has before it, by what keeps them from it.

    Attributes:
        ready: Items that nothing keeps.
        waiting: Items that wait for other applications, by their names.
        blocked: Items that are locked, failed or invalid.
    """

    ready: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    blocked: dict[Verdict, int] = field(default_factory=dict)

    def add(self, readiness: Readiness, standing: Standing, number: int) -> None:
        """Count items with a standing."""
        if standing.blocked is not None:
            self.blocked[standing.blocked] = self.blocked.get(standing.blocked, 0) + number
        elif waits_for := readiness.waits_for(standing):
            named = ", ".join(map(str, waits_for))
            self.waiting[named] = self.waiting.get(named, 0) + number
        else:
            self.ready += number

    def as_json(self) -> dict[str, object]:
        """Return the counts in the form that commands print."""
        blocked = {verdict.value: number for verdict, number in sorted(self.blocked.items())}
        return {"ready": self.ready, "waiting": dict(sorted(self.waiting.items())), **blocked}


def backlog_of(ledger: Ledger, demand: Demand) -> Backlog:
    """Return what an application still has before it; only a choice of items takes more than the counts."""
    everything = Readiness(demand.application, demand.after, BLOCKED, has_waiting=True, prefix=demand.prefix)
    backlog = Backlog()
    if demand.match is None:
        for standing, number in ledger.store.standings().items():
            if everything.admits(standing):
                backlog.add(everything, standing, number)
        return backlog
    for item in ledger.store.select(everything, BY_ARRIVAL):
        if demand.includes(item):
            backlog.add(everything, standing_of(item), 1)
    return backlog
