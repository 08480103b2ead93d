"""Slices that a rebuild includes: the place that each has by its processing time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.usecases.slice_times.test_requeued_times import BY_DAY, BY_SLICE, processed

from lakewright import Project
from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.manifest.discovery import DiscoveredSlice
from lakewright.slices.application import application_of
from lakewright.usecases.included_slices import included_slices
from lakewright.usecases.slice_times.declared_times import late_slices_of


@pytest.mark.parametrize("target", [BY_SLICE, BY_DAY])
def test_a_slice_that_no_run_has_seen_has_the_time_that_a_target_declares(
    tmp_path: Path, target: str
) -> None:
    processed(tmp_path, "historic", target)
    (tmp_path / "lake/bronze/orders/2024-05-02b.csv").write_text("id\n1\n")
    with Project.load(tmp_path) as shop:
        found = included_slices(shop.app, shop.app.project.entity("orders"), ["2024-05-02b.csv"] * 2)
    (one,) = found
    assert one.item_id.endswith("/2024-05-02b.csv")
    assert one.content["processingTime"] == "2024-05-02T00:00:00+00:00"
    assert one.fingerprint["size"] == 5


@pytest.mark.parametrize(("strategy", "apart"), [("historic", True), ("merge", False)])
def test_files_of_one_day_are_put_a_second_apart_where_versions_begin_at_these_times(
    tmp_path: Path, strategy: str, apart: bool
) -> None:
    """The second file of a day got the time of the first, so that versions ended as they began."""
    processed(tmp_path, strategy, BY_SLICE)
    names = ["2024-05-02c.csv", "2024-05-02b.csv"]
    for name in names:
        (tmp_path / "lake/bronze/orders" / name).write_text("id\n1\n")
    with Project.load(tmp_path) as shop:
        app, entity = shop.app, shop.app.project.entity("orders")
        record(app, [(f"2024-05-0{day}.csv", f"2024-05-0{day}T00:00:00+00:00") for day in (1, 2, 3)])
        found = included_slices(app, entity, names)
        record(app, [("2024-05-02b.csv", str(found[0].content["processingTime"]))])
        (last,) = included_slices(app, entity, names[:1])
    times = [f"2024-05-02T00:00:0{n if apart else 0}+00:00" for n in (1, 2)]
    assert [each.content["processingTime"] for each in found] == times
    assert last.content["processingTime"] == times[1]


@pytest.mark.parametrize(
    ("slice_", "told"),
    [
        ("2024-05-01.csv", "it is processed"),
        ("2024-05-09.csv", "no item orders/2024-05-09.csv"),
        ("late.csv", "no job declares a processing time for it"),
    ],
)
def test_what_does_not_wait_or_has_no_place_is_refused(tmp_path: Path, slice_: str, told: str) -> None:
    processed(tmp_path, "historic", BY_SLICE)
    (tmp_path / "lake/bronze/orders/late.csv").write_text("id\n1\n")
    with Project.load(tmp_path) as shop, pytest.raises(UsageError, match=told) as refused:
        included_slices(shop.app, shop.app.project.entity("orders"), [slice_])
    assert refused.value.remedy


def test_a_slice_that_changed_since_it_was_recorded_is_refused_with_what_records_it(tmp_path: Path) -> None:
    """It was said to have changed since it was processed, and what to type left it waiting."""
    shop = processed(tmp_path, "historic", BY_SLICE)
    late = tmp_path / "lake/bronze/orders/2024-05-02b.csv"
    late.write_text("id\n1\n")
    shop.json("manifest", "discover")
    late.write_text("id\n1\n2\n")
    with Project.load(tmp_path) as lake:
        app, entity = lake.app, lake.app.project.entity("orders")
        with pytest.raises(UsageError, match=r"b\.csv has changed since it was recorded") as told:
            included_slices(app, entity, [late.name])
        assert told.value.remedy is not None
        typed = told.value.remedy.split("`")[1]
        assert shop.shell(typed).code == 0
        (found,) = included_slices(app, entity, [late.name])
    assert found.fingerprint["size"] == 7


def record(app: App, names: Sequence[tuple[str, str]]) -> None:
    """Record slices as processed with processing times, in order."""
    entity = app.project.entity("orders")
    application = application_of("shop", entity)
    for name, time in names:
        item = (Path(app.project.basedir) / "lake/bronze/orders" / name).as_uri()
        if name not in ("2024-05-01.csv", "2024-05-02.csv", "2024-05-03.csv"):
            app.ledger.discover([DiscoveredSlice(item, application, "orders", name, {})])
        else:
            app.ledger.requeue(item, "again", allow_late=True)
        lease = timedelta(seconds=60)
        claim = app.ledger.acquire(item, application, app.holder, duration=lease, token_counter="orders")
        app.ledger.processed(claim, {"processing_time": time})


def test_a_slice_whose_time_puts_it_before_older_ones_is_refused_and_not_said_to_have_its_place_there(
    tmp_path: Path,
) -> None:
    """Finding 12: slices had times of the clock, and the newest one went before them with its own date."""
    processed(tmp_path, "historic", BY_SLICE)
    newest = "2024-05-04.csv"
    (tmp_path / "lake/bronze/orders" / newest).write_text("id\n1\n")
    with Project.load(tmp_path) as shop:
        app, entity = shop.app, shop.app.project.entity("orders")
        record(app, [(f"2024-05-0{day}.csv", f"2026-11-25T21:50:0{day}+00:00") for day in (1, 2, 3)])
        told = "slices before it by name have later times, such as 2024-05-03.csv with 2026-11-25T21:50:03"
        with pytest.raises(UsageError, match=told) as refused:
            included_slices(app, entity, [newest])
        assert "process orders 2024-05-04.csv --processing-time 2026-11-25T21:50:04+00:00`" in str(
            refused.value.remedy
        )


def test_a_slice_that_was_processed_with_another_time_has_the_declared_one_in_its_place(
    tmp_path: Path,
) -> None:
    """It was given a time after the newest version, then undone: a rebuild gave it that time once more."""
    processed(tmp_path, "historic", BY_SLICE)
    older = "2024-05-02.csv"
    with Project.load(tmp_path) as shop:
        app, entity = shop.app, shop.app.project.entity("orders")
        days = [(f"2024-05-0{day}.csv", f"2024-05-0{day}T00:00:00+00:00") for day in (1, 3)]
        record(app, [*days, (older, "2024-05-03T00:00:01+00:00")])
        app.ledger.requeue((tmp_path / "lake/bronze/orders" / older).as_uri(), "again", allow_late=True)
        (found,) = included_slices(app, entity, [older])
    assert found.content["processingTime"] == "2024-05-02T00:00:00+00:00"


def test_a_slice_has_the_time_that_it_was_processed_with_if_no_target_declares_one(tmp_path: Path) -> None:
    processed(tmp_path, "historic", "description: the time is the clock's")
    with Project.load(tmp_path) as shop:
        app, entity = shop.app, shop.app.project.entity("orders")
        record(app, [(f"2024-05-0{day}.csv", f"2026-11-25T21:50:0{day}+00:00") for day in (1, 2, 3)])
        app.ledger.requeue((tmp_path / "lake/bronze/orders/2024-05-02.csv").as_uri(), "x", allow_late=True)
        (found,) = included_slices(app, entity, ["2024-05-02.csv"])
    assert found.content["processingTime"] == "2026-11-25T21:50:02+00:00"


def test_a_late_slice_does_not_count_against_the_place_of_others(tmp_path: Path) -> None:
    processed(tmp_path, "historic", BY_SLICE)
    late = "2024-05-02-b.csv"
    for name in ("2024-05-02-a.csv", late):
        (tmp_path / "lake/bronze/orders" / name).write_text("id\n1\n")
    with Project.load(tmp_path) as shop:
        app, entity = shop.app, shop.app.project.entity("orders")
        days = [(f"2024-05-0{day}.csv", f"2024-05-0{day}T00:00:00+00:00") for day in (1, 2, 3)]
        record(app, [*days, ("2024-05-02-a.csv", "2026-11-25T21:50:00+00:00")])
        (found,) = included_slices(app, entity, [late])
    assert found.content["processingTime"] == "2024-05-02T00:00:00+00:00"


@pytest.mark.parametrize(
    ("times", "target", "is_placed"),
    [
        (("2024-05-01", "2024-05-02", "2024-05-03"), BY_SLICE, True),
        (
            ("2024-05-01", "2024-05-02", "2024-05-03"),
            'processingTime: "2999-01-01"',
            False,
        ),  # after the others
        (("2024-05-01", "2024-05-03", "2024-05-02"), BY_SLICE, True),  # of the later ones, one was late
        (("2026-05-01", "2026-05-02", "2026-05-03"), BY_SLICE, False),  # before the others
        (("2024-05-01", "2024-05-02", "2024-05-03"), "description: the clock's", False),
    ],
)
def test_a_late_slice_has_a_place_if_its_time_is_between_older_and_newer_ones(
    tmp_path: Path, times: Sequence[str], target: str, is_placed: bool
) -> None:
    processed(tmp_path, "merge", target)
    late = "2024-05-01.z.csv"
    (tmp_path / "lake/bronze/orders" / late).write_text("id\n1\n")
    with Project.load(tmp_path) as shop:
        app = shop.app
        named = [(f"2024-05-0{day}.csv", f"{time}T00:00:00+00:00") for day, time in enumerate(times, 1)]
        record(app, sorted(named, key=lambda each: each[1]))
        found = late_slices_of(app, app.project.entity("orders"), (late,))
    assert found.is_placed is is_placed
