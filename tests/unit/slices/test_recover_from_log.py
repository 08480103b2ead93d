"""Slices that a table has and the manifest has lost: `processing-manifest.md`, "State" (Processed)."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.due.plan import Code
from lakewright.lake.commit import Commit, read_commits
from lakewright.manifest.item import Item
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import State
from lakewright.manifest.store import Query, Store, Write, Written
from lakewright.manifest.verdict import Verdict
from lakewright.slices.application import application_of
from lakewright.slices.chain import SliceChain
from lakewright.slices.context import ProcessingContext
from lakewright.slices.discovery import discovered, item_id, list_slices, slice_name
from lakewright.slices.inventory import Inventory
from lakewright.slices.pending_slices import Pending, find_pending
from lakewright.slices.processing import process_pending
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.stores.memory import MemoryStore

# It brings no types.
pa: Any = import_module("pyarrow")

PROJECT = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: merge
    columns: [{name: id, fieldroles: [businesskey]}]
"""
LATE, EARLY = datetime(2050, 1, 1, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC)


class Place:
    """An entity of some slices, its table, and a manifest that can be lost."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.workspace = make_workspace(folder, PROJECT)
        self.entity: Entity = self.workspace.entity("orders")
        self.application = application_of("tests", self.entity)
        self.bronze = folder / "lake/bronze/orders"
        self.silver = folder / "lake/silver/orders"
        self.bronze.mkdir(parents=True)
        self.warnings: list[str] = []
        for name in names:
            self.put(name)
        self.lose()

    def put(self, name: str) -> None:
        (self.bronze / name).write_text(name)

    def lose(self, store: Store | None = None) -> None:
        """Begin with an empty manifest."""
        context = make_context(self.workspace, store=store or MemoryStore())
        self.ledger: Ledger = context.ledger
        self.leases = context.leases
        self.bench = ProcessingContext(
            lake=self.workspace.lake,
            ledger=context.ledger,
            holder=context.leases.holder,
            application=self.application,
            clock=context.clock,
            warn=self.warnings.append,
        )

    def commit(self, number: int, name: str, **changed: Any) -> None:
        """Put down the commit of a slice as it is."""
        slices = {each.name: each for each in list_slices(SliceFolder(str(self.bronze)), self.workspace.lake)}
        content = {
            "app": str(self.application),
            "number": number,
            "item": item_id(slices[name].path),
            "revision": 1,
            "run": "run-0",
            "fingerprint": slices[name].fingerprint,
            "metrics": {"strategy": "merge", "inserted": number, "recordsInSlice": number},
            "watermarks": {"id": {"type": "long", "value": number}},
            **changed,
        }
        numbered = Transaction(str(self.application), number)
        properties = CommitProperties({"userMetadata": json.dumps(content)}, app_transactions=[numbered])
        rows = pa.table({"id": [number]})
        write_deltalake(self.silver, rows, mode="append", commit_properties=properties)

    @property
    def chain(self) -> SliceChain:
        """The slices of the entity, whose log is not read yet."""
        return self.bench.chain(self.entity)

    def look(self) -> Pending:
        return find_pending(self.bench, self.entity)

    def verdicts(self) -> dict[str, Verdict]:
        items = sorted(self.ledger.store.select(Query()), key=lambda item: item.item_id)
        return {slice_name(item): item.verdict(self.application) for item in items}

    def item(self, name: str) -> Item:
        return self.ledger.item(item_id(str(self.bronze / name)))


def names(items: Sequence[Item]) -> list[str]:
    return [slice_name(item) for item in items]


def test_what_the_table_has_is_recorded_and_not_applied_again(tmp_path: Path) -> None:
    place = Place(tmp_path, "s1", "s2", "s3")
    place.commit(1, "s1")
    place.commit(2, "s2")
    assert place.chain.lacks_commits

    assert names(place.look().ready) == ["s3"]

    assert not place.chain.lacks_commits
    records = list(place.ledger.store.records(place.item("s2").item_id))
    assert [record.state for record in records] == [State.NEW, State.PROCESSING, State.PROCESSED]
    told = records[-1].content
    assert (told["metrics"]["inserted"], told["delta_version"], told["commit_run"]) == (2, 1, "run-0")
    assert place.item("s2").tokens == {place.application.key: 2}
    assert place.ledger.watermarks.last(place.application)["id"].python == 2
    assert "the table holds 2 of 3 slices as they are" in place.warnings[0]
    assert place.chain.last_given_number == 2


def test_the_log_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, "s1", "s2")
    place.commit(1, "s1")
    place.look()
    monkeypatch.setattr(
        "lakewright.slices.chain.read_commits", lambda *_: pytest.fail("the log is read again")
    )
    assert names(place.look().ready) == ["s2"]
    place.put("s3")
    assert names(place.look().ready) == ["s2", "s3"]
    assert len(place.warnings) == 1


def test_a_slice_that_has_changed_since_is_recovered_as_it_was_applied(tmp_path: Path) -> None:
    place = Place(tmp_path, "s1", "s2", "s3")
    for number, name in enumerate(("s1", "s2", "s3"), start=1):
        place.commit(number, name)
    os.utime(place.bronze / "s2", (1, 1))

    found = place.look()

    assert (names(found.ready), found.late) == ([], frozenset())
    assert [(each.subject.part, each.reason.code) for each in found.deviations.plan.asked] == [
        ("s2", Code.CHANGED_SLICE)
    ]
    assert place.verdicts() == dict.fromkeys(("s1", "s2", "s3"), Verdict.PROCESSED)


@pytest.mark.parametrize(
    ("revision", "since", "is_recovered"),
    [(1, EARLY, False), (2, EARLY, True), (2, LATE, False)],
)
def test_a_requeued_slice_is_recovered_by_its_own_commit_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revision: int, since: datetime, is_recovered: bool
) -> None:
    """As from an older copy of the manifest; what is requeued after the loss is meant to be applied."""
    place = Place(tmp_path, "s1")
    place.commit(1, "s1", revision=revision)
    store = MemoryStore(clock=lambda: since)
    place.lose(store)
    slices = list_slices(SliceFolder(str(place.bronze)), place.workspace.lake)
    place.ledger.discover(discovered(slices, place.application, "orders"))
    place.ledger.requeue(place.item("s1").item_id, "once more")

    assert names(place.look().ready) == ([] if is_recovered else ["s1"])


def test_the_last_commit_of_a_slice_counts_whatever_revision_it_was(tmp_path: Path) -> None:
    place = Place(tmp_path, "s1")
    place.commit(1, "s1")
    os.utime(place.bronze / "s1", (1, 1))
    place.commit(2, "s1", revision=2)
    assert names(place.look().ready) == []
    assert place.item("s1").tokens == {place.application.key: 2}


def emptied(place: Place) -> None:
    DeltaTable(place.silver).delete()


def replaced(place: Place) -> None:
    write_deltalake(place.silver, pa.table({"id": [9]}), mode="overwrite")


def restored(place: Place) -> None:
    DeltaTable(place.silver).restore(0)


def emptied_and_restored(place: Place) -> None:
    emptied(place)
    DeltaTable(place.silver).restore(0)


def pruned(place: Place) -> None:
    DeltaTable(place.silver).delete("id = 1")


@pytest.mark.parametrize(
    ("happening", "ready"),
    [
        (emptied, ["s1", "s2"]),
        (replaced, ["s1", "s2"]),
        (restored, ["s2"]),
        (emptied_and_restored, ["s2"]),
        (pruned, []),
    ],
)
def test_what_was_removed_again_is_applied_again(tmp_path: Path, happening: Any, ready: list[str]) -> None:
    place = Place(tmp_path, "s1", "s2")
    place.commit(1, "s1")
    place.commit(2, "s2")
    happening(place)
    assert names(place.look().ready) == ready


@pytest.mark.parametrize(
    ("happening", "is_in"),
    [
        (("DELETE", {"predicate": '["true"]'}, None), False),
        (("DELETE", {"predicate": "[]"}, None), False),
        (("DELETE", {"predicate": '["(id = 1)"]'}, None), True),
        (("TRUNCATE", {}, None), False),
        (("WRITE", {"mode": "Overwrite"}, None), False),
        (("WRITE", {"mode": "Overwrite", "predicate": "id = 1"}, None), True),
        (("WRITE", {"mode": "Append"}, None), True),
        (("WRITE", {"mode": "Overwrite"}, "lakewright/tests/orders:orders"), True),
        (("WRITE", {"mode": "Overwrite"}, "lakewright/tests/orders:orders/repair"), True),
        (("WRITE", {"mode": "Overwrite"}, "lakewright/tests/others:others"), False),
        (("CREATE OR REPLACE TABLE AS SELECT", {}, None), False),
        (("CLONE", {}, None), False),
        (("REPLACE COLUMNS", {}, None), True),
        (("OPTIMIZE", {"predicate": "[]"}, None), True),
        (("RESTORE", {"version": None, "timestamp": None}, None), False),
    ],
)
def test_what_came_after_a_slice_tells_whether_its_rows_are_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    happening: tuple[str, dict[str, Any], str | None],
    is_in: bool,
) -> None:
    """As Spark writes it."""
    place = Place(tmp_path, "s1")
    place.commit(1, "s1")
    silver = place.entity.places(place.workspace.lake.settings).silver
    (first,) = read_commits(place.workspace.lake, silver)
    operation, parameters, app = happening
    later = Commit(1, LATE, operation, parameters, {} if app is None else {"app": app, "number": 2})
    monkeypatch.setattr("lakewright.slices.chain.read_commits", lambda *_: (first, later))
    assert names(place.look().ready) == ([] if is_in else ["s1"])


def test_slices_whose_commits_the_log_has_forgotten_are_late(tmp_path: Path) -> None:
    place = Place(tmp_path, "s1", "s2")
    place.commit(1, "s1")
    place.commit(2, "s2")
    DeltaTable(place.silver).create_checkpoint()
    (place.silver / "_delta_log" / f"{0:020}.json").unlink()

    assert place.look().late == {place.item("s1").item_id}

    (error,) = process_pending(place.bench, place.entity).errors
    assert error.code == "late_slice"


def test_a_table_that_was_moved_with_its_manifest_is_no_loss(tmp_path: Path) -> None:
    """Numbers are counted by place, and commits keep naming their slices by the former one."""
    place = Place(tmp_path, "s1", "s2")
    place.commit(1, "s1", item="file:///elsewhere/orders/s1")
    slices = list_slices(SliceFolder(str(place.bronze)), place.workspace.lake)
    place.ledger.discover(discovered(slices, place.application, "orders"))
    seen = place.item("s1")
    place.ledger.recover_processed(seen, place.application, token=1, content={}, run_id="run-0")

    assert names(place.look().ready) == ["s2"]
    assert place.warnings == []


def test_a_table_whose_log_tells_of_no_slice_is_warned_of(tmp_path: Path) -> None:
    place = Place(tmp_path, "s1")
    place.commit(1, "s1")
    emptied(place)
    place.look()
    assert "the table holds 0 of 1 slices as they are" in place.warnings[0]


class Interrupted(MemoryStore):
    """A store whose process dies before its second PROCESSED."""

    done = 0

    def write(self, write: Write) -> Written:
        self.done += any(draft.state is State.PROCESSED for each in write.appends for draft in each.drafts)
        if self.done == 2:
            raise KeyboardInterrupt
        return super().write(write)


def test_a_run_that_ends_on_the_way_is_made_good_by_the_next(tmp_path: Path) -> None:
    place = Place(tmp_path, "s1", "s2")
    place.commit(1, "s1")
    place.commit(2, "s2")
    store = Interrupted()
    place.lose(store)
    with pytest.raises(KeyboardInterrupt):
        place.look()
    assert place.verdicts() == {"s1": Verdict.PROCESSED, "s2": Verdict.READY}
    assert names(place.look().ready) == []


def test_discover_names_the_slices_that_the_next_run_records(tmp_path: Path) -> None:
    place = Place(tmp_path, "s1", "s2", "s3")
    place.commit(1, "s1")
    place.commit(2, "s2")
    inventory = Inventory(place.ledger, {"orders": place.entity}, lambda _: place.chain)
    found = inventory.differences([place.entity]).unrecorded
    assert [(each["slice"], each["number"]) for each in found] == [("s1", 1), ("s2", 2)]
    place.look()
    assert inventory.differences([place.entity]).unrecorded == []


def test_every_slice_of_a_fold_is_recovered_with_its_own_metrics(tmp_path: Path) -> None:
    """One commit holds s1 to s3; each becomes PROCESSED in order, and the last watermark wins."""
    place = Place(tmp_path, "s1", "s2", "s3", "s4")
    slices = {each.name: each for each in list_slices(SliceFolder(str(place.bronze)), place.workspace.lake)}
    items = [
        {
            "item": item_id(slices[name].path),
            "revision": 1,
            "fingerprint": slices[name].fingerprint,
            "metrics": {"strategy": "merge", "inserted": number, "recordsInSlice": number},
            "watermarks": {"id": {"type": "long", "value": number}},
        }
        for number, name in enumerate(("s1", "s2", "s3"), 1)
    ]
    content = {"app": str(place.application), "number": 7, "run": "run-0", "items": items}
    numbered = Transaction(str(place.application), 7)
    properties = CommitProperties({"userMetadata": json.dumps(content)}, app_transactions=[numbered])
    write_deltalake(place.silver, pa.table({"id": [1]}), commit_properties=properties)

    pending = place.look()

    assert [slice_name(item) for item in pending.ready] == ["s4"]
    done = {name: place.ledger.store.records(place.item(name).item_id)[-1] for name in ("s1", "s2", "s3")}
    assert [record.content["metrics"]["inserted"] for record in done.values()] == [1, 2, 3]
    assert {record.content["delta_version"] for record in done.values()} == {0}
    assert place.ledger.watermarks.last(place.application)["id"].python == 3
    assert {place.item(name).tokens[place.application.key] for name in done} == {7}
    assert place.chain.last_given_number == 7
