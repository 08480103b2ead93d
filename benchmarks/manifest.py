"""The manifest: locks compared with the disk's limit, growth to a million records, a stream of writers.

python -m benchmarks Manifest
python -m benchmarks.manifest 10000000        growth in SQLite to that many records; prints only
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from datetime import timedelta
from functools import partial
from itertools import chain, count
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

from tests.stores.cluster import programs, running_cluster
from tests.stores.dynamodb_local import REGION, running_dynamodb

from benchmarks.report import Row
from benchmarks.timing import load_during, peak_memory
from lakewright.manifest.lease import Holder
from lakewright.manifest.ledger import DiscoveredSlice, Ledger
from lakewright.manifest.record import Application, Author, Draft, State
from lakewright.manifest.store import Append, Query, Store, Write
from lakewright.manifest.verdict import Verdict
from lakewright.stores.registry import open_store
from lakewright.stores.sqlite.database import CHECKPOINT

SIZES = (10_000, 100_000, 1_000_000)
"""Numbers of records at which queries are timed."""

OPEN = 100
"""Items that are not processed, constant at every size: query results do not grow, only the rest does."""

SEEDS = 100
"""Processed items that are copied to fill the manifest; appending them would take many minutes."""

PAIRS = 1_000

TURNS = 20
"""Turns of each round in which pairs are compared with bare commits."""

WRITERS, STREAM_SECONDS, EVERY = 4, 10.0, 0.005
"""Interval of the stream: a record every five milliseconds from each writer."""

WHO = Application.named("lakewright/bench/entity", "entity")
AUTHOR = Author.named("benchmark")
HOLDER = Holder(host="bench", pid=1, started="", run_id="run")

Settings = dict[str, Any]


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the measurements of the manifest's back ends."""
    return load_during(
        chain(_locks(folder, rounds), _growth(folder, SIZES, rounds), _stream(folder), _side_by_side(folder))
    )


def _ledger(store: Store) -> Ledger:
    numbers = count()
    start = uuid4().hex
    return Ledger(store, AUTHOR, ids=lambda: f"{start}-{next(numbers)}")


def _found(name: str) -> DiscoveredSlice:
    return DiscoveredSlice(f"file:///lake/bronze/entity/{name}", WHO, "entity", name, {"size": 1})


def _pairs(store: Store, number: int) -> float:
    """Return the number of locks taken and released per second, with a watermark update each."""
    ledger = _ledger(store)
    names = [f"pair-{uuid4().hex}" for _ in range(number)]
    ledger.discover(map(_found, names))
    begin = time.monotonic()
    for at, name in enumerate(names):
        claim = ledger.acquire(
            _found(name).item_id, WHO, HOLDER, duration=timedelta(seconds=60), token_counter="table"
        )
        ledger.processed(claim, {"watermarks": {"n": {"type": "long", "value": at}}})
    return number / (time.monotonic() - begin)


def _appends(store: Store, number: int, *, together: bool) -> float:
    """Return the number of records appended per second, each to its own item."""
    writes = [_new(f"append-{uuid4().hex}") for _ in range(number)]
    begin = time.monotonic()
    if together:
        for _ in store.write_many(writes):
            pass
    else:
        for write in writes:
            store.write(write)
    return number / (time.monotonic() - begin)


def _draft(item_id: str, state: State, previous: str | None = None, number: int | None = None) -> Draft:
    payload = {"schema": "benchmark/1", "data": {"n": number, "fingerprint": {"size": 1}}}
    return Draft(uuid4().hex, item_id, state, WHO, AUTHOR, "run", previous, payload)


def _new(item_id: str) -> Write:
    return Write((Append(item_id, (_draft(item_id, State.NEW),), 0),))


# Cost of a lock, compared with the disk's limit


def _locks(folder: Path, rounds: int) -> Iterator[Row]:
    disk, bare, pairs, shares, singles, many = [], [], [], [], [], []
    with closing(open_store({"kind": "sqlite", "path": str(folder / "locks.db")})) as store:
        for _ in range(rounds):
            disk.append(_syncs(folder))
            for _ in range(TURNS):  # short ones: the disk's speed changes within seconds
                bare.append(_bare_commits(folder, 2 * PAIRS // TURNS))
                pairs.append(_pairs(store, PAIRS // TURNS))
                shares.append(2 * pairs[-1] / bare[-1])
            singles.append(_appends(store, PAIRS, together=False))
            many.append(_appends(store, 10 * PAIRS, together=True))
    yield Row("this disk: 4 KiB written and synced (`fdatasync`)", f"{median(disk):,.0f} a second")
    yield Row("SQLite itself: commits of one row, synced", f"{median(bare):,.0f} a second")
    yield Row(
        "SQLite: locks taken and released, durably (two commits each)",
        f"{median(pairs):,.0f} pairs a second, {median(shares):.0%} of two bare commits",
        "≥ 90% of two bare commits",
    )
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") if Path("/dev/shm").is_dir() else nullcontext() as memory
    ):
        if memory is not None:
            with closing(open_store({"kind": "sqlite", "path": f"{memory}/locks.db"})) as store:
                begin = time.process_time()
                calm = median([_pairs(store, PAIRS) for _ in range(rounds)])
                spent = 1000 * (time.process_time() - begin) / (rounds * PAIRS)
                yield Row(
                    "the same with a file in memory, without the disk",
                    f"{calm:,.0f} pairs a second, {spent:.2f} ms of processor time each",
                )
    yield Row("SQLite: records appended one by one, durably", f"{median(singles):,.0f} a second")
    yield Row("SQLite: records appended together", f"{median(many):,.0f} a second")


def _syncs(folder: Path, number: int = 500) -> float:
    place = folder / "syncs"
    descriptor = os.open(place, os.O_CREAT | os.O_WRONLY)
    try:
        begin = time.monotonic()
        for at in range(number):
            os.pwrite(descriptor, b"x" * 4096, 4096 * at)
            os.fdatasync(descriptor)
        return number / (time.monotonic() - begin)
    finally:
        os.close(descriptor)
        place.unlink()


def _bare_commits(folder: Path, number: int = 500) -> float:
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
        connection.execute("CREATE TABLE IF NOT EXISTS rows (n INTEGER)")
        begin = time.monotonic()
        for at in range(number):
            connection.execute("INSERT INTO rows VALUES (?)", (at,))
        return number / (time.monotonic() - begin)


# Growth


def _growth(folder: Path, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    timed: dict[str, list[float]] = {}
    with closing(open_store({"kind": "sqlite", "path": str(folder / "growth.db")})) as store:
        leave_open(store)
        records = seed(store)
        for size in sizes:
            fill(folder / "growth.db", (size - records) // 3)
            records = size
            for what, ask in _questions(store).items():
                timed.setdefault(what, []).append(_best(ask, 5 * rounds))
    for what, times in timed.items():
        first, last = times[0], times[-1]
        told = ", ".join(f"{1000 * each:.2f}" for each in times)
        yield Row(
            f"SQLite: {what} at {', '.join(f'{size:,}' for size in sizes)} records",
            f"{told} ms, ratio {last / first:.2f}",
            "ratio ≤ 2",
        )
    yield from _listing(folder)


def seed(store: Store) -> int:
    """Write the items to copy, and return the number of records so far."""
    for _ in store.write_many(_processed(f"file:///lake/bronze/entity/seed-{n}-") for n in range(SEEDS)):
        pass
    return sum(1 for _ in store.history())


def _best(ask: Callable[[], Any], turns: int) -> float:
    times = []
    for _ in range(turns):
        begin = time.perf_counter()
        ask()
        times.append(time.perf_counter() - begin)
    return min(times)


def leave_open(store: Store) -> None:
    """Leave some items failed and others locked."""
    ledger = _ledger(store)
    names = [f"open-{number:03}" for number in range(OPEN)]
    ledger.discover(map(_found, names))
    for number, name in enumerate(names):
        claim = ledger.acquire(
            _found(name).item_id, WHO, HOLDER, duration=timedelta(days=1), token_counter="table"
        )
        if number % 2:
            ledger.failed(claim, {"error": {"message": "no"}})


def fill(place: Path, items: int) -> None:
    """Add processed items with three records each by copying some within the database."""
    mark = f"copy-{uuid4().hex[:8]}"
    last = items // SEEDS
    copies = f"WITH RECURSIVE copies (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < {last})"
    renamed = f"replace({{}}, 'seed-', '{mark}-' || n || '-')"
    added = {
        "items": f"{renamed.format('item_id')}, sequence, state, {renamed.format('fold')}, standing, arrival",
        "records": f"{renamed.format('item_id')}, sequence, record_id || '-{mark}-' || n, state, "
        "application, "
        "application_version, instance_id, author, author_version, manifest_version, run_id, "
        "previous_record_id, timestamp, payload",
    }
    number = "SELECT count(*) FROM lakewright_items AS i WHERE i.standing = lakewright_standings.standing"
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -2000000")
        with connection:
            for table, columns in added.items():
                seeds = (
                    f"seeds AS MATERIALIZED (SELECT * FROM lakewright_{table} WHERE item_id LIKE '%/seed-%')"
                )
                connection.execute(
                    f"INSERT INTO lakewright_{table} {copies}, {seeds} SELECT {columns} FROM copies, seeds"
                )
            connection.execute(f"UPDATE lakewright_standings SET number = ({number})")
        # No manifest gets a log of gigabytes in one transaction, in which each page must be looked up.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _processed(item_id: str) -> Write:
    new = _draft(item_id, State.NEW)
    lock = _draft(item_id, State.PROCESSING, new.record_id)
    return Write((Append(item_id, (new, lock, _draft(item_id, State.PROCESSED, lock.record_id)), 0),))


def _questions(store: Store) -> dict[str, Callable[[], Any]]:
    failed = Query(WHO, frozenset({Verdict.FAILED}))
    status = Query(verdicts=frozenset({Verdict.READY, Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID}))
    return {
        "the failed items of an application": lambda: list(store.select(failed)),
        "the queries of `status`: all open items, and the counts": lambda: (
            list(store.select(status)),
            store.counts(),
        ),
        "a lock taken and released": lambda: _pairs(store, 1),
    }


def _listing(folder: Path) -> Iterator[Row]:
    """Return the peak memory of listing a tenth of the items, and all of them."""
    with closing(open_store({"kind": "sqlite", "path": str(folder / "growth.db")})) as store:
        yield peak_memory("a listing", lambda: store.select(Query()))


# A stream of writers


def _stream(folder: Path) -> Iterator[Row]:
    settings = {"kind": "sqlite", "path": str(folder / "stream.db")}
    with closing(open_store(settings)) as store:
        with get_context("spawn").Pool(WRITERS) as pool:
            delays = pool.map(partial(_write_stream, settings), range(WRITERS), chunksize=1)
        wanted = round(STREAM_SECONDS / EVERY)
        for writer in range(WRITERS):
            numbers = [record.content["n"] for record in store.records(f"stream-{writer}")]
            if numbers != list(range(wanted)):
                raise RuntimeError(
                    f"writer {writer} wrote {wanted} records in order, but {len(numbers)} were found"
                )
    late = sorted(delay for of_writer in delays for delay in of_writer)
    yield Row(
        f"SQLite: {WRITERS} writers for {STREAM_SECONDS:.0f} s, a record every {1000 * EVERY:.0f} ms each",
        f"{WRITERS * wanted:,} records, none lost or reordered; durable after "
        f"{1000 * median(late):.0f} ms (half), {1000 * late[int(0.99 * len(late))]:.0f} ms (99 %)",
        "none lost or reordered; 99 % within 1 s",
    )


def _write_stream(settings: Settings, writer: int) -> list[float]:
    """Append a record whenever one is due, several at once if the last write took longer.

    Returns:
        Seconds between the time each record was due and the time it was durable.
    """
    item_id, written, delays = f"stream-{writer}", 0, []
    wanted = round(STREAM_SECONDS / EVERY)
    with closing(open_store(settings)) as store:
        begin = time.monotonic()
        while written < wanted:
            due = min(wanted, int((time.monotonic() - begin) / EVERY) + 1)
            if due == written:
                time.sleep(EVERY / 4)
                continue
            drafts = tuple(_draft(item_id, State.NEW, number=number) for number in range(written, due))
            store.write(Write((Append(item_id, drafts, written),)))
            now = time.monotonic() - begin
            delays += [now - EVERY * number for number in range(written, due)]
            written = due
    return delays


# Comparison of the back ends


def _side_by_side(folder: Path) -> Iterator[Row]:
    for name, opened in _others(folder).items():
        with opened as settings, closing(open_store(settings)) as store:
            _pairs(store, 5)
            pairs, single = _pairs(store, 50), _appends(store, 50, together=False)
            many = _appends(store, 500, together=True)
        yield Row(
            f"{name}: pairs of lock and unlock, single records, records in bulk",
            f"{pairs:,.0f}, {single:,.0f}, {many:,.0f} a second",
        )


def _others(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    server = programs()
    if server is not None:
        found["PostgreSQL on this machine, without `fsync`"] = _postgres(server)
    found["DynamoDB Local, in memory"] = _dynamodb()
    found["Delta in a folder"] = nullcontext({"kind": "delta", "location": str(folder / "manifest")})
    return found


@contextmanager
def _postgres(server: Path) -> Iterator[Settings]:
    with running_cluster(server) as cluster:
        yield {"kind": "postgres", "url": cluster.url}


@contextmanager
def _dynamodb() -> Iterator[Settings]:
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "benchmark")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "benchmark")
    with running_dynamodb() as url:
        yield {"kind": "dynamodb", "table": "benchmark", "region": REGION, "endpoint_url": url}


def main() -> None:
    """Print growth up to the number of records in the first argument."""
    sizes = [*SIZES, int(sys.argv[1])] if len(sys.argv) > 1 else SIZES
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-") as folder:
        for row in _growth(Path(folder), sizes, 3):
            print(f"{row.what}: {row.measured} (wanted {row.wanted})")


if __name__ == "__main__":
    main()
