"""The manifest as a library: rules of the manifest, "The bus" (Python)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.records import Clock, holder

from lakewright import Manifest
from lakewright.bus.manifest import HeldItem
from lakewright.errors import (
    ItemFailed,
    ItemLocked,
    ItemWaits,
    LeaseLost,
    SequenceConflict,
    SpecError,
    UsageError,
)
from lakewright.manifest.record import ANYONE, Application
from lakewright.manifest.redaction import Redactor
from lakewright.testing import MemoryStore
from lakewright.upkeep.transfer import import_manifest

LANDING, SCANNER, LOADER = "acme/landing", "acme/scanner", "acme/loader"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def manifest(clock: Clock) -> Iterator[Manifest]:
    redactor = Redactor.of({"DB_PASSWORD": "hunter2!"})
    with Manifest(MemoryStore(clock), redactor=redactor, lease=timedelta(seconds=60)) as opened:
        yield opened


def states(manifest: Manifest, item_id: str) -> list[str]:
    return [record.state.value for record in manifest.records(item_id)]


def load(held: HeldItem) -> Mapping[str, Any]:
    return {"rows": len(held.item_id)}


def ids(manifest: Manifest, application: str, *after: str, **options: Any) -> list[str]:
    return [item.item_id for item in manifest.ready(application, after, **options)]


class TestAdding:
    def test_tells_new_items_from_known_ones(self, manifest: Manifest) -> None:
        assert manifest.add("a", "b", "a", application=LANDING) == ("a", "b")
        assert manifest.add("b", "c", application=LANDING, payload={"size": 3}) == ("c",)
        (record,) = manifest.records("c")
        assert (record.payload or {})["data"] == {"size": 3}
        assert str(record.application) == LANDING

    def test_names_a_place_as_slices_are_named(self, manifest: Manifest, tmp_path: Path) -> None:
        assert manifest.add(tmp_path / "x y.csv", application=LANDING) == ((tmp_path / "x y.csv").as_uri(),)

    @pytest.mark.parametrize("item", ["", " ", "x\0", "\ud800", "x" * 3_000])
    def test_refuses_ids_that_cannot_be_stored(self, manifest: Manifest, item: str) -> None:
        with pytest.raises(UsageError):
            manifest.add(item, application=LANDING)
        assert list(manifest.items()) == []

    @pytest.mark.parametrize("payload", [{"x": float("nan")}, {"x": {1, 2}}, {"x": "y" * 70_000}])
    def test_refuses_payloads_that_cannot_be_kept_whole(self, manifest: Manifest, payload: Any) -> None:
        with pytest.raises(UsageError, match="payload"):
            manifest.add("a", application=LANDING, payload=payload)
        assert list(manifest.items()) == []

    @pytest.mark.parametrize("name", ["", ":x", "x:", "*", "lakewright/shop/orders"])
    def test_refuses_applications_that_are_none_or_not_the_callers(
        self, manifest: Manifest, name: str
    ) -> None:
        with pytest.raises(UsageError):
            manifest.add("a", application=name)


class TestClaiming:
    def test_records_what_was_done(self, manifest: Manifest) -> None:
        manifest.add("a", application=LANDING)
        with manifest.claim("a", LOADER) as claim:
            claim.check()
            claim.payload = {
                "rows": 3,
                "token": "t",
                "url": "postgresql://me:secret@db/x",
                "db_password": "p",
            }
        assert states(manifest, "a") == ["NEW", "PROCESSING", "PROCESSED"]
        assert manifest.records("a")[-1].content == {
            "rows": 3,
            "token": "***",
            "url": "postgresql://***@db/x",
            "db_password": "***",
        }

    def test_an_exception_is_a_failure_with_its_reason(self, manifest: Manifest) -> None:
        manifest.add("a", application=LANDING)
        with pytest.raises(ZeroDivisionError), manifest.claim("a", LOADER):
            print(1 / 0)
        assert states(manifest, "a")[-1] == "FAILED"
        error = manifest.records("a")[-1].content["error"]
        assert (error["class"], error["message"]) == ("ZeroDivisionError", "division by zero")
        with pytest.raises(ItemFailed, match="division by zero"), manifest.claim("a", SCANNER):
            raise AssertionError

    @pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
    def test_an_interruption_is_no_failure(self, manifest: Manifest, stop: type[BaseException]) -> None:
        manifest.add("a", application=LANDING)
        with pytest.raises(stop), manifest.claim("a", LOADER):
            raise stop
        assert states(manifest, "a")[-1] == "RESOLVED"
        assert ids(manifest, LOADER) == ["a"]

    def test_a_payload_that_cannot_be_recorded_is_a_failure(self, manifest: Manifest) -> None:
        manifest.add("a", application=LANDING)
        with pytest.raises(UsageError, match="70,0"), manifest.claim("a", LOADER) as claim:
            claim.payload = {"x": "y" * 70_000}
        assert states(manifest, "a")[-1] == "FAILED"

    def test_one_of_two_holds_an_item(self, manifest: Manifest) -> None:
        manifest.add("a", application=LANDING)
        with manifest.claim("a", LOADER), pytest.raises(ItemLocked), manifest.claim("a", SCANNER):
            raise AssertionError
        with pytest.raises(SequenceConflict, match="processed"), manifest.claim("a", LOADER):
            raise AssertionError
        with pytest.raises(SequenceConflict, match="unknown"), manifest.claim("b", LOADER):
            raise AssertionError

    def test_a_lost_lease_is_told_and_nothing_recorded(self, manifest: Manifest) -> None:
        manifest.add("a", application=LANDING)
        with pytest.raises(LeaseLost), manifest.claim("a", LOADER) as claim:  # noqa: PT012 - the end counts
            manifest.ledger.release("a", "it hangs", is_forced=True)
            claim.check()
        with pytest.raises(LeaseLost), manifest.claim("a", LOADER):
            manifest.ledger.release("a", "it hangs", is_forced=True)
        assert states(manifest, "a") == ["NEW", *["PROCESSING", "RESOLVED"] * 2]

    def test_a_stale_lock_waits_for_an_operator_unless_repeating_does_no_harm(
        self, manifest: Manifest, clock: Clock
    ) -> None:
        manifest.add("a", application=LANDING)
        manifest.ledger.acquire(
            "a", Application.named(LOADER), holder(), duration=timedelta(seconds=60), token_counter=None
        )
        clock.advance(61)
        with pytest.raises(ItemLocked, match="expired"), manifest.claim("a", LOADER):
            raise AssertionError
        assert manifest.process_all(LOADER, load).processed == []
        assert manifest.process_all(LOADER, load, is_idempotent=True).processed == ["a"]
        assert states(manifest, "a") == ["NEW", "PROCESSING", "RESOLVED", "PROCESSING", "PROCESSED"]


class TestOrder:
    def test_an_application_waits_for_others(self, manifest: Manifest, clock: Clock) -> None:
        manifest.add("b", application=LANDING)
        clock.advance(1)
        manifest.add("a", application=LANDING)
        assert ids(manifest, LOADER, SCANNER) == []
        with pytest.raises(ItemWaits, match="a waits for acme/scanner"):
            manifest.claim("a", LOADER, after=[SCANNER]).__enter__()
        assert manifest.process_all(SCANNER, load).processed == ["b", "a"]
        assert ids(manifest, f"{LOADER}:north", SCANNER) == ["b", "a"]
        backlog = manifest.backlog("acme/report", [SCANNER, LOADER])
        assert backlog.as_json() == {"ready": 0, "waiting": {LOADER: 2}}

    def test_items_are_chosen_by_a_pattern(self, manifest: Manifest) -> None:
        manifest.add("x/1", "x/2", "y/1", application=LANDING)
        assert ids(manifest, LOADER, match="*/1") == ["x/1", "y/1"]
        assert ids(manifest, LOADER, match="x/[2-9]") == ["x/2"]
        assert ids(manifest, LOADER, limit=2) == ["x/1", "x/2"]
        assert manifest.process_all(LOADER, load, match="y/*", limit=3).processed == ["y/1"]

    def test_a_failure_ends_the_work_or_is_left_behind(self, manifest: Manifest) -> None:
        manifest.add("a", "b", "c", application=LANDING)

        def scan(held: HeldItem) -> None:
            if held.item_id == "b":
                raise ValueError("infected")

        outcome = manifest.process_all(SCANNER, scan, keep_going=True)
        assert outcome.processed == ["a", "c"]
        assert [(item, str(error)) for item, error in outcome.failed.items()] == [("b", "infected")]
        again = manifest.process_all(SCANNER, scan, match="b")
        assert (again.processed, again.failed) == ([], {})
        assert again.left is not None
        assert again.left.as_json() == {"ready": 0, "waiting": {}, "failed": 1}, "it was left without a word"
        manifest.ledger.requeue("b", "cleaned")
        with pytest.raises(ValueError, match="infected"):
            manifest.process_all(SCANNER, scan)

    def test_in_order_an_item_waits_for_those_before_it(self, manifest: Manifest) -> None:
        manifest.add("a", "b", "c", application=LANDING)
        manifest.process_all(SCANNER, load, match="a")
        manifest.process_all(SCANNER, load, match="c")
        with pytest.raises(ItemWaits, match="b waits for acme/scanner"):
            manifest.process_all(LOADER, load, [SCANNER], is_in_order=True)
        assert states(manifest, "a")[-1] == "PROCESSED"
        assert states(manifest, "c").count("PROCESSED") == 1
        manifest.ledger.skip("b", "not wanted", application=ANYONE)
        assert manifest.process_all(LOADER, load, [SCANNER], is_in_order=True).processed == ["c"]


def test_the_state_of_an_application_follows_from_its_records_alone(manifest: Manifest) -> None:
    names = [f"table {number}" for number in range(7)]
    manifest.add(*names, application=LANDING)
    manifest.process_all(f"{LOADER}:north", load, limit=3)
    manifest.process_all(
        f"{LOADER}:south", lambda _: {"schema": "iglu:x/y/jsonschema/1-0-0", "data": {"n": 1}}
    )
    found = list(manifest.state(f"{LOADER}:north"))
    assert [(each.item_id, each.payload) for each in found] == [(n, {"rows": 7}) for n in names[:3]]
    assert [each.application for each in manifest.state(LOADER)].count(f"{LOADER}:south") == 7
    assert next(manifest.state(f"{LOADER}:south")).payload["schema"] == "iglu:x/y/jsonschema/1-0-0"
    manifest.ledger.requeue(names[0], "sent again")
    assert [each.item_id for each in manifest.state(f"{LOADER}:north")] == names[1:3]


def test_records_of_the_original_are_usable_at_once(manifest: Manifest) -> None:
    """Snowplow's eight keys; `processing-manifest.md`, "Use cases"."""
    folder = "s3://shredded/good/run=2017-02-15-13-10-30/"
    payload = {"schema": "iglu:rdbshredder/processed_payload/jsonschema/1-0-0", "data": {"shreddedTypes": []}}
    chain = [
        ("new", "NEW", None, None),
        ("lock", "PROCESSING", None, None),
        ("done", "PROCESSED", "lock", payload),
    ]
    lines = [
        json.dumps(
            {
                "itemId": folder,
                "application": {"agent": {"name": "rdb-shredder", "version": "0.13.0"}, "instanceId": None},
                "recordId": record_id,
                "previousRecordId": previous,
                "state": state,
                "timestamp": f"2018-05-13T17:32:0{second}.000Z",
                "author": {
                    "agent": {"name": "rdb-shredder", "version": "0.13.0"},
                    "manifestVersion": "0.1.0",
                },
                "payload": content,
            }
        )
        for second, (record_id, state, previous, content) in enumerate(chain)
    ]
    assert import_manifest(manifest.store, lines).faults == ()
    (shredded,) = manifest.state("rdb-shredder")
    assert shredded.payload == payload
    loaded = manifest.process_all("rdb-loader:redshift", load, after=["rdb-shredder"])
    assert loaded.processed == [folder]
    assert ids(manifest, "rdb-loader:snowflake", "rdb-shredder") == [folder]


def test_threads_and_asynchronous_code_share_one_manifest(manifest: Manifest) -> None:
    names = [f"{number:02}" for number in range(40)]
    manifest.add(*names, application=LANDING)
    with ThreadPoolExecutor(4) as pool:
        done = pool.map(lambda _: manifest.process_all(LOADER, load).processed, range(4))
        assert sorted(name for each in done for name in each) == names

    async def scan() -> list[str]:
        outcome = await asyncio.to_thread(manifest.process_all, SCANNER, load)
        return outcome.processed

    assert asyncio.run(scan()) == names


class TestOpening:
    def test_takes_settings_and_makes_nothing_until_something_is_written(self, tmp_path: Path) -> None:
        settings = {"kind": "sqlite", "path": str(tmp_path / "manifest.db"), "lease": "5m"}
        with Manifest.open(settings) as manifest:
            assert list(manifest.ready(LOADER)) == []
            assert not (tmp_path / "manifest.db").exists()
            manifest.add("a", application=LANDING)
            assert manifest.lease == timedelta(minutes=5)
        with Manifest.open(settings) as again:
            assert ids(again, LOADER) == ["a"]

    def test_takes_the_folder_of_a_project(self, tmp_path: Path) -> None:
        (tmp_path / "m").mkdir()
        (tmp_path / "project.yml").write_text("name: shop\nmodules: [m]\nmanifest: {path: state.db}\n")
        with Manifest.open(tmp_path) as manifest:
            manifest.add("a", application=LANDING)
        assert (tmp_path / "state.db").exists()

    @pytest.mark.parametrize("settings", [{"kind": "oracle"}, {"paht": "x"}, {"lease": "never"}])
    def test_refuses_wrong_settings(self, settings: dict[str, str]) -> None:
        with pytest.raises(SpecError):
            Manifest.open(settings)

    def test_imports_neither_spark_nor_what_only_projects_need(self, tmp_path: Path) -> None:
        code = (
            "import sys; from lakewright import Manifest; "
            f"Manifest.open({{'path': {str(tmp_path / 'm.db')!r}}}).add('a', application='x'); "
            "print({'pyspark', 'deltalake', 'pydantic', 'jinja2', 'sqlglot'} & set(sys.modules))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "set()"
