"""Two drivers work on one lake in an object store: no commit is lost, and none is made twice.

By day both drivers share the tests' JVM. At night each is a process with a JVM of its own, which lives for
all rounds; then stores of each kind are raced for.

Source: the rules of storage and clusters, "1. Storage"; random slices are compared with a model.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.sessions import BOTH_COMPILERS
from tests.stores.clouds import CLOUDS, Cloud
from tests.stores.cluster import programs, running_cluster
from tests.stores.s3 import CONCURRENT, Store, running_concurrent_store, running_store

from lakewright import Manifest, Project
from lakewright.errors import OperatorError, RetryableError
from lakewright.lake.commit import item_contents
from lakewright.manifest.record import Record, State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
ENTITIES = ("latest", "regions", "prices")
"""One entity of each strategy: Full, Merge and Historic."""

BY_DAY = (("latest",),) * 2
ROUNDS = int(os.environ.get("LAKEWRIGHT_TEST_ROUNDS", "200"))
BY_NIGHT = tuple(ENTITIES if number % 10 == 0 else ("latest",) for number in range(ROUNDS))
"""Entities of which a slice arrives in a round.

Both drivers claim it at the same moment. What they race for is the same with each strategy, and Full takes
the fewest queries; so it has most of the rounds.
"""

KEYS = 30
TOLD = 20
"""After so many rounds each, the time that they took is printed."""

Race = Callable[[list[list[str]]], list[list[str]]]
"""Has each driver process entities in its order, all from the same moment on; returns the slices of each."""

DRIVER = """
import json, sys
from lakewright import Project
from tests.spark.test_two_drivers import process

with Project.load(sys.argv[1]) as project:
    for line in sys.stdin:
        print(json.dumps(process(project, json.loads(line))), flush=True)
"""


class Driver:
    """A driver in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def begin(self, names: list[str]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(names) + "\n")
        self.process.stdin.flush()

    def result(self) -> list[str]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the driver ended: see driver.log"
        done: list[str] = json.loads(line)
        return done


@contextmanager
def running_driver(folder: Path, number: int) -> Iterator[Driver]:
    command = [sys.executable, "-c", DRIVER, str(folder)]
    pipe = subprocess.PIPE
    with (
        (folder / f"driver-{number}.log").open("w") as log,
        subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=log, text=True) as process,
    ):
        try:
            yield Driver(process)
        finally:
            process.kill()


@contextmanager
def settings_of(kind: str, url: str) -> Iterator[dict[str, str]]:
    """Yield the `manifest:` section: in the lake's store, or in a database that both drivers reach."""
    if kind == "delta":
        yield {"kind": "delta", "location": f"{url}/manifest"}
        return
    if (found := programs()) is None:
        pytest.skip("PostgreSQL is not installed")
    with running_cluster(found) as server:
        yield {"kind": "postgres", "url": server.url}


def store_at(folder: Path, kind: str) -> AbstractContextManager[Store | Cloud]:
    """Return a store; for S3, one that answers requests at the same time if it is installed."""
    if kind in CLOUDS:
        return CLOUDS[kind]()
    return running_concurrent_store(folder) if CONCURRENT else running_store()


def write_project(folder: Path, store: Store | Cloud, bucket: str, manifest: dict[str, str]) -> Path:
    columns = [
        {"name": "id", "datatype": "integer", "fieldroles": ["businesskey"]},
        {"name": "name", "datatype": "string"},
    ]
    shared = {"connection": "c", "columns": columns, "settings": {"format": "csv"}}
    model = {
        "connections": {
            "c": {"settings": {"bronze_path": "${destination}", "silver_path": "${destination}"}}
        },
        "entities": {
            "latest": {"id": 3, "processtype": "full", **shared},
            "regions": {"id": 1, "processtype": "merge", **shared},
            "prices": {"id": 2, "processtype": "historic", **shared},
        },
        # Of drivers in a process of their own. Their JVMs live for hundreds of slices.
        "config": {
            "spark.master": "local[1]",
            "spark.driver.memory": "1g",
            "lakewright.serve": "never",
            **BOTH_COMPILERS,
        },
    }
    sections = {
        "name": "shop",
        "modules": ["model.yml"],
        "lake": {"root_folder": f"{store.place(bucket)}/lake"},
        "storage": store.section,
        "manifest": manifest,
    }
    folder.mkdir()
    (folder / "model.yml").write_text(json.dumps(model))
    (folder / "project.yml").write_text(json.dumps(sections))
    return folder


class Lake:
    """A lake that slices are brought to, with what its tables must hold."""

    def __init__(self, store: Store | Cloud, bucket: str, seed: int) -> None:
        self.store, self.bucket, self.random = store, bucket, random.Random(seed)
        self.rows: dict[str, dict[int, str]] = {name: {} for name in ENTITIES}
        self.versions = dict.fromkeys(ENTITIES, 0)
        self.slices: dict[str, list[str]] = {name: [] for name in ENTITIES}

    def bring(self, name: str) -> None:
        """Bring a slice that changes one row at least, so that it makes a commit."""
        number = len(self.slices[name]) + 1
        keys = self.random.sample(range(KEYS), self.random.randint(1, 6))
        rows = {key: f"{name} {number} {key}" for key in keys}
        text = "id,name\n" + "".join(f"{key},{value}\n" for key, value in rows.items())
        slice_name = f"d{number:04}.csv"
        self.store.put_at(self.bucket, f"lake/bronze/{name}/{slice_name}", text)
        self.slices[name].append(slice_name)
        self.rows[name] = rows if name == "latest" else self.rows[name] | rows
        self.versions[name] += len(rows)

    def check(self, name: str) -> None:
        """Check that the table holds what the model does, and that each slice made one commit."""
        url = f"{self.store.place(self.bucket)}/lake/silver/{name}"
        table = DeltaTable(url, storage_options=self.store.storage.options(url))
        where = '"dlf_IsCurrent"' if name == "prices" else "true"
        assert rows_of(table, f"SELECT id, name FROM t WHERE {where}") == self.rows[name]
        if name == "prices":
            assert pa.table(query(table, "SELECT id FROM t")).num_rows == self.versions[name]
        told = (json.loads(entry["userMetadata"]) for entry in table.history() if "userMetadata" in entry)
        contents = (each for text in told for each in item_contents(text))
        items = sorted(str(each["item"]).rpartition("/")[2] for each in contents)
        assert items == self.slices[name]


def query(table: DeltaTable, sql: str) -> Any:
    return QueryBuilder().register("t", table).execute(sql).read_all()


def rows_of(table: DeltaTable, sql: str) -> dict[int, str]:
    return {row["id"]: row["name"] for row in pa.table(query(table, sql)).to_pylist()}


def process(project: Project, names: Sequence[str]) -> list[str]:
    """Return the slices that a driver has processed; that the other one was first is no error."""
    done = []
    for name in names:
        result = project.entity(name).process()
        done += [f"{name}/{each.name}" for each in result.slices]
        assert all(isinstance(error, OperatorError | RetryableError) for error in result.errors)
    return done


def check_race(
    folder: Path, lake: Lake, race: Race, rounds: Sequence[Sequence[str]], tell: Callable[[int], None]
) -> list[int]:
    """Have two drivers process the same slices, in random order, and check what they leave.

    Returns:
        How many slices each of them processed.
    """
    done: list[list[str]] = [[], []]
    for number, arriving in enumerate(rounds, 1):
        for name in arriving:
            lake.bring(name)
        orders = [lake.random.sample(arriving, len(arriving)) for _ in done]
        for slices, further in zip(done, race(orders), strict=True):
            slices.extend(further)
        tell(number)
    # What one driver could not take, because the other one had just released it.
    arrived = sorted(set(chain.from_iterable(rounds)))
    done[0] += race([arrived, []])[0]
    expected = sorted(f"{name}/{each}" for name in arrived for each in lake.slices[name])
    assert sorted(done[0] + done[1]) == expected
    with Manifest.open(folder) as manifest:
        records = list(manifest.store.history())
    processed = Counter(
        "/".join(each.item_id.rsplit("/", 2)[-2:])
        for each in records
        if isinstance(each, Record) and each.state is State.PROCESSED
    )
    assert processed == Counter(expected)
    for name in arrived:
        lake.check(name)
    return [len(each) for each in done]


def test_of_two_projects_in_one_jvm_each_slice_is_committed_by_exactly_one(
    tmp_path: Path, spark: SparkSession
) -> None:
    with running_store() as store, ThreadPoolExecutor(2) as threads, ExitStack() as stack:
        bucket = store.new_bucket()
        manifest = {"kind": "delta", "location": f"{store.place(bucket)}/manifest"}
        folder = write_project(tmp_path / "project", store, bucket, manifest)
        projects = [stack.enter_context(Project.load(folder, spark=spark)) for _ in range(2)]

        def race(orders: list[list[str]]) -> list[list[str]]:
            return list(threads.map(process, projects, orders))

        check_race(folder, Lake(store, bucket, seed=1), race, BY_DAY, tell=lambda _: None)


@pytest.mark.nightly
@pytest.mark.timeout(5400)
@pytest.mark.parametrize(
    ("kind", "where", "rounds"),
    [
        ("delta", "s3", BY_NIGHT),
        ("postgres", "s3", BY_NIGHT),
        ("delta", "azure", BY_NIGHT[: ROUNDS // 4]),
        ("delta", "gcs", BY_NIGHT[: ROUNDS // 4]),
    ],
)
def test_of_two_drivers_each_slice_is_committed_by_exactly_one(
    tmp_path: Path,
    kind: str,
    where: str,
    rounds: Sequence[Sequence[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    began = time.monotonic()

    with (
        store_at(tmp_path / "store", where) as store,
        settings_of(kind, store.place(bucket := store.new_bucket())) as manifest,
        ExitStack() as stack,
    ):
        folder = write_project(tmp_path / "project", store, bucket, manifest)
        drivers = [stack.enter_context(running_driver(folder, number)) for number in range(2)]

        def race(orders: list[list[str]]) -> list[list[str]]:
            for driver, names in zip(drivers, orders, strict=True):
                driver.begin(names)
            return [driver.result() for driver in drivers]

        def tell(number: int) -> None:
            if number % TOLD == 0 or number == len(rounds):
                elapsed, spent = time.monotonic() - began, sum(map(processor_seconds, drivers))
                with capsys.disabled():
                    print(
                        f"\n{number} rounds {where} {kind}: {elapsed:.0f} s, {spent:.0f} s of processor time"
                    )

        slices = check_race(folder, Lake(store, bucket, seed=ROUNDS), race, rounds, tell)
    assert all(slices), "one driver did everything"
    with capsys.disabled():
        print(f"\n{len(rounds)} rounds on {where} with {kind}: {slices[0]} and {slices[1]} slices")


def processor_seconds(driver: Driver) -> float:
    """Return the processor time of a driver and its JVM so far."""
    process = psutil.Process(driver.process.pid)
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return sum(each.user + each.system for each in times)
