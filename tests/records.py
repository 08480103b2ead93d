"""Factories of the manifest's values, for the tests of manifest and stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from lakewright.manifest.claim import Claim
from lakewright.manifest.item import Item
from lakewright.manifest.lease import Holder
from lakewright.manifest.ledger import DiscoveredSlice, Ledger
from lakewright.manifest.record import Application, Author, Draft, Record, State
from lakewright.manifest.store import Append, Store, Write

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(seconds=60)

ITEM = "file:///lake/bronze/regions/2022-01-01.csv"
REGIONS = Application.named("lakewright/demo/regions", "regions")
COUNTRIES = Application.named("lakewright/demo/countries", "countries")
AUTHOR = Author.named("lakewright", "1.0")


class Clock:
    """A clock that moves only when a test advances it."""

    def __init__(self, now: datetime = START) -> None:
        self.time = now

    def __call__(self) -> datetime:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def numbered(prefix: str = "id") -> Callable[[], str]:
    """Return a function that returns distinct ids, the same in every run of a test."""
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"


def holder(run_id: str = "run-1", *, pid: int = 1, host: str = "here") -> Holder:
    return Holder(host=host, pid=pid, started=f"boot {pid}", run_id=run_id, user="ann")


def draft(
    record_id: str,
    state: State | str,
    previous: str | None = None,
    *,
    run: str | None = "run-1",
    application: Application = REGIONS,
    item: str = ITEM,
    content: dict[str, Any] | None = None,
) -> Draft:
    return Draft(
        record_id=record_id,
        item_id=item,
        state=State(state),
        application=application,
        author=AUTHOR,
        run_id=run,
        previous_record_id=previous,
        payload=None if content is None else {"schema": "lakewright/test/1", "data": content},
    )


def recorded(drafts: Iterable[Draft]) -> list[Record]:
    return [
        each.recorded(sequence=number, now=START + timedelta(seconds=number))
        for number, each in enumerate(drafts, 1)
    ]


def put_down(store: Store, *drafts: Draft, expected: int | None = None) -> Item:
    """Append drafts of one item to a store, by default after its last record."""
    item_id = drafts[0].item_id
    present = store.read([item_id]).get(item_id)
    seen = (present.sequence if present else 0) if expected is None else expected
    return store.write(Write((Append(item_id, drafts, seen),))).items[0]


def ledger_of(store: Store, **options: Any) -> Ledger:
    return Ledger(store, AUTHOR, **{"ids": numbered(), **options})


def found(
    name: str = "2022-01-01.csv", application: Application = REGIONS, **fingerprint: Any
) -> DiscoveredSlice:
    return DiscoveredSlice(
        item_id=f"file:///lake/bronze/regions/{name}",
        application=application,
        entity="regions",
        slice=name,
        fingerprint=fingerprint or {"size": 10, "modified": "2022-01-01T00:00:00Z"},
    )


def claim(ledger: Ledger, item_id: str = ITEM, application: Application = REGIONS, **options: Any) -> Claim:
    run = options.pop("holder", holder())
    settings = {"duration": MINUTE, "token_counter": "silver/regions", **options}
    return ledger.acquire(item_id, application, run, **settings)
