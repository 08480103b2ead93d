"""The commands for slices that wait stand beside others: typed from top to bottom, none adds rows twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lakewright.app import App
from lakewright.manifest.journal import TargetPhase
from lakewright.manifest.store import Write
from lakewright.usecases.bronze_status import Arrived
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
    app.store.write(Write(puts=(place.tainted("went back", kept="went back, and a merge takes out none"),)))
    assert WaitingSlices(app).told(NEW, None).commands == (
        "lakewright job daily build -t orders -t days day=2026-01-02",
    )
