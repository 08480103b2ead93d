"""D1: a range of a job processes the slices of each day in the instance of that day."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.commands import InProcess
from tests.silver import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = """
name: shop
modules: [model.yml]
lake: {root_folder: lake}
"""
MODEL = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}", bronze_format: json}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: historic
    columns: [{name: id, fieldroles: [businesskey]}]
targets:
  orders: {kind: entity, entity: orders, slices: "${day}*", processingTime: "${day}"}
  catch_up: {kind: entity, entity: orders, until: "${day}"}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [orders]}
  until: {parameters: [{name: day, type: date}], targets: [catch_up]}
"""


@pytest.fixture
def shop(either: SparkSession, tmp_path: Path) -> InProcess:
    (tmp_path / "project.yml").write_text(PROJECT)
    (tmp_path / "model.yml").write_text(MODEL)
    bronze = tmp_path / "lake/bronze/orders"
    bronze.mkdir(parents=True)
    for day in range(1, 6):
        (bronze / f"2024-05-0{day}.json").write_text(f'{{"id": 1, "v": {day}}}\n')
    return InProcess(tmp_path, either)


def builds(document: Any) -> list[tuple[Any, ...]]:
    """Return status, reasons and names of slices of each BUILD."""
    return [
        (
            target["status"],
            *target["reasons"],
            *(each["slice"] for each in target.get("metrics", {}).get("slices", ())),
        )
        for instance in document["instances"]
        for phase in instance["phases"]
        for target in phase["targets"]
        if phase["phase"] == "BUILD"
    ]


def test_each_instance_of_a_range_takes_the_slices_of_its_day(shop: InProcess) -> None:
    days = ("day:start=2024-05-01", "day:end=2024-05-02")
    left = (
        "leaves 3 slices to other runs: 2024-05-03.json, 2024-05-04.json, 2024-05-05.json; "
        "`lakewright apply` takes them"
    )
    to_process = [f"1 slice to process: 2024-05-0{day}.json" for day in (1, 2)]
    done = [f"1 slice processed: 2024-05-0{day}.json" for day in (1, 2)]
    assert builds(shop.json("plan", "daily", "build", *days)) == [
        ("WOULD_RUN", to_process[0]),
        ("WOULD_RUN", to_process[1], left),
    ]

    assert builds(shop.json("job", "daily", "build", *days)) == [
        ("SUCCESS", done[0], "2024-05-01.json"),
        ("SUCCESS", done[1], left, "2024-05-02.json"),
    ]

    found = rows_of(shop.folder / "lake/silver/orders")
    assert sorted((str(row["dlf_ValidFrom"])[:10], row["v"]) for row in found) == [
        ("2024-05-01", 1),
        ("2024-05-02", 2),
    ]
    (due,) = shop.json("status")["steps"]
    assert due["subject"]["slices"] == [f"2024-05-0{day}.json" for day in (3, 4, 5)]

    # Until includes what is older, whether or not a run has known of it.
    done = shop.json("job", "until", "build", "day=2024-05-04,2024-05-03")
    assert builds(done) == [
        (
            "SUCCESS",
            "2 slices processed: 2024-05-03.json, 2024-05-04.json",
            "2024-05-03.json",
            "2024-05-04.json",
        ),
        (
            "SKIPPED",
            "every slice that it takes has been processed",
            "leaves 1 slice to other runs: 2024-05-05.json; `lakewright apply` takes it",
        ),
    ]
    removal = shop.json("plan", "daily", "truncate", "day=2024-05-01")
    (step,) = removal["instances"][0]["phases"][0]["targets"]
    assert step["reasons"] == [
        "is filled",
        "affects all slices: `slices: 2024-05-01*` limits only BUILD",
        "also of job until",
    ]


@pytest.mark.nightly  # due/test_apply.py replays a correction, unit/targets/test_deviations.py warns
def test_a_redelivered_day_is_left_to_apply_which_puts_it_in_its_place(shop: InProcess) -> None:
    """A2: neither the run of another day nor `${slice.date}` keeps a changed day from being processed."""
    model = MODEL.replace("columns: [{", "settings: {changed_slices: take}\n    columns: [{")
    (shop.folder / "model.yml").write_text(model.replace('Time: "${day}"', 'Time: "${slice.date}"'))
    for day in (1, 3, 5):
        (shop.folder / f"lake/bronze/orders/2024-05-0{day}.json").unlink()
    assert shop.json("job", "daily", "build", "day=2024-05-02")["status"] == "SUCCESS"
    (shop.folder / "lake/bronze/orders/2024-05-02.json").write_text('{"id": 1, "v": 20}\n')

    planned = shop.json("plan", "daily", "build", "day=2024-05-04")
    (warning,) = [target["warning"] for target in planned["instances"][0]["phases"][-1]["targets"]]
    assert warning["message"] == "orders: the files of 2024-05-02.json have changed since it was processed"
    assert warning["remedy"] == "`lakewright apply` takes it."
    other = shop.json("job", "daily", "build", "day=2024-05-04")
    assert (other["status"], builds(other)[0][-1]) == ("SUCCESS_WITH_ERRORS", "2024-05-04.json")
    assert [each["reason"]["code"] for each in shop.json("status")["steps"]] == ["changed_slice"]

    # At their own days, the slices would change what has become history.
    same = shop.json("job", "daily", "build", "day=2024-05-02,2024-05-04")
    assert same["status"] == "SUCCESS_WITH_ERRORS"
    assert "`lakewright apply` takes it" in json.dumps(same)

    done = shop.run("apply")
    assert done.code == 0, done.all
    found = rows_of(shop.folder / "lake/silver/orders")
    assert [row["v"] for row in sorted(found, key=lambda row: row["dlf_ValidFrom"])] == [20, 4]
    assert shop.json("status")["steps"] == []
