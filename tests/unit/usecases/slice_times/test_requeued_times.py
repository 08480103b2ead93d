"""What a requeue, a skip and a plan say of slices that were processed, and of late ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import write_deltalake
from tests.commands import InProcess
from tests.silver import make_empty_silver

from lakewright import Project
from lakewright.app import App
from lakewright.manifest.item import Item, Mark
from lakewright.slices.application import application_of
from lakewright.slices.context import ProcessingOptions
from lakewright.slices.time_check import planned_time_error
from lakewright.targets.entity.work import processing_context

MODEL = """
connections:
  shop: {{settings: {{bronze_path: "${{entity}}", silver_path: "${{entity}}", bronze_format: csv}}}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: {strategy}
    columns: [{{name: id, fieldroles: [businesskey]}}]
targets:
  orders: {{kind: entity, entity: orders, {target}}}
jobs:
  daily: {{parameters: [{{name: day, type: date}}], targets: [orders]}}
"""
BY_SLICE = 'processingTime: "${slice.date}"'
BY_DAY = 'slices: "${day}*", processingTime: "${day}"'
DAYS = [datetime(2024, 5, day, tzinfo=UTC) for day in (1, 2, 3)]


@contextmanager
def app_of(folder: Path) -> Iterator[App]:
    with Project.load(folder) as project:
        yield project.app


def processed(folder: Path, strategy: str, target: str) -> InProcess:
    """A project whose three slices are in its table, each with the time of its day."""
    bronze = folder / "lake/bronze/orders"
    bronze.mkdir(parents=True)
    (folder / "project.yml").write_text("name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (folder / "m.yml").write_text(MODEL.format(strategy=strategy, target=target))
    for at in DAYS:
        (bronze / f"{at:%Y-%m-%d}.csv").write_text("id\n1\n")
    shop = InProcess(folder)
    shop.json("manifest", "discover")
    rows: dict[str, Any] = {"id": [1] * 3, "dlf_ValidFrom": DAYS, "dlf_ValidTo": [*DAYS[1:], None]}
    types = [("id", pa.int64()), *((f"dlf_Valid{end}", pa.timestamp("us", "UTC")) for end in ("From", "To"))]
    silver, schema = folder / "lake/silver/orders", pa.schema(types)
    make_empty_silver(silver, strategy, schema)
    write_deltalake(silver, pa.table(rows, schema=schema), mode="append")
    record_processed(folder, "orders")
    return shop


def record_processed(folder: Path, entity: str) -> None:
    """Record the three slices as processed by an entity, whose table is left as it is."""
    with Project.load(folder) as project:
        app = project.app
        application = application_of("shop", app.project.entity(entity))
        for at in DAYS:
            item = (folder / f"lake/bronze/orders/{at:%Y-%m-%d}.csv").as_uri()
            claim = app.ledger.acquire(
                item, application, app.holder, duration=timedelta(seconds=60), token_counter=entity
            )
            app.ledger.processed(claim, {})


@pytest.mark.parametrize(
    ("own", "other", "typed", "is_told"),
    [
        ("merge", "merge", "orders/2024-05-01.csv --late", True),
        ("merge", "merge", "orders/2024-05-01.csv --cascade", False),
        ("merge", "merge", "orders/2024-05-03.csv --late", False),
        ("full", "merge", "orders/2024-05-01.csv --late", True),
        ("merge", "full", "orders/2024-05-01.csv --late", False),
    ],
)
def test_a_requeue_says_that_older_rows_may_become_the_current_ones_where_order_counts(
    tmp_path: Path, own: str, other: str, typed: str, is_told: bool
) -> None:
    """The strategy is that of the target which processes the slice."""
    shop = processed(tmp_path, "merge", BY_SLICE)
    model = (tmp_path / "m.yml").read_text().replace("processtype: merge", f"processtype: {own}")
    (tmp_path / "m.yml").write_text(model.replace(BY_SLICE, f"strategy: {other}"))
    done = shop.run("manifest", "requeue", *typed.split())
    assert done.code == 0, done.all
    assert ("its older rows may become the current ones" in " ".join(done.err.split())) is is_told


@pytest.mark.parametrize("target", [BY_SLICE, BY_DAY])
def test_what_plan_tells_to_type_of_a_late_slice_that_no_run_has_seen_works(
    tmp_path: Path, target: str
) -> None:
    shop = processed(tmp_path, "historic", target)
    (tmp_path / "lake/bronze/orders/2024-04-30.csv").write_text("id\n1\n")
    decide = "lakewright decide orders/2024-04-30.csv place"
    said = " ".join(shop.run("plan", "daily", "build", "day=2024-05-03").out.split())
    assert f"Choose `place`, `end` or `skip`: `{decide}`, then `lakewright apply`." in said
    assert shop.shell(decide).code == 0


def test_a_plan_says_that_a_run_refuses_the_declared_time(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    (tmp_path / "lake/bronze/orders/2024-04-30.csv").write_text("id\n1\n")
    assert shop.run("manifest", "requeue", "orders/2024-04-30.csv", "--late").code == 0
    said = " ".join(shop.run("plan", "daily", "build", "day=2024-05-03").out.split())
    assert "`lakewright process orders 2024-04-30.csv --processing-time 2024-05-03T00:00:01+00:00`" in said
    assert "is late" not in said


@pytest.mark.parametrize(("kept", "is_refused"), [(DAYS[0], True), (DAYS[2] + timedelta(seconds=1), False)])
def test_a_plan_knows_the_time_that_an_undo_has_kept_for_a_slice(
    tmp_path: Path, kept: datetime, is_refused: bool
) -> None:
    processed(tmp_path, "historic", BY_SLICE)
    item = (tmp_path / "lake/bronze/orders/2024-05-02.csv").as_uri()
    with app_of(tmp_path) as app:
        entity = app.project.entity("orders")
        context = processing_context(app.context(), entity, ProcessingOptions())
        note = {"processing_time": kept.isoformat()}
        new = Item(item, new=Mark("", context.application, None, kept, 1, note))
        assert (planned_time_error(context, entity, (new,)) is not None) is is_refused


@pytest.mark.parametrize("strategy", ["historic", "merge"])
def test_a_plan_names_the_decision_about_a_changed_slice(tmp_path: Path, strategy: str) -> None:
    shop = processed(tmp_path, strategy, BY_SLICE)
    (tmp_path / "lake/bronze/orders/2024-05-02.csv").write_text("id\n1\n2\n")
    decide = "lakewright decide orders/2024-05-02.csv take"
    said = " ".join(shop.run("plan", "daily", "build", "day=2024-05-03").out.split())
    assert f"Choose `take` or `keep`: `{decide}`, then `lakewright apply`." in said


def test_a_slice_that_no_run_has_seen_can_be_requeued_by_its_path(tmp_path: Path) -> None:
    shop = processed(tmp_path, "merge", BY_SLICE)
    path = tmp_path / "lake/bronze/orders/2024-04-30.csv"
    path.write_text("id\n1\n")
    refused = shop.run("manifest", "requeue", str(path))
    assert (refused.code, "later slices of orders are processed" in refused.err) == (2, True)
    requeued = shop.json("manifest", "requeue", str(path), "--late")
    (row,) = requeued["items"] if isinstance(requeued, dict) else requeued
    assert (row["entity"], row["slice"], row["verdict"]) == ("orders", "2024-04-30.csv", "ready")


@pytest.mark.parametrize("by_path", [False, True])
def test_a_slice_that_no_run_has_seen_can_be_skipped(tmp_path: Path, by_path: bool) -> None:
    """The manifest had no such item, although `plan` names the slice."""
    shop = processed(tmp_path, "merge", BY_SLICE)
    path = tmp_path / "lake/bronze/orders/2024-05-04.csv"
    path.write_text("id\n1\n")
    named = str(path) if by_path else "orders/2024-05-04.csv"
    skipped = shop.json("manifest", "skip", named, "--reason", "sent twice")
    (row,) = skipped["items"] if isinstance(skipped, dict) else skipped
    assert (row["entity"], row["slice"], row["verdict"]) == ("orders", "2024-05-04.csv", "skipped")
    missing = shop.run("manifest", "skip", "orders/2024-05-05.csv")
    assert (missing.code, "the manifest has no item orders/2024-05-05.csv" in missing.err) == (2, True)


@pytest.mark.parametrize("name", ["orders/2024-04-29.csv", "nothing/2024-04-30.csv", "orders/a.csv.tmp"])
def test_what_is_no_slice_is_not_requeued(tmp_path: Path, name: str) -> None:
    shop = processed(tmp_path, "merge", BY_SLICE)
    (tmp_path / "lake/bronze/orders/a.csv.tmp").write_text("id\n1\n")
    done = shop.run("manifest", "requeue", name, "--late")
    assert (done.code, f"the manifest has no item {name}" in done.err) == (2, True), done.all
