"""Targets that read a table which has gone back are dirty."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakewright.app import App
from lakewright.cli.commands import undo
from lakewright.cli.page import Branch
from lakewright.errors import StoreUnavailable
from lakewright.manifest.discovery import DiscoveredSlice
from lakewright.manifest.journal import Run
from lakewright.slices.application import application_of
from lakewright.slices.result import ProcessResult, SliceResult
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.summary import Summary
from lakewright.usecases import process_slices
from lakewright.usecases.run_job import _processed
from lakewright.usecases.staleness.downstream import (
    downstream_taints,
    taint_after_processing,
    tainted_words,
)
from lakewright.usecases.staleness.earlier_builds import built_before, first_arrivals
from lakewright.usecases.staleness.readers import readers_of
from lakewright.usecases.undo_slice import Undone

PROJECT = "name: shop\nmodules: [model]\nlake: {root_folder: lake}\n"
MODEL = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
relations:
  orders: {kind: entity, entity: orders}
  names: {kind: file, format: json, location: gold/names, partitions: [{name: day, type: date}]}
  report: {kind: file, format: json, location: gold/report}
  whole: {kind: file, format: json, location: gold/whole}
  added: {kind: file, format: json, location: gold/added}
  merged: {kind: delta, location: gold/merged}
  others: {kind: values, records: [{id: 1}], columns: {id: long}}
mappings:
  orders: {kind: relation, relation: orders}
  names: {kind: relation, relation: names}
  others: {kind: relation, relation: others}
targets:
  orders: {kind: entity, entity: orders}
  names: {kind: relation, mapping: orders, relation: names, partition: {day: $day}}
  report: {kind: relation, mapping: names, relation: report}
  others: {kind: blackhole, mapping: others}
  whole: {kind: relation, mapping: orders, relation: whole}
  added: {kind: relation, mapping: orders, relation: added, mode: APPEND}
  merged: {kind: merge, mapping: orders, relation: merged, mergeKey: id, clauses: [{action: update}]}
jobs:
  daily:
    parameters: [{name: day, type: date, default: "2022-01-01"}]
    targets: [orders, names, others, whole, added, merged]
  weekly:
    targets: [report]
"""


def lake(path: Path) -> App:
    (path / "model").mkdir()
    (path / "project.yml").write_text(PROJECT)
    (path / "model/model.yml").write_text(MODEL)
    app = App.open(path)
    app.make_store()
    return app


def built(app: App, job: str, names: Sequence[str], hours_ago: int = 0, **parameters: str) -> Run:
    """Record a run that built targets, as a job does."""
    app.begin_run()
    at = datetime.now(UTC) - timedelta(hours=hours_ago)
    run = app.journal.start_run(Run(app.run_id, "shop", job, "BUILD", parameters, at, app.holder))
    results = [
        {"name": name, "phase": "BUILD", "status": "SUCCESS", "instance": parameters, "reasons": []}
        for name in names
    ]
    app.journal.record_targets(run, dict(enumerate(results)))
    return app.journal.finish_run(run, "SUCCESS", finished=at)


def test_each_instance_that_was_built_from_the_table_is_dirty_with_the_reason(tmp_path: Path) -> None:
    app = lake(tmp_path)
    orders = app.project.entity("orders")
    assert downstream_taints(app, orders, "silver.orders went back to version 17") == ()

    for day in ("2022-01-01", "2022-01-02", "2022-01-02"):
        built(app, "daily", ("orders", "names", "others"), day=day)
    built(app, "weekly", ("report",))
    puts = downstream_taints(app, orders, "silver.orders went back to version 17")
    found = sorted(
        (put.value["place"]["target"], put.value["place"]["parameters"].get("day"))
        for put in puts
        if put.value
    )
    # What is read from a table that was built from the table is out of date as well.
    assert found == [("names", "2022-01-01"), ("names", "2022-01-02"), ("report", None)]
    assert {put.value["reason"] for put in puts if put.value} == {"silver.orders went back to version 17"}
    said = "to be built again, as built from it: names, report"
    assert (tainted_words(puts), tainted_words(())) == (said, None)
    plan: Any = SimpleNamespace(
        slice="1", undone=None, is_requeued=False, foreign=(), counts={}, is_checked=False, skipped_names=[]
    )
    undone = Undone("orders", plan, taints=puts)
    assert said in html.unescape(undone._repr_html_())
    assert said in [str(each.line) for each in undo._page(undone) if isinstance(each, Branch)]
    app.close()


def process(app: App, path: Path, name: str = "1.csv", **content: Any) -> str:
    """Process a slice as a run does, and return its item's id."""
    item = (path / f"lake/orders/{name}").as_uri()
    application = application_of("shop", app.project.entity("orders"))
    app.ledger.discover([DiscoveredSlice(item, application, "orders", name, {})])
    held = app.ledger.acquire(
        item, application, app.holder, duration=timedelta(days=1), token_counter="orders"
    )
    app.ledger.processed(held, content)
    return item


def test_a_slice_that_is_processed_taints_what_its_run_has_not_built(tmp_path: Path) -> None:
    """Issue 11: a requeued slice changed silver by `process`, and gold stayed as it was."""
    app = lake(tmp_path)
    orders = app.project.entity("orders")
    item = process(app, tmp_path)
    built(app, "daily", ("orders", "names"), day="2022-01-01")
    built(app, "weekly", ("report",))
    taint_after_processing(app, orders, [item])
    assert list(app.journal.taints("shop")) == []  # a new slice is an ordinary one
    app.ledger.requeue(item, "corrected")
    process(app, tmp_path)
    run = built(app, "daily", ("orders", "names"), day="2022-01-01")
    taint_after_processing(app, orders, [item], run.run_id)
    assert [taint.place.target for taint in app.journal.taints("shop")] == ["report"]
    taint_after_processing(app, orders, [item])
    assert sorted(taint.place.target for taint in app.journal.taints("shop")) == ["names", "report"]
    (reason,) = {taint.reason for taint in app.journal.taints("shop")}
    # It is kept, and the lake may be moved: so it names no folder.
    assert reason == "1.csv of orders was processed again; rows that the target reads may have changed"
    app.close()


def test_a_slice_that_is_processed_does_not_taint_what_was_last_built_before_it_came(
    tmp_path: Path,
) -> None:
    """A corrected slice of the 11th had `status` build the 1st again, which was built on the 1st."""
    app = lake(tmp_path)
    orders = app.project.entity("orders")
    built(app, "daily", ("orders", "names"), 3, day="2022-01-01")
    built(app, "daily", ("orders", "names"), 2, day="2022-01-02")
    built(app, "weekly", ("report",), 1)
    app.begin_run()
    item = process(app, tmp_path, "2022-01-11.csv")
    built(app, "daily", ("orders", "names"), day="2022-01-11")
    built(app, "daily", ("orders", "names"), day="2022-01-02")  # built again, with the slice
    app.ledger.requeue(item, "corrected")
    process(app, tmp_path, "2022-01-11.csv")

    run = built(app, "daily", ("orders", "names"), day="2022-01-11")
    taint_after_processing(app, orders, [item], run.run_id)
    assert [(each.place.target, each.place.parameters) for each in app.journal.taints("shop")] == [
        ("names", {"day": "2022-01-02"})
    ]
    app.close()


def test_within_the_run_that_brought_a_slice_the_order_of_the_plan_tells_what_has_read_it(
    tmp_path: Path,
) -> None:
    app = lake(tmp_path)
    app.begin_run()
    at = datetime.now(UTC)
    run = app.journal.start_run(Run(app.run_id, "shop", "daily", "BUILD", {}, at, app.holder))
    item = process(app, tmp_path)
    slices = [SliceResult("1.csv", item, Summary(Strategy.MERGE)).as_json()]
    days = ("2022-01-01", "2022-01-02", "2022-01-03")
    results = [
        {"name": name, "phase": "BUILD", "status": "SUCCESS", "instance": {"day": day}, "metrics": metrics}
        for day in days
        for name, metrics in (("orders", {"slices": slices} if day == days[1] else {}), ("names", {}))
    ]
    app.journal.record_targets(run, dict(enumerate(results)))
    app.journal.finish_run(run, "SUCCESS", finished=at)
    orders = app.project.entity("orders")
    (arrival,) = first_arrivals(app, application_of("shop", orders), app.store.read([item]).values()) or ()
    assert arrival.run_id == run.run_id
    found = built_before(app, "daily", frozenset({"names"}), [arrival])
    assert found == {("names", (("day", "2022-01-01"),))}
    # What another run had not finished by then may have read the slice, and so may all if it is unknown.
    other = replace(arrival, run_id="other", at=at)
    assert built_before(app, "daily", frozenset({"names"}), [arrival, other]) == frozenset()
    assert built_before(app, "daily", frozenset({"names"}), [replace(arrival, item_id="x")]) == frozenset()
    app.close()


def test_a_build_that_ended_after_a_slice_came_counts_although_a_later_run_built_before_it(
    tmp_path: Path,
) -> None:
    """Of runs that overlap, only the build of the one that began last was looked at."""
    app = lake(tmp_path)
    built(app, "daily", ("names",), 2, day="1")
    app.begin_run()
    item = process(app, tmp_path)
    orders, names = application_of("shop", app.project.entity("orders")), frozenset({"names"})
    arrivals = first_arrivals(app, orders, app.store.read([item]).values()) or ()
    assert built_before(app, "daily", names, arrivals) == {("names", (("day", "1"),))}
    long = built(app, "daily", ("names",), 3, day="1")
    app.journal.finish_run(long, "SUCCESS", finished=datetime.now(UTC) + timedelta(hours=1))
    assert built_before(app, "daily", names, arrivals) == frozenset()
    app.close()


def test_what_was_built_before_a_slice_came_is_unknown_if_the_history_lacks_runs_since(
    tmp_path: Path,
) -> None:
    """With `retention`, a build of an instance may be gone although an older one of it is kept."""
    app = lake(tmp_path)
    item = process(app, tmp_path)
    app.close()
    for retention, is_known in (("1d", True), ("0s", False)):
        text = PROJECT + f"manifest: {{retention: {retention}}}\n"
        (tmp_path / "project.yml").write_text(text)
        app = App.open(tmp_path)
        orders = application_of("shop", app.project.entity("orders"))
        found = first_arrivals(app, orders, app.store.read([item]).values())
        assert (found is not None) == is_known
        app.close()


def test_of_the_instances_of_one_run_the_last_that_was_built_is_to_be_built_again(tmp_path: Path) -> None:
    """The first was named: typing it put an old day in the place of the newest."""
    app = lake(tmp_path)
    app.begin_run()
    at = datetime.now(UTC) - timedelta(hours=2)
    run = app.journal.start_run(Run(app.run_id, "shop", "daily", "BUILD", {"day": "…"}, at, app.holder))
    results = [
        {"name": "whole", "phase": "BUILD", "status": status, "instance": {"day": day}, "reasons": []}
        for day, status in (("2022-01-01", "SUCCESS"), ("2022-01-02", "SUCCESS"), ("2022-01-03", "FAILED"))
    ]
    app.journal.record_targets(run, dict(enumerate(results)))
    app.journal.finish_run(run, "FAILED", finished=at)

    def tainted() -> list[str]:
        puts = downstream_taints(app, app.project.entity("orders"), "went back")
        return [put.value["place"]["parameters"]["day"] for put in puts if put.value]

    assert tainted() == ["2022-01-02"]
    clean = {"name": "whole", "phase": "BUILD", "status": "SKIPPED", "reasons": ["is filled"]}
    app.begin_run()
    later = app.journal.start_run(replace(run, run_id=app.run_id, started=at + timedelta(hours=1)))
    app.journal.record_targets(later, {0: {**clean, "instance": {"day": "2022-01-01"}}})
    app.journal.finish_run(later, "SUCCESS", finished=later.started)
    assert tainted() == ["2022-01-02"]


def test_slices_that_changed_the_table_are_looked_up_after_a_run(tmp_path: Path) -> None:
    """Slices that wrote nothing make nothing out of date."""
    app = lake(tmp_path)
    slices = [
        SliceResult(
            name, f"file:///{name}", Summary(Strategy.MERGE, delta_version=version), revision=revision
        ).as_json()
        for name, revision, version in (("1.csv", 1, 1), ("2.csv", 2, 2), ("same.csv", 2, None))
    ]
    targets = [
        SimpleNamespace(name="orders", kind="entity", metrics={"slices": slices}),
        SimpleNamespace(name="orders", kind="entity", metrics={}),
        SimpleNamespace(name="orders", kind="entity", metrics={"slices": slices[:1]}),
        SimpleNamespace(name="names", kind="relation", metrics={"target_records": 1}),
    ]
    result: Any = SimpleNamespace(targets=lambda: targets)
    assert [(entity.name, items) for entity, items in _processed(app, result)] == [
        ("orders", ["file:///1.csv", "file:///2.csv", "file:///1.csv"])
    ]
    app.close()


def test_what_could_not_be_tainted_is_told_beside_what_was_processed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest's disk was full after the slices were recorded."""
    app = lake(tmp_path)
    app.make_store()
    done = SliceResult("s1", "file:///bronze/s1", Summary(Strategy.MERGE, delta_version=7), revision=2)
    monkeypatch.setattr(process_slices, "check_session", lambda _: None)
    monkeypatch.setattr(process_slices, "target_contexts", lambda *_, **__: lambda _: None)
    monkeypatch.setattr(process_slices, "processing_context", lambda *_: None)
    monkeypatch.setattr(process_slices, "process_pending", lambda *_, **__: ProcessResult((done,)))

    def full(*_: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(app.store, "read", full)
    result = process_slices.process_slices(app, "orders")
    assert result.slices == (done,)
    (error,) = result.errors
    assert error.message == (
        "orders: what is built from it could not be marked as dirty (added, merged, names and 2 more): "
        "the disk is full"
    )
    daily = "`lakewright job daily build --dirty=added --dirty=merged --dirty=names --dirty=whole`"
    assert f"{daily}, `lakewright job weekly build --dirty=report`." in str(error.remedy)
    assert result.is_unrecorded


def test_a_view_holds_no_rows_that_could_be_stale_but_what_is_built_from_it_does(tmp_path: Path) -> None:
    """A view was listed as a target to build again after slices had been processed."""
    app = lake(tmp_path)
    model = tmp_path / "model/model.yml"
    model.write_text(
        MODEL.replace("mappings:\n", "  seen: {kind: view, view: seen, mapping: orders}\nmappings:\n", 1)
        .replace("targets:\n", "  seen: {kind: relation, relation: seen}\ntargets:\n", 1)
        .replace("jobs:\n", "  seen: {kind: relation, relation: seen}\njobs:\n", 1)
        .replace("mapping: orders, relation: whole", "mapping: seen, relation: whole")
        .replace("targets: [orders, names, others,", "targets: [orders, names, seen, others,")
    )
    app.close()
    app = App.open(tmp_path)
    found = readers_of(app, app.project.entity("orders"))["daily"]
    assert found == {"names", "whole", "added", "merged"}
    app.close()
