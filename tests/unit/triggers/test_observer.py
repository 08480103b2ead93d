"""What triggers on events see, in a project on disk, without Spark."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.projects import KINDS
from tests.sessions import no_session

from lakewright.app import App
from lakewright.manifest.claim import Claim
from lakewright.manifest.lease import Lease
from lakewright.manifest.rewind import RewoundSlice
from lakewright.manifest.store import Query
from lakewright.manifest.verdict import Verdict
from lakewright.slices.application import application_of
from lakewright.slices.discovery import discovered, list_slices
from lakewright.spec.loading.loader import load_project
from lakewright.spec.loading.settings import LoadOptions
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.spec.models.trigger import Trigger
from lakewright.triggers.observer import Observer

MODULE = """
connections: {shop: {}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
triggers:
  arrivals: {entities: orders, on: arrival, settle: 2s}
"""


class World:
    """A project, and two clocks that a test moves together."""

    def __init__(self, folder: Path) -> None:
        (folder / "project.yml").write_text("name: shop\nmodules: [module.yml]\nlake: {root_folder: lake}\n")
        (folder / "module.yml").write_text(MODULE)
        self.passed = 0.0
        self.began = time.time()
        project = load_project(folder, LoadOptions(kinds=KINDS, environ={}))
        self.app = App(project, {}, clock=self.clock, sessions=no_session)
        self.observer = Observer(self.app, lambda: self.passed)
        self.trigger: Trigger = project.trigger("arrivals")
        self.bronze = Path(project.entity("orders").places(project.lake).bronze.removeprefix("file:"))

    def clock(self) -> datetime:
        return datetime.fromtimestamp(self.began + self.passed, UTC)

    def write(self, name: str, *, age: float = 0.0) -> None:
        place = self.bronze / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("{}")
        modified = self.clock().timestamp() - age
        os.utime(place, (modified, modified))
        os.utime(self.bronze, (modified, modified))

    def mark(self, after: float = 0.0) -> str:
        self.passed += after
        self.observer.begin()
        found = self.observer.mark(self.trigger)
        assert found is not None
        return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_file_is_ready_once_it_has_stood_still(world: World) -> None:
    assert world.mark() == ""
    world.write("a.json")
    assert world.mark(0.5) == ""
    assert world.mark(1) == ""
    assert world.mark(1) != ""


def test_a_file_is_looked_at_as_soon_as_it_has_stood_still(world: World) -> None:
    assert world.observer.seconds_to_look() == float("inf")
    world.write("a.json")
    assert world.mark(1.9) == ""
    wait = world.observer.seconds_to_look()
    assert 0.1 <= wait < 0.12
    assert world.mark(wait) != ""
    # The folder is listed less and less often, and a look that is overdue keeps nobody awake.
    assert world.observer.seconds_to_look() > 0.2
    world.passed += 60
    assert world.observer.seconds_to_look() == float("inf")


def test_a_slice_after_one_that_is_being_written_waits_for_it(world: World) -> None:
    world.write("b.json", age=60)
    ready = world.mark(11)
    assert ready != ""
    world.write("a.json")
    assert world.mark(0.5) == ""
    assert world.mark(2) not in ("", ready)


def test_a_folder_with_success_is_ready_at_once(world: World) -> None:
    world.write("a/part.json")
    (world.bronze / "a" / "_SUCCESS").touch()
    assert world.mark(0.3) != ""


def test_what_is_processed_or_recorded_by_others_is_seen_at_the_next_full_listing(world: World) -> None:
    world.write("a.json", age=60)
    first = world.mark()
    assert first != ""
    entity = world.app.project.entity("orders")
    application = application_of("shop", entity)
    slices = list_slices(SliceFolder(str(world.bronze)), world.app.lake)
    ledger = world.app.ledger
    ledger.discover(discovered(slices, application, "orders"), run_id="r")
    assert world.mark(0.1) == first
    (item,) = ledger.store.select(Query())
    ledger.skip(item.item_id, "not wanted")
    assert world.mark(10) == ""


def test_a_look_between_two_listings_reads_only_the_time_of_the_folder(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("a.json", age=60)
    first = world.mark(5)
    monkeypatch.setattr("lakewright.triggers.observer.find_pending", None)
    assert world.mark(1) == first


def gold_trigger(**keys: str) -> Trigger:
    given = {"name": "g", "job": "gold", "phase": "build", "on": "processed", "of": "orders", "settle": "0s"}
    return Trigger.model_validate({**given, **keys})


def claimed(world: World) -> Claim:
    """Write a slice, and begin to process it."""
    world.write("a.json", age=60)
    application = application_of("shop", world.app.project.entity("orders"))
    found = list(
        discovered(list_slices(SliceFolder(str(world.bronze)), world.app.lake), application, "orders")
    )
    ledger = world.app.ledger
    ledger.discover(found, run_id="r")
    minute = timedelta(minutes=1)
    return ledger.acquire(found[0].item_id, application, world.app.holder, duration=minute, token_counter="c")


def test_processed_slices_change_the_mark_and_one_in_process_gives_none(world: World) -> None:
    world.trigger = gold_trigger()
    before = world.mark()
    claim = claimed(world)
    world.passed += 1
    world.observer.begin()
    assert world.observer.mark(world.trigger) is None
    assert world.observer.processed(world.trigger) == before
    world.app.ledger.processed(claim, {})
    assert world.mark(1) != before


def test_only_processing_changes_the_mark_of_processed_slices(world: World) -> None:
    world.trigger = gold_trigger()
    before = world.mark()
    claim, ledger = claimed(world), world.app.ledger
    ledger.failed(claim, {"error": {"message": "the storage failed"}})
    assert world.mark(1) == before
    ledger.resolve(claim.item_id, "mended")
    application, minute = claim.application, timedelta(minutes=1)
    again = ledger.acquire(claim.item_id, application, world.app.holder, duration=minute, token_counter="c")
    ledger.processed(again, {})
    processed = world.mark(1)
    assert processed != before
    lease = Lease("table", world.app.holder, "token", world.clock(), world.clock())
    rewind = ledger.announce_rewind("table", "undo of a.json", lease, "id", application)
    ledger.record_rewind(rewind, application, [RewoundSlice(claim.item_id, 1)], {}, "undone")
    assert ledger.item(claim.item_id).verdict(application) is Verdict.READY
    assert world.mark(1) == processed


def test_processed_slices_count_once_no_further_one_follows(world: World) -> None:
    gold = gold_trigger(settle="2s")
    found = []
    for _ in range(4):
        world.passed += 1
        world.observer.begin()
        found.append(world.observer.mark(gold))
    assert found == [None, None, "0", "0"]
