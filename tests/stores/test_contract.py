"""What every back end does, in the same way: `processing-manifest.md`, "Challenges" (one abstract interface).

No test here asks which kind it has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from tests.records import AUTHOR, COUNTRIES, ITEM, REGIONS, claim, draft, found, holder, ledger_of, put_down

from lakewright.errors import IllegalTransition, ItemLocked, LakewrightError, SequenceConflict, UsageError
from lakewright.manifest.item import Item
from lakewright.manifest.lease import Leases, find_lease
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.payload import failure
from lakewright.manifest.readiness import belongs
from lakewright.manifest.record import ANYONE, Application, Record, State
from lakewright.manifest.replay import replay
from lakewright.manifest.store import Append, Document, Put, Query, Seen, Store, Write, Written
from lakewright.manifest.verdict import Verdict
from lakewright.manifest.watermarks import Watermark
from lakewright.testing import MemoryStore
from lakewright.upkeep.fsck import fsck
from lakewright.upkeep.transfer import export_manifest, import_manifest


def unique_id() -> str:
    return str(uuid4())


def put(
    store: Store, key: str, value: dict[str, Any] | None, expected: int | None = None, kind: str = "note"
) -> Document | None:
    written = store.write(Write(puts=(Put(kind, key, value, expected),)))
    return written.documents[0] if written.documents else None


def ids(items: Iterable[Item]) -> list[str]:
    return [item.item_id for item in items]


class TestRecords:
    def test_are_numbered_and_dated_by_the_store(self, store: Store) -> None:
        before = store.now()
        item = put_down(
            store, draft("new", "NEW", content={"slice": "é"}), draft("lock", "PROCESSING", "new")
        )
        records = store.records(ITEM)
        assert [record.sequence for record in records] == [1, 2]
        assert all(before <= record.timestamp <= store.now() for record in records)
        assert records[0] == draft("new", "NEW", content={"slice": "é"}).recorded(
            sequence=1, now=records[0].timestamp
        )
        assert item == store.read([ITEM])[ITEM] == replay(ITEM, records)[0]

    def test_keep_their_own_time_where_they_bring_one(self, store: Store) -> None:
        long_ago = datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
        imported = draft("new", "NEW").recorded(sequence=9, now=long_ago)
        import_manifest(store, [json.dumps(imported.as_json())])
        assert store.records(ITEM)[0].timestamp == long_ago

    def test_of_unknown_items_are_none(self, store: Store) -> None:
        assert store.records(ITEM) == ()
        assert store.read([ITEM]) == {}
        assert store.read([]) == {}

    @pytest.mark.parametrize("expected", [0, 2, 7])
    def test_appended_to_an_item_that_has_changed_are_refused(self, store: Store, expected: int) -> None:
        put_down(store, draft("new", "NEW"))
        with pytest.raises(SequenceConflict) as caught:
            put_down(store, draft("lock", "PROCESSING"), expected=expected)
        assert (caught.value.details["expected"], caught.value.details["actual"]) == (expected, 1)
        assert len(store.records(ITEM)) == 1

    def test_that_may_not_follow_are_refused_with_all_that_came_with_them(self, store: Store) -> None:
        other = "file:///other"
        write = Write(
            (
                Append(other, (draft("fine", "NEW", item=other),), 0),
                Append(ITEM, (draft("new", "NEW"), draft("done", "PROCESSED", "new")), 0),
            ),
            (Put("note", "x", {}),),
        )
        with pytest.raises(IllegalTransition, match="PROCESSED follows the open PROCESSING") as caught:
            store.write(write)
        assert caught.value.details["record_id"] == "done"
        assert (store.records(ITEM), store.records(other), store.document("note", "x")) == ((), (), None)
        assert list(store.select(Query())) == []
        assert store.counts() == {}

    def test_written_twice_are_stored_once(self, store: Store) -> None:
        write = Write((Append(ITEM, (draft("new", "NEW"), draft("lock", "PROCESSING", "new")), 0),))
        assert store.write(write).items == store.write(write).items
        assert len(store.records(ITEM)) == 2

    def test_with_an_id_that_is_taken_are_refused(self, store: Store) -> None:
        put_down(store, draft("same", "NEW"))
        with pytest.raises(IllegalTransition, match="id"):
            put_down(store, draft("same", "NEW", item="file:///other"))
        assert store.records("file:///other") == ()
        assert list(
            store.write_many(
                [Write((Append("file:///third", (draft("same", "NEW", item="file:///third"),), 0),))]
            )
        )
        assert store.records("file:///third") == ()

    @pytest.mark.parametrize(
        "content",
        [
            {"text": "ünï\u0000 \ud800 \x1b[0m 😀"},
            {"text": "x" * 1_000_000},
            {"number": 2**60, "ratio": 0.1, "none": None, "yes": True, "deep": [[{"a": [1]}]]},
        ],
    )
    def test_give_their_payload_back(self, store: Store, content: dict[str, Any]) -> None:
        put_down(store, draft("new", "NEW", content=content))
        assert store.records(ITEM)[0].content == content

    @pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"bytes"])
    def test_with_a_payload_that_is_no_json_are_refused(self, store: Store, value: object) -> None:
        with pytest.raises(UsageError, match="JSON"):
            put_down(store, draft("new", "NEW", content={"x": value}))
        assert store.records(ITEM) == ()

    @pytest.mark.parametrize("item_id", ["a\x00b", "\ud800", "x" * 2_001, "é" * 1_001])
    def test_of_an_item_that_cannot_be_named_are_refused(self, store: Store, item_id: str) -> None:
        with pytest.raises(UsageError, match="item id"):
            store.write(Write((Append(item_id, (draft("new", "NEW", item=item_id),), 0),)))
        assert store.read([item_id]) == {}
        assert store.records(item_id) == ()

    @pytest.mark.parametrize(
        "item_id",
        [
            "",
            " ",
            "'; DROP TABLE x; --",
            "s3://b/[a]{b}*?%20#/",
            "日本/😀",
            "%",
            "_",
            "x" * 2_000,
            'a\\b"c`d\n\t\x1b',
        ],
    )
    def test_of_an_item_with_any_other_name_are_stored(self, store: Store, item_id: str) -> None:
        put_down(store, draft("new", "NEW", item=item_id))
        assert ids(store.select(Query(prefix=item_id[:3]))) == [item_id]
        assert store.records(item_id)[0].item_id == item_id
        assert list(store.read([item_id])) == [item_id]

    def test_payloads_changed_after_the_write_change_nothing(self, store: Store) -> None:
        content: dict[str, Any] = {"fingerprint": {"size": 1}}
        put_down(store, draft("new", "NEW", content=content))
        content["fingerprint"]["size"] = 2
        assert store.read([ITEM])[ITEM].fingerprint == {"size": 1}
        assert store.records(ITEM)[0].content == {"fingerprint": {"size": 1}}


class TestManyWrites:
    def test_are_independent_and_answered_in_order(self, store: Store) -> None:
        put_down(store, draft("there", "NEW", item="i-3"))
        writes = [Write((Append(f"i-{n}", (draft(f"r-{n}", "NEW", item=f"i-{n}"),), 0),)) for n in range(5)]
        writes.insert(1, Write((Append("i-bad", (draft("bad", "PROCESSED", item="i-bad"),), 0),)))
        outcomes = list(store.write_many(iter(writes)))
        kinds = [type(outcome) for outcome in outcomes]
        assert kinds == [Written, IllegalTransition, Written, Written, SequenceConflict, Written]
        assert ids(store.select(Query())) == ["i-0", "i-1", "i-2", "i-3", "i-4"]
        assert list(fsck(store)) == []

    def test_build_upon_each_other(self, store: Store) -> None:
        writes = [
            Write((Append(ITEM, (draft("new", "NEW"),), 0),), (Put("note", "n", {"n": 1}, 0),)),
            Write((Append(ITEM, (draft("lock", "PROCESSING"),), 1),)),
            Write(puts=(Put("note", "n", {"n": 2}, 0),)),
            Write(puts=(Put("note", "n", None),)),
            Write(),
        ]
        outcomes = [type(outcome) for outcome in store.write_many(writes)]
        assert outcomes == [Written, Written, SequenceConflict, Written, Written]
        assert [record.state for record in store.records(ITEM)] == ["NEW", "PROCESSING"]
        assert store.document("note", "n") is None

    @pytest.mark.parametrize("count", [601, pytest.param(1_101, marks=pytest.mark.nightly)])
    def test_beyond_one_batch_are_all_done(self, store: Store, count: int) -> None:
        writes = (
            Write((Append(f"i-{n:04}", (draft(f"r-{n}", "NEW", item=f"i-{n:04}"),), 0),))
            for n in range(count)
        )
        outcomes = list(store.write_many(writes))
        assert all(isinstance(outcome, Written) for outcome in outcomes)
        names = [f"i-{n:04}" for n in range(count)]
        assert ids(store.select(Query())) == names
        assert list(store.read([*names, "unknown"])) == names
        assert store.counts() == {(REGIONS, Verdict.READY): count}
        assert [record.item_id for record in store.history() if isinstance(record, Record)] == names


class TestDocuments:
    def test_are_written_as_expected_only(self, store: Store) -> None:
        first = put(store, "a", {"n": 1}, expected=0)
        assert first is not None
        assert store.document("note", "a") == first == Document("note", "a", {"n": 1}, first.version)
        with pytest.raises(SequenceConflict):
            put(store, "a", {"n": 2}, expected=0)
        with pytest.raises(SequenceConflict):
            put(store, "b", {"n": 2}, expected=first.version)
        second = put(store, "a", {"n": 2}, expected=first.version)
        assert second is not None
        assert second.version > first.version
        with pytest.raises(SequenceConflict):
            put(store, "a", None, expected=first.version)
        assert put(store, "a", None, expected=second.version) is None
        assert store.document("note", "a") is None

    def test_come_with_items_where_both_are_asked_for(self, store: Store) -> None:
        written = store.write(
            Write(
                (Append(ITEM, (draft("new", "NEW"),), 0),), (Put("note", "a", {"n": 1}), Put("log", "b", {}))
            )
        )
        asked = [("note", "a"), ("note", "b"), ("log", "b"), ("\ud800", "x")]
        seen = store.look_up([ITEM, "unknown", "a\x00"], asked)
        assert seen.items == {ITEM: written.items[0]}
        assert seen.documents == {(d.kind, d.key): d for d in written.documents}
        assert store.look_up([], []) == Seen({}, {})

    def test_are_written_and_removed_without_expectation_too(self, store: Store) -> None:
        assert put(store, "a", None) is None
        put(store, "a", {"n": 1})
        put(store, "a", {"n": 2})
        document = store.document("note", "a")
        assert document is not None
        assert document.value == {"n": 2}
        assert store.document("other", "a") is None

    def test_removed_and_written_anew_have_a_version_they_never_had(self, store: Store) -> None:
        seen = set()
        for _ in range(5):
            for value in ({"n": 1}, {"n": 2}):
                document = put(store, "a", value)
                assert document is not None
                assert document.version not in seen
                seen.add(document.version)
            put(store, "a", None)

    def test_come_by_key_from_either_end(self, store: Store) -> None:
        for key in ["b", "a/2", "a/10", "a", "é", "B", "a/1", "a0"]:
            put(store, key, {"k": key})
        put(store, "a/other-kind", {}, kind="other")
        assert [d.key for d in store.documents("note")] == ["B", "a", "a/1", "a/10", "a/2", "a0", "b", "é"]
        assert [d.key for d in store.documents("note", prefix="a/")] == ["a/1", "a/10", "a/2"]
        assert [d.key for d in store.documents("note", prefix="a/", is_newest_first=True)] == [
            "a/2",
            "a/10",
            "a/1",
        ]
        assert [d.key for d in store.documents("note", is_newest_first=True, limit=2)] == ["é", "b"]
        assert [d.key for d in store.documents("note", limit=0)] == []
        assert list(store.documents("nothing")) == []

    @pytest.mark.parametrize("is_newest_first", [False, True])
    def test_beyond_one_page_are_all_there(self, store: Store, is_newest_first: bool) -> None:
        keys = [f"{n:05}" for n in range(501)]
        assert len(list(store.write_many(Write(puts=(Put("note", key, {}),)) for key in keys))) == len(keys)
        found = [document.key for document in store.documents("note", is_newest_first=is_newest_first)]
        assert found == (keys[::-1] if is_newest_first else keys)

    def test_may_be_changed_while_they_are_listed(self, store: Store) -> None:
        for key in "abc":
            put(store, key, {})
        for document in store.documents("note"):
            put(store, document.key, None)
        assert list(store.documents("note")) == []

    @pytest.mark.parametrize(
        ("kind", "key"), [("k" * 251, "x"), ("k", "x" * 2_001), ("k", "\x00"), ("\ud800", "x")]
    )
    def test_that_cannot_be_named_are_refused(self, store: Store, kind: str, key: str) -> None:
        with pytest.raises(UsageError):
            put(store, key, {}, kind=kind)
        assert store.document(kind, key) is None


DB_1, DB_2, DB = (
    Application.named("loader", "1"),
    Application.named("loader", "2"),
    Application.named("loader"),
)


ASKED: Sequence[tuple[Query, str]] = [
    (Query(), "abcdefgh"),
    (Query(verdicts=frozenset({Verdict.LOCKED})), "b"),
    (Query(verdicts=frozenset({Verdict.FAILED, Verdict.SKIPPED})), "ce"),
    (Query(verdicts=frozenset({Verdict.READY})), "afgh"),
    (Query(application=REGIONS), "abcdefgh"),
    (Query(application=REGIONS, verdicts=frozenset({Verdict.READY})), "afgh"),
    (Query(application=REGIONS, verdicts=frozenset({Verdict.PROCESSED})), "d"),
    (Query(application=COUNTRIES), ""),
    (Query(application=DB_1), "fg"),
    (Query(application=DB_1, verdicts=frozenset({Verdict.PROCESSED})), "fg"),
    (Query(application=DB_2), "g"),
    (Query(application=DB_2, verdicts=frozenset({Verdict.PROCESSED})), "g"),
    (Query(application=DB), "fg"),
    (Query(application=DB, verdicts=frozenset({Verdict.READY})), ""),
    (Query(states=frozenset({State.NEW})), "a"),
    (Query(states=frozenset({State.PROCESSED, State.RESOLVED})), "dfgh"),
    (Query(states=frozenset({State.PROCESSED}), application=DB_1), "fg"),
    (Query(states=frozenset({State.NEW}), verdicts=frozenset({Verdict.SKIPPED})), ""),
    (Query(prefix="file:///lake/bronze/regions/f"), "f"),
    (Query(prefix="file:///lake/bronze/regions/f", verdicts=frozenset({Verdict.READY})), "f"),
    (Query(prefix="file:///nowhere"), ""),
]
"""Questions, and the initials of the items that answer each."""


class TestQuestions:
    @pytest.fixture(autouse=True)
    def _items(self, store: Store) -> None:
        """Eight items: who did what with them is in their names."""
        ledger = Ledger(store, AUTHOR, ids=unique_id)
        names = ["a-new", "b-locked", "c-failed", "d-done", "e-skipped", "f-db1", "g-db", "h-resolved"]
        ledger.discover(found(name) for name in names)
        item = {name: found(name).item_id for name in names}
        claim(ledger, item["b-locked"])
        ledger.failed(claim(ledger, item["c-failed"]), failure(ValueError("no")))
        ledger.processed(claim(ledger, item["d-done"]), {})
        ledger.skip(item["e-skipped"], "x", application=ANYONE)
        ledger.processed(claim(ledger, item["f-db1"], DB_1), {})
        ledger.processed(claim(ledger, item["g-db"], DB), {})
        ledger.failed(claim(ledger, item["h-resolved"]), failure(ValueError("no")))
        ledger.resolve(item["h-resolved"], "x")

    def test_are_answered_in_order_of_item_id(self, store: Store) -> None:
        for query, names in ASKED:
            found_items = list(store.select(query))
            assert [item.item_id.rpartition("/")[2][0] for item in found_items] == list(names), query
            assert all(belongs(item, query) for item in found_items), query
            candidates = list(store.candidates(query))
            assert {item.item_id for item in found_items} <= set(candidates), query
            assert candidates == sorted(set(candidates)), query

    def test_of_numbers_count_each_application(self, store: Store) -> None:
        assert store.counts() == {
            (REGIONS, Verdict.READY): 4,
            (REGIONS, Verdict.LOCKED): 1,
            (REGIONS, Verdict.FAILED): 1,
            (REGIONS, Verdict.PROCESSED): 1,
            (REGIONS, Verdict.SKIPPED): 1,
            (DB_1, Verdict.PROCESSED): 1,
            (DB, Verdict.PROCESSED): 1,
        }

    def test_tell_an_application_from_its_instances(self, store: Store) -> None:
        ledger = Ledger(store, AUTHOR, ids=unique_id)
        for application in (DB_2, DB):
            ledger.skip(found("a-new").item_id, "x", application=application)
        (item,) = store.select(Query(prefix=found("a-new").item_id))
        assert item.verdicts() == {REGIONS: Verdict.READY, DB_2: Verdict.SKIPPED, DB: Verdict.SKIPPED}
        counts = store.counts()
        assert (counts[DB, Verdict.SKIPPED], counts[DB_2, Verdict.SKIPPED]) == (1, 1)
        assert list(fsck(store)) == []

    def test_may_be_asked_while_items_change(self, store: Store) -> None:
        ledger = Ledger(store, AUTHOR, ids=unique_id)
        for item in store.select(Query(verdicts=frozenset({Verdict.READY}))):
            ledger.skip(item.item_id, "x")
        assert list(store.select(Query(verdicts=frozenset({Verdict.READY})))) == []

    @pytest.mark.parametrize("query", [Query(), Query(prefix="file:///lake/")])
    def test_of_all_items_miss_none_that_changes_meanwhile(
        self, store: Store, query: Query, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("lakewright.stores.sql.listing.PAGE", 2)
        ledger = Ledger(store, AUTHOR, ids=unique_id)
        ledger.discover(found(f"new-{number}") for number in range(5))
        last = found("new-4").item_id
        every = store.candidates(query)
        first = next(iter(every))
        ledger.skip(last, "x", application=ANYONE)
        assert list(every)[-1] == last != first

    def test_follow_from_the_records(self, store: Store) -> None:
        assert list(fsck(store)) == []
        before = list(store.select(Query())), store.counts()
        store.rebuild()
        assert (list(store.select(Query())), store.counts()) == before

    def test_are_answered_the_same_after_moving_house(self, store: Store) -> None:
        other = MemoryStore()
        lines = list(export_manifest(store))
        import_manifest(other, lines)
        assert list(other.select(Query())) == list(store.select(Query()))
        assert other.counts() == store.counts()
        assert list(export_manifest(other)) == lines


class TestLocks:
    def test_live_from_discovery_to_the_end(self, store: Store) -> None:
        ledger = ledger_of(store)
        ledger.discover([found()])
        first = claim(ledger)
        with pytest.raises(ItemLocked, match="run-1"):
            claim(ledger, holder=holder("run-2", pid=2))
        ledger.failed(first, failure(ValueError("no"), stack_trace="…"))
        ledger.resolve(ITEM, "mended")
        second = claim(ledger, holder=holder("run-2", pid=2))
        assert second.token == first.token
        ledger.processed(second, {"watermarks": {"day": {"type": "date", "value": "2022-01-01"}}})
        assert ledger.watermarks.last(REGIONS) == {"day": Watermark("date", "2022-01-01")}
        assert find_lease(store, ITEM) is None
        assert [record.state for record in store.records(ITEM)] == [
            "NEW",
            "PROCESSING",
            "FAILED",
            "RESOLVED",
            "PROCESSING",
            "PROCESSED",
        ]

    def test_run_out_by_the_stores_clock(self, store: Store) -> None:
        ledger = ledger_of(store)
        ledger.discover([found()])
        claim(ledger, duration=timedelta(microseconds=1))
        assert claim(ledger, holder=holder("run-2", pid=2)).run_id == "run-2"

    def test_are_won_by_one_of_many_threads(self, store: Store) -> None:
        names = [f"{number:02}" for number in range(10)]
        Ledger(store, AUTHOR, ids=unique_id).discover(found(name) for name in names)

        def work(worker: int) -> list[str]:
            ledger = Ledger(store, AUTHOR, ids=unique_id)
            won = []
            for name in names:
                try:
                    claim(ledger, found(name).item_id, holder=holder(f"run-{worker}", pid=worker))
                    won.append(name)
                except ItemLocked:
                    continue
            return won

        with ThreadPoolExecutor(4) as pool:
            winners = list(pool.map(work, range(4)))
        assert sorted(name for won in winners for name in won) == names
        assert all(len(store.records(found(name).item_id)) == 2 for name in names)
        tokens = {item.processing.note["token"] for item in store.select(Query()) if item.processing}
        assert tokens == set(range(1, 11))

    def test_on_other_things_are_leases_alone(self, store: Store) -> None:
        leases = Leases(store, holder(), unique_id)
        lease = leases.acquire("write table:x")
        assert leases.renew(lease).expires >= lease.expires
        leases.release(lease)
        assert find_lease(store, "write table:x") is None


def test_a_failing_write_of_many_leaves_the_others(store: Store) -> None:
    good = Write((Append(ITEM, (draft("new", "NEW"),), 0),))
    bad = Write(puts=(Put("note", "x" * 3_000, {}),))
    outcomes: list[Written | LakewrightError] = list(store.write_many([bad, good]))
    assert isinstance(outcomes[0], UsageError)
    assert isinstance(outcomes[1], Written)


def test_time_goes_on(
    store: Store, settings: dict[str, Any], opened: Callable[[dict[str, Any]], Store]
) -> None:
    assert store.now().tzinfo is UTC
    assert abs(store.now() - datetime.now(UTC)) < timedelta(minutes=1)
    assert opened(settings).now() >= store.now() - timedelta(seconds=1)
