"""The record feed returns every new record: `processing-manifest.md`, "Use cases"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.records import COUNTRIES, ITEM, REGIONS, Clock, claim, found, ledger_of

from lakewright.manifest.item import Item
from lakewright.manifest.readiness import BY_ID, Choice, Reading
from lakewright.manifest.record import Record
from lakewright.manifest.record_feed import RecordFeed
from lakewright.stores.memory import MemoryStore


class Counting(MemoryStore):
    """Counts the items that it lists."""

    listed = 0

    def select(self, choice: Choice, reading: Reading = BY_ID) -> Iterator[Item]:
        for item in super().select(choice, reading):
            self.listed += 1
            yield item


def states(records: Sequence[Record]) -> list[str]:
    return [record.state.value for record in records]


def test_each_record_is_returned_once_in_order() -> None:
    clock = Clock()
    ledger = ledger_of(MemoryStore(clock))
    ledger.discover([found("old")])
    clock.advance(1)
    watch = RecordFeed(ledger.store)
    assert watch.new_records() == []
    clock.advance(1)
    ledger.discover([found()])
    clock.advance(1)
    assert states(watch.new_records()) == ["NEW"]
    clock.advance(1)
    held = claim(ledger, ITEM)
    assert states(watch.new_records()) == ["PROCESSING"]
    clock.advance(1)
    ledger.processed(held, {})
    assert states(watch.new_records()) == ["PROCESSED"]
    assert watch.new_records() == []


def test_items_that_opened_and_closed_between_two_calls_are_returned() -> None:
    clock = Clock()
    ledger = ledger_of(MemoryStore(clock))
    watch = RecordFeed(ledger.store)
    clock.advance(1)
    ledger.discover([found()])
    ledger.processed(claim(ledger), {})
    assert states(watch.new_records()) == ["NEW", "PROCESSING", "PROCESSED"]
    clock.advance(1)
    ledger.requeue(found().item_id, "again")
    ledger.processed(claim(ledger), {})
    assert watch.new_records() == []
    clock.advance(31)
    assert states(watch.new_records()) == ["NEW", "PROCESSING", "PROCESSED"]
    clock.advance(31)
    assert watch.new_records() == []


def test_a_call_lists_only_open_items() -> None:
    clock = Clock()
    store = Counting(clock)
    ledger = ledger_of(store)
    for number in range(50):
        ledger.discover([found(str(number))])
        ledger.skip(found(str(number)).item_id, "done")
    clock.advance(1)
    watch = RecordFeed(store)
    ledger.discover([found()])
    watch.new_records()
    before = store.listed
    held = claim(ledger, ITEM)
    watch.new_records()
    ledger.processed(held, {})
    watch.new_records()
    assert store.listed - before <= 2


def test_records_of_other_applications_are_left_out() -> None:
    clock = Clock()
    ledger = ledger_of(MemoryStore(clock))
    watch = RecordFeed(ledger.store, COUNTRIES)
    clock.advance(1)
    ledger.discover([found(), found("france", application=COUNTRIES)])
    assert [record.application for record in watch.new_records()] == [COUNTRIES]


ACTS = st.lists(
    st.tuples(st.sampled_from(["new", "claim", "end", "skip", "requeue", "look"]), st.integers(0, 3))
)


@given(ACTS)
def test_every_record_between_calls_is_returned_once(acts: list[tuple[str, int]]) -> None:
    clock = Clock()
    ledger = ledger_of(MemoryStore(clock))
    watch = RecordFeed(ledger.store)
    told: list[Record] = []
    for act, number in acts:
        clock.advance(1)
        item = ledger.item(found(str(number)).item_id)
        verdict = item.verdict(REGIONS).value
        if act == "new":
            ledger.discover([found(str(number))])
        elif act == "look":
            told += watch.new_records()
        elif act == "claim" and verdict == "ready":
            held = claim(ledger, item.item_id, duration=timedelta(days=9))
            if number % 2:
                ledger.processed(held, {})
        elif act == "end" and verdict == "locked":
            ledger.release(item.item_id, "ended", is_forced=True)
        elif act == "skip" and verdict in ("ready", "processed"):
            ledger.skip(item.item_id, "left alone")
        elif act == "requeue" and verdict in ("processed", "skipped"):
            ledger.requeue(item.item_id, "again")
    told += watch.new_records(is_thorough=True)
    there = [record for record in ledger.store.history() if isinstance(record, Record)]
    assert sorted(record.record_id for record in told) == sorted(record.record_id for record in there)
