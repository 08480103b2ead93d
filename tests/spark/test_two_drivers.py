"""Two drivers with a JVM each work on one lake in S3: no commit is lost, and none is made twice.

Source: the rules of storage and clusters, "1. Storage"; random slices are compared with a model.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.spark.strategies.searching import MINUTES
from tests.stores.cluster import programs, running_cluster
from tests.stores.s3 import CONCURRENT, Store, running_concurrent_store, running_store

from lakewright import Project
from lakewright.errors import OperatorError, RetryableError
from lakewright.lake.commit import item_contents

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTITIES = ("regions", "prices")
KEYS = 30
ROUNDS = int(os.environ.get("LAKEWRIGHT_TEST_ROUNDS", "100"))
"""Rounds of two slices each, if they fit into the time of a search."""

DRIVER = """
import json, sys
from lakewright import Project
from lakewright.errors import OperatorError, RetryableError

with Project.load(sys.argv[1]) as project:
    for line in sys.stdin:
        done, others = [], []
        for name in json.loads(line):
            result = project.entity(name).process()
            done += [f"{name}/{slice.name}" for slice in result.slices]
            others += [str(e) for e in result.errors if not isinstance(e, (OperatorError, RetryableError))]
        print(json.dumps({"done": done, "errors": others}), flush=True)
"""


class Driver:
    """A driver in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def begin(self, names: list[str]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(names) + "\n")
        self.process.stdin.flush()

    def result(self) -> dict[str, list[str]]:
        assert self.process.stdout is not None
        answer: dict[str, list[str]] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def running_driver(folder: Path) -> Iterator[Driver]:
    command = [sys.executable, "-c", DRIVER, str(folder)]
    pipe = subprocess.PIPE
    with (
        (folder / "driver.log").open("w") as log,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True) as process,
    ):
        try:
            yield Driver(process)
        finally:
            process.kill()


@contextmanager
def settings_of(kind: str, bucket: str) -> Iterator[dict[str, str]]:
    """Yield the `manifest:` section: in the lake's store, or in a database that both drivers reach."""
    if kind == "delta":
        yield {"kind": "delta", "location": f"s3://{bucket}/manifest"}
        return
    if (found := programs()) is None:
        pytest.skip("PostgreSQL is not installed")
    with running_cluster(found) as server:
        yield {"kind": "postgres", "url": server.url}


def store_at(folder: Path) -> AbstractContextManager[Store]:
    """Return a store that answers requests at the same time, if one is installed; the other one is slower."""
    return running_concurrent_store(folder) if CONCURRENT else running_store()


def write_project(folder: Path, store: Store, bucket: str, manifest: dict[str, str]) -> Path:
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
            "regions": {"id": 1, "processtype": "merge", **shared},
            "prices": {"id": 2, "processtype": "historic", **shared},
        },
        # The other driver's session; this one's is given.
        "config": {"spark.master": "local[1]", "lakewright.serve": "never"},
    }
    sections = {
        "name": "shop",
        "modules": ["model.yml"],
        "lake": {"root_folder": f"s3a://{bucket}/lake"},
        "storage": store.section,
        "manifest": manifest,
    }
    folder.mkdir()
    (folder / "model.yml").write_text(json.dumps(model))
    (folder / "project.yml").write_text(json.dumps(sections))
    return folder


class Lake:
    """A lake that slices are brought to, with what its tables must hold."""

    def __init__(self, store: Store, bucket: str, seed: int) -> None:
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
        self.rows[name] |= rows
        self.versions[name] += len(rows)

    def check(self, name: str) -> None:
        """Check that the table holds what the model does, and that each slice made one commit."""
        options = self.store.storage.options()
        table = DeltaTable(f"s3://{self.bucket}/lake/silver/{name}", storage_options=options)
        where = "true" if name == "regions" else '"dlf_IsCurrent"'
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


def process(project: Project, names: list[str]) -> list[str]:
    done = []
    for name in names:
        result = project.entity(name).process()
        done += [f"{name}/{each.name}" for each in result.slices]
        assert all(isinstance(error, OperatorError | RetryableError) for error in result.errors)
    return done


@pytest.mark.nightly
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("kind", ["delta", "postgres"])
def test_of_two_drivers_each_slice_is_committed_by_exactly_one(
    tmp_path: Path, spark: SparkSession, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hundred rounds with each manifest, or as many as time allows."""
    rounds, end = 0, time.monotonic() + 60 * MINUTES
    with store_at(tmp_path / "store") as store, settings_of(kind, bucket := store.new_bucket()) as manifest:
        folder = write_project(tmp_path / "project", store, bucket, manifest)
        lake = Lake(store, bucket, seed=ROUNDS)
        with Project.load(folder, spark=spark) as ours, running_driver(folder) as theirs:
            done: list[list[str]] = [[], []]
            while rounds < ROUNDS and time.monotonic() < end:
                rounds += 1
                for name in ENTITIES:
                    lake.bring(name)
                names = lake.random.sample(ENTITIES, 2)
                theirs.begin(names)
                done[0] += process(ours, lake.random.sample(ENTITIES, 2))
                answer = theirs.result()
                assert answer["errors"] == []
                done[1] += answer["done"]
            done[0] += process(ours, list(ENTITIES))
        assert sorted(done[0] + done[1]) == sorted(
            f"{name}/{each}" for name in ENTITIES for each in lake.slices[name]
        )
        assert all(done), "one driver did everything"
        with capsys.disabled():
            print(f"\n{rounds} rounds with {kind}: {len(done[0])} and {len(done[1])} slices")
        for name in ENTITIES:
            lake.check(name)
