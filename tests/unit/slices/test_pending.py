"""Which slices are ready, wait or hold others back: `processing-manifest.md`, "State"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from lakewright.manifest.item import Item
from lakewright.manifest.record import Agent, Application, Author, Draft, State
from lakewright.slices import lost_table
from lakewright.slices.discovery import slice_name
from lakewright.slices.pending_slices import sort_pending

US = Application.named("lakewright/p/e", "e")
OTHERS = Application.named("lakewright/p/other", "other")
NOW = datetime(2022, 1, 1, tzinfo=UTC)


def item(name: str, *states: State, application: Application = US, holds_back: bool = True) -> Item:
    """Return a slice's item with NEW and then these records, each after the one it must follow."""
    numbers = count(1)
    found = Item(f"file:///bronze/{name}")
    previous: str | None = None
    for state in (State.NEW, *states):
        number = next(numbers)
        follows = None if state in (State.NEW, State.SKIPPED) else previous
        draft = Draft(
            record_id=f"{name}-{number}",
            item_id=found.item_id,
            state=state,
            application=application,
            author=Author(Agent("test")),
            run_id="run",
            previous_record_id=follows if state is not State.PROCESSING else None,
            payload={"schema": "test", "data": {"slice": name, "holds_back": holds_back}},
        )
        found = found.after(draft.recorded(sequence=number, now=NOW + timedelta(seconds=number)))
        previous = draft.record_id
    return found


PROCESSED = (State.PROCESSING, State.PROCESSED)
FAILED = (State.PROCESSING, State.FAILED)
LOCKED = (State.PROCESSING,)


def names(items: tuple[Item, ...]) -> list[str]:
    return [slice_name(each) for each in items]


def test_slices_are_ready_in_the_natural_order_of_their_names() -> None:
    pending = sort_pending([item("s10"), item("s9"), item("s1", *PROCESSED), item("s11", State.SKIPPED)], US)

    assert names(pending.ready) == ["s9", "s10"]
    assert pending.held is None


@pytest.mark.parametrize("states", [FAILED, LOCKED])
def test_what_is_held_holds_back_later_slices_only(states: tuple[State, ...]) -> None:
    pending = sort_pending([item("1"), item("2", *states), item("3"), item("4")], US)

    assert names(pending.ready) == ["1"]
    assert names(pending.waiting) == ["3", "4"]
    assert pending.held is not None
    assert slice_name(pending.held) == "2"


def test_a_failed_late_slice_holds_nothing_back() -> None:
    pending = sort_pending([item("1", *FAILED, holds_back=False), item("2")], US)

    assert names(pending.ready) == ["2"]
    assert pending.held is None


@pytest.mark.parametrize("states", [FAILED, LOCKED])
def test_a_late_slice_holds_up_no_other_and_is_reported(states: tuple[State, ...]) -> None:
    pending = sort_pending([item("1", *states), item("2", *PROCESSED), item("3")], US)

    assert names(pending.ready) == ["3"]
    assert pending.held is not None
    assert slice_name(pending.held) == "1"


@pytest.mark.parametrize(
    ("unsettled", "ready", "waiting"),
    [("3", ["2"], ["4"]), ("2", [], ["2", "4"]), ("0", ["2", "4"], [])],
)
def test_a_slice_that_is_being_written_holds_back_later_ones_unless_it_is_late(
    unsettled: str, ready: list[str], waiting: list[str]
) -> None:
    pending = sort_pending([item("1", *PROCESSED), item("2"), item("4")], US, to_come=[unsettled])

    assert (names(pending.ready), names(pending.waiting)) == (ready, waiting)
    assert pending.held is None


def test_a_lock_whose_holder_is_gone_is_taken_over_in_its_turn() -> None:
    locked = item("2", *LOCKED)

    pending = sort_pending([item("1"), locked, item("3")], US, takeable=frozenset({locked.item_id}))

    assert names(pending.ready) == ["1", "2", "3"]
    assert pending.held is None


def test_a_slice_older_than_a_processed_one_is_late() -> None:
    pending = sort_pending([item("1"), item("2", *PROCESSED), item("3")], US)

    assert names(pending.ready) == ["1", "3"]
    assert pending.late == {"file:///bronze/1"}


def test_what_another_destination_has_processed_is_ready_for_this_one() -> None:
    pending = sort_pending([item("1", *PROCESSED, application=OTHERS)], US)

    assert names(pending.ready) == ["1"]


@pytest.mark.parametrize(
    ("first", "ready"),
    [
        (item("1", *PROCESSED, application=OTHERS), ["1", "2"]),
        (item("1", *LOCKED, application=OTHERS), []),
        (item("1", *FAILED, application=OTHERS), []),
        (item("1", State.SKIPPED, application=OTHERS), ["1", "2"]),
    ],
)
def test_what_others_did_counts_only_where_it_blocks(first: Item, ready: list[str]) -> None:
    assert names(sort_pending([item("2"), first], US).ready) == ready


SCANNER = Application.named("acme/scanner")


def test_a_slice_that_another_application_must_see_first_holds_back_later_ones() -> None:
    """Rules of the manifest, "The bus": `after: [acme/scanner]`."""
    seen = item("1", *PROCESSED, application=SCANNER), item("3", *PROCESSED, application=SCANNER)
    pending = sort_pending([*seen, item("2"), item("4", *FAILED)], US, after=(SCANNER,))

    assert names(pending.ready) == ["1"]
    assert names(pending.waiting) == ["2", "3"]
    assert pending.awaited is not None
    assert slice_name(pending.awaited) == "2"
    assert pending.held is None


def test_a_skipped_slice_is_not_waited_for() -> None:
    seen = item("2", *PROCESSED, application=SCANNER)
    pending = sort_pending([item("1", State.SKIPPED), seen], US, after=(SCANNER,))

    assert names(pending.ready) == ["2"]
    assert pending.awaited is None


def test_a_slice_that_another_run_processes_during_the_check_is_not_taken_for_one_of_a_moved_lake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two drivers begin with the first slice of an entity at the same moment."""
    found = item("1", *PROCESSED)
    answers = iter([iter(()), iter([found]), iter(()), iter([found])])
    monkeypatch.setattr(lost_table, "first_processed", lambda *_: next(next(answers), None))
    monkeypatch.setattr(lost_table, "processed_items", lambda *_: next(answers))

    def chain(place: str) -> Any:
        return SimpleNamespace(store=None, application=US, bronze=place, prefix=f"{place}/")

    assert lost_table.moved_lake_error(chain("file:///bronze"), lambda: {"1"}) is None

    moved = lost_table.moved_lake_error(chain("file:///elsewhere"), lambda: {"1"})
    assert moved is not None
    assert "processed in file:///bronze, and are in file:///elsewhere" in moved.message
