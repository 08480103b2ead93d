"""A lake in S3: the same commands, the same tables, and no commit lost."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.commands import InProcess
from tests.silver import rows_of
from tests.spark.relations.relations import stored
from tests.stores.proxy import FaultyProxy
from tests.stores.s3 import CONCURRENT, Store, running_concurrent_store, running_store

from lakewright import Project
from lakewright.plan.observation import Answer
from lakewright.relations import delta
from lakewright.relations.relation import OutputMode
from lakewright.spark.conf import SessionSettings, runtime_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """
connections:
  shop: {settings: {bronze_path: "${destination}", silver_path: "${destination}"}}
entities:
  regions:
    id: 1
    connection: shop
    processtype: merge
    columns: [{name: id, datatype: integer, fieldroles: [businesskey]}, {name: name, datatype: string}]
    settings: {format: csv}
relations:
  prices:
    kind: file
    format: csv
    location: s3a://$bucket/prices
    options: {header: true}
    schema: {fields: [{name: id, type: integer}, {name: price, type: double}]}
targets:
  regions: {kind: entity, entity: regions}
jobs:
  daily: {targets: [regions]}
"""


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running_store() as found:
        yield found


@pytest.fixture
def bucket(store: Store) -> str:
    return store.new_bucket()


def project(
    folder: Path,
    bucket: str,
    storage: dict[str, Any],
    session: SparkSession | None,
    manifest: dict[str, Any] | None = None,
) -> InProcess:
    folder.mkdir(exist_ok=True)
    (folder / "model.yml").write_text(f"environment: [bucket={bucket}]\n{MODEL}")
    sections = {
        "name": "shop",
        "modules": ["model.yml"],
        "lake": {"root_folder": f"s3a://{bucket}/lake"},
        "storage": storage,
        "manifest": manifest or {"kind": "delta", "location": f"s3://{bucket}/manifest"},
    }
    (folder / "project.yml").write_text(json.dumps(sections))
    return InProcess(folder, session)


def test_slices_become_a_table_in_s3_and_all_but_processing_needs_no_spark(
    tmp_path: Path, store: Store, bucket: str, spark: SparkSession
) -> None:
    shop = project(tmp_path, bucket, store.section, spark)
    without = project(tmp_path, bucket, store.section, None)
    for key, text in {
        "lake/bronze/regions/d1/y.csv": "id,name\n1,a\n2,b\n",
        "lake/bronze/regions/d1/zone=00 7é/05/x.csv": "id,name\n4,d\n",
        "lake/bronze/regions/d2.csv": "id,name\n1,A\n3,c\n",
        "prices/a.csv": "id,price\n1,1.5\n",
        "prices/b.csv": 'price,more,id\n2.5,"x\ny",2\n',
    }.items():
        store.put_at(bucket, key, text)

    assert "regions" in without.run("plan", "daily", "build").out
    done = shop.run("process", "regions")

    assert done.code == 0, done.all
    assert "d2.csv merge 2 records: 1 inserted, 1 updated" in done.out, done.all
    table = DeltaTable(f"s3://{bucket}/lake/silver/regions", storage_options=store.options)
    assert table.version() == 1
    query = "SELECT id, name, zone, price FROM regions LEFT JOIN prices USING (id) ORDER BY id"
    assert [tuple(row.values()) for row in shop.json("sql", query)] == [
        (1, "A", None, 1.5),
        (2, "b", None, 2.5),
        (3, "c", None, None),
        (4, "d", "00 7é", None),
    ]
    verdicts = {row["item_id"]: row["verdict"] for row in without.json("manifest", "ls")}
    assert verdicts == {f"s3://{bucket}/lake/bronze/regions/{name}": "processed" for name in ("d1", "d2.csv")}
    assert without.run("status").code == 0
    assert without.run("plan", "daily", "build").code == 0
    assert "nothing is damaged" in without.run("manifest", "fsck").out


def test_a_slice_waits_while_the_store_is_away(
    tmp_path: Path, store: Store, bucket: str, spark: SparkSession
) -> None:
    gone = {"s3": {**store.section["s3"], "endpoint_url": "http://127.0.0.1:9"}}
    done = project(tmp_path, bucket, gone, spark).run("process", "regions")
    assert done.code != 0
    assert "the store does not answer" in done.err, done.all
    assert "Traceback" not in done.all


def test_a_parquet_slice_that_was_replaced_is_read_as_it_is_now(
    store: Store, bucket: str, spark: SparkSession
) -> None:
    session, path = spark.newSession(), f"s3a://{bucket}/bronze/d1.parquet"
    settings = SessionSettings(Path("unused"), conf=store.storage.spark_conf())
    for key, text in runtime_conf(settings, "local[2]").items():
        if key.startswith("fs."):
            session.conf.set(key, text)
    for number, table in enumerate((pa.table({"id": [1]}), pa.table({"id": [1, 2], "name": ["a", "b"]}))):
        if number:
            time.sleep(1.5)  # the tag of an object is asked for again after a second
        file = io.BytesIO()
        pq.write_table(table, file)
        store.client.put_object(Bucket=bucket, Key="bronze/d1.parquet", Body=file.getvalue())
        frame = session.read.parquet(path)
        assert frame.columns == table.column_names
        assert frame.count() == table.num_rows


PARTITIONED = """
relations:
  by_day: &table
    kind: delta
    location: "s3://${bucket}/by_day"
    partitions: [{name: day, type: date}, {name: region, type: string}]
    schema: {fields: [{name: id, type: integer}]}
  by_rate: {<<: *table, location: "s3://${bucket}/by_rate", partitions: [{name: rate, type: float}]}
"""


@pytest.mark.nightly
def test_overwrites_of_partitions_in_s3_replace_what_the_log_says_is_there(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_concurrent_store(tmp_path / "store") if CONCURRENT else running_store() as store:
        bucket = store.new_bucket()
        (tmp_path / "model.yml").write_text(PARTITIONED.replace("${bucket}", bucket))
        sections = {"name": "shop", "modules": ["model.yml"], "storage": store.section}
        (tmp_path / "project.yml").write_text(json.dumps(sections))
        options = store.options
        with Project.load(tmp_path, spark=spark) as opened:
            workspace = opened.app.workspace

            def write(name: str, number: int, **partition: str) -> Answer:
                relation, frame = stored(workspace, name), spark.sql(f"SELECT {number} AS id")
                relation.write(workspace, frame, partition=partition, mode=OutputMode.OVERWRITE)
                return relation.observe(workspace, partition).filled

            def table(name: str) -> DeltaTable:
                return DeltaTable(f"s3://{bucket}/{name}", storage_options=options)

            def found(name: str) -> list[tuple[Any, ...]]:
                return sorted(
                    tuple(row.values()) for row in pa.table(table(name).to_pyarrow_table()).to_pylist()
                )

            def late(*arguments: Any, **keywords: Any) -> int:
                monkeypatch.undo()
                rows = pa.table({"id": pa.array([9], pa.int32()), "day": [first], "region": ["asia"]})
                url = f"s3://{bucket}/by_day"
                write_deltalake(url, rows, mode="append", storage_options=options)
                return save(*arguments, **keywords)

            first, second, save = date(2022, 1, 1), date(2022, 1, 2), delta.TableWrite._save
            asked = [("2022-01-01", "eu"), ("2022-01-02", "eu"), ("2022-01-01", "eu"), ("2022-01-01", "us")]
            for number, (day, region) in enumerate(asked):
                assert write("by_day", number, day=day, region=region) is Answer.YES
            told = [each["operationParameters"].get("mode") for each in table("by_day").history()]
            assert told[:4] == ["Append", "Overwrite", "Append", "Append"]
            monkeypatch.setattr(delta.TableWrite, "_save", late)
            write("by_day", 4, day="2022-01-01", region="asia")
            assert found("by_day") == [
                (1, second, "eu"),
                (2, first, "eu"),
                (3, first, "us"),
                (4, first, "asia"),
            ]
            relation = stored(workspace, "by_day")
            relation.truncate(workspace, {"day": "2022-01-01", "region": "us"})
            assert relation.observe(workspace, {"day": "2022-01-01", "region": "us"}).filled is Answer.NO

            for number in range(2):
                assert write("by_rate", number, rate="0.1") is Answer.YES
            assert [row[0] for row in found("by_rate")] == [1]


EXPIRING = """
import sys
from tests.stores.proxy import EXPIRED, FaultyProxy

with FaultyProxy(sys.argv[1]) as proxy:
    # From the first file of the table on: the slice is claimed and read by then.
    proxy.refuse("PUT .*/silver/regions/", 400, EXPIRED)
    print(proxy.url, flush=True)
    sys.stdin.readline()
    print(proxy.refused, flush=True)
    proxy.accept()
    sys.stdin.readline()
"""
"""A proxy in a process of its own: in a thread of this one it would hang, as the store would."""


@contextmanager
def expiring(store: Store) -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield the URL of the proxy, and what renews the credentials and tells how many requests it refused."""
    command = [sys.executable, "-c", EXPIRING, store.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        sink, source = proxy.stdin, proxy.stdout

        def renew() -> int:
            print(file=sink, flush=True)
            return int(source.readline())

        try:
            yield source.readline().strip(), renew
        finally:
            proxy.kill()


def test_a_slice_is_released_if_credentials_expire_in_the_middle(
    tmp_path: Path, store: Store, bucket: str, spark: SparkSession
) -> None:
    with expiring(store) as (url, renew):
        storage = {"s3": {**store.section["s3"], "endpoint_url": url}, "single_driver": True}
        shop = project(tmp_path, bucket, storage, spark, manifest={"kind": "sqlite"})
        store.put_at(bucket, "lake/bronze/regions/d1.csv", "id,name\n1,a\n2,b\n")
        done = shop.run("process", "regions")
        assert renew() > 0
        assert done.code != 0
        assert "Renew the credentials" in done.err, done.all
        assert "Traceback" not in done.all
        assert [row["verdict"] for row in shop.json("manifest", "ls")] == ["ready"]
        assert shop.run("process", "regions").code == 0
    table = DeltaTable(f"s3://{bucket}/lake/silver/regions", storage_options=store.options)
    assert table.version() == 0
    assert sum(table.get_add_actions(flatten=True).column("num_records").to_pylist()) == 2


class TestLogStore:
    """What Delta's own log store for S3 gets wrong: two writers of one version, and answers that are lost."""

    @pytest.mark.parametrize("races", [3, pytest.param(20, marks=pytest.mark.nightly)])
    def test_one_of_many_writers_wins_and_the_others_are_told(
        self, store: Store, bucket: str, spark: SparkSession, races: int
    ) -> None:
        log = LogStore(spark, store.url)
        for version in range(races):
            results = log.race(f"s3a://{bucket}/t/_delta_log/{version:020}.json", writers=8)
            assert Counter(results) == {"written": 1, "FileAlreadyExistsException": 7}
            content = store.client.get_object(Bucket=bucket, Key=f"t/_delta_log/{version:020}.json")
            assert content["Body"].read().decode() == f"writer {results.index('written')}\n"

    def test_a_write_whose_answer_is_lost_is_known_to_be_ours(
        self, store: Store, bucket: str, spark: SparkSession
    ) -> None:
        with FaultyProxy(store.url) as proxy:
            log = LogStore(spark, proxy.url)
            proxy.lose_answers("PUT", 1)
            assert log.write(f"s3a://{bucket}/t/1.json", "ours") == "written"
            assert proxy.lost == 1
            assert log.write(f"s3a://{bucket}/t/1.json", "theirs") == "FileAlreadyExistsException"

    def test_requests_that_are_throttled_are_repeated(
        self, store: Store, bucket: str, spark: SparkSession
    ) -> None:
        with FaultyProxy(store.url) as proxy:
            log = LogStore(spark, proxy.url)
            proxy.throttle("PUT", 2)
            assert log.write(f"s3a://{bucket}/t/2.json", "ours") == "written"
            assert proxy.throttled == 2

    @pytest.mark.nightly
    @pytest.mark.skipif(CONCURRENT is None, reason="versitygw is not installed")
    def test_one_wins_where_the_store_answers_at_the_same_time(
        self, tmp_path: Path, spark: SparkSession
    ) -> None:
        with running_concurrent_store(tmp_path) as concurrent:
            log, bucket = LogStore(spark, concurrent.url), concurrent.new_bucket()
            for version in range(50):
                key = f"t/_delta_log/{version:020}.json"
                results = log.race(f"s3a://{bucket}/{key}", writers=16)
                assert Counter(results) == {"written": 1, "FileAlreadyExistsException": 15}
                content = concurrent.client.get_object(Bucket=bucket, Key=key)
                assert content["Body"].read().decode() == f"writer {results.index('written')}\n"


class LogStore:
    """The log store, called as Delta calls it."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        jvm: Any = spark._jvm
        java_context: Any = spark._jsc
        self.jvm = jvm
        self.conf = jvm.org.apache.hadoop.conf.Configuration(java_context.hadoopConfiguration())
        for key, text in {
            "endpoint": url,
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "access.key": "tester",
            "secret.key": "no-secret-of-anyone",
            "retry.throttle.interval": "10ms",
            # Each store of a test has a client of its own.
            "impl.disable.cache": "true",
        }.items():
            self.conf.set(f"fs.s3a.{key}", text)

    def write(self, path: str, line: str) -> str:
        """Return `written`, or the name of the error's class."""
        from py4j.protocol import Py4JJavaError

        log = self.jvm.io.lakewright.storage.PutIfAbsentLogStore(self.conf)
        lines = self.jvm.java.util.ArrayList()
        lines.add(line)
        try:
            log.write(self.jvm.org.apache.hadoop.fs.Path(path), lines.iterator(), False, self.conf)
        except Py4JJavaError as error:
            return str(error.java_exception.getClass().getSimpleName())
        return "written"

    def race(self, path: str, writers: int) -> list[str]:
        """Return what each of some writers of a file was told."""
        results = [""] * writers
        start = threading.Barrier(writers)

        def write(number: int) -> None:
            start.wait()
            results[number] = self.write(path, f"writer {number}")

        threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results


@pytest.mark.nightly  # the first test reads slices in S3
def test_an_entity_of_a_lake_here_reads_a_folder_a_day_in_s3(
    tmp_path: Path, store: Store, bucket: str, spark: SparkSession
) -> None:
    sections = {
        "name": "shop",
        "storage": store.section,
        "entities": {
            name: {"from": f"s3://{bucket}/exports/{{date}}/{name}*.csv", "key": "id", "strategy": "historic"}
            for name in ("orders", "people")
        },
    }
    (tmp_path / "project.yml").write_text(json.dumps(sections))
    shop = InProcess(tmp_path, spark)
    for day, name in ((1, "a"), (2, "b")):
        for part in ("1", "2"):
            place = f"exports/2024-05-0{day}/orders-{part}.csv"
            store.put_at(bucket, place, f"id,name\n{part},{name}\n")
    done = shop.run("apply")
    assert done.code == 0, done.all
    found = rows_of(tmp_path / "lake/silver/orders")
    assert sorted((row["id"], row["name"], row["dlf_ValidFrom"].date()) for row in found) == [
        (part, name, date(2024, 5, day)) for part in ("1", "2") for day, name in ((1, "a"), (2, "b"))
    ]
    assert [each["code"] for each in shop.json("plan")["findings"]] == ["no_files"]
