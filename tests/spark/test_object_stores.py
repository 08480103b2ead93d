"""A lake in Azure or Google Cloud Storage: the same commands and the same tables as on a disk."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.commands import InProcess
from tests.spark.test_two_drivers import ROOT, rows_of, running_driver, write_project
from tests.stores.clouds import CLOUDS, Cloud

from lakewright.errors import StorageUnavailable
from lakewright.lake.files import ObjectFiles
from lakewright.lake.object_storage import Bucket, ObjectStorage, check_stores
from lakewright.slices.discovery import list_slices
from lakewright.spark.releases import installed_release, store_jars
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.spec.models.storage import StorageSettings

pytestmark = pytest.mark.nightly


OFFERED = [kind for kind in CLOUDS if store_jars(installed_release(), kind)]
"""The kinds of stores that this Spark can use; it refuses the others."""


@pytest.fixture(scope="module", params=OFFERED)
def store(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    with CLOUDS[request.param]() as found:
        yield found


@pytest.fixture
def url(store: Cloud) -> str:
    return store.place(store.new_bucket())


def test_objects_are_written_read_listed_copied_and_removed(store: Cloud, url: str) -> None:
    files = ObjectFiles(store.storage)
    bucket, key = store.storage.at(f"{url}/a b é")
    assert bucket.find(key) is None
    assert bucket.put_if_absent(key, b"one")
    assert not bucket.put_if_absent(key, b"two")
    assert bucket.read(key) == b"one"
    assert bucket.read_range(key, 1, 2) == b"ne"
    for number in range(3):
        files.write(f"{url}/in/d{number}.csv", b"x")
    files.rename(f"{url}/in", f"{url}/out")
    assert [file.name for file in files.listed(f"{url}/out")] == ["d0.csv", "d1.csv", "d2.csv"]
    assert [each.name for each in bucket.under("out", after="out/d1.csv")] == ["out/d2.csv"]
    assert files.matching(f"{url}/out/d[01].csv") == [f"{url}/out/d0.csv", f"{url}/out/d1.csv"]
    bucket.remove(["out/d0.csv", "missing", "out/d1.csv"])
    files.remove(f"{url}/out")
    assert not files.exists(f"{url}/out")
    assert bucket.find(key) == next(bucket.under(""))


def test_a_store_is_asked_once_whether_it_creates_an_object_twice(
    store: Cloud, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_stores(store.storage, f"{url}/lake", tmp_path)
    monkeypatch.setattr(Bucket, "put_if_absent", lambda *_: pytest.fail("asked again"))
    check_stores(store.storage, f"{url}/lake", tmp_path)
    bucket, _ = store.storage.at(url)
    assert list(bucket.under("")) == []


def test_a_table_that_has_not_changed_is_not_opened_again(store: Cloud, url: str) -> None:
    place, rows = f"{url}/t", pa.table({"id": [1]})
    storage, options = store.storage, store.storage.options(place)
    write_deltalake(place, rows, storage_options=options)
    bucket, key = storage.at(place)

    def opened() -> DeltaTable:
        return storage.tables.open(bucket, key, lambda: DeltaTable(place, storage_options=options))

    first = opened()
    assert opened() is first
    write_deltalake(place, rows, mode="append", storage_options=options)
    assert opened().version() == 1


def test_what_is_missing_or_away_is_said_in_words(store: Cloud, url: str) -> None:
    missing, _ = store.storage.at(store.place("none-of-this-name"))
    with pytest.raises(StorageUnavailable, match="there is no such bucket"):
        list(missing.under(""))
    (kind, section), *_ = store.section.items()
    gone = {kind: {**section, "endpoint_url": "http://127.0.0.1:9"}}
    bucket, _ = ObjectStorage(StorageSettings.model_validate(gone), {}).at(url)
    with pytest.raises(StorageUnavailable, match="the store does not answer"):
        bucket.read("x")


def test_slices_become_tables_and_all_but_processing_needs_no_spark(tmp_path: Path, store: Cloud) -> None:
    bucket = store.new_bucket()
    url = store.place(bucket)
    manifest = {"kind": "delta", "location": f"{url}/manifest"}
    folder = write_project(tmp_path / "project", store, bucket, manifest)
    without = InProcess(folder, None)
    bronze = "lake/bronze/regions"
    store.put_at(bucket, f"{bronze}/d1.csv", "id,name\n1,a\n2,b\n")
    store.put_at(bucket, f"{bronze}/d2/00 7é/x.csv", "id,name\n3,c\n")
    store.put_at(bucket, f"{bronze}/d2/y.csv", "id,name\n1,A\n")
    for name in ("latest", "prices"):
        store.put_at(bucket, f"lake/bronze/{name}/d1.csv", "id,name\n1,a\n")
    with ExitStack() as stack:
        driver = stack.enter_context(running_driver(folder, 0))
        driver.begin(["regions", "latest", "prices"])
        assert driver.result() == ["regions/d1.csv", "regions/d2", "latest/d1.csv", "prices/d1.csv"]
        silver = f"{url}/lake/silver/regions"
        table = DeltaTable(silver, storage_options=store.storage.options(silver))
        assert rows_of(table, "SELECT id, name FROM t") == {1: "A", 2: "b", 3: "c"}
        # The folders of Hadoop are no slices, and no files of one.
        lake: Any = SimpleNamespace(storage=store.storage)
        slices = list_slices(SliceFolder(f"{url}/{bronze}"), lake)
        assert [(each.name, len(each.files)) for each in slices] == [("d1.csv", 1), ("d2", 2)]
        store.put_at(bucket, f"{bronze}/d3.csv", "id,name\n9,z\n")
        driver.begin(["regions"])
        assert driver.result() == ["regions/d3.csv"]
    verdicts = {row["item_id"]: row["verdict"] for row in without.json("manifest", "ls")}
    assert set(verdicts.values()) == {"processed"}
    scheme, _, rest = f"{url}/{bronze}/d3.csv".partition("://")
    assert f"{scheme.replace('abfss', 'abfs')}://{rest}" in verdicts
    assert without.run("status").code == 0
    assert "nothing is damaged" in without.run("manifest", "fsck").out
    secret = store.section.get("azure", {}).get("account_key", "no secret")
    logs = "".join(each.read_text() for each in folder.glob("driver-*.log"))
    assert secret not in logs


RACES = """
import json, sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from lakewright import Project

with Project.load(sys.argv[1]) as project:
    spark, url = project.app.lake.spark, sys.argv[2]
    scheme = url.partition("://")[0]
    name = spark.conf.get(f"spark.delta.logStore.{scheme}.impl")
    jvm, hadoop = spark._jvm, spark._jsc.hadoopConfiguration()
    store = getattr(jvm, name)(hadoop)

    def write(path, text):
        lines = jvm.java.util.ArrayList()
        lines.add(text)
        try:
            store.write(jvm.org.apache.hadoop.fs.Path(path), lines.iterator(), False, hadoop)
        except Exception as error:
            return error.java_exception.getClass().getSimpleName()
        return "written"

    folder = jvm.org.apache.hadoop.fs.Path(f"{url}/t/_delta_log")
    folder.getFileSystem(hadoop).mkdirs(folder)
    for version in range(int(sys.argv[3])):
        path = f"{url}/t/_delta_log/{version:020}.json"
        with ThreadPoolExecutor(8) as writers:
            results = list(writers.map(lambda number: write(path, f"writer {number}"), range(8)))
        print(json.dumps(results), flush=True)
"""
"""Has eight writers write each file of a log at the same time, and prints what each of them is told."""


def test_one_of_many_writers_of_a_commit_wins_and_the_others_are_told(tmp_path: Path, store: Cloud) -> None:
    bucket = store.new_bucket()
    url = store.place(bucket)
    manifest = {"kind": "delta", "location": f"{url}/manifest"}
    folder = write_project(tmp_path / "project", store, bucket, manifest)
    command = [sys.executable, "-c", RACES, str(folder), url, "40"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    log, key = store.storage.at(f"{url}/t/_delta_log")
    races = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(races) == 40
    for version, results in enumerate(races):
        assert Counter(results) == {"written": 1, "FileAlreadyExistsException": 7}
        content = log.read(f"{key}/{version:020}.json")
        assert content == f"writer {results.index('written')}\n".encode()
