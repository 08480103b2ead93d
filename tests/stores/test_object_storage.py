"""Places in S3, read and written without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date, timedelta
from importlib import import_module
from io import BytesIO
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from deltalake import DeltaTable, write_deltalake
from tests.stores.proxy import EXPIRED, SKEWED, FaultyProxy
from tests.stores.s3 import CONCURRENT, Store, running_concurrent_store, running_store

from lakewright.app import App
from lakewright.errors import OperatorError, SequenceConflict, SliceError, SpecError, StorageUnavailable
from lakewright.lake.delta_log import StoredLog, read_log, state_of
from lakewright.lake.files import ObjectFiles
from lakewright.lake.lake import Lake
from lakewright.lake.object_storage import Bucket, ObjectStorage, check_stores
from lakewright.lake.paths import FileEntry
from lakewright.lake.s3 import S3
from lakewright.manifest.lease import Holder
from lakewright.manifest.ledger import DiscoveredSlice, Ledger
from lakewright.manifest.record import Agent, Application, Author
from lakewright.manifest.store import Put, Write
from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned
from lakewright.reader.parquet import read_footers
from lakewright.reader.source import Source
from lakewright.run.request import JobRequest
from lakewright.slices.discovery import Listing, find_slice, list_bronze
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.spec.models.storage import S3Storage, StorageSettings
from lakewright.stores.delta.store import DeltaStore
from lakewright.usecases.run_job import plan_job

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running_store() as found:
        yield found


@pytest.fixture
def bucket(store: Store) -> str:
    return store.new_bucket()


def by_day(names: list[str], bucket: str) -> dict[str, Any]:
    """Return a module whose targets fill a day of a table each."""
    fields = {"kind": "inline", "fields": [{"name": "k", "type": "integer"}]}
    relation = {"kind": "delta", "schema": fields, "partitions": [{"name": "day", "type": "date"}]}
    target = {"kind": "relation", "mapping": "rows", "partition": {"day": "$day"}}
    return {
        "mappings": {"rows": {"kind": "values", "records": [[1]], "schema": fields}},
        "relations": {name: {**relation, "location": f"s3://{bucket}/{name}"} for name in names},
        "targets": {name: {**target, "relation": name} for name in names},
        "jobs": {"daily": {"parameters": [{"name": "day", "type": "date"}], "targets": names}},
    }


class TestFooters:
    def test_footers_are_read_at_the_ends_of_objects(self, store: Store, bucket: str) -> None:
        tables = {f"p {n}": pa.table({f"c{m}": [m] * n for m in range(9**n)}) for n in range(1, 4)}
        files = []
        for name, table in tables.items():
            content = BytesIO()
            pq.write_table(table, content)
            store.client.put_object(Bucket=bucket, Key=f"s1/{name}", Body=content.getvalue())
            files.append(FileEntry(name, len(content.getvalue())))
        source = Source("the slice s1", f"s3a://{bucket}/s1", tuple(files), "parquet")
        found = read_footers(ObjectFiles(store.storage), source)
        assert found is not None
        assert [(file.name, footer.rows, len(footer.columns.fields)) for file, footer in found] == [
            ("p 1", 1, 9),
            ("p 2", 2, 81),
            ("p 3", 3, 729),
        ]
        source = Source(
            "the slice s1", f"s3a://{bucket}/s1", (FileEntry("p 3", files[2].size - 9),), "parquet"
        )
        with pytest.raises(SliceError, match="p 3"):
            read_footers(ObjectFiles(store.storage), source)


def lake_in(storage: ObjectStorage) -> Any:
    return SimpleNamespace(storage=storage)


def listing(folder: str, storage: ObjectStorage) -> Listing:
    return list_bronze(SliceFolder(folder), lake_in(storage))


class TestSlices:
    def test_files_folders_marks_and_partitions_are_those_of_a_disk(self, store: Store, bucket: str) -> None:
        names = ("d10.csv", "d9.csv", "d3/a.csv", "d3/_SUCCESS", "d3/_p=1/b.csv", "d3/.tmp/c.csv", "_x/y.csv")
        for name in names:
            store.put_at(bucket, f"bronze/shop/{name}", "x")
        store.put_at(bucket, "bronze/shopping/other.csv", "x")

        found = listing(f"s3a://{bucket}/bronze/shop", store.storage)

        assert found.exists
        assert {slice_.name: [file.name for file in slice_.files] for slice_ in found.slices} == {
            "d10.csv": ["d10.csv"],
            "d3": ["_p=1/b.csv", "a.csv"],
            "d9.csv": ["d9.csv"],
        }
        folder = next(slice_ for slice_ in found.slices if slice_.is_folder)
        assert folder.marks >= {"_SUCCESS", ".tmp"}
        assert folder.path == f"s3a://{bucket}/bronze/shop/d3"

    def test_an_empty_object_that_marks_a_folder_is_no_slice_with_data(
        self, store: Store, bucket: str
    ) -> None:
        for key, text in (
            ("in/", ""),
            ("in/day/", ""),
            ("in/none/", ""),
            ("in/day/a", "x"),
            ("in/empty", ""),
        ):
            store.put_at(bucket, key, text)
        found = listing(f"s3://{bucket}/in", store.storage).slices
        assert {slice_.name: [file.size for file in slice_.files] for slice_ in found} == {
            "day": [1],
            "empty": [0],
        }

    @pytest.mark.parametrize("name", ["day 1.csv", "a%20b.csv", "ä#?.csv", "x=1"])
    def test_one_slice_is_found_by_its_name_and_no_neighbour(
        self, store: Store, bucket: str, name: str
    ) -> None:
        for key in (name, f"{name}x", "other"):
            store.put_at(bucket, f"b/{key}", "x")
        found = find_slice(SliceFolder(f"s3://{bucket}/b"), name, lake_in(store.storage))
        assert found is not None
        assert (found.name, [file.name for file in found.files]) == (name, [name])

    def test_a_bucket_that_is_not_there_is_told_in_one_line(self, store: Store) -> None:
        with pytest.raises(
            StorageUnavailable, match=r"s3://nowhere.* at http.*: there is no such bucket .NoSuchBucket"
        ) as raised:
            listing("s3://nowhere/bronze", store.storage)
        assert raised.value.message.startswith("s3://nowhere/bronze at http://")
        assert raised.value.message.endswith("can't be listed: there is no such bucket (NoSuchBucket)")
        assert not listing(f"s3://{store.new_bucket()}/bronze", store.storage).exists


class TestFiles:
    def test_paths_match_level_by_level(self, store: Store, bucket: str) -> None:
        for key in ("a/x1.csv", "a/x2.csv", "a/b/x3.csv", "c/x1.csv"):
            store.put_at(bucket, key, "x")
        files = ObjectFiles(store.storage)
        root = f"s3://{bucket}"
        assert files.matching(f"{root}/a/*.csv") == [f"{root}/a/x1.csv", f"{root}/a/x2.csv"]
        assert files.matching(f"{root}/?/x[!2].csv") == [f"{root}/a/x1.csv", f"{root}/c/x1.csv"]
        assert files.matching(f"{root}/a/b") == [f"{root}/a/b"]
        assert files.matching(f"{root}/none") == []

    def test_a_folder_is_renamed_and_removed_with_all_it_holds(self, store: Store, bucket: str) -> None:
        files = ObjectFiles(store.storage)
        root = f"s3a://{bucket}"
        for name in ("a.csv", "p=1/b.csv", "_hidden"):
            files.write(f"{root}/one/{name}", b"x")
        files.write(f"{root}/one-more", b"x")

        files.rename(f"{root}/one", f"{root}/two")

        assert not files.exists(f"{root}/one")
        assert [entry.name for entry in files.listed(f"{root}/two")] == ["a.csv", "p=1/b.csv"]
        files.write(f"{root}/two/a.csv", b"id,name")
        assert [files.begin(f"{root}/two/a.csv", size) for size in (2, 99)] == [b"id", b"id,name"]
        files.remove(f"{root}/two")
        assert not files.exists(f"{root}/two")
        assert files.exists(f"{root}/one-more")


class TestFaults:
    """The rules of storage, "Faults": retried, or an error that says what to do, and nothing half read."""

    def through(self, store: Store, proxy: FaultyProxy) -> ObjectStorage:
        section = {"s3": {**store.section["s3"], "endpoint_url": proxy.url}}
        return ObjectStorage(StorageSettings.model_validate(section), {}, used=frozenset({"s3"}))

    def test_half_a_listing_is_never_taken_for_a_whole_one(self, store: Store, bucket: str) -> None:
        for number in range(20):
            store.put_at(bucket, f"b/d{number}.csv", "x")
        with FaultyProxy(store.url) as proxy:
            storage = self.through(store, proxy)
            proxy.cut_answers("GET", 1)
            try:
                names = [slice_.name for slice_ in listing(f"s3://{bucket}/b", storage).slices]
            except StorageUnavailable:
                names = []
            assert proxy.cut == 1
            assert len(names) in (0, 20)
            assert len(listing(f"s3://{bucket}/b", storage).slices) == 20

    @pytest.mark.parametrize(
        ("status", "answer", "told"),
        [(400, EXPIRED, "Renew the credentials"), (403, SKEWED, "Set the clock of this machine")],
    )
    def test_expired_credentials_and_a_wrong_clock_are_named_with_what_to_do(
        self, store: Store, bucket: str, status: int, answer: bytes, told: str
    ) -> None:
        store.put_at(bucket, "b/d1.csv", "x")
        with FaultyProxy(store.url) as proxy:
            storage = self.through(store, proxy)
            proxy.refuse("GET", status, answer)
            with pytest.raises(StorageUnavailable) as raised:
                listing(f"s3://{bucket}/b", storage)
            assert told in str(raised.value.remedy)
            assert "\n" not in raised.value.message
            proxy.accept()
            assert listing(f"s3://{bucket}/b", storage).exists


class TestTables:
    def test_the_log_is_read_without_spark(self, store: Store, bucket: str) -> None:
        log = StoredLog(f"s3a://{bucket}/silver/t", store.storage)
        assert read_log(log)[1:] == (True, None)
        assert not log.holds_others()
        options = store.options
        write_deltalake(f"s3://{bucket}/silver/t", pa.table({"id": [1, 2]}), storage_options=options)
        table = read_log(log).table
        assert table is not None
        assert state_of(table).rows == 2

    def test_a_table_that_did_not_change_costs_one_listing_and_each_change_is_seen(
        self, store: Store, bucket: str
    ) -> None:
        url, options = f"s3://{bucket}/silver/t", store.options
        write_deltalake(url, pa.table({"id": [1]}), storage_options=options)
        write_deltalake(url, pa.table({"id": [2]}), mode="append", storage_options=options)
        with FaultyProxy(store.url) as proxy:
            log = StoredLog(url, Store(proxy.url).storage)

            def seen() -> int:
                table = log.open()
                assert table is not None
                assert table.file_uris() == DeltaTable(url, storage_options=options).file_uris()
                return table.version()

            def cost() -> list[str]:
                proxy.requests.clear()
                assert log.open() is not None
                return ["LIST" if "list-type=2" in each else each for each in proxy.requests]

            def remove() -> None:
                objects, _ = store.storage.at(f"s3://{bucket}")
                objects.remove([each.name for each in objects.under("silver/t")])

            assert seen() == 1
            assert cost() == ["LIST"]

            write_deltalake(url, pa.table({"id": [3]}), mode="append", storage_options=options)
            proxy.requests.clear()
            assert seen() == 2
            assert not any(each.startswith("HEAD") for each in proxy.requests), (
                "the listing told of the commit"
            )
            assert cost() == ["LIST"]

            remove()  # and put another table with as many versions there
            for number in (7, 8, 9):
                write_deltalake(url, pa.table({"id": [number]}), mode="append", storage_options=options)
            assert seen() == 2

            remove()
            assert log.open() is None
            write_deltalake(url, pa.table({"id": [5]}), storage_options=options)
            assert seen() == 0

    def test_a_plan_of_tables_by_day_starts_no_spark(
        self, store: Store, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        names = [f"t{number}" for number in range(5)]
        for name in names:
            rows = pa.table({"k": pa.array([1], pa.int32()), "day": [date(2022, 1, 1)]})
            options = store.options
            write_deltalake(f"s3://{bucket}/{name}", rows, partition_by=["day"], storage_options=options)
        (tmp_path / "model.yml").write_text(json.dumps(by_day(names, bucket)))
        sections = {"name": "shop", "modules": ["model.yml"], "storage": store.section}
        (tmp_path / "project.yml").write_text(json.dumps(sections))
        monkeypatch.setattr(Lake, "_started", lambda _: pytest.fail("the plan starts Spark"))
        app = App.open(tmp_path)

        def statuses(day: str) -> set[Planned]:
            plan = plan_job(app, JobRequest("daily", Phase.BUILD, (f"day={day}",)))
            return {step.status for step in plan.steps() if step.phase is Phase.BUILD}

        assert statuses("2022-01-01") == {Planned.CLEAN}
        assert statuses("2022-01-02") == {Planned.WOULD_RUN}

    @pytest.mark.parametrize(("content", "fault"), [("no json", "damaged"), (None, "missing")])
    def test_a_damaged_log_is_told_by_a_plan(
        self, store: Store, bucket: str, tmp_path: Path, content: str | None, fault: str
    ) -> None:
        """A plan took the table for one that only Spark can read, and said nothing."""
        url, options = f"s3://{bucket}/t0", store.options
        for day in (1, 2, 3):
            rows = pa.table({"k": pa.array([1], pa.int32()), "day": [date(2022, 1, day)]})
            write_deltalake(url, rows, partition_by=["day"], mode="append", storage_options=options)
        name = f"{1:020d}.json"
        if content is None:
            store.storage.at(f"s3://{bucket}")[0].remove([f"t0/_delta_log/{name}"])
        else:
            store.put_at(bucket, f"t0/_delta_log/{name}", content)
        (tmp_path / "model.yml").write_text(json.dumps(by_day(["t0"], bucket)))
        sections = {"name": "shop", "modules": ["model.yml"], "storage": store.section}
        (tmp_path / "project.yml").write_text(json.dumps(sections))
        plan = plan_job(App.open(tmp_path), JobRequest("daily", Phase.BUILD, ("day=2022-01-01",)))
        told = {step.warning for step in plan.steps() if step.warning is not None}
        message = f"the run will fail: the table {url} can't be read: its log file {name} is {fault}"
        moved = f"`aws s3 mv --recursive {url} {url}.damaged`"
        assert any(message == each.message and moved in str(each.remedy) for each in told)

    def test_other_objects_at_its_place_are_seen(self, store: Store, bucket: str) -> None:
        store.put_at(bucket, "t/part-00000-x.snappy.parquet", "left by a write that never committed")
        log = StoredLog(f"s3://{bucket}/t", store.storage)
        assert not log.holds_others()
        store.put_at(bucket, "t/report.xlsx", "x")
        assert log.holds_others()

    def test_a_manifest_in_the_store_refuses_the_second_of_two_writers(
        self, store: Store, bucket: str
    ) -> None:
        location, options = f"s3://{bucket}/manifest", store.options
        one = DeltaStore(location, storage_options=options)
        other = DeltaStore.open_existing(location, storage_options=options)
        assert isinstance(other, DeltaStore)

        def add(store_: DeltaStore, key: str) -> None:
            store_.write(Write(puts=(Put("note", key, {"by": key}, None),)))

        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(add, each, f"{n}{i}") for i, each in enumerate((one, other)) for n in "abc"]
            for job in jobs:
                job.result()

        assert {each.key for each in one.documents("note")} == {each.key for each in other.documents("note")}
        assert len(list(one.documents("note"))) == 6

    @pytest.mark.parametrize("count", [4, pytest.param(20, marks=pytest.mark.nightly)])
    def test_two_drivers_that_race_claim_each_item_once_and_number_their_commits(
        self, store: Store, count: int
    ) -> None:
        self.race(store, count)

    @pytest.mark.nightly
    @pytest.mark.timeout(900)
    @pytest.mark.skipif(CONCURRENT is None, reason="versitygw is not installed")
    def test_two_drivers_that_race_where_the_store_answers_at_the_same_time_claim_each_item_once(
        self, tmp_path: Path
    ) -> None:
        with running_concurrent_store(tmp_path) as concurrent:
            self.race(concurrent, 200)

    def race(self, store: Store, count: int) -> None:
        bucket = store.new_bucket()
        location, options = f"s3://{bucket}/manifest", store.options
        DeltaStore(location, storage_options=options)
        us = Application.named("lakewright/shop/orders", "orders")
        items = [f"s3://{bucket}/bronze/orders/d{number:03}.csv" for number in range(count)]
        together = Barrier(2)

        def drive(pid: int) -> list[tuple[str, int]]:
            opened = DeltaStore.open_existing(location, storage_options=options)
            assert isinstance(opened, DeltaStore)
            ledger = Ledger(opened, Author(Agent("test")), ids=lambda: str(uuid4()))
            holder, done = Holder("here", pid, "then", f"run-{pid}"), []
            together.wait(60)
            for item in items:
                ledger.discover([DiscoveredSlice(item, us, "orders", item, {"size": 1})])
                with suppress(OperatorError, SequenceConflict):
                    claim = ledger.acquire(
                        item, us, holder, duration=timedelta(minutes=5), token_counter="silver/orders"
                    )
                    ledger.processed(claim, {"metrics": {"pid": pid}})
                    done.append((item, claim.token))
            return done

        with ThreadPoolExecutor(2) as pool:
            done = [each for drivers in pool.map(drive, (1, 2)) for each in drivers]

        assert sorted(item for item, _ in done) == items
        assert sorted(token for _, token in done) == list(range(1, count + 1))


class TestConditionalWrites:
    def test_a_store_that_honours_them_is_asked_once(self, store: Store, bucket: str, tmp_path: Path) -> None:
        check_stores(store.storage, f"s3://{bucket}/lake", tmp_path)
        left = store.client.list_objects_v2(Bucket=bucket)
        assert left["KeyCount"] == 0
        unreachable = ObjectStorage(StorageSettings.model_validate(store.section), {})
        check_stores(unreachable, f"s3://{bucket}/lake", tmp_path)

    def test_a_store_that_ignores_them_is_refused_unless_there_is_one_driver(
        self, store: Store, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def put(self: Bucket, key: str, content: bytes) -> bool:
            self.put(key, content)
            return True

        monkeypatch.setattr(Bucket, "put_if_absent", put)
        with pytest.raises(SpecError, match="ignores `If-None-Match`") as raised:
            check_stores(store.storage, f"s3://{bucket}", tmp_path)
        assert "single_driver: true" in str(raised.value.faults[0].remedy)
        alone = StorageSettings.model_validate({**store.section, "single_driver": True})
        check_stores(ObjectStorage(alone, {}), f"s3://{bucket}", tmp_path)


class TestCredentials:
    def test_a_profile_s_keys_are_read_from_its_file(self, tmp_path: Path) -> None:
        file = tmp_path / "credentials"
        file.write_text("[lake]\naws_access_key_id = AK\naws_secret_access_key = SK\n[sso]\nregion = x\n")
        environ = {"AWS_SHARED_CREDENTIALS_FILE": str(file)}

        def store(profile: str) -> S3:
            section = {"credentials": "profile", "profile": profile}
            return S3(environ, settings=S3Storage.model_validate(section))

        assert store("lake").options("b")["aws_secret_access_key"] == "SK"
        with pytest.raises(SpecError, match=r"the profile 'sso' has no keys in .*credentials"):
            store("sso").options("b")

    def test_spark_and_python_get_the_same(self) -> None:
        environ = {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "SK", "AWS_REGION": "eu-west-1"}
        store = S3(environ)
        conf, options = store.spark_conf(), store.options("b")
        assert conf["spark.hadoop.fs.s3a.secret.key"] == options["aws_secret_access_key"] == "SK"
        assert conf["spark.hadoop.fs.s3a.endpoint.region"] == options["aws_region"] == "eu-west-1"
        assert conf["spark.hadoop.fs.s3a.path.style.access"] == "false"

    def test_spark_keeps_what_it_read_for_a_minute_unless_the_user_says_otherwise(
        self,
    ) -> None:
        prefix = "spark.hadoop.fs.s3a.analytics.accelerator.physicalio."
        conf = S3().spark_conf()
        kept = {key.removeprefix(prefix): text for key, text in conf.items() if key.startswith(prefix)}
        assert kept == {
            "cache.timeout": "60000",
            "max.memory.limit": "134217728",
            "metadatastore.ttl": "1000",
        }
        users = S3(conf={f"{prefix}cache.timeout": "1000"})
        assert f"{prefix}cache.timeout" not in users.spark_conf()

    def test_a_user_s_settings_of_spark_apply_to_both_and_are_not_replaced(self) -> None:
        conf = {
            "spark.hadoop.fs.s3a.endpoint": "minio:9000",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            "spark.hadoop.fs.s3a.access.key": "AK",
        }
        store = S3({}, conf)
        assert store.options("b")["aws_endpoint_url"] == "http://minio:9000"
        assert store.options("b")["aws_access_key_id"] == "AK"
        assert not set(conf) & set(store.spark_conf())

    @pytest.mark.parametrize(
        ("s3", "why"),
        [
            ({"credentials": "static", "access_key": "a"}, "need access_key and secret_key"),
            ({"access_key": "a"}, "need `credentials: static`"),
            ({"credentials": "profile"}, "needs the name of the profile"),
            ({"profile": "p"}, "profile needs `credentials: profile`"),
            ({"endpoint_url": "minio:9000"}, "endpoint_url"),
        ],
    )
    def test_contradictions_are_refused(self, s3: dict[str, str], why: str) -> None:
        with pytest.raises(ValueError, match=why):
            StorageSettings.model_validate({"s3": s3})
