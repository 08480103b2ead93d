"""What only DynamoDB can do wrong: its limits, its pauses, its lack of a clock; against the real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from botocore.awsrequest import AWSResponse
from tests.records import ITEM, REGIONS, claim, draft, found, ledger_of, put_down

from lakewright.errors import (
    IllegalTransition,
    NotInstalled,
    SequenceConflict,
    SpecError,
    StoreUnavailable,
    UsageError,
)
from lakewright.manifest.store import Append, Put, Query, Store, Write, Written
from lakewright.manifest.verdict import Verdict
from lakewright.stores.dynamodb import store as manifest
from lakewright.stores.dynamodb import table, writer
from lakewright.stores.dynamodb.rows import item_key
from lakewright.stores.dynamodb.store import DynamoDbStore
from lakewright.stores.dynamodb.table import ServerClock
from lakewright.upkeep.fsck import fsck

Settings = dict[str, Any]


@pytest.fixture
def store(dynamodb: Settings, opened: Callable[[Settings], Store]) -> DynamoDbStore:
    found_store = opened(dynamodb)
    assert isinstance(found_store, DynamoDbStore)
    return found_store


class Wire:
    """What goes over a store's wire: names of operations, and answers given in the server's place."""

    def __init__(self, store: DynamoDbStore) -> None:
        self.sent: list[str] = []
        self.answers: list[tuple[str, int, dict[str, Any]]] = []
        store._table._client.meta.events.register("before-send.dynamodb", self._on_send)

    def _on_send(self, request: Any, **_: Any) -> AWSResponse | None:
        operation = request.headers["X-Amz-Target"].decode().rpartition(".")[2]
        self.sent.append(operation)
        if not self.answers or self.answers[0][0] != operation:
            return None
        status, body = self.answers.pop(0)[1:]
        raw = json.dumps(body).encode()
        response = AWSResponse(request.url, status, {"Content-Length": str(len(raw))}, None)
        response._content = raw
        return response


@pytest.fixture
def wire(store: DynamoDbStore) -> Wire:
    return Wire(store)


class TestRoundTrips:
    def test_of_taking_a_lock_are_two(self, store: DynamoDbStore, wire: Wire) -> None:
        ledger = ledger_of(store)
        ledger.discover([found()])
        wire.sent.clear()
        held = claim(ledger)
        assert wire.sent == ["BatchGetItem", "TransactWriteItems"]
        wire.sent.clear()
        ledger.processed(held, {"watermarks": {"n": {"type": "long", "value": 1}}})
        assert wire.sent == ["BatchGetItem", "TransactWriteItems"]

    def test_of_a_heartbeat_are_two(self, store: DynamoDbStore, wire: Wire) -> None:
        put(store, {"n": 1})
        wire.sent.clear()
        document = store.document("note", "x")
        assert document is not None
        put(store, {"n": 2}, expected=document.version)
        assert wire.sent == ["BatchGetItem", "TransactWriteItems"]

    def test_of_whatever_is_asked_are_never_scans(self, store: DynamoDbStore, wire: Wire) -> None:
        ledger = ledger_of(store)
        ledger.discover(found(f"{n}") for n in range(30))
        claim(ledger, found("3").item_id)
        for query in (
            Query(),
            Query(REGIONS),
            Query(verdicts=frozenset({Verdict.LOCKED})),
            Query(prefix="f"),
        ):
            list(store.select(query))
        list(store.history())
        list(store.documents("lease"))
        store.counts()
        store.rebuild()
        assert list(fsck(store)) == []
        assert set(wire.sent) == {"BatchGetItem", "BatchWriteItem", "Query", "TransactWriteItems"}


def put(store: Store, value: dict[str, Any] | None, expected: int | None = None) -> Written:
    return store.write(Write(puts=(Put("note", "x", value, expected),)))


class TestWhatWasSeenBefore:
    """A store remembers what it read; others may have written since."""

    @pytest.fixture
    def other(self, dynamodb: Settings, opened: Callable[[Settings], Store]) -> Store:
        return opened(dynamodb)

    def test_is_never_what_a_write_is_refused_by(self, store: Store, other: Store) -> None:
        put_down(store, draft("new", "NEW"))
        put_down(other, draft("lock", "PROCESSING"))
        put_down(store, draft("done", "PROCESSED", "lock"), expected=2)
        assert [record.record_id for record in other.records(ITEM)] == ["new", "lock", "done"]

    def test_is_never_what_a_write_is_made_by(self, store: Store, other: Store) -> None:
        put_down(store, draft("new", "NEW"))
        put_down(other, draft("lock", "PROCESSING"))
        with pytest.raises(SequenceConflict):
            put_down(store, draft("late", "PROCESSING"), expected=1)
        put(store, {"n": 1})
        put(other, {"n": 2})
        written = put(store, {"n": 3})
        document = other.document("note", "x")
        assert written.documents == (document,)

    def test_is_not_what_a_repeated_write_returns(self, store: Store, other: Store) -> None:
        write = Write((Append(ITEM, (draft("new", "NEW"),), 0),), (Put("note", "x", {"n": 1}),))
        store.write(write)
        put(other, {"n": 2})
        assert store.write(write).documents[0].value == {"n": 2}


def many(count: int, *, start: int = 0) -> tuple[Append, ...]:
    names = [f"i-{n:03}" for n in range(start, start + count)]
    return tuple(Append(name, (draft(f"r-{name}", "NEW", item=name),), 0) for name in names)


class TestWritesBeyondOneTransaction:
    def test_are_made_wholly(self, store: Store) -> None:
        notes = tuple(Put("note", f"{n}", {"n": n}) for n in range(30))
        written = store.write(Write(many(60), notes))
        assert (len(written.items), len(written.documents)) == (60, 30)
        assert len(list(store.select(Query(REGIONS, frozenset({Verdict.READY}))))) == 60
        assert list(fsck(store)) == []

    def test_may_be_all_of_one_item(self, store: Store) -> None:
        drafts = [draft("r-0", "NEW")]
        for n in range(1, 100, 2):
            drafts += [draft(f"r-{n}", "PROCESSING"), draft(f"r-{n + 1}", "PROCESSED", f"r-{n}")]
        put_down(store, *drafts, expected=0)
        assert [record.sequence for record in store.records(ITEM)] == list(range(1, 102))
        assert list(fsck(store)) == []

    def test_are_not_made_at_all_where_anything_is_not_as_expected(self, store: Store) -> None:
        put_down(store, draft("there", "NEW", item="i-059"))
        with pytest.raises(SequenceConflict):
            store.write(Write(many(60), (Put("note", "x", {}),)))
        with pytest.raises(IllegalTransition, match="id"):
            store.write(Write((*many(50), Append("last", (draft("there", "NEW", item="last"),), 0))))
        assert [item.item_id for item in store.select(Query())] == ["i-059"]
        assert store.document("note", "x") is None
        assert list(fsck(store)) == []

    def test_of_too_much_are_refused(self, store: Store) -> None:
        with pytest.raises(UsageError, match="100 items and documents can't be written together"):
            store.write(Write(many(100)))
        assert list(store.select(Query())) == []

    @pytest.mark.parametrize("parts", [0, 1])
    def test_cut_short_are_carried_out_by_whoever_comes_next(
        self,
        store: DynamoDbStore,
        dynamodb: Settings,
        opened: Callable[[Settings], Store],
        monkeypatch: pytest.MonkeyPatch,
        parts: int,
    ) -> None:
        once, done = writer._once, iter(range(parts))

        def die_after_some(table: Any, changes: Any) -> None:
            if next(done, None) is None:
                raise KeyboardInterrupt
            once(table, changes)

        with monkeypatch.context() as patch:
            patch.setattr(writer, "_once", die_after_some)
            with pytest.raises(KeyboardInterrupt):
                store.write(Write(many(60)))
        other = opened(dynamodb)
        assert put_down(other, draft("lock", "PROCESSING", item="i-007"), expected=1).sequence == 2
        assert len(list(other.select(Query(verdicts=frozenset({Verdict.READY}))))) == 59
        assert list(fsck(other)) == []
        assert list(fsck(store)) == []


class TestSizes:
    def test_of_what_a_row_takes_are_stored_and_of_more_refused(self, store: Store) -> None:
        noise = Random(1)
        put_down(store, draft("new", "NEW", content={"text": noise.randbytes(200_000).hex()}))
        assert len(store.records(ITEM)[0].content["text"]) == 400_000
        with pytest.raises(UsageError, match="DynamoDB stores at most 400000"):
            put_down(store, draft("lock", "PROCESSING", content={"text": noise.randbytes(500_000).hex()}))
        with pytest.raises(UsageError, match="the row of x"):
            put(store, {"text": noise.randbytes(500_000).hex()})
        assert store.read([ITEM])[ITEM].sequence == 1

    def test_of_lists_beyond_a_page_of_a_megabyte_are_listed_wholly(self, store: Store) -> None:
        noise = Random(2)
        for n in range(8):
            content = {"fingerprint": {"etag": noise.randbytes(150_000).hex()}}
            put_down(store, draft(f"r-{n}", "NEW", item=f"i-{n}", content=content))
            store.write(Write(puts=(Put("note", f"{n}", content),)))
        assert len(list(store.history())) == len(list(store.select(Query()))) == 8
        assert [document.key for document in store.documents("note")] == list("01234567")
        assert len(store.read([f"i-{n}" for n in range(8)])) == 8

    def test_of_ids_beyond_a_place_keep_them_in_order(self, store: Store) -> None:
        stems = ["x" * 890, "x" * 889 + "é", "x" * 886 + "😀", "a"]
        names = sorted(
            stem + end for stem in stems for end in ["", "b", "b" * 200, "a" * 900, "\x01", "\x01b"]
        )
        for n, name in enumerate(reversed(names)):
            put_down(store, draft(f"r-{n}", "NEW", item=name), draft(f"l-{n}", "PROCESSING", item=name))
            store.write(Write(puts=(Put("note", name, {}),)))
        assert [item.item_id for item in store.select(Query())] == names
        assert [item.item_id for item in store.select(Query(REGIONS))] == names
        assert [document.key for document in store.documents("note")] == names
        assert [d.key for d in store.documents("note", is_newest_first=True)] == names[::-1]
        assert [record.item_id for record in store.history()] == [name for name in names for _ in range(2)]
        for prefix in [*stems, "x" * 1_000, "x" * 890 + "a" * 10]:
            listed = [item.item_id for item in store.select(Query(prefix=prefix))]
            assert listed == [name for name in names if name.startswith(prefix)]


THROTTLED = (
    "TransactWriteItems",
    400,
    {
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "CancellationReasons": [{"Code": "ThrottlingError"}],
    },
)
CONFLICT = (
    "TransactWriteItems",
    400,
    {
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "CancellationReasons": [{"Code": "TransactionConflict"}],
    },
)
BUSY = (
    "TransactWriteItems",
    400,
    {"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "message": "slow"},
)
DENIED = ("BatchGetItem", 400, {"__type": "com.amazon.coral.service#AccessDeniedException", "Message": "no"})


class TestARequestTurnedAway:
    @pytest.mark.parametrize("answer", [THROTTLED, CONFLICT, BUSY])
    def test_is_made_again(
        self, store: DynamoDbStore, wire: Wire, answer: tuple[str, int, dict[str, Any]]
    ) -> None:
        put(store, {"n": 1})
        wire.answers += [answer, answer]
        put(store, {"n": 2})
        document = store.document("note", "x")
        assert document is not None
        assert document.value == {"n": 2}

    def test_is_given_up_in_the_end(
        self, store: DynamoDbStore, wire: Wire, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(table, "PATIENCE", 0.2)
        wire.answers += [THROTTLED] * 1_000
        with pytest.raises(StoreUnavailable, match="throttled requests"):
            store._table.transact([writer._due("x", [])])

    def test_in_part_is_made_again_for_the_rest(self, store: DynamoDbStore, wire: Wire) -> None:
        put(store, {"n": 1})
        left = {store._table.name: {"Keys": [{"pk": {"S": "document/note"}, "sk": {"S": "=x"}}]}}
        wire.answers.append(("BatchGetItem", 200, {"Responses": {}, "UnprocessedKeys": left}))
        assert store.document("note", "x") is not None

    def test_for_good_is_told_with_what_to_do(self, store: DynamoDbStore, wire: Wire) -> None:
        wire.answers.append(DENIED)
        with pytest.raises(StoreUnavailable, match="may not be used by this identity") as caught:
            store.document("note", "x")
        assert "PutItem, Query and UpdateItem" in str(caught.value.remedy)


def somewhere(server: str, table: str = "some-table") -> Settings:
    return {"table": table, "region": "eu-central-1", "endpoint_url": server}


class TestOpening:
    @pytest.fixture(autouse=True)
    def _alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    def test_without_a_region_says_so(self) -> None:
        with pytest.raises(SpecError, match="has no region"):
            DynamoDbStore.open("some-table")

    def test_without_credentials_says_so(self, dynamodb_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        with pytest.raises(StoreUnavailable, match="without AWS credentials") as caught:
            DynamoDbStore.open(**somewhere(dynamodb_server))
        assert "AWS_PROFILE" in str(caught.value.remedy)

    def test_where_nobody_answers_says_so(self) -> None:
        with pytest.raises(StoreUnavailable, match="can't be reached"):
            DynamoDbStore.open(**somewhere("http://127.0.0.1:9"))

    def test_of_a_name_that_cannot_be_says_so(self, dynamodb_server: str) -> None:
        with pytest.raises(StoreUnavailable, match="table"):
            DynamoDbStore.open(**somewhere(dynamodb_server, "x"))

    def test_of_a_newer_manifest_is_refused(
        self, store: DynamoDbStore, dynamodb: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(store, {"n": 1})
        put_down(store, draft("new", "NEW"))
        before = list(store.select(Query())), store.standings()
        store._table.delete_all([item_key(ITEM)])
        with monkeypatch.context() as patch:
            patch.setattr(manifest, "VERSION", manifest.VERSION + 1)
            manifest.migrate(store._table)
            manifest.migrate(store._table)
        assert (list(store.select(Query())), store.standings()) == before
        with pytest.raises(NotInstalled, match="schema version 4, this Lakewright knows versions up to 3"):
            DynamoDbStore.open(**{name: dynamodb[name] for name in ("table", "region", "endpoint_url")})


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class TestServerClock:
    """The answers' dates, to the second, come to the server's time."""

    def test_is_off_by_half_a_second_at_most_and_soon_by_less(self) -> None:
        count = [100.0]
        clock = ServerClock(lambda: count[0])
        with pytest.raises(StoreUnavailable, match="is unknown"):
            clock.now()
        for step in range(200):
            true = NOON + timedelta(seconds=count[0] - 100 + 0.37)
            clock.observe(format_datetime(true, usegmt=True), asked=count[0] - 0.01, answered=count[0] + 0.01)
            off = abs(clock.now() - true).total_seconds()
            assert off < (0.52 if step < 50 else 0.05)
            count[0] += 0.1037

    def test_never_stands_still_or_goes_back(self) -> None:
        clock = ServerClock(lambda: 100.0)
        clock.observe(format_datetime(NOON, usegmt=True), asked=100, answered=100)
        times = [clock.now() for _ in range(100)]
        clock.observe(format_datetime(NOON, usegmt=True), asked=99.8, answered=100.9)
        times += [clock.now() for _ in range(100)]
        assert times == sorted(set(times))

    def test_follows_a_server_whose_clock_is_set(self) -> None:
        clock = ServerClock(lambda: 100.0)
        clock.observe(format_datetime(NOON, usegmt=True), asked=100, answered=100)
        clock.now()
        for hours in (1, -1):
            moved = NOON + timedelta(hours=hours)
            clock.observe(format_datetime(moved, usegmt=True), asked=100, answered=100)
            assert abs(clock.now() - moved) < timedelta(seconds=1)


def test_record_ids_are_unique_in_a_bundle_too(store: Store) -> None:
    same = str(uuid4())
    writes = [Write((Append(name, (draft(same, "NEW", item=name),), 0),)) for name in ("a", "b", "c")]
    kinds = [type(outcome) for outcome in store.write_many(writes)]
    assert kinds == [Written, IllegalTransition, IllegalTransition]
