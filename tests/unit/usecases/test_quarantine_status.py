"""The bad rows that `status` tells of."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.commands import InProcess
from tests.projects import make_project

from lakewright.app import App
from lakewright.errors import Fault
from lakewright.errors.phrase import Command
from lakewright.lake.commit import Commit
from lakewright.manifest.discovery import DiscoveredSlice
from lakewright.manifest.lease import Leases
from lakewright.slices.application import application_of
from lakewright.slices.discover import item_id
from lakewright.slices.rewind import settle
from lakewright.stores.process import this_process
from lakewright.testing import MemoryStore
from lakewright.usecases.quarantine_status import Quarantined, read_quarantined

ORDERS = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: merge
    columns: [{name: id, fieldroles: [businesskey]}]
    settings: {on_bad_rows: quarantine}
"""


def test_only_the_items_of_slices_with_rows_in_the_quarantine_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A12: `status` costs by what lies in the quarantine, not by what has ever been processed."""
    app = App(make_project(tmp_path, ORDERS), {})
    store = app.__dict__["store"] = MemoryStore()
    (entity,) = app.project.entities.values()
    places, application = entity.places(app.lake.settings), application_of("tests", entity)
    for name, rows in (("2024-1", 0), ("2024-2", 3), ("2024-10", 1), ("2024-11", 2)):
        item = item_id(f"{places.bronze}/{name}")
        app.ledger.discover([DiscoveredSlice(item, application, "orders", name, {})])
        if name != "2024-11":  # its rows were put aside by an attempt without a commit
            claim = app.ledger.acquire(
                item, application, this_process("r"), duration=timedelta(60), token_counter=None
            )
            app.ledger.processed(claim, {"quarantined": rows})
        if rows:
            folder = Path(places.quarantine, name)
            folder.mkdir(parents=True)
            (folder / "rows.json").write_text(json.dumps({"slice": name}))

    def refuse(*_: Any) -> None:
        raise AssertionError("every processed item was read")

    monkeypatch.setattr(store, "select", refuse)
    found = list(read_quarantined(app))
    commands = (Command("rebuild", "orders"),)
    assert found == [Quarantined("orders", ("2024-2", "2024-10"), 4, places.quarantine, commands)]


def test_rows_of_a_slice_that_a_rewind_has_applied_again_are_still_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a rebuild, `status` no longer named them, although they lay in the quarantine."""
    app = App(make_project(tmp_path, ORDERS), {})
    app.__dict__["store"] = MemoryStore()
    monkeypatch.setattr(settle, "remove_beside", lambda *_: None)
    (entity,) = app.project.entities.values()
    places, application = entity.places(app.lake.settings), application_of("tests", entity)
    context: Any = SimpleNamespace(lake=app.lake, ledger=app.ledger, application=application)
    slices = []
    for name, rows in (("s1", 2), ("s2", 0)):
        item = item_id(f"{places.bronze}/{name}")
        app.ledger.discover([DiscoveredSlice(item, application, "orders", name, {})])
        folder = Path(places.quarantine, name, "_replayed")
        folder.mkdir(parents=True)
        (folder / "rows.json").write_text(json.dumps({"slice": name}))
        content = {"slice": name, "metrics": {"quarantined": rows}}
        slices.append({"item_id": item, "revision": 1, "token": 7, "content": content})
    lease = Leases(app.store, this_process("r"), app.ids).acquire("write orders")
    rewind = app.ledger.announce_rewind("table orders", "rebuild of orders", lease, "r1", application)
    told = {"slices": slices, "watermarks": {}, "reason": "rebuild"}
    settle.record_landed(context, entity, rewind, Commit(4, None, "", {}, {"rewind": told}))
    (aside,) = read_quarantined(app)
    assert (aside.slices, aside.rows, aside.folder) == (("s1",), 2, places.quarantine)


def test_status_says_how_rows_that_fit_by_now_are_brought_in(tmp_path: Path) -> None:
    """A type that was narrowed and widened again left rows behind, and nothing named them."""
    make_project(tmp_path, ORDERS)
    app = App.open(tmp_path, environ={})
    (entity,) = app.project.entities.values()
    places, application = entity.places(app.lake.settings), application_of("tests", entity)
    item = item_id(f"{places.bronze}/s1")
    app.ledger.discover([DiscoveredSlice(item, application, "orders", "s1", {})])
    claim = app.ledger.acquire(
        item, application, this_process("r"), duration=timedelta(60), token_counter=None
    )
    app.ledger.processed(claim, {"quarantined": 2})
    Path(places.quarantine, "s1").mkdir(parents=True)
    page = " ".join(InProcess(tmp_path).run("status").out.split())
    assert (
        "do: Once the declaration is corrected, `lakewright rebuild orders` brings in the rows that fit. "
        "Once a slice is corrected, it is told as changed, with the commands to type."
    ) in page
    make_project(tmp_path, ORDERS.replace("settings: {on", "settings: {changed_slices: ignore, on"))
    page = " ".join(InProcess(tmp_path).run("status").out.split())
    typed = "`lakewright manifest requeue orders/s1 --late`, then `lakewright rebuild orders`"
    assert f"Once a slice is corrected, {typed}." in page


@pytest.mark.parametrize(
    ("changed", "again", "advice"),
    [
        (
            ["s1", "s2"],
            [Command("manifest", "requeue", "orders/s1", "--cascade")],
            "`lakewright manifest requeue orders/s1 --cascade`, then the next run bring in the rows of s1, "
            "s2 that fit.",
        ),
        (
            ["s1"],
            [Command("manifest", "requeue", "orders/s1", "--cascade")],
            "`lakewright manifest requeue orders/s1 --cascade`, then the next run bring in the rows of s1 "
            "that fit. Once the declaration is corrected, then `lakewright rebuild orders` brings in "
            "others that fit.",
        ),
        (
            ["s1"],
            [
                Command("manifest", "requeue", "orders/s1", "--late"),
                Command("rebuild", "orders", "--include", "s1"),
            ],
            "`lakewright manifest requeue orders/s1 --late`, then `lakewright rebuild orders --include s1` "
            "bring in the rows of s1 that fit.",
        ),
        # The slice that was corrected has none of the rows: its commands bring none in.
        (
            ["s3"],
            [Command("manifest", "requeue", "orders/s3", "--cascade")],
            "Once the declaration is corrected, and what is told of changed slices is done, `lakewright "
            "rebuild orders` brings in the rows that fit. Once a slice is corrected, it is told as changed, "
            "with the commands to type.",
        ),
    ],
)
def test_slices_that_were_corrected_have_the_commands_that_are_told_of_them(
    tmp_path: Path, changed: list[str], again: list[str], advice: str
) -> None:
    """A rebuild, which was named alone, refuses slices that have changed."""
    app = App(make_project(tmp_path, ORDERS), {})
    app.__dict__["store"] = MemoryStore()
    (entity,) = app.project.entities.values()
    places, application = entity.places(app.lake.settings), application_of("tests", entity)
    for name in ("s1", "s2"):
        item = item_id(f"{places.bronze}/{name}")
        app.ledger.discover([DiscoveredSlice(item, application, "orders", name, {})])
        claim = app.ledger.acquire(
            item, application, this_process("r"), duration=timedelta(60), token_counter=None
        )
        app.ledger.processed(claim, {"quarantined": 1})
        Path(places.quarantine, name).mkdir(parents=True)
    items = [item_id(f"{places.bronze}/{name}") for name in changed]
    (aside,) = read_quarantined(app, [Fault("changed", details={"changed": items, "again": again})])
    assert aside.commands == (("lakewright rebuild orders",) if changed == ["s3"] else tuple(again))
    assert aside.advice == advice
    assert aside.as_json()["do"][: len(again)] == again
