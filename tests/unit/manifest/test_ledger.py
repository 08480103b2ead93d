"""Discovering, claiming and finishing items: `processing-manifest.md`, "Item", "State" and "Use cases"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.records import (
    COUNTRIES,
    ITEM,
    REGIONS,
    Clock,
    claim,
    draft,
    found,
    holder,
    ledger_of,
    numbered,
    put_down,
)

import lakewright
from lakewright.errors import (
    CommitTooLate,
    DeleteBrakeError,
    ItemFailed,
    ItemLocked,
    LakewrightError,
    LateSliceError,
    LeaseLost,
    ManifestCorrupt,
    SequenceConflict,
    SliceError,
    StorageUnavailable,
    UsageError,
    VerificationError,
)
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.claim import COUNTER, raise_counter
from lakewright.manifest.item import Item
from lakewright.manifest.lease import LEASE, find_lease
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.lock import recovery_advice, recovery_command
from lakewright.manifest.payload import MAY_SKIP, PERMITTED_BY, failure
from lakewright.manifest.record import ANYONE, State
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.store import Document, Put, Write, Written
from lakewright.manifest.verdict import Verdict
from lakewright.manifest.watermarks import Watermark
from lakewright.testing import MemoryStore


class Stage:
    """A store with one new item, its clock and a ledger."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.store = MemoryStore(self.clock)
        self.ids = numbered()
        self.ledger = self.another(**options)
        self.ledger.discover([found()])

    def another(self, **options: Any) -> Ledger:
        return ledger_of(self.store, **{"ids": self.ids, **options})

    def states(self, item_id: str = ITEM) -> list[str]:
        return [record.state.value for record in self.store.records(item_id)]

    def verdict(self) -> Verdict:
        return self.ledger.item(ITEM).verdict(REGIONS)


class Meddling(MemoryStore):
    """A store that runs an action just before, or right after, the next write."""

    before: Callable[[], object] | None = None
    loses_acknowledgement = False

    def write(self, write: Write) -> Written:
        meddle, self.before = self.before, None
        if meddle is not None:
            meddle()
        written = super().write(write)
        if self.loses_acknowledgement:
            self.loses_acknowledgement = False
            return super().write(write)  # as a back end does when it retries
        return written


class TestDiscovery:
    def test_records_unknown_slices_and_leaves_known_ones_unchanged(self) -> None:
        stage = Stage()
        discovery = stage.ledger.discover(
            [found(), found("2022-02-01.csv"), found("2022-02-01.csv")], run_id="r"
        )
        assert [item.item_id for item in discovery.new] == [found("2022-02-01.csv").item_id]
        assert [item.item_id for item in discovery.known] == [ITEM]
        record = stage.store.records(found("2022-02-01.csv").item_id)[0]
        assert (record.state, record.run_id, record.application) == (State.NEW, "r", REGIONS)
        assert record.payload == {
            "schema": "lakewright/new/1",
            "data": {
                "entity": "regions",
                "slice": "2022-02-01.csv",
                "fingerprint": {"size": 10, "modified": "2022-01-01T00:00:00Z"},
            },
        }

    def test_records_many_slices_in_batches(self) -> None:
        stage = Stage()
        discovery = stage.ledger.discover(found(f"{number:04}.csv") for number in range(1_203))
        assert len(discovery.new) == 1_203

    def test_returns_an_item_as_known_if_another_process_recorded_it_first(self) -> None:
        class Overtaken(MemoryStore):
            is_overtaken = False

            def write_many(self, writes: Iterable[Write]) -> Iterator[Written | LakewrightError]:
                if not self.is_overtaken:
                    self.is_overtaken = True
                    put_down(self, draft("other", "NEW"))
                return super().write_many(writes)

        discovery = ledger_of(Overtaken()).discover([found()])
        assert (len(discovery.new), [item.sequence for item in discovery.known]) == (0, [1])


class TestClaim:
    def test_appends_processing_and_puts_the_lease(self) -> None:
        stage = Stage()
        claimed = claim(stage.ledger)
        assert stage.states() == ["NEW", "PROCESSING"]
        new, processing = stage.store.records(ITEM)
        assert processing.previous_record_id == new.record_id
        assert processing.record_id == claimed.record_id
        assert processing.run_id == claimed.run_id == "run-1"
        assert processing.content["token"] == claimed.token == 1
        lease = find_lease(stage.store, ITEM)
        assert lease == claimed.lease
        assert lease.expires == stage.clock() + timedelta(seconds=60)

    def test_of_a_locked_item_writes_nothing_and_names_the_holder(self) -> None:
        stage = Stage()
        claim(stage.ledger)
        with pytest.raises(ItemLocked, match=r"locked by ann@here \(process 1, run run-1\)") as caught:
            claim(stage.another(), holder=holder("run-2", pid=2))
        assert stage.states() == ["NEW", "PROCESSING"]
        assert caught.value.details == {
            "item_id": ITEM,
            "application": str(REGIONS),
            "holder": "ann@here (process 1, run run-1)",
            "run_id": "run-1",
            "since": "2026-01-01T00:00:00.000000Z",
            "expires": "2026-01-01T00:01:00.000000Z",
            "is_stale": False,
        }

    def test_locks_for_every_application(self) -> None:
        stage = Stage()
        claim(stage.ledger)
        with pytest.raises(ItemLocked):
            claim(stage.another(), application=COUNTRIES, holder=holder("run-2"))

    def test_loses_if_another_claim_is_written_between_read_and_write(self) -> None:
        store = Meddling(Clock())
        ids = numbered()
        ledger = ledger_of(store, ids=ids)
        ledger.discover([found()])
        store.before = lambda: claim(ledger_of(store, ids=ids), holder=holder("run-2", pid=2))
        with pytest.raises(ItemLocked, match="run-2"):
            claim(ledger)
        assert len(store.records(ITEM)) == 2

    def test_is_retried_if_only_the_counter_changed_meanwhile(self) -> None:
        store = Meddling(Clock())
        ids = numbered()
        ledger = ledger_of(store, ids=ids)
        ledger.discover([found(), found("2022-02-01.csv")])
        second = found("2022-02-01.csv").item_id
        store.before = lambda: claim(ledger_of(store, ids=ids), second)
        assert claim(ledger).token == 2

    def test_survives_a_lost_acknowledgement(self) -> None:
        store = Meddling(Clock())
        ledger = ledger_of(store)
        ledger.discover([found()])
        store.loses_acknowledgement = True
        claimed = claim(ledger)
        assert [record.record_id for record in store.records(ITEM)][1:] == [claimed.record_id]

    @pytest.mark.parametrize("verdict", ["unknown", "processed", "skipped"])
    def test_of_an_item_that_is_not_ready_names_its_verdict(self, verdict: str) -> None:
        stage = Stage()
        if verdict == "processed":
            stage.ledger.processed(claim(stage.ledger), {})
        if verdict == "skipped":
            stage.ledger.skip(ITEM, "no use")
        item_id = "file:///nowhere" if verdict == "unknown" else ITEM
        before = stage.states(item_id)
        with pytest.raises(SequenceConflict) as caught:
            claim(stage.ledger, item_id)
        assert caught.value.details["verdict"] == verdict
        assert stage.states(item_id) == before

    def test_of_a_failed_item_shows_the_error_and_the_command_to_use(self) -> None:
        stage = Stage()
        stage.ledger.failed(claim(stage.ledger), failure(ValueError("no column id")))
        with pytest.raises(ItemFailed, match="no column id") as caught:
            claim(stage.ledger)
        assert caught.value.remedy == f"Fix the cause, then `lakewright manifest resolve {ITEM}`."
        assert caught.value.details["error"]["class"] == "ValueError"

    def test_of_an_invalid_item_is_refused(self) -> None:
        stage = Stage()
        item = stage.store.read([ITEM])[ITEM]
        stage.store._items[ITEM] = item.damaged(stage.store.records(ITEM)[0], "edited by hand")
        with pytest.raises(ManifestCorrupt, match="edited by hand"):
            claim(stage.ledger)


class TestToken:
    def test_grows_with_each_revision_of_the_same_table(self) -> None:
        stage = Stage()
        names = ["a", "b", "c"]
        stage.ledger.discover(found(name) for name in names)
        tokens = [claim(stage.ledger, found(name).item_id).token for name in names]
        assert tokens == [1, 2, 3]
        other = claim(stage.ledger, ITEM, token_counter="silver/other")
        assert other.token == 1

    def test_is_the_same_for_every_attempt_at_a_revision(self) -> None:
        stage = Stage()
        first = claim(stage.ledger)
        stage.ledger.failed(first, failure(ValueError("no")))
        stage.ledger.resolve(ITEM, "mended")
        second = claim(stage.ledger)
        assert second.token == first.token
        stage.ledger.processed(second, {})
        stage.ledger.requeue(ITEM, "once more")
        third = claim(stage.ledger)
        assert third.token == 2

    def test_is_replaced_if_the_table_will_never_take_it(self) -> None:
        stage = Stage()
        first = claim(stage.ledger)
        stage.ledger.failed(first, failure(ValueError("no")))
        stage.ledger.resolve(ITEM, "mended")
        again = claim(stage.ledger, token_floor=7, refused=first.token)
        assert again.token == 8
        stage.ledger.failed(again, failure(ValueError("no")))
        stage.ledger.resolve(ITEM, "mended")
        assert claim(stage.ledger, token_floor=9, refused=first.token).token == 8

    def test_is_shared_by_the_items_of_one_commit(self) -> None:
        stage = Stage()
        names = ["a", "b", "c", "d"]
        stage.ledger.discover(found(name) for name in names)
        first = claim(stage.ledger, found("a").item_id)
        tokens = [claim(stage.ledger, found(name).item_id, shared=first.token).token for name in ("b", "c")]
        assert tokens == [first.token] * 2
        assert claim(stage.ledger, found("d").item_id).token == first.token + 1
        stage.ledger.release(found("d").item_id, "again", is_forced=True)
        assert claim(stage.ledger, found("d").item_id, shared=first.token).token == first.token + 1

    def test_is_greater_than_the_one_the_table_holds(self) -> None:
        stage = Stage()
        assert claim(stage.ledger, token_floor=41).token == 42
        counter = stage.store.document(COUNTER, "silver/regions")
        assert counter is not None
        assert counter.value == {"last": 42}

    def test_differs_between_applications(self) -> None:
        stage = Stage()
        stage.ledger.processed(claim(stage.ledger), {})
        claimed = claim(stage.ledger, application=COUNTRIES, token_counter="silver/countries")
        assert claimed.token == 1


class TestRecovery:
    def recalled(self, ledger: Ledger, seen: Item) -> Item:
        content = {"watermarks": {"id": {"type": "long", "value": 9}}}
        return ledger.recover_processed(seen, REGIONS, token=4, content=content, run_id="run-1")

    def test_is_one_write_and_keeps_the_number_of_the_commit(self) -> None:
        stage = Stage()
        item = self.recalled(stage.ledger, stage.ledger.item(ITEM))
        assert stage.states() == ["NEW", "PROCESSING", "PROCESSED"]
        assert (item.verdict(REGIONS), item.tokens) == (Verdict.PROCESSED, {REGIONS.key: 4})
        assert find_lease(stage.store, ITEM) is None
        assert stage.ledger.watermarks.last(REGIONS)["id"].value == 9

    def test_writes_nothing_if_another_run_recorded_something_meanwhile(self) -> None:
        store = Meddling(Clock())
        ledger = ledger_of(store)
        ledger.discover([found()])
        seen = ledger.item(ITEM)
        store.before = lambda: claim(ledger)
        assert self.recalled(ledger, seen).verdict(REGIONS) is Verdict.LOCKED
        assert ledger.watermarks.last(REGIONS) == {}

    def test_is_retried_if_only_a_watermark_changed_meanwhile(self) -> None:
        store = Meddling(Clock())
        ledger = ledger_of(store)
        ledger.discover([found()])
        seen = ledger.item(ITEM)
        moved = Watermark("long", 5)
        store.before = lambda: ledger.set_watermark(REGIONS, "id", moved, "tests")
        assert self.recalled(ledger, seen).verdict(REGIONS) is Verdict.PROCESSED
        assert ledger.watermarks.last(REGIONS)["id"].value == 9

    def test_raises_the_counter_and_never_lowers_it(self) -> None:
        store = Meddling(Clock())
        ledger = ledger_of(store)
        ledger.discover([found("a"), found("b")])
        store.before = lambda: claim(ledger, found("a").item_id)
        raise_counter(store, "silver/regions", 7)
        raise_counter(store, "silver/regions", 3)
        assert claim(ledger, found("b").item_id).token == 8


class TestTakeover:
    def test_of_an_expired_lease_resolves_and_locks_in_one_write(self) -> None:
        stage = Stage()
        first = claim(stage.ledger)
        stage.clock.advance(60)
        second = claim(stage.another(), holder=holder("run-2", pid=2))
        assert stage.states() == ["NEW", "PROCESSING", "RESOLVED", "PROCESSING"]
        _, _, resolved, processing = stage.store.records(ITEM)
        assert (resolved.previous_record_id, resolved.run_id) == (first.record_id, "run-2")
        assert resolved.content["reason"] == (
            "taken over from ann@here (process 1, run run-1): "
            "its lease expired at 2026-01-01T00:01:00.000000Z"
        )
        assert processing.previous_record_id == resolved.record_id
        assert second.token == first.token

    def test_happens_at_once_if_the_holder_is_dead(self) -> None:
        stage = Stage()
        claim(stage.ledger, holder=holder(pid=13))
        second = claim(stage.another(is_dead=lambda who: who.pid == 13), holder=holder("run-2", pid=2))
        assert second.run_id == "run-2"

    def test_of_a_live_lease_is_refused(self) -> None:
        stage = Stage()
        claim(stage.ledger)
        stage.clock.advance(59.9)
        with pytest.raises(ItemLocked):
            claim(stage.another(), holder=holder("run-2", pid=2))

    def test_waits_for_an_operator_if_the_project_says_so(self) -> None:
        stage = Stage()
        claim(stage.ledger)
        stage.clock.advance(3_600)
        with pytest.raises(ItemLocked, match="lease expired") as caught:
            claim(stage.another(), holder=holder("run-2", pid=2), takeover="operator")
        assert caught.value.details["is_stale"] is True
        assert caught.value.remedy == f"Free it with `lakewright manifest release {ITEM}`."

    def test_of_an_imported_lock_without_lease_is_allowed(self) -> None:
        stage = Stage()
        put_down(stage.store, draft("old", "PROCESSING", run=None))
        assert claim(stage.ledger).token == 1
        assert stage.states()[-2:] == ["RESOLVED", "PROCESSING"]

    def test_fails_if_the_holder_renews_meanwhile(self) -> None:
        store = Meddling(Clock())
        clock = store._clock
        ids = numbered()
        ledger = ledger_of(store, ids=ids)
        ledger.discover([found()])
        first = claim(ledger)
        assert isinstance(clock, Clock)
        clock.advance(61)

        def renew() -> None:
            renewed = first.lease.renewed(clock(), timedelta(seconds=60))
            MemoryStore.write(store, Write(puts=(renewed.put(expected=first.lease.version),)))

        store.before = renew
        with pytest.raises(ItemLocked):
            claim(ledger_of(store, ids=ids), holder=holder("run-2", pid=2))
        assert len(store.records(ITEM)) == 2

    def test_for_another_application_keeps_the_first_ones_outcome(self) -> None:
        stage = Stage()
        stage.ledger.processed(claim(stage.ledger), {})
        claim(stage.ledger, application=COUNTRIES, token_counter="silver/countries")
        stage.clock.advance(61)
        with pytest.raises(SequenceConflict, match="processed"):
            claim(stage.another())

    def test_prevents_the_former_holder_from_finishing(self) -> None:
        stage = Stage()
        zombie = claim(stage.ledger)
        stage.clock.advance(61)
        claim(stage.another(), holder=holder("run-2", pid=2))
        with pytest.raises(LeaseLost, match="run-2"):
            stage.ledger.processed(zombie, {"watermarks": {"id": {"type": "long", "value": 9}}})
        with pytest.raises(LeaseLost, match="run-2"):
            stage.ledger.failed(zombie, failure(ValueError("late")))
        assert stage.states() == ["NEW", "PROCESSING", "RESOLVED", "PROCESSING"]
        assert stage.ledger.watermarks.last(REGIONS) == {}


class TestOutcome:
    def test_processed_holds_metrics_and_releases_the_lease(self) -> None:
        stage = Stage()
        claimed = claim(stage.ledger)
        item = stage.ledger.processed(claimed, {"metrics": {"inserted": 3}, "delta_version": 7})
        assert item.verdict(REGIONS) is Verdict.PROCESSED
        last = stage.store.records(ITEM)[-1]
        assert (last.previous_record_id, last.run_id) == (claimed.record_id, "run-1")
        assert last.payload == {
            "schema": "lakewright/processed/1",
            "data": {"metrics": {"inserted": 3}, "delta_version": 7},
        }
        assert find_lease(stage.store, ITEM) is None

    @pytest.mark.parametrize("outcome", ["processed", "failed"])
    def test_written_twice_is_recorded_once(self, outcome: str) -> None:
        stage = Stage()
        claimed = claim(stage.ledger)
        finish = getattr(stage.ledger, outcome)
        finish(claimed, {"watermarks": {"id": {"type": "long", "value": 9}}})
        again = finish(claimed, {"watermarks": {"id": {"type": "long", "value": 9}}})
        assert again.sequence == 3
        assert stage.states() == ["NEW", "PROCESSING", outcome.upper()]

    def test_written_again_after_another_record_is_recognised(self) -> None:
        stage = Stage()
        claimed = claim(stage.ledger)
        put_down(stage.store, draft("skip", "SKIPPED", application=COUNTRIES, run=None))
        stage.ledger.processed(claimed, {})
        assert stage.ledger.processed(claimed, {}).sequence == 4

    def test_a_claim_ends_only_once(self) -> None:
        stage = Stage()
        claimed = claim(stage.ledger)
        stage.ledger.processed(claimed, {})
        with pytest.raises(LeaseLost):
            stage.ledger.failed(claimed, failure(ValueError("no")))

    def test_is_written_even_if_the_item_was_skipped_meanwhile(self) -> None:
        stage = Stage()
        claimed = claim(stage.ledger)
        put_down(stage.store, draft("skip", "SKIPPED", application=COUNTRIES, run=None))
        assert stage.ledger.processed(claimed, {}).is_processed_by(REGIONS)

    def test_of_a_late_slice_holds_nothing_back(self) -> None:
        stage = Stage()
        item = stage.ledger.failed(claim(stage.ledger), failure(ValueError("late"), holds_back=False))
        assert not item.holds_back(REGIONS)

    def test_advances_watermarks_in_the_same_write_and_never_lowers_them(self) -> None:
        stage = Stage()
        stage.ledger.discover([found("b"), found("c")])
        brought = [("2022-03-01", 5), ("2022-02-01", 7)]
        for name, (day, number) in zip("bc", brought, strict=True):
            content = {
                "watermarks": {
                    "day": {"type": "date", "value": day},
                    "id": {"type": "long", "value": number},
                }
            }
            stage.ledger.processed(claim(stage.ledger, found(name).item_id), content)
        assert stage.ledger.watermarks.last(REGIONS) == {
            "day": Watermark("date", "2022-03-01"),
            "id": Watermark("long", 7),
        }
        items = {standing.column: standing.item_id for standing in stage.ledger.watermarks.all()}
        assert items == {"day": found("b").item_id, "id": found("c").item_id}

    def test_contains_no_secrets(self) -> None:
        redactor = Redactor.of({"DB_PASSWORD": "s3cr3t-value"})
        stage = Stage(redactor=redactor)
        stage.ledger.failed(claim(stage.ledger), failure(ValueError("login with s3cr3t-value refused")))
        assert "s3cr3t-value" not in str(stage.store.records(ITEM))
        assert "login with *** refused" in str(stage.store.records(ITEM)[-1].payload)

    def test_keeps_names_that_happen_to_equal_a_password(self) -> None:
        stage = Stage(redactor=Redactor(frozenset({"regions", "2022-01-01.csv"})))
        note = stage.ledger.item(ITEM).new
        assert note is not None
        assert (note.note["entity"], note.note["slice"]) == ("regions", "2022-01-01.csv")


class TestOperator:
    def failed(self) -> Stage:
        stage = Stage()
        stage.ledger.failed(claim(stage.ledger), failure(ValueError("no")))
        return stage

    def locked(self) -> Stage:
        stage = Stage()
        claim(stage.ledger)
        return stage

    def test_a_late_failure_may_be_skipped_without_being_resolved_first(self) -> None:
        stage = Stage()
        stage.ledger.failed(claim(stage.ledger), failure(ValueError("late"), holds_back=False))
        item = stage.ledger.skip(ITEM, "older than what is there")
        assert item.verdict(REGIONS) is Verdict.SKIPPED
        assert [record.state for record in stage.store.records(ITEM)][-2:] == [State.RESOLVED, State.SKIPPED]

    def test_resolve_allows_a_failed_item_to_be_processed_again(self) -> None:
        stage = self.failed()
        item = stage.ledger.resolve(ITEM, "slice was sent anew", fingerprint={"size": 11})
        assert item.verdict(REGIONS) is Verdict.READY
        assert item.fingerprint == {"size": 11}
        record = stage.store.records(ITEM)[-1]
        assert (record.state, record.run_id) == (State.RESOLVED, None)
        assert record.content["reason"] == "slice was sent anew"

    def test_resolve_is_not_for_locks(self) -> None:
        stage = self.locked()
        with pytest.raises(ItemLocked):
            stage.ledger.resolve(ITEM, "x")

    @pytest.mark.parametrize("verb", ["resolve", "release", "skip", "unskip", "requeue"])
    def test_actions_on_an_unknown_item_are_refused(self, verb: str) -> None:
        with pytest.raises(UsageError, match="no item file:///nowhere"):
            getattr(Stage().ledger, verb)("file:///nowhere", "x")

    @pytest.mark.parametrize(
        ("verb", "message"),
        [
            ("resolve", "no unresolved failure"),
            ("release", "isn't locked"),
            ("unskip", "isn't skipped for everyone"),
        ],
    )
    def test_actions_that_do_not_fit_the_items_state_are_refused(self, verb: str, message: str) -> None:
        stage = Stage()
        with pytest.raises(UsageError) as caught:
            getattr(stage.ledger, verb)(ITEM, "x")
        assert message in caught.value.message
        assert stage.states() == ["NEW"]

    def test_release_of_a_live_lock_needs_force(self) -> None:
        stage = self.locked()
        with pytest.raises(ItemLocked, match="locked by") as caught:
            stage.ledger.release(ITEM, "x")
        assert "--force" in str(caught.value.remedy)
        item = stage.ledger.release(ITEM, "machine is gone", is_forced=True)
        assert item.verdict(REGIONS) is Verdict.READY
        assert find_lease(stage.store, ITEM) is None

    def test_release_of_a_stale_lock_needs_none(self) -> None:
        stage = self.locked()
        stage.clock.advance(61)
        assert stage.ledger.release(ITEM, "gone").verdict(REGIONS) is Verdict.READY

    def test_release_fails_if_the_holder_renews_meanwhile(self) -> None:
        store = Meddling(Clock())
        clock = store._clock
        assert isinstance(clock, Clock)
        ledger = ledger_of(store)
        ledger.discover([found()])
        first = claim(ledger)
        clock.advance(61)
        renewed = first.lease.renewed(clock(), timedelta(seconds=60)).put(expected=first.lease.version)
        store.before = lambda: MemoryStore.write(store, Write(puts=(renewed,)))
        with pytest.raises(SequenceConflict):
            ledger.release(ITEM, "gone")
        assert ledger.item(ITEM).verdict(REGIONS) is Verdict.LOCKED

    def test_skip_for_everyone_or_for_one(self) -> None:
        stage = Stage()
        item = stage.ledger.skip(ITEM, "x", application=REGIONS)
        assert item.verdict(REGIONS) is Verdict.SKIPPED
        assert item.verdict(COUNTRIES) is Verdict.READY
        assert stage.ledger.skip(ITEM, "x").verdict(COUNTRIES) is Verdict.SKIPPED

    def test_skip_twice_is_recorded_once(self) -> None:
        stage = Stage()
        stage.ledger.skip(ITEM, "x")
        stage.ledger.skip(ITEM, "x")
        assert stage.states() == ["NEW", "SKIPPED"]

    @pytest.mark.parametrize(("make", "error"), [("failed", ItemFailed), ("locked", ItemLocked)])
    @pytest.mark.parametrize("verb", ["skip", "unskip"])
    def test_skip_of_a_held_item_is_refused(self, verb: str, make: str, error: type[Exception]) -> None:
        stage: Stage = getattr(self, make)()
        before = stage.states()
        with pytest.raises(error):
            getattr(stage.ledger, verb)(ITEM, "x")
        assert stage.states() == before

    def test_unskip_takes_back_one_skip_and_keeps_the_others(self) -> None:
        stage = Stage()
        stage.ledger.skip(ITEM, "x", application=REGIONS)
        stage.ledger.skip(ITEM, "x", application=COUNTRIES)
        item = stage.ledger.unskip(ITEM, "wanted after all", application=REGIONS)
        assert item.verdict(REGIONS) is Verdict.READY
        assert item.verdict(COUNTRIES) is Verdict.SKIPPED
        assert item.revision == 2
        assert item.fingerprint == found().fingerprint

    def test_requeue_of_a_processed_item_starts_a_revision(self) -> None:
        stage = Stage()
        stage.ledger.processed(claim(stage.ledger), {})
        item = stage.ledger.requeue(ITEM, "new content", fingerprint={"size": 99}, allow_late=True)
        assert item.verdict(REGIONS) is Verdict.READY
        assert item.fingerprint == {"size": 99}
        assert item.new is not None
        assert item.new.note == {
            "entity": "regions",
            "slice": "2022-01-01.csv",
            "fingerprint": {"size": 99},
            "allow_late": True,
        }
        again = stage.ledger.requeue(ITEM, "once more")
        assert again.new is not None
        assert "allow_late" not in again.new.note

    def test_requeue_of_a_failed_item_resolves_it_in_the_same_write(self) -> None:
        stage = self.failed()
        assert stage.ledger.requeue(ITEM, "x").verdict(REGIONS) is Verdict.READY
        assert stage.states() == ["NEW", "PROCESSING", "FAILED", "RESOLVED", "NEW"]

    def test_requeue_of_a_locked_item_is_refused(self) -> None:
        stage = self.locked()
        stage.clock.advance(3_600)
        with pytest.raises(ItemLocked, match="lease expired"):
            stage.ledger.requeue(ITEM, "x")

    def test_requeue_with_cascade_requeues_all_items_or_none(self) -> None:
        stage = Stage()
        later = found("2022-02-01.csv").item_id
        stage.ledger.discover([found("2022-02-01.csv")])
        for item_id in (ITEM, later):
            stage.ledger.processed(claim(stage.ledger, item_id), {})
        stage.ledger.requeue(ITEM, "x", cascade=[later])
        assert stage.ledger.item(later).revision == 2
        claim(stage.ledger, later)
        with pytest.raises(ItemLocked):
            stage.ledger.requeue(ITEM, "x", cascade=[later])
        assert stage.ledger.item(ITEM).revision == 2

    def test_requeue_starts_a_sound_revision_after_damage(self) -> None:
        stage = Stage()
        item = stage.store.read([ITEM])[ITEM]
        stage.store._items[ITEM] = item.damaged(stage.store.records(ITEM)[0], "edited by hand")
        mended = stage.ledger.requeue(ITEM, "looked into it")
        assert mended.verdict(REGIONS) is Verdict.READY
        assert stage.store.records(ITEM)[-1].content["problem"] == "edited by hand"

    def test_actions_are_records_written_by_the_operator(self) -> None:
        stage = Stage()
        stage.ledger.skip(ITEM, "sent twice")
        record = stage.store.records(ITEM)[-1]
        assert (record.author.agent.name, record.application) == ("lakewright", ANYONE)
        assert record.content == {"reason": "sent twice"}


@pytest.mark.parametrize(
    ("error", "holds_back", "typed"),
    [
        (ValueError("no"), True, f"resolve {ITEM}"),
        (UsageError("wide", remedy="Rebuild with `lakewright rebuild`."), True, f"resolve {ITEM}"),
        (CommitTooLate("2 is there; 1 would come too late"), True, f"requeue {ITEM}"),
        (LateSliceError("older"), False, f"requeue {ITEM} --late"),
    ],
)
def test_the_suggested_command_fits_the_failure(error: Exception, holds_back: bool, typed: str) -> None:
    stage = Stage()
    failed = stage.ledger.failed(claim(stage.ledger), failure(error, holds_back=holds_back))
    assert recovery_command(failed) == f"lakewright manifest {typed}"
    with pytest.raises(ItemFailed) as raised:
        claim(stage.ledger)
    assert f"`{recovery_command(failed)}`" in (raised.value.remedy or "")


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (
            SliceError(
                "gone",
                remedy="Bring it back.",
                details={MAY_SKIP: True},
            ),
            "Bring it back. Then `{resolve}`. Otherwise resolve and skip it: `{resolve}`, then `{skip}`.",
        ),
        (
            SliceError("damaged", remedy="Deliver it again.", details={MAY_SKIP: True}),
            "Deliver it again. Then `{resolve}`. Otherwise resolve and skip it: `{resolve}`, then `{skip}`.",
        ),
        (
            VerificationError(
                "twice", remedy="`lakewright doctor a` finds it. `lakewright rebuild a` helps."
            ),
            "`lakewright doctor a` finds it. `lakewright rebuild a` helps. Then `{resolve}`.",
        ),
        (
            StorageUnavailable("no access", remedy="Name a host that DNS can resolve."),
            "Name a host that DNS can resolve. Then `{resolve}`.",
        ),
        (
            LateSliceError(
                "older",
                remedy=Phrase("Apply it with ", Command("manifest", "requeue", "orders/1", "--late"), "."),
            ),
            "Apply it with `lakewright manifest requeue orders/1 --late`.",
        ),
        (
            DeleteBrakeError(
                "too many",
                remedy=Phrase("Look. ", Command("apply", "orders", "--allow", "deletes"), " applies it."),
                details={PERMITTED_BY: "deletes"},
            ),
            "Look. `lakewright apply orders --allow deletes` applies it.",
        ),
        (
            CommitTooLate("late", remedy="See whether they are there."),
            "See whether they are there. If they are, resolve and skip it: `{resolve}`, then `{skip}`. "
            "If not, requeue it: `lakewright manifest requeue orders/1`.",
        ),
    ],
)
def test_a_remedy_of_two_commands_prints_both(error: LakewrightError, advice: str) -> None:
    """Issue 11: "resolve and skip it" printed the `resolve` alone."""
    stage = Stage()
    failed = stage.ledger.failed(claim(stage.ledger), failure(error))
    typed = {verb: f"lakewright manifest {verb} orders/1" for verb in ("resolve", "skip")}
    assert recovery_advice(failed, "orders/1") == advice.format(**typed)


def remedies() -> Iterator[str]:
    """Yield the remedies that errors are given as text."""
    for path in Path(lakewright.__file__).parent.rglob("*.py"):
        joined = re.sub(r'"\s*\n\s*f?"', "", path.read_text("utf-8"))
        yield from re.findall(r'remedy=(?:remedy or )?f?"([^"]*)"', joined)


def test_no_error_says_in_words_alone_that_its_slice_may_be_skipped() -> None:
    assert [text for text in remedies() if re.search("(?:and|or) skip", text) and "`" not in text] == []


def test_an_error_of_another_program_may_have_details_of_any_kind() -> None:
    """Errors of gRPC have a method of that name."""

    class Foreign(Exception):
        def details(self) -> str:
            return "may_skip"

    assert failure(Foreign("no"))["error"][MAY_SKIP] is False


def test_a_lock_shows_its_holder_and_whether_it_is_stale() -> None:
    stage = Stage()
    assert stage.ledger.lock(stage.ledger.item(ITEM)) is None
    claim(stage.ledger)
    lock = stage.ledger.lock(stage.ledger.item(ITEM))
    assert lock is not None
    assert (lock.is_stale, lock.holder) == (False, "ann@here (process 1, run run-1)")
    stage.store.write(Write(puts=(Put(LEASE, ITEM, None),)))
    lock = stage.ledger.lock(stage.ledger.item(ITEM))
    assert lock is not None
    assert (lock.is_stale, lock.holder) == (True, f"{REGIONS} (run run-1)")


def test_a_document_written_again_does_not_match_an_old_version() -> None:
    clock = Clock()
    store = MemoryStore(clock)

    def put(value: dict[str, int] | None, expected: int | None = None) -> Document | None:
        return next(iter(store.write(Write(puts=(Put("k", "x", value, expected),))).documents), None)

    first = put({"n": 1})
    assert first is not None
    put(None)
    clock.advance(0.001)
    put({"n": 2}, expected=0)
    with pytest.raises(SequenceConflict):
        put({"n": 3}, expected=first.version)
