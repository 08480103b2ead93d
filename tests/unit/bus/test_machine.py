"""Three applications that follow each other, compared with a plain model: any history comes to the same."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.examples import examples
from tests.records import Clock

from lakewright.bus.manifest import Manifest
from lakewright.errors import ItemFailed, ItemLocked, ItemWaits, LeaseLost, SequenceConflict
from lakewright.manifest.claim import Claim
from lakewright.manifest.record import ANYONE, Application
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.store import Store
from lakewright.stores.memory import MemoryStore
from lakewright.stores.sqlite.database import SqliteStore
from lakewright.upkeep.fsck import fsck

LANDING = "acme/landing"
AFTER = {"acme/scanner": (), "acme/loader": ("acme/scanner",), "acme/report": ("acme/scanner", "acme/loader")}
APPLICATIONS = st.sampled_from(sorted(AFTER))
ITEMS = st.sampled_from(["a", "b c", "é"])
NOT_READY = (ItemFailed, ItemLocked, ItemWaits, SequenceConflict)


@dataclass
class Plain:
    """What the records of an item come to, in the simplest words.

    Attributes:
        processed: The payload's number by application.
        holder: The application that holds the item, if one does.
    """

    arrival: int
    processed: dict[str, int] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    holder: str | None = None
    has_failed: bool = False

    def is_ready(self, application: str) -> bool:
        return (
            self.holder is None
            and not self.has_failed
            and application not in self.processed
            and not self.skipped & {application, "*"}
            and all(before in self.processed for before in AFTER[application])
        )


class ThreeApplications(RuleBasedStateMachine):
    """Everything is done to a manifest and to plain dictionaries; they must agree."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.manifest = Manifest(self.opened(), redactor=Redactor(), lease=timedelta(seconds=60))
        self.plain: dict[str, Plain] = {}
        self.claims: dict[str, Claim] = {}
        self.number = 0

    def opened(self) -> Store:
        return MemoryStore(self.clock)

    def teardown(self) -> None:
        self.manifest.close()

    def _tick(self) -> int:
        self.clock.advance(0.001)
        self.number += 1
        return self.number

    @rule(item=ITEMS)
    def add(self, item: str) -> None:
        at = self._tick()
        added = self.manifest.add(item, application=LANDING, payload={"n": at})
        assert added == (() if item in self.plain else (item,))
        self.plain.setdefault(item, Plain(at))

    @rule(item=ITEMS, application=APPLICATIONS)
    def claim(self, item: str, application: str) -> None:
        demand = self.manifest.demand(application, AFTER[application])
        plain = self.plain.get(item)
        try:
            claim = demand.acquire(self.manifest.ledger, item, self.manifest.holder, self.manifest.lease)
        except NOT_READY:
            assert plain is None or not plain.is_ready(application)
            return
        assert plain is not None
        assert plain.is_ready(application)
        self.claims[item] = claim
        plain.holder = application

    @rule(item=ITEMS, ending=st.sampled_from(["processed", "failed", "given back"]))
    def end(self, item: str, ending: str) -> None:
        claim = self.claims.pop(item, None)
        if claim is None:
            return
        plain, number = self.plain[item], self._tick()
        is_held = plain.holder is not None
        try:
            if ending == "processed":
                self.manifest.ledger.processed_by_other(claim, {"n": number})
            elif ending == "failed":
                self.manifest.ledger.failed(claim, {"error": {"message": "no"}})
            else:
                self.manifest.ledger.give_back(claim, "stopped")
        except LeaseLost:
            assert not is_held
            return
        assert is_held or ending == "given back"
        if not is_held:
            return
        if ending == "processed":
            plain.processed[str(claim.application)] = number
        plain.has_failed = ending == "failed"
        plain.holder = None

    @rule(item=ITEMS)
    def operate(self, item: str) -> None:
        plain = self.plain.get(item)
        if plain is None:
            return
        if plain.has_failed:
            self.manifest.ledger.resolve(item, "mended")
            plain.has_failed = False
        elif plain.holder is not None:
            self.manifest.ledger.release(item, "it hangs", is_forced=True)
            plain.holder = None  # its claim is kept, to be ended too late

    @rule(item=ITEMS, whom=st.sampled_from([*AFTER, "*"]))
    def skip(self, item: str, whom: str) -> None:
        plain = self.plain.get(item)
        if plain is None or plain.holder is not None or plain.has_failed:
            return
        application = ANYONE if whom == "*" else Application.named(whom)
        self.manifest.ledger.skip(item, "not wanted", application=application)
        if "*" not in plain.skipped:
            plain.skipped.add(whom)

    @rule(item=ITEMS)
    def requeue(self, item: str) -> None:
        plain = self.plain.get(item)
        if plain is None or plain.holder is not None:
            return
        at = self._tick()
        self.manifest.ledger.requeue(item, "sent again")
        self.plain[item] = Plain(at)

    @rule(application=APPLICATIONS)
    def process_all(self, application: str) -> None:
        number = self._tick()
        ready = self._ready(application)
        done = self.manifest.process_all(application, lambda _: {"n": number}, AFTER[application])
        assert done.processed == ready
        for item in ready:
            self.plain[item].processed[application] = number

    def _ready(self, application: str) -> list[str]:
        found = [item for item, plain in self.plain.items() if plain.is_ready(application)]
        return sorted(found, key=lambda item: (self.plain[item].arrival, item))

    @invariant()
    def both_know_who_is_next_and_what_was_done(self) -> None:
        for application, after in AFTER.items():
            ready = [item.item_id for item in self.manifest.ready(application, after)]
            assert ready == self._ready(application)
            assert self.manifest.backlog(application, after).ready == len(ready)
            state = {each.item_id: each.payload["n"] for each in self.manifest.state(application)}
            plain = {i: p.processed[application] for i, p in self.plain.items() if application in p.processed}
            assert state == plain

    @invariant()
    def nothing_is_damaged(self) -> None:
        assert list(fsck(self.manifest.store)) == []


class ThreeApplicationsInSqlite(ThreeApplications):
    """The same in a file, with its listings by standing and arrival."""

    def opened(self) -> Store:
        self.folder = tempfile.TemporaryDirectory()
        return SqliteStore(Path(self.folder.name) / "manifest.db", clock=self.clock)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


def agrees(machine: type[ThreeApplications], usual: int, steps: int = 25) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples(usual), stateful_step_count=steps, deadline=None)
    )


@pytest.mark.hypothesis
def test_three_applications_that_follow_each_other_are_like_the_plain_model() -> None:
    agrees(ThreeApplications, 15)


@pytest.mark.hypothesis
def test_in_sqlite_three_applications_are_like_the_plain_model() -> None:
    agrees(ThreeApplicationsInSqlite, 3)


@pytest.mark.nightly
def test_in_sqlite_any_history_of_three_applications_is_like_the_plain_model() -> None:
    agrees(ThreeApplicationsInSqlite, 60, 50)
