"""Issue 11: a requeue says that the next run refuses the processing time that the slice's target declares."""

from __future__ import annotations

import logging
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
from lakewright.errors import LakewrightWarning
from lakewright.slices.application import application_of

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


@pytest.mark.parametrize("target", [BY_SLICE, BY_DAY])
def test_a_late_slice_whose_time_is_its_date_is_told_to_be_refused(tmp_path: Path, target: str) -> None:
    shop = processed(tmp_path, "historic", target)
    done = shop.run("manifest", "requeue", "orders/2024-05-01.csv", "--late")
    assert done.code == 0, done.all
    assert "warning: orders/2024-05-01.csv: the run refuses it: the processing time 2024-05-01T" in done.err
    assert (
        "`lakewright process orders 2024-05-01.csv --processing-time 2024-05-03T00:00:01+00:00`" in done.err
    )


def test_a_time_of_a_parameter_that_no_slice_tells_is_told_to_be_unknown(tmp_path: Path) -> None:
    """Issue 11: which day it will be, nobody knows; which days are refused is known."""
    shop = processed(tmp_path, "historic", 'processingTime: "${day}"')
    done = shop.run("manifest", "requeue", "orders/2024-05-03.csv")
    assert done.code == 0, done.all
    assert "whether the run refuses it is not known: its processing time is '${day}'" in done.err
    assert "must be later than 2024-05-03T00:00:00+00:00" in done.err


def test_slices_that_are_requeued_together_are_told_with_a_command_each(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    processed(tmp_path, "historic", BY_SLICE)
    with (
        Project.load(tmp_path) as shop,
        caplog.at_level(logging.WARNING, "lakewright"),
        pytest.warns(LakewrightWarning, match="the run refuses it"),
    ):
        later = shop.entity("orders").requeue("2024-05-02.csv", cascade=True)
    assert [each.rpartition("/")[2] for each in later] == ["2024-05-03.csv"]
    assert "orders/2024-05-02.csv: the run refuses it" in caplog.text
    for name, second in (("2024-05-02.csv", 1), ("2024-05-03.csv", 2)):
        assert f"process orders {name} --processing-time 2024-05-03T00:00:0{second}" in caplog.text


@pytest.mark.parametrize(
    ("strategy", "target"),
    [
        ("merge", BY_SLICE),  # its rows have no time
        ("historic", "description: the clock's time is later than any"),
        ("historic", 'processingTime: "2999-01-01"'),
    ],
)
def test_a_time_that_is_taken_or_not_known_is_not_told(tmp_path: Path, strategy: str, target: str) -> None:
    done = processed(tmp_path, strategy, target).run("manifest", "requeue", "orders/2024-05-03.csv")
    assert (done.code, done.err) == (0, ""), done.all


@pytest.mark.parametrize(("option", "is_told"), [("--late", True), ("--cascade", False)])
def test_a_requeue_says_that_a_late_slice_deletes_what_only_later_slices_have(
    tmp_path: Path, option: str, is_told: bool
) -> None:
    """With `delete_scope: full`, the slice is taken for the whole source; only the run showed the deletes."""
    shop = processed(tmp_path, "merge", BY_SLICE)
    model = (tmp_path / "m.yml").read_text()
    scope = "settings: {delete_missing: true, delete_scope: full}"
    (tmp_path / "m.yml").write_text(model.replace("    columns:", f"    {scope}\n    columns:"))
    done = shop.run("manifest", "requeue", "orders/2024-05-01.csv", option)
    assert done.code == 0, done.all
    warning = (
        "warning: orders/2024-05-01.csv: with delete_scope: full, "
        "a late slice also deletes records that only later slices have"
    )
    assert (warning in " ".join(done.err.split())) == is_told


@pytest.mark.parametrize(("own", "other", "is_told"), [("full", "merge", True), ("merge", "full", False)])
def test_what_a_requeue_says_of_deletes_follows_the_strategy_of_the_target(
    tmp_path: Path, own: str, other: str, is_told: bool
) -> None:
    shop = processed(tmp_path, "merge", BY_SLICE)
    scope = "settings: {delete_missing: true, delete_scope: full}"
    model = (tmp_path / "m.yml").read_text().replace("    columns:", f"    {scope}\n    columns:")
    model = model.replace("processtype: merge", f"processtype: {own}")
    (tmp_path / "m.yml").write_text(model.replace(BY_SLICE, f"strategy: {other}"))
    done = shop.run("manifest", "requeue", "orders/2024-05-01.csv", "--late")
    assert done.code == 0, done.all
    assert ("also deletes records that only later slices have" in " ".join(done.err.split())) == is_told


def test_what_plan_tells_to_type_of_a_late_slice_that_no_run_has_seen_works(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    (tmp_path / "lake/bronze/orders/2024-04-30.csv").write_text("id\n1\n")
    requeue = "lakewright manifest requeue orders/2024-04-30.csv --late"
    rebuild = "lakewright rebuild orders --include 2024-04-30.csv"
    plan = ("plan", "daily", "build", "day=2024-05-03")
    assert f"`{rebuild}` puts it in its place" in " ".join(shop.run(*plan).out.split())
    done = shop.run(*requeue.split()[1:])
    assert done.code == 0, done.all
    later = "`lakewright process orders 2024-04-30.csv --processing-time 2024-05-03T00:00:01+00:00`"
    assert later in done.err
    said = " ".join(shop.run(*plan).out.split())
    assert later in said
    assert "is late" not in said


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


@pytest.mark.parametrize(
    ("strategy", "target"), [("historic", BY_SLICE), ("historic", BY_DAY), ("merge", BY_SLICE)]
)
def test_a_plan_tells_of_a_changed_slice_the_commands_whose_times_are_taken(
    tmp_path: Path, strategy: str, target: str
) -> None:
    """A run would refuse the dates of the slices that are processed again; one that it processes counts."""
    shop = processed(tmp_path, strategy, target)
    bronze = tmp_path / "lake/bronze/orders"
    (bronze / "2024-05-02.csv").write_text("id\n1\n2\n")
    (bronze / "2024-05-04.csv").write_text("id\n1\n")
    said = " ".join(shop.run("plan", "daily", "build", "day=2024-05-04").out.split())
    requeue = "lakewright manifest requeue orders/2024-05-02.csv"
    rebuild = "`lakewright rebuild orders --include 2024-05-02.csv`, which keeps the slices' own times"
    told = (
        f"`{requeue} --late`, then {rebuild}, or" if strategy == "historic" else f"`{requeue} --cascade`, or"
    )
    assert told in said
    assert "--processing-time" not in said
    assert "lakewright job daily build day" not in said
