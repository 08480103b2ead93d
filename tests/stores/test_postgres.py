"""PostgreSQL that goes away, comes back, or isn't what it should be."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest
from tests.records import ITEM, REGIONS, claim, draft, found, holder, ledger_of, numbered, put_down
from tests.stores.cluster import Cluster, programs, running_cluster

from lakewright.errors import NotInstalled, StoreUnavailable
from lakewright.manifest.lease import Leases
from lakewright.manifest.store import Append, Write
from lakewright.manifest.verdict import Verdict
from lakewright.stores.postgres.store import PostgresDatabase, PostgresStore

Settings = dict[str, Any]


@pytest.fixture
def store(postgres: Settings) -> Iterator[PostgresStore]:
    with closing(PostgresStore(postgres["url"])) as opened:
        yield opened


def kill_connections(postgres_server: str) -> int:
    """End every other connection, as a failover or an administrator does; return how many there were."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        query = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND application_name = 'lakewright'"
        )
        row = connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])


def test_a_killed_connection_is_made_anew_within_five_seconds(
    store: PostgresStore, postgres_server: str
) -> None:
    ledger = ledger_of(store)
    ledger.discover([found()])
    assert kill_connections(postgres_server) > 0
    begun = time.monotonic()
    assert claim(ledger).token == 1
    assert time.monotonic() - begun < 5
    assert len(store.records(ITEM)) == 2


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_connection_killed_around_the_commit_writes_once(
    store: PostgresStore, postgres_server: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    put_down(store, draft("new", "NEW"))
    engine = store._database.engine
    commit = engine.dialect.do_commit
    kills: list[int] = []

    def killed_commit(connection: Any) -> None:
        if kills:
            commit(connection)
            return
        if moment == "after":
            commit(connection)
        kills.append(kill_connections(postgres_server))
        commit(connection)
        connection.execute("SELECT 1")  # the acknowledgement that is lost

    monkeypatch.setattr(engine.dialect, "do_commit", killed_commit)
    lock = draft("lock", "PROCESSING", "new")
    written = store.write(Write((Append(ITEM, (lock,), 1),)))
    assert kills
    assert written.items[0].verdict(REGIONS) is Verdict.LOCKED
    assert [record.record_id for record in store.records(ITEM)] == ["new", "lock"]


def test_a_lease_survives_a_killed_connection(store: PostgresStore, postgres_server: str) -> None:
    leases = Leases(store, holder(), numbered())
    lease = leases.acquire("write table:x")
    kill_connections(postgres_server)
    assert leases.renew(lease).token == lease.token


def test_a_newer_schema_is_refused(postgres: Settings) -> None:
    with closing(PostgresStore(postgres["url"])) as opened, opened._database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE lakewright_schema SET version = 99")
    with pytest.raises(NotInstalled, match="schema version 99"):
        PostgresStore(postgres["url"])


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "postgresql://ann:hunter22@127.0.0.1:1/lake",
            r"database lake, can't be used: Connection refused(\n|$)",
        ),
        ("postgresql://ann:hunter22@nowhere.invalid/lake", "nowhere.invalid"),
    ],
)
def test_a_server_that_does_not_answer_is_told_without_the_password(url: str, message: str) -> None:
    with pytest.raises(StoreUnavailable, match=message) as caught:
        PostgresStore(url)
    assert "hunter22" not in str(caught.value)
    assert caught.value.remedy is not None


def test_a_database_that_is_not_there_is_told(postgres_server: str) -> None:
    with pytest.raises(StoreUnavailable, match='"nowhere" does not exist'):
        PostgresStore(postgres_server.rpartition("/")[0] + "/nowhere")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A server that may be stopped."""
    found_programs = programs()
    if found_programs is None:
        pytest.skip("PostgreSQL isn't installed")
    with running_cluster(found_programs) as running:
        yield running


def test_a_server_that_restarts_costs_time_and_a_replica_is_refused(cluster: Cluster) -> None:
    with closing(PostgresStore(cluster.url)) as store:
        put_down(store, draft("new", "NEW"))
        cluster.stop()
        with pytest.raises(StoreUnavailable):
            store._database.read(store._database.now, patience=0)
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(put_down, store, draft("lock", "PROCESSING", "new"), expected=1)
            time.sleep(0.3)
            cluster.start()
            assert writing.result().verdict(REGIONS) is Verdict.LOCKED
        cluster.stop()
        standby = cluster.folder / "data" / "standby.signal"
        standby.touch()
        shutil.chown(standby, standby.parent.owner())
        cluster.start()
    with pytest.raises(StoreUnavailable, match="is a replica"):
        PostgresStore(cluster.url)


def test_two_batches_in_opposite_order_both_end(postgres: Settings, store: PostgresStore) -> None:
    names = [f"i-{number:03}" for number in range(200)]

    def work(is_reversed: bool) -> int:
        with closing(PostgresStore(postgres["url"])) as own:
            ordered = names[::-1] if is_reversed else names
            writes = (
                Write((Append(name, (draft(f"{is_reversed}-{name}", "NEW", item=name),), 0),))
                for name in ordered
            )
            return sum(not isinstance(outcome, Exception) for outcome in own.write_many(writes))

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(work, [False, True])) == len(names)
    assert store.counts() == {(REGIONS, Verdict.READY): len(names)}


def test_a_deadlock_is_tried_again() -> None:
    deadlock = psycopg.errors.DeadlockDetected("deadlock")
    database = PostgresDatabase("postgresql://nowhere")
    assert database.is_transient(deadlock)
    assert not database.is_transient(psycopg.errors.InsufficientPrivilege("no"))


def test_a_server_that_does_not_answer_is_waited_for_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(StoreUnavailable):
        PostgresDatabase("postgresql://x@127.0.0.1:1/nothing").read(lambda c: None, patience=0.1)
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "sqlalche" not in record.getMessage()
