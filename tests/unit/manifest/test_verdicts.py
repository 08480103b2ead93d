"""What an application may do with an item: `processing-manifest.md`, "State" and "Use cases".

The cases are those of Snowplow's own tests, as far as they concern items and applications.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records import ITEM, START, draft, recorded

from lakewright.errors import IllegalTransition
from lakewright.manifest.item import Item
from lakewright.manifest.record import ANYONE, Application, Draft, Record, State
from lakewright.manifest.replay import replay
from lakewright.manifest.verdict import Verdict

SHREDDER = Application.named("shredder")
LOADER = Application.named("loader")
LOADER_1 = Application.named("loader", "target-1")
LOADER_2 = Application.named("loader", "target-2")
OTHER_1 = Application.named("other", "target-1")

NEW = draft("new", "NEW", application=SHREDDER)


def attempt(name: str, application: Application, *outcome: str) -> list[Draft]:
    """A PROCESSING and the records that follow it, such as `FAILED`, `RESOLVED`."""
    drafts = [draft(f"{name}-PROCESSING", "PROCESSING", application=application)]
    for state in outcome:
        drafts.append(draft(f"{name}-{state}", state, drafts[-1].record_id, application=application))
    return drafts


def skip(application: Application) -> Draft:
    return draft(f"skip-{application}", "SKIPPED", application=application)


READY, LOCKED, FAILED = Verdict.READY, Verdict.LOCKED, Verdict.FAILED
SKIPPED, PROCESSED, INVALID = Verdict.SKIPPED, Verdict.PROCESSED, Verdict.INVALID

CASES: dict[str, tuple[list[Draft], dict[Application, Verdict]]] = {
    "1: done by one application, ready for the next": (
        [NEW, *attempt("a", SHREDDER, "PROCESSED")],
        {SHREDDER: PROCESSED, LOADER: READY},
    ),
    "2, 17: locked for everybody": (
        [NEW, *attempt("a", SHREDDER)],
        {SHREDDER: LOCKED, LOADER: LOCKED, LOADER_1: LOCKED},
    ),
    "5: without instance counts for all instances": (
        [NEW, *attempt("a", LOADER, "PROCESSED")],
        {LOADER_1: PROCESSED, LOADER_2: PROCESSED, LOADER: PROCESSED, OTHER_1: READY},
    ),
    "5, 10: of one instance counts for no other": (
        [NEW, *attempt("a", LOADER_1, "PROCESSED")],
        {LOADER_1: PROCESSED, LOADER_2: READY, LOADER: PROCESSED},
    ),
    "9, 31: skipped for one, not for another": ([NEW, skip(LOADER)], {LOADER: SKIPPED, SHREDDER: READY}),
    "13, 20: a failure blocks everybody": (
        [NEW, *attempt("a", SHREDDER, "FAILED")],
        {SHREDDER: FAILED, LOADER: FAILED},
    ),
    "16: new": ([NEW], {SHREDDER: READY, LOADER_1: READY}),
    "18: an outcome of another lock is damage": (
        [NEW, *attempt("a", SHREDDER), draft("b", "PROCESSED", "elsewhere", application=SHREDDER)],
        {SHREDDER: INVALID},
    ),
    "19: its own outcome frees it": ([NEW, *attempt("a", LOADER, "PROCESSED")], {SHREDDER: READY}),
    "21: resolved after a failure": ([NEW, *attempt("a", SHREDDER, "FAILED", "RESOLVED")], {SHREDDER: READY}),
    "a stuck lock can be resolved": ([NEW, *attempt("a", SHREDDER, "RESOLVED")], {SHREDDER: READY}),
    "22: resolved for one, then failed for another": (
        [NEW, *attempt("a", SHREDDER, "FAILED", "RESOLVED"), *attempt("b", LOADER, "FAILED")],
        {SHREDDER: FAILED, LOADER: FAILED},
    ),
    "23: a skip frees no failed item": (
        [NEW, *attempt("a", SHREDDER, "FAILED"), skip(ANYONE)],
        {LOADER: FAILED},
    ),
    "29, 30: skipped for anyone": (
        [NEW, skip(ANYONE)],
        {SHREDDER: SKIPPED, LOADER_1: SKIPPED, LOADER: SKIPPED},
    ),
    "a name's skip keeps all its instances away": (
        [NEW, skip(LOADER)],
        {LOADER_1: SKIPPED, LOADER_2: SKIPPED},
    ),
    "32, 33: an instance's skip keeps no other away": (
        [NEW, skip(LOADER_1)],
        {LOADER_1: SKIPPED, LOADER_2: READY, LOADER: READY, OTHER_1: READY},
    ),
    "no record": ([], {SHREDDER: Verdict.UNKNOWN}),
}


@pytest.mark.parametrize("case", CASES)
def test_verdicts_follow_from_the_records(case: str) -> None:
    drafts, expected = CASES[case]
    item, _ = replay(ITEM, recorded(drafts))
    assert {application: item.verdict(application) for application in expected} == expected


@pytest.mark.parametrize(
    ("drafts", "application", "holds"),
    [
        ([NEW], LOADER, False),
        ([NEW, *attempt("a", SHREDDER)], SHREDDER, True),
        ([NEW, *attempt("a", SHREDDER, "FAILED")], SHREDDER, True),
        ([NEW, *attempt("a", SHREDDER, "FAILED", "RESOLVED")], SHREDDER, False),
        ([NEW, *attempt("a", SHREDDER, "PROCESSED"), *attempt("b", LOADER, "FAILED")], SHREDDER, False),
        ([NEW, *attempt("a", SHREDDER, "PROCESSED"), *attempt("b", LOADER, "FAILED")], LOADER, True),
    ],
)
def test_a_blocked_item_holds_back_applications_that_have_not_processed_it(
    drafts: list[Draft], application: Application, holds: bool
) -> None:
    assert replay(ITEM, recorded(drafts))[0].holds_back(application) is holds


def test_a_failed_late_slice_holds_nothing_back() -> None:
    late = draft("late", "FAILED", "a-PROCESSING", application=SHREDDER, content={"holds_back": False})
    item, _ = replay(ITEM, recorded([NEW, *attempt("a", SHREDDER), late]))
    assert item.verdict(SHREDDER) is FAILED
    assert not item.holds_back(SHREDDER)


def test_a_skip_for_everyone_concerns_no_application_by_name() -> None:
    item, _ = replay(ITEM, recorded([skip(ANYONE)]))
    assert item.applications == ()
    assert item.verdicts() == {ANYONE: SKIPPED}


APPLICATIONS = st.sampled_from([SHREDDER, LOADER, LOADER_1, LOADER_2, ANYONE])
CONTENTS = st.sampled_from(
    [None, {"token": 7}, {"fingerprint": {"size": 1}}, {"error": {"message": "no"}, "holds_back": False}]
)


@st.composite
def histories(drawn: st.DrawFn) -> list[Record]:
    """Records that are mostly legal, and sometimes illegal."""
    records: list[Record] = []
    for number in range(1, drawn(st.integers(0, 12)) + 1):
        known = [None, *(record.record_id for record in records[-3:])]
        one = draft(
            f"r{number}",
            drawn(st.sampled_from(State)),
            drawn(st.sampled_from(known)),
            run=drawn(st.sampled_from(["run-1", "run-1", "run-2", None])),
            application=drawn(APPLICATIONS),
            content=drawn(CONTENTS),
        )
        records.append(one.recorded(sequence=number, now=START))
    return records


@given(histories())
def test_folding_through_json_record_by_record_gives_the_same_item(records: list[Record]) -> None:
    step_by_step = Item(ITEM)
    for record in records:
        try:
            step_by_step = step_by_step.after(Record.from_json(record.as_json()))
        except IllegalTransition as illegal:
            step_by_step = step_by_step.damaged(record, str(illegal.details["problem"]))
        step_by_step = Item.from_json(step_by_step.as_json())
    assert step_by_step == replay(ITEM, records)[0]


@given(histories())
def test_an_item_is_invalid_or_held_by_one_at_most(records: list[Record]) -> None:
    item, damages = replay(ITEM, records)
    assert (item.problem is not None) == bool(damages)
    assert item.problem is not None or item.processing is None or item.failed is None
