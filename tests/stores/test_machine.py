"""Any history of writes and questions comes to the same in each back end, and follows the rules."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.records import COUNTRIES, REGIONS, Clock, draft
from tests.stores.cluster import empty_schema
from tests.stores.dynamodb_local import empty_table

from lakewright.errors import LakewrightError
from lakewright.manifest.readiness import BY_ARRIVAL, Done, Readiness
from lakewright.manifest.record import ANYONE, Application, State
from lakewright.manifest.replay import replay
from lakewright.manifest.store import Append, Put, Query, Store, Write, Written
from lakewright.manifest.verdict import Verdict
from lakewright.stores.delta.store import DeltaStore
from lakewright.stores.dynamodb.store import DynamoDbStore
from lakewright.stores.dynamodb.table import Table
from lakewright.stores.memory import MemoryStore
from lakewright.stores.postgres.store import PostgresStore
from lakewright.stores.sqlite.database import SqliteStore
from lakewright.upkeep.fsck import fsck
from lakewright.upkeep.transfer import export_manifest, import_manifest

ITEMS = st.sampled_from(["file:///a", "file:///a/b", "file:///é", "s3://b/%20 c"])
KEYS = st.sampled_from(["k", "k/1", "k/2", "z"])
WHO = st.sampled_from(
    [REGIONS, COUNTRIES, ANYONE, Application.named("loader"), Application.named("loader", "1")]
)
CONTENTS = st.sampled_from(
    [None, {"token": 3}, {"fingerprint": {"size": 1}}, {"error": "é", "holds_back": False}, {"mends": True}]
)
# What mostly comes next, so that histories get long; anything else is tried as well.
LIKELY = {
    None: [State.NEW],
    State.NEW: [State.PROCESSING, State.SKIPPED],
    State.PROCESSING: [State.PROCESSED, State.FAILED, State.RESOLVED],
    State.PROCESSED: [State.PROCESSING, State.NEW],
    State.FAILED: [State.RESOLVED],
    State.RESOLVED: [State.PROCESSING, State.NEW],
    State.SKIPPED: [State.NEW, State.PROCESSING],
}


Opens = Callable[[Clock], Store]
"""Opens the same manifest, each time it is called, with that clock."""

Places = Callable[[], AbstractContextManager[Opens]]
"""Makes room for a new manifest, and clears it up."""


class LikeMemory(RuleBasedStateMachine):
    """Everything is done to both stores; they must agree about what it left."""

    places: ClassVar[staticmethod[[], AbstractContextManager[Opens]]]

    def __init__(self) -> None:
        super().__init__()
        self.place = ExitStack()
        self.opens = self.place.enter_context(self.places())
        self.clock = Clock()
        self.real = self.opens(self.clock)
        self.model: Store = MemoryStore(self.clock)
        self.number = 0

    def teardown(self) -> None:
        self.real.close()
        self.place.close()

    writes = Bundle("writes")

    def _append(self, data: st.DataObject, item_id: str) -> Append:
        item = self.model.read([item_id]).get(item_id)
        likely = LIKELY[item.state if item else None]
        state = data.draw(st.one_of(st.sampled_from(likely), st.sampled_from(likely), st.sampled_from(State)))
        known = [record.record_id for record in self.model.records(item_id)]
        likely_previous = known[-1] if known and state not in (State.NEW, State.SKIPPED) else None
        previous = data.draw(st.sampled_from([likely_previous, likely_previous, None, *known[-2:]]))
        self.number += 1
        one = draft(
            f"record-{self.number}",
            state,
            previous,
            item=item_id,
            application=data.draw(WHO),
            content=data.draw(CONTENTS),
        )
        sequence = item.sequence if item else 0
        return Append(item_id, (one,), data.draw(st.sampled_from([sequence, sequence, sequence, 0, 1])))

    def _put(self, data: st.DataObject) -> Put:
        kind, key = data.draw(st.sampled_from(["note", "lease"])), data.draw(KEYS)
        document = self.model.document(kind, key)
        version = document.version if document else 0
        expected = data.draw(st.sampled_from([None, version, version, 0, 1]))
        value = data.draw(st.sampled_from([{"n": self.number}, {}, None]))
        return Put(kind, key, value, expected)

    @rule(target=writes, data=st.data(), items=st.lists(ITEMS, max_size=2), has_put=st.booleans())
    def prepare(self, data: st.DataObject, items: list[str], has_put: bool) -> Write:
        puts = (self._put(data),) if has_put else ()
        return Write(tuple(self._append(data, item_id) for item_id in items), puts)

    @rule(write=writes)
    def write(self, write: Write) -> None:
        self._agree(_outcome(self.real, write), _outcome(self.model, write))

    @rule(data=st.data(), items=st.lists(ITEMS, min_size=1, max_size=4))
    def write_many(self, data: st.DataObject, items: list[str]) -> None:
        many = [Write((self._append(data, item_id),), (self._put(data),)) for item_id in items]
        for real, model in zip(self.real.write_many(many), self.model.write_many(many), strict=True):
            self._agree(real, model)

    @rule(seconds=st.floats(0.001, 100))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(round(timedelta(seconds=seconds).total_seconds(), 3))

    @rule(
        application=st.none() | WHO,
        verdicts=st.frozensets(st.sampled_from(Verdict), max_size=2),
        states=st.frozensets(st.sampled_from(State), max_size=2),
        prefix=st.sampled_from(["", "file:///a", "s3://", "x"]),
    )
    def ask(
        self,
        application: Application | None,
        verdicts: frozenset[Verdict],
        states: frozenset[State],
        prefix: str,
    ) -> None:
        query = Query(application, verdicts, states, prefix)
        assert list(self.real.select(query)) == list(self.model.select(query))

    @rule(
        application=WHO,
        after=st.lists(WHO, max_size=2),
        blocked=st.frozensets(st.sampled_from([Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID])),
        has_waiting=st.booleans(),
        prefix=st.sampled_from(["", "file:///a", "x"]),
    )
    def ask_who_is_next(
        self,
        application: Application,
        after: list[Application],
        blocked: frozenset[Verdict],
        has_waiting: bool,
        prefix: str,
    ) -> None:
        for queue in (
            Readiness(application, tuple(after), blocked, has_waiting, prefix),
            Done(application, prefix),
        ):
            assert list(self.real.select(queue, BY_ARRIVAL)) == list(self.model.select(queue, BY_ARRIVAL))

    @rule(
        prefix=st.sampled_from(["", "k", "k/"]),
        is_newest_first=st.booleans(),
        limit=st.none() | st.integers(0, 3),
    )
    def list_documents(self, prefix: str, is_newest_first: bool, limit: int | None) -> None:
        found = [
            list(store.documents("note", prefix=prefix, is_newest_first=is_newest_first, limit=limit))
            for store in (self.real, self.model)
        ]
        assert found[0] == found[1]

    @rule()
    def rebuild(self) -> None:
        self.real.rebuild()

    @rule()
    def reopen(self) -> None:
        self.real.close()
        self.real = self.opens(self.clock)

    @invariant()
    def they_hold_the_same(self) -> None:
        assert list(self.real.history()) == list(self.model.history())
        assert list(self.real.select(Query())) == list(self.model.select(Query()))
        assert self.real.counts() == self.model.counts()
        assert self.real.standings() == self.model.standings()
        for kind in ("note", "lease"):
            assert list(self.real.documents(kind)) == list(self.model.documents(kind))

    @invariant()
    def answers_follow_from_records(self) -> None:
        assert list(fsck(self.real)) == []
        for item in self.real.select(Query()):
            assert replay(item.item_id, self.real.records(item.item_id)) == (item, ())

    @rule()
    def move_house(self) -> None:
        copy = MemoryStore(self.clock)
        imported = import_manifest(copy, export_manifest(self.real))
        assert imported.faults == ()
        assert list(copy.select(Query())) == list(self.real.select(Query()))

    @staticmethod
    def _agree(real: Written | LakewrightError, model: Written | LakewrightError) -> None:
        if isinstance(model, Written):
            assert real == model
        else:
            assert isinstance(real, LakewrightError)
            assert (type(real), str(real), real.details) == (type(model), str(model), model.details)


def _outcome(store: Store, write: Write) -> Written | LakewrightError:
    try:
        return store.write(write)
    except LakewrightError as error:
        return error


@contextmanager
def sqlite_places() -> Iterator[Opens]:
    with tempfile.TemporaryDirectory() as folder:
        yield lambda clock: SqliteStore(Path(folder) / "manifest.db", clock=clock)


@contextmanager
def delta_places() -> Iterator[Opens]:
    with tempfile.TemporaryDirectory() as folder:
        yield lambda clock: DeltaStore(str(Path(folder) / "manifest"), clock=clock)


@contextmanager
def postgres_places(server: str) -> Iterator[Opens]:
    with empty_schema(server) as url:

        def opens(clock: Clock) -> Store:
            store = PostgresStore(url)
            # The server's own clock can't be told to stand still.
            store._database.now = lambda connection=None: clock()  # type: ignore[method-assign]
            return store

        yield opens


@contextmanager
def dynamodb_places(server: str) -> Iterator[Opens]:
    with empty_table(server) as where:
        name, region, url = (where[key] for key in ("table", "region", "endpoint_url"))
        yield lambda clock: DynamoDbStore(Table(name, region=region, endpoint_url=url), clock=clock)


def check(places: Places, examples: int, steps: int = 30) -> None:
    run_state_machine_as_test(
        type("InOnePlace", (LikeMemory,), {"places": staticmethod(places)}),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def histories(few: int, many: int) -> pytest.MarkDecorator:
    """Have a test try a few histories, and many of them at night."""
    return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.nightly)])


@histories(3, 60)
def test_sqlite_is_like_the_memory(examples: int) -> None:
    check(sqlite_places, examples)


@histories(1, 40)
def test_postgres_is_like_the_memory(postgres_server: str, examples: int) -> None:
    check(partial(postgres_places, postgres_server), examples)


@pytest.mark.nightly
@histories(2, 10)
def test_dynamodb_is_like_the_memory(dynamodb_server: str, examples: int) -> None:
    check(partial(dynamodb_places, dynamodb_server), examples, 15)


@histories(1, 20)
def test_delta_is_like_the_memory(examples: int) -> None:
    check(delta_places, examples, 15)
