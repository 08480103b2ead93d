"""Which record may follow which: `processing-manifest.md`, "Record" and "State"."""

from __future__ import annotations

import pytest
from tests.records import ITEM, REGIONS, START, draft, recorded

from lakewright.errors import IllegalTransition
from lakewright.manifest.item import Item
from lakewright.manifest.record import Draft, Record, State
from lakewright.manifest.replay import replay
from lakewright.manifest.store import Damage
from lakewright.manifest.verdict import Verdict

NEW = draft("new", State.NEW)
LOCK = draft("lock", State.PROCESSING, "new")
DONE = draft("done", State.PROCESSED, "lock")
FAIL = draft("fail", State.FAILED, "lock")
FREED = draft("freed", State.RESOLVED, "fail")
RELEASED = draft("released", State.RESOLVED, "lock")
SKIP = draft("skip", State.SKIPPED)
RELOCK = draft("relock", State.PROCESSING, "freed")

HISTORIES: dict[str, list[Draft]] = {
    "nothing": [],
    "new": [NEW],
    "locked": [NEW, LOCK],
    "processed": [NEW, LOCK, DONE],
    "failed": [NEW, LOCK, FAIL],
    "resolved": [NEW, LOCK, FAIL, FREED],
    "released": [NEW, LOCK, RELEASED],
    "locked again": [NEW, LOCK, FAIL, FREED, RELOCK],
    "skipped": [NEW, SKIP],
    "skipped while locked": [NEW, LOCK, SKIP],
    "never new": [draft("lock", State.PROCESSING)],
}

SAME, OTHER = "run-1", "run-2"

# History, state and previous record of everything that may follow; outcomes only in the run of the lock.
LEGAL = {
    ("nothing", "NEW", None),
    ("nothing", "PROCESSING", None),
    ("new", "NEW", None),
    ("new", "PROCESSING", None),
    ("new", "PROCESSING", "new"),
    ("locked", "PROCESSED", "lock"),
    ("locked", "FAILED", "lock"),
    ("locked", "RESOLVED", "lock"),
    ("processed", "NEW", None),
    ("processed", "PROCESSING", None),
    ("processed", "PROCESSING", "new"),
    ("failed", "RESOLVED", "fail"),
    ("resolved", "NEW", None),
    ("resolved", "PROCESSING", None),
    ("resolved", "PROCESSING", "new"),
    ("resolved", "PROCESSING", "freed"),
    ("released", "NEW", None),
    ("released", "PROCESSING", None),
    ("released", "PROCESSING", "new"),
    ("released", "PROCESSING", "released"),
    ("locked again", "PROCESSED", "relock"),
    ("locked again", "FAILED", "relock"),
    ("locked again", "RESOLVED", "relock"),
    ("skipped", "NEW", None),
    ("skipped", "PROCESSING", None),
    ("skipped", "PROCESSING", "new"),
    ("skipped while locked", "PROCESSED", "lock"),
    ("skipped while locked", "FAILED", "lock"),
    ("skipped while locked", "RESOLVED", "lock"),
    ("never new", "PROCESSED", "lock"),
    ("never new", "FAILED", "lock"),
    ("never new", "RESOLVED", "lock"),
}


def item_of(history: str) -> Item:
    return replay(ITEM, recorded(HISTORIES[history]))[0]


def following(history: str, one: Draft) -> Record:
    return one.recorded(sequence=len(HISTORIES[history]) + 1, now=START)


def is_legal(history: str, state: State, previous: str | None, run: str) -> bool:
    if state is State.SKIPPED:
        return True
    if state in (State.PROCESSED, State.FAILED) and run != SAME:
        return False
    return (history, state.value, previous) in LEGAL


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("run", [SAME, OTHER])
def test_a_record_may_follow_only_as_the_rules_allow(history: str, state: State, run: str) -> None:
    item = item_of(history)
    for previous in (None, "stranger", *(one.record_id for one in HISTORIES[history])):
        record = following(history, draft("next", state, previous, run=run))
        if is_legal(history, state, previous, run):
            assert item.after(record).state is state, previous
        else:
            with pytest.raises(IllegalTransition, match="can't be added"):
                item.after(record)


@pytest.mark.parametrize(
    ("one", "sequence", "problem"),
    [
        (draft("x", State.NEW, item="file:///elsewhere"), 1, "belongs to file:///elsewhere"),
        (draft("x", State.NEW), 2, "sequence is 2, the next one is 1"),
        (draft("x", State.NEW), 0, "sequence is 0, the next one is 1"),
    ],
)
def test_a_record_of_another_item_or_sequence_is_refused(one: Draft, sequence: int, problem: str) -> None:
    with pytest.raises(IllegalTransition, match=problem):
        Item(ITEM).after(one.recorded(sequence=sequence, now=START))


def test_imported_records_without_a_run_match_each_other() -> None:
    lock, done = draft("p", State.PROCESSING, run=None), draft("d", State.PROCESSED, "p", run=None)
    assert replay(ITEM, recorded([lock, done]))[0].verdict(REGIONS) is Verdict.PROCESSED


def test_one_lock_has_one_outcome() -> None:
    item, damages = replay(ITEM, recorded([NEW, LOCK, DONE, draft("again", State.PROCESSED, "lock")]))
    assert item.verdict(REGIONS) is Verdict.INVALID
    assert [damage.record_id for damage in damages] == ["again"]


def test_a_new_record_starts_a_revision_without_the_last_ones_verdicts() -> None:
    skipped = [NEW, LOCK, DONE, SKIP]
    item = replay(
        ITEM, recorded([*skipped, draft("new-2", State.NEW, content={"fingerprint": {"size": 2}})])
    )[0]
    assert (item.revision, item.processed, item.skipped, dict(item.tokens)) == (2, (), (), {})
    assert item.verdict(REGIONS) is Verdict.READY
    assert item.fingerprint == {"size": 2}


def test_resolving_adopts_the_slice_as_it_is_now() -> None:
    before = [draft("new", State.NEW, content={"fingerprint": {"size": 1}, "slice": "a"}), LOCK, FAIL]
    freed = draft("freed", State.RESOLVED, "fail", content={"fingerprint": {"size": 9}})
    item = replay(ITEM, recorded([*before, freed]))[0]
    assert item.fingerprint == {"size": 9}
    assert item.new is not None
    assert item.new.note["slice"] == "a"


class TestDamage:
    damaged = (NEW, draft("odd", State.PROCESSED, "new"))

    def item(self) -> Item:
        return replay(ITEM, recorded(self.damaged))[0]

    def test_makes_the_item_invalid_and_names_only_the_first_record(self) -> None:
        item, damages = replay(ITEM, recorded([*self.damaged, LOCK, DONE]))
        assert item.verdict(REGIONS) is Verdict.INVALID
        assert item.sequence == 4
        assert [(damage.record_id, damage.problem) for damage in damages] == [
            ("odd", "PROCESSED follows the open PROCESSING")
        ]

    @pytest.mark.parametrize("state", [s for s in State if s is not State.SKIPPED])
    def test_may_not_be_followed_by_other_records(self, state: State) -> None:
        with pytest.raises(IllegalTransition, match="PROCESSED follows the open PROCESSING"):
            self.item().after(draft("x", state).recorded(sequence=3, now=START))

    def test_holds_back_successors_until_skipped(self) -> None:
        item = self.item()
        assert item.holds_back(REGIONS)
        skipped = item.after(draft("skip", State.SKIPPED).recorded(sequence=3, now=START))
        assert skipped.verdict(REGIONS) is Verdict.INVALID
        assert not skipped.holds_back(REGIONS)

    def test_ends_with_a_new_that_mends_it(self) -> None:
        mended = draft("mend", State.NEW, content={"mends": True}).recorded(sequence=3, now=START)
        assert self.item().after(mended).verdict(REGIONS) is Verdict.READY

    def test_of_an_unreadable_record_is_reported(self) -> None:
        unreadable = Damage(ITEM, "odd", "record odd can't be read", sequence=2)
        item, damages = replay(ITEM, [*recorded([NEW]), unreadable])
        assert (item.sequence, item.verdict(REGIONS), damages) == (2, Verdict.INVALID, (unreadable,))

    def test_a_mending_new_does_not_free_a_valid_lock(self) -> None:
        locked = item_of("locked")
        with pytest.raises(IllegalTransition, match="is locked"):
            locked.after(draft("mend", State.NEW, content={"mends": True}).recorded(sequence=3, now=START))
