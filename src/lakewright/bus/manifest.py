"""The manifest as a library for any Python program: no Spark, and no project needed.

```python
from lakewright import Manifest

with Manifest.open({"kind": "sqlite", "path": "state/manifest.db"}) as manifest:
    manifest.add("table orders", application="acme/landing")
    with manifest.claim("table orders", "acme/loader") as claim:
        claim.payload = {"rows": load("orders")}
```

Source: `processing-manifest.md`, "Use cases" (pipeline bus).
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from lakewright.bus.worklist import Backlog, Demand, Worklist, backlog_of, own_application
from lakewright.errors import LeaseLost, StoreUnavailable, UsageError
from lakewright.manifest.applications import named_application
from lakewright.manifest.claim import Claim
from lakewright.manifest.item import Item
from lakewright.manifest.ledger import Ledger, Takeover
from lakewright.manifest.payload import failure, payload_content
from lakewright.manifest.plain_values import document_of
from lakewright.manifest.readiness import BY_ARRIVAL, Done
from lakewright.manifest.record import Agent, Application, Author, Record
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.settings import lease_duration
from lakewright.manifest.store import Query, Store, batched
from lakewright.slices.discovery import item_id
from lakewright.stores.heartbeat import Heartbeat
from lakewright.stores.process import is_dead, this_process
from lakewright.stores.registry import open_lazily
from lakewright.threads import shared_property

if TYPE_CHECKING:
    from lakewright.app import App


TRACE = 20
"""Frames of a stack trace that are recorded."""


@dataclass(frozen=True, slots=True)
class ProcessedItem:
    """What an application recorded when it had processed an item.

    Attributes:
        payload: What the application gave; for an entity's slice the content of its record.
        processed: When it was recorded, by the store's clock.
    """

    item_id: str
    application: str
    revision: int
    processed: datetime
    run_id: str | None
    payload: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return what `manifest state` and the HTTP API give of it."""
        return document_of(self)


@dataclass(slots=True)
class Outcome:
    """What `process_all` did.

    Attributes:
        processed: The ids of the items that it processed.
        failed: The errors of those that failed, by id.
        left: How many items that were asked for are still to be processed, and what keeps them: a lock, a
            failure, or other applications; None if the store could not be asked.
    """

    processed: list[str] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)
    left: Backlog | None = None


class HeldItem:
    """An item that this program holds, and no other.

    Attributes:
        payload: The JSON object to record when the item is processed; None for none.
    """

    def __init__(self, claim: Claim, heartbeat: Heartbeat) -> None:
        self.payload: Mapping[str, Any] | None = None
        self._claim = claim
        self._heartbeat = heartbeat

    @property
    def item(self) -> Item:
        """The item as the claim left it."""
        return self._claim.item

    @property
    def item_id(self) -> str:
        """The id of the item."""
        return self._claim.item_id

    @property
    def record_id(self) -> str:
        """The id of the PROCESSING record."""
        return self._claim.record_id

    def check(self) -> None:
        """Raise an error unless the item is still held; call it before each effect that can't be repeated.

        Raises:
            LeaseLost: Another program or an operator has taken the item, or may have.
            StoreUnavailable: The store can't be asked.
        """
        self._heartbeat.check(self._claim.lease)


class Manifest:
    """A manifest, opened by a program that need not be part of any project.

    Threads may share it, and asynchronous code may call it from threads (`asyncio.to_thread`). Use it as a
    context manager, or close it.

    Args:
        store: The back end; the manifest closes it.
        redactor: Removes secrets from what is recorded.
        lease: How long a lock lasts if its holder no longer renews it.
    """

    def __init__(self, store: Store, *, redactor: Redactor, lease: timedelta) -> None:
        self.store = store
        self.lease = lease
        author = Author(Agent("lakewright", version("lakewright")))
        self.ledger = Ledger(store, author, ids=_new_id, is_dead=is_dead, redactor=redactor)
        self.holder = this_process(_new_id())

    @classmethod
    def open(
        cls, where: str | os.PathLike[str] | Mapping[str, Any], *, profiles: Sequence[str] = ()
    ) -> Manifest:
        """Return the manifest of a project, or the one that settings name.

        A manifest that doesn't exist yet is created by the first write.

        Args:
            where: The folder of a project, or settings as in `manifest:` of `project.yml`, such as
                `{"kind": "postgres", "url": "postgresql://host/database"}`.
            profiles: Profiles of the project to use.

        Raises:
            SpecError: The project or the settings are wrong.
            StoreUnavailable: The back end doesn't answer.
        """
        if isinstance(where, Mapping):
            redactor = Redactor.of(os.environ)
            return cls(open_lazily(where), redactor=redactor, lease=lease_duration(where))
        from lakewright.app import App

        return cls.of(App.open(Path(where), profiles=profiles))

    @classmethod
    def of(cls, app: App) -> Manifest:
        """Return the manifest of an open project."""
        return cls(app.store, redactor=app.redactor, lease=lease_duration(app.project.manifest))

    def add(
        self, *items: str | Path, application: str, payload: Mapping[str, Any] | None = None
    ) -> tuple[str, ...]:
        """Record items that the manifest doesn't know as NEW, and return their ids; known ones are kept.

        Args:
            items: Ids, kept as written; a `Path` becomes the id of that place, as slices have it.
            application: On whose behalf they are added.
            payload: A JSON object to record with each of them.

        Raises:
            UsageError: An id, the application or the payload can't be recorded; nothing was written for that
                item and those after.
        """
        author, ids = own_application(application), dict.fromkeys(map(id_of, items))
        if not all(each.strip() for each in ids):
            raise UsageError(
                "the id of an item is empty", remedy="Name a URI, a path, a table or a span of time."
            )
        added = self.ledger.announce(ids, author, payload, run_id=self.holder.run_id)
        return tuple(item.item_id for item in added.new)

    def ready(
        self,
        application: str,
        after: Iterable[str] = (),
        *,
        match: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Item]:
        """Yield the items that an application may process now, in the order in which they arrived.

        Args:
            application: `name`, or `name:instance`.
            after: Applications that must have processed an item first.
            match: Only items whose id matches this pattern, with `*`, `?` and `[…]`.
            limit: The largest number of items.
        """
        demand = self.demand(application, after, match=match)
        found = self.store.select(demand.queue(), BY_ARRIVAL)
        return islice((item for item in found if demand.includes(item)), limit)

    def backlog(self, application: str, after: Iterable[str] = ()) -> Backlog:
        """Return how many items an application has before it, and what keeps them from it."""
        return backlog_of(self.ledger, self.demand(application, after))

    def items(self, application: str | None = None) -> Iterator[Item]:
        """Yield all items by id, or those that concern an application."""
        wanted = None if application is None else named_application(application)
        return self.store.select(Query(wanted))

    def item(self, item_id: str) -> Item:
        """Return an item in its current state; an unknown one has no records."""
        return self.ledger.item(item_id)

    def records(self, item_id: str) -> tuple[Record, ...]:
        """Return the records of an item in order; none for an unknown item."""
        return self.store.records(item_id)

    def state(self, application: str) -> Iterator[ProcessedItem]:
        """Yield what an application has recorded of the items that it has processed, in order of arrival.

        Only present revisions count: an item that was requeued is left out until it is processed again. So
        what the application has done follows from these payloads alone. Memory stays flat.
        """
        wanted = named_application(application)
        for page in batched(self.store.select(Done(wanted), BY_ARRIVAL)):
            yield from _processed_items(self.store, page, wanted)

    @contextmanager
    def claim(
        self,
        item: str | Item,
        application: str,
        *,
        after: Iterable[str] = (),
        is_idempotent: bool = False,
    ) -> Iterator[HeldItem]:
        """Hold an item in the `with` block; its end is recorded when the block ends.

        Ending it normally is PROCESSED, with `payload`; an exception is FAILED and raised again. An
        interruption (Ctrl-C, `SystemExit`) makes the item ready again. A thread renews the lease meanwhile.

        Args:
            item: The item, or its id.
            application: On whose behalf it is processed.
            after: Applications that must have processed it first.
            is_idempotent: Whether a stale lock may be taken over, because processing an item twice does no
                harm. Otherwise such a lock waits for an operator.

        Raises:
            ItemLocked, ItemFailed, ItemWaits: The item is not ready; nothing was written.
            SequenceConflict: It is processed or skipped already, or unknown; `details` has the `verdict`.
            LeaseLost: The item was lost before the block ended; its end was not recorded.
        """
        demand = self.demand(own_application(application), after, is_idempotent=is_idempotent)
        item_id = item if isinstance(item, str) else item.item_id
        with self.working(demand.acquire(self.ledger, item_id, self.holder, self.lease)) as held:
            yield held

    @contextmanager
    def working(self, claim: Claim) -> Iterator[HeldItem]:
        """Hold a claim in the `with` block; see `claim`."""
        held = HeldItem(claim, self.heartbeat)
        self.heartbeat.keep(claim.lease)
        try:
            yield held
            self.ledger.processed_by_other(claim, held.payload)
        except (LeaseLost, StoreUnavailable):
            raise
        except Exception as error:
            self.ledger.failed(claim, failure(error, stack_trace=_trace(error)))
            raise
        except BaseException as stop:
            self.ledger.give_back(claim, f"interrupted by {type(stop).__name__}")
            raise
        finally:
            self.heartbeat.drop(claim.lease)

    def process_all(
        self,
        application: str,
        function: Callable[[HeldItem], Mapping[str, Any] | None],
        after: Iterable[str] = (),
        *,
        match: str | None = None,
        limit: int | None = None,
        is_in_order: bool = False,
        is_idempotent: bool = False,
        keep_going: bool = False,
    ) -> Outcome:
        """Call a function for each ready item while this program holds it; what it returns is the payload.

        Args:
            application: On whose behalf items are processed.
            function: Processes one item. An exception makes the item failed.
            after: Applications that must have processed an item first.
            match: Only items whose id matches this pattern.
            limit: The largest number of items.
            is_in_order: Whether an item waits for all that arrived before it.
            is_idempotent: See `claim`.
            keep_going: Whether other items are processed after one has failed; otherwise, and always with
                `is_in_order`, its exception is raised.

        Raises:
            ItemLocked, ItemFailed, ItemWaits: With `is_in_order`, the next item is not ready.
            LeaseLost: An item was lost while it was processed.
        """
        demand = self.demand(
            own_application(application),
            after,
            match=match,
            limit=limit,
            is_in_order=is_in_order,
            is_idempotent=is_idempotent,
        )
        worklist = self.worklist(demand)
        outcome = Outcome()
        while (claim := worklist.next_claim()) is not None:
            try:
                with self.working(claim) as held:
                    held.payload = function(held)
            except (LeaseLost, StoreUnavailable):
                raise
            except Exception as error:
                if not keep_going or is_in_order:
                    raise
                outcome.failed[claim.item_id] = error
            else:
                outcome.processed.append(claim.item_id)
        if worklist.obstacle is not None:
            raise worklist.obstacle
        with suppress(StoreUnavailable):  # what is done is recorded
            outcome.left = backlog_of(self.ledger, demand)
        return outcome

    def worklist(self, demand: Demand) -> Worklist:
        """Return the work list of a demand."""
        return Worklist(demand, self.ledger, self.holder, duration=self.lease)

    @shared_property
    def heartbeat(self) -> Heartbeat:
        """Renews the leases of held items from its own thread, which is started on first use."""
        return Heartbeat(self.store, self.lease).__enter__()

    def close(self) -> None:
        """Stop the heartbeat, and close the back end."""
        self.stop_heartbeat()
        self.store.close()

    def stop_heartbeat(self) -> None:
        """Stop the heartbeat, if it was started."""
        if "heartbeat" in self.__dict__:
            self.__dict__.pop("heartbeat").__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def demand(
        self,
        application: str | Application,
        after: Iterable[str],
        *,
        match: str | None = None,
        limit: int | None = None,
        is_in_order: bool = False,
        is_idempotent: bool = False,
    ) -> Demand:
        """Return what an application wants to process; see `process_all`."""
        if isinstance(after, str):
            after = [after]
        return Demand(
            named_application(application) if isinstance(application, str) else application,
            tuple(map(named_application, after)),
            match,
            limit,
            is_in_order,
            Takeover.AUTO if is_idempotent else Takeover.OPERATOR,
        )


def _processed_items(store: Store, items: Sequence[Item], wanted: Application) -> Iterator[ProcessedItem]:
    places = {
        (item.item_id, mark.sequence): item
        for item in items
        for mark in item.processed
        if mark.application.covers(wanted)
    }
    records = store.find_records(list(places))
    for place, item in places.items():
        record = records.get(place)
        if isinstance(record, Record):
            theirs = payload_content(record.payload)
            yield ProcessedItem(
                item_id=item.item_id,
                application=str(record.application),
                revision=item.revision,
                payload=record.content if theirs is None else theirs,
                processed=record.timestamp,
                run_id=record.run_id,
            )


def id_of(item: str | Path) -> str:
    """Return the id of an item: a text as it is, a path as the location of a slice there.

    Example:
        >>> id_of("table orders"), id_of(Path("/lake/a b"))
        ('table orders', 'file:///lake/a%20b')
    """
    return item_id(str(item)) if isinstance(item, Path) else item


def _new_id() -> str:
    return str(uuid4())


def _trace(error: Exception) -> str:
    return "".join(traceback.format_exception(error, limit=TRACE))
