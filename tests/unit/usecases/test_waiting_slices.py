"""The commands for slices that wait stand beside others: typed from top to bottom, none adds rows twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lakewright.app import App
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.journal import KeptRows, TargetPhase
from lakewright.manifest.store import Write
from lakewright.slices.application import application_of
from lakewright.slices.deviations import CorrectedSlices
from lakewright.usecases.bronze_status import Arrived
from lakewright.usecases.items import Row
from lakewright.usecases.waiting_slices import WaitingSlices

MODEL = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
relations:
  orders: {kind: entity, entity: orders}
  merged: {kind: delta, location: lake/gold/merged}
  days: {kind: delta, location: lake/gold/days, partitions: [{name: day, type: date}]}
mappings:
  orders: {kind: relation, relation: orders}
targets:
  orders: {kind: entity, entity: orders, slices: "${day}*"}
  merged: {kind: merge, mapping: orders, relation: merged, mergeKey: id, clauses: [{action: update}]}
  days: {kind: relation, mapping: orders, relation: days, partition: {day: $day}}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [orders, merged, days]}
"""
DAY = (("day", "2026-01-02"),)
NEW = Arrived("orders", 1, ("2026-01-02.json",))


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (tmp_path / "m.yml").write_text(MODEL)
    with closing(App.open(tmp_path)) as found:
        found.make_store()
        yield found


def test_a_slice_that_a_failed_run_takes_once_it_is_resumed_has_no_command_of_its_own(app: App) -> None:
    typed = ("lakewright job daily build day=2026-01-02",)
    assert WaitingSlices(app).told(NEW, None).commands == typed
    resumed = {("orders", DAY), ("merged", DAY)}
    assert WaitingSlices(app, resumed).told(NEW, None).commands == ()
    assert WaitingSlices(app, {("merged", DAY)}).told(NEW, None).commands == typed


def test_a_target_that_must_be_emptied_first_is_left_to_the_commands_that_do_so(app: App) -> None:
    """It was built with the rows of before, and then forgotten by the run of the next day."""
    place = TargetPhase("shop", "merged", "BUILD", dict(DAY))
    app.store.write(
        Write(puts=(place.tainted("went back", kept=KeptRows("went back, and a merge takes out none")),))
    )
    assert WaitingSlices(app).told(NEW, None).commands == (
        "lakewright job daily build -t orders -t days day=2026-01-02",
    )


def test_what_waits_comes_first_if_it_is_older_than_what_a_failed_run_takes(app: App) -> None:
    """After an undo with `--requeue`, the run of a later day was named first, and made the slice late."""
    application = application_of("shop", app.project.entity("orders"))

    def row(day: str) -> Row:
        item = Item(f"file:///lake/bronze/orders/{day}.json")
        return Row(item, application, Verdict.READY, name="orders")

    later = (("day", "2026-01-03"),)
    waits = WaitingSlices(app, {("orders", later)})
    assert waits.come_first([row("2026-01-02"), row("2026-01-03")], [])
    assert waits.come_first([row("2026-01-02")], [row("2026-01-03")])
    assert not waits.come_first([row("2026-01-04"), row("2026-01-03")], [])
    assert not waits.come_first([row("2026-01-04")], [row("2026-01-03")])
    assert not waits.come_first([row("2026-01-03")], [])

    # A skipped slice that was corrected: a run that is resumed does not take it.
    def corrected(day: str) -> CorrectedSlices:
        item = Item(f"file:///lake/bronze/orders/{day}.json")
        return CorrectedSlices("orders", (item,), (), "")

    assert waits.corrected_come_first([corrected("2026-01-02")], [row("2026-01-03")])
    assert waits.corrected_come_first([corrected("2026-01-03")], []), "it is that of the failed run"
    assert not waits.corrected_come_first([corrected("2026-01-04")], [row("2026-01-03")])
