"""Who may process what next, on every back end: rules of the manifest, "The bus" (readiness)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

import pytest
from tests.records import AUTHOR, claim, draft, ledger_of, put_down

from lakewright.manifest.item import Item
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.payload import failure
from lakewright.manifest.readiness import BY_ARRIVAL, Done, Readiness, Reading
from lakewright.manifest.record import ANYONE, Application, Draft, Record, State
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.store import Append, Store, Write
from lakewright.manifest.verdict import Verdict
from lakewright.upkeep.fsck import fsck

LANDING, SCANNER, LOADER, REPORT = map(
    Application.named, ("acme/landing", "acme/scanner", "acme/loader", "acme/report")
)
NORTH, SOUTH = (Application.named("acme/loader", name) for name in ("north", "south"))
NAMES = ("zebra", "table orders", "2022-01/é \n'x'")
"""Ids in the order in which they arrive, which is not that of their texts."""


def announced(name: str, number: int) -> Draft:
    one = draft(f"new-{number}", "NEW", application=LANDING, item=name, content={})
    return replace(one, payload={"schema": "application/payload/1", "data": {"entity": "not ours"}})


@pytest.fixture
def ledger(store: Store) -> Ledger:
    """A ledger with items that a program has announced."""
    for number, name in enumerate(NAMES):
        put_down(store, announced(name, number))
    return ledger_of(store)


def process(ledger: Ledger, item_id: str, *applications: Application) -> None:
    for application in applications:
        ledger.processed(claim(ledger, item_id, application), {})


def ids(items: Iterable[Item]) -> list[str]:
    return [item.item_id for item in items]


def ready(ledger: Ledger, application: Application, *after: Application) -> list[str]:
    return ids(ledger.store.select(Readiness(application, after), BY_ARRIVAL))


def test_items_are_ready_in_the_order_in_which_they_arrived(ledger: Ledger) -> None:
    assert ready(ledger, SCANNER) == list(NAMES)
    assert ids(ledger.store.select(Readiness(SCANNER, prefix="z"), BY_ARRIVAL)) == ["zebra"]
    assert ids(ledger.store.select(Readiness(SCANNER, prefix="no\x00ne"), BY_ARRIVAL)) == []


def test_a_part_of_a_queue_is_read_from_either_end(ledger: Ledger) -> None:
    process(ledger, NAMES[1], SCANNER)
    store, everything = ledger.store, Readiness(LOADER)
    newest = list(store.select(everything, Reading(is_newest_first=True, limit=2)))
    assert ids(newest) == [NAMES[2], NAMES[1]]
    last = newest[-1]
    older = Reading(is_newest_first=True, beyond=(last.arrival, last.item_id))
    assert ids(store.select(everything, older)) == [NAMES[0]]
    newer = Reading(limit=1, beyond=(last.arrival, last.item_id))
    assert ids(store.select(everything, newer)) == [NAMES[2]]


def test_the_first_and_the_last_arrival_of_each_standing_are_known(ledger: Ledger) -> None:
    process(ledger, NAMES[1], SCANNER)
    first, second, third = (ledger.item(name) for name in NAMES)
    standings = [standing_of(first), standing_of(second)]
    place = (second.arrival, second.item_id)
    assert dict(ledger.store.arrivals()) == {
        standings[0]: ((first.arrival, first.item_id), (third.arrival, third.item_id)),
        standings[1]: (place, place),
    }


def test_an_application_waits_for_all_those_it_comes_after(ledger: Ledger) -> None:
    process(ledger, "zebra", SCANNER)
    process(ledger, "table orders", SCANNER, LOADER)
    assert ready(ledger, LOADER, SCANNER) == ["zebra"]
    assert ready(ledger, REPORT, SCANNER, LOADER) == ["table orders"]
    assert ready(ledger, REPORT, SCANNER, Application.named("nobody")) == []
    waiting = Readiness(REPORT, (SCANNER, LOADER), has_waiting=True)
    found = list(ledger.store.select(waiting, BY_ARRIVAL))
    assert ids(found) == list(NAMES)
    standings = [standing_of(item) for item in found]
    assert [waiting.waits_for(each) for each in standings] == [(LOADER,), (), (SCANNER, LOADER)]


def test_instances_process_an_item_once_each(ledger: Ledger) -> None:
    process(ledger, "zebra", SCANNER, NORTH)
    assert "zebra" not in ready(ledger, NORTH, SCANNER)
    assert ready(ledger, SOUTH, SCANNER) == ["zebra"]
    assert ready(ledger, LOADER, SCANNER) == []  # without an instance, any will do
    assert ready(ledger, REPORT, NORTH) == ready(ledger, REPORT, LOADER) == ["zebra"]
    assert ready(ledger, REPORT, SOUTH) == []


def test_a_skip_for_one_application_leaves_the_item_to_others(ledger: Ledger) -> None:
    ledger.skip("zebra", "not for us", application=NORTH)
    assert "zebra" not in ready(ledger, NORTH)
    assert "zebra" in ready(ledger, SOUTH)
    assert "zebra" in ready(ledger, SCANNER)
    # A skip is no processing: what comes after the application goes on waiting.
    assert ready(ledger, REPORT, NORTH) == []
    ledger.skip("zebra", "nobody", application=ANYONE)
    assert "zebra" not in ready(ledger, SCANNER)


def test_a_locked_failed_or_invalid_item_is_ready_for_nobody_until_it_is_free(ledger: Ledger) -> None:
    held = claim(ledger, "zebra", SCANNER)
    ledger.failed(claim(ledger, "table orders", SCANNER), failure(ValueError("no")))
    assert ready(ledger, REPORT) == [NAMES[2]]
    blocked = Readiness(REPORT, blocked=frozenset({Verdict.LOCKED, Verdict.FAILED}))
    assert ids(ledger.store.select(blocked, BY_ARRIVAL)) == list(NAMES)
    ledger.processed(held, {})
    ledger.resolve("table orders", "mended")
    assert ready(ledger, REPORT) == list(NAMES)


def test_a_new_revision_is_to_be_processed_by_everyone_again_and_arrives_last(ledger: Ledger) -> None:
    process(ledger, "zebra", SCANNER, LOADER)
    assert ids(ledger.store.select(Done(LOADER), BY_ARRIVAL)) == ["zebra"]
    ledger.requeue("zebra", "sent again")
    assert ids(ledger.store.select(Done(LOADER), BY_ARRIVAL)) == []
    assert ready(ledger, LOADER, SCANNER) == []
    assert ready(ledger, SCANNER) == [*NAMES[1:], "zebra"]


def test_an_item_without_a_new_record_comes_first(ledger: Ledger) -> None:
    """Snowplow's records may begin with PROCESSING."""
    put_down(
        ledger.store,
        draft("lock", "PROCESSING", item="s3://x/", application=SCANNER),
        draft("done", "PROCESSED", "lock", item="s3://x/", application=SCANNER),
    )
    assert ready(ledger, LOADER) == ["s3://x/", *NAMES]


def test_announcing_an_item_makes_it_nobodys(ledger: Ledger) -> None:
    """The landing program never processes its items; they must not wait for it for ever."""
    item = ledger.item("zebra")
    assert item.verdicts() == {ANYONE: Verdict.READY}
    assert item.new is not None
    assert item.new.note == {}
    assert ledger.store.counts() == {(ANYONE, Verdict.READY): 3}


def test_counts_by_standing_follow_every_change(ledger: Ledger) -> None:
    process(ledger, "zebra", SCANNER)
    held = claim(ledger, "table orders", SCANNER)
    new, done = Standing(state=State.NEW), Standing(None, (SCANNER,), (SCANNER,), state=State.PROCESSED)
    assert ledger.store.standings() == {
        new: 1,
        done: 1,
        Standing(Verdict.LOCKED, (SCANNER,), state=State.PROCESSING): 1,
    }
    ledger.processed(held, {})
    assert ledger.store.standings() == {new: 1, done: 2}
    assert list(fsck(ledger.store)) == []
    ledger.store.rebuild()
    assert ledger.store.standings() == {new: 1, done: 2}
    assert ready(ledger, LOADER, SCANNER) == ["zebra", "table orders"]


def test_records_are_found_by_their_places(ledger: Ledger) -> None:
    process(ledger, "zebra", SCANNER)
    process(ledger, NAMES[2], SCANNER)
    places = [("zebra", 3), (NAMES[2], 2), ("zebra", 9), ("nothing", 1)]
    found = ledger.store.find_records(places)
    records = {place: record for place, record in found.items() if isinstance(record, Record)}
    assert {place: record.state for place, record in records.items()} == {
        ("zebra", 3): "PROCESSED",
        (NAMES[2], 2): "PROCESSING",
    }
    assert ledger.store.find_records([]) == {}


def test_a_queue_may_be_worked_off_while_it_is_read(store: Store) -> None:
    numbers = count()
    ledger = Ledger(store, AUTHOR, ids=lambda: f"id-{next(numbers)}")
    names = [f"item {number:03}" for number in range(130)]
    for _ in store.write_many(_news(names)):
        pass
    done: list[str] = []
    for item in store.select(Readiness(SCANNER), BY_ARRIVAL):
        if len(done) < 5:
            process(ledger, item.item_id, SCANNER)
        done.append(item.item_id)
    assert done == names
    assert ready(ledger, SCANNER) == names[5:]


def _news(names: Iterable[str]) -> Iterator[Write]:
    for number, name in enumerate(names):
        yield Write((Append(name, (announced(name, number),), 0),))
