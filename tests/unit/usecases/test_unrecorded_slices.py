"""A manifest that was restored from an older backup, or lost: the tables hold more slices than it knows."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake
from tests.commands import InProcess
from tests.unit.usecases.slice_times.test_requeued_times import BY_DAY, BY_SLICE, app_of, processed

from lakewright.slices.application import application_of
from lakewright.slices.discovery import list_slices
from lakewright.spec.models.slice_folder import SliceFolder

NEW, NEXT = "2024-05-04.csv", "2024-05-05.csv"


def commit(folder: Path, name: str, number: int) -> None:
    """Put a slice into the table as a run does, and leave it out of the manifest."""
    bronze, silver = folder / "lake/bronze/orders", folder / "lake/silver/orders"
    (bronze / name).write_text("id\n1\n")
    at = datetime.fromisoformat(name[:10]).replace(tzinfo=UTC)
    with app_of(folder) as app:
        entity = app.project.entity("orders")
        app_id = str(application_of("shop", entity))
        (found,) = (each for each in list_slices(SliceFolder(str(bronze)), app.lake) if each.name == name)
    content = {"app": app_id, "number": number, "item": (bronze / name).as_uri(), "revision": 1}
    content |= {"run": "run-0", "fingerprint": found.fingerprint, "metrics": {}}
    properties = CommitProperties(
        {"userMetadata": json.dumps(content)}, app_transactions=[Transaction(app_id, number)]
    )
    rows = {"id": [1], "dlf_ValidFrom": [at], "dlf_ValidTo": pa.array([None], pa.timestamp("us", "UTC"))}
    write_deltalake(silver, pa.table(rows), mode="append", commit_properties=properties)


def restored(folder: Path, target: str = BY_SLICE) -> InProcess:
    """A project whose table has a slice more than the manifest, and whose bronze has two more."""
    shop = processed(folder, "historic", target)
    commit(folder, NEW, 4)
    (folder / "lake/bronze/orders" / NEXT).write_text("id\n1\n")
    return shop


def test_the_plan_records_the_slices_that_only_the_table_has(tmp_path: Path) -> None:
    shop = restored(tmp_path)
    first = shop.json("plan")["steps"][0]
    assert (first["action"], first["reason"]["code"]) == ("record", "held_unrecorded")
    assert NEW in first["subject"]["slices"]
    assert shop.run("manifest", "fsck").code == 0


@pytest.mark.parametrize(
    ("is_arrived", "meaning"),
    [
        (False, "recorded now; the next run records what became of them as the table's log shows, without"),
        (True, "recorded now; the next run records 1 of them as the table's log shows, without processing"),
    ],
)
def test_discover_tells_which_new_slices_are_not_processed(
    tmp_path: Path, is_arrived: bool, meaning: str
) -> None:
    shop = restored(tmp_path)
    if not is_arrived:
        (tmp_path / "lake/bronze/orders" / NEXT).unlink()
    page = " ".join(shop.run("manifest", "discover").out.split())
    assert meaning in page
    assert f"orders {NEW}, to be recorded as processed" in page
    assert ("processes the others" in page) == is_arrived


def test_plan_names_what_the_run_records_and_processes_only_the_rest(tmp_path: Path) -> None:
    planned = " ".join(restored(tmp_path).run("plan", "daily", "build", "day=2024-05-05").out.split())
    assert f"1 slice to process: {NEXT}; the manifest lacks what the table's log shows" in planned
    assert f"the run first records 1 slice: {NEW}" in planned
    assert "refuses" not in planned


def test_a_run_is_planned_if_there_is_only_something_to_record(tmp_path: Path) -> None:
    planned = restored(tmp_path, BY_DAY).run("plan", "daily", "build", "day=2024-05-04").out
    assert "WOULD_RUN orders (entity): the manifest lacks what" in planned, planned
    assert "to process" not in planned


def test_after_a_lost_manifest_a_formerly_skipped_slice_holds_nothing_back(tmp_path: Path) -> None:
    """Two slices of one day: the second was skipped, which no table tells."""
    shop = processed(tmp_path, "historic", BY_SLICE)
    for number, name in enumerate(("2024-05-04.csv", "2024-05-05.csv"), start=1):
        commit(tmp_path, name, number)
    (tmp_path / "lake/bronze/orders/2024-05-04.csv.gz").write_bytes(b"broken")
    for name in ("2024-05-01.csv", "2024-05-02.csv", "2024-05-03.csv"):
        (tmp_path / "lake/bronze/orders" / name).unlink()
    (tmp_path / "lake/bronze/orders/2024-05-06.csv").write_text("id\n1\n")
    shutil.rmtree(tmp_path / ".lakewright")
    planned = " ".join(shop.run("plan", "daily", "build", "day=2024-05-06").out.split())
    assert "BLOCKED=0" in planned, planned
    assert "the run first records 2 slices" in planned
    assert "2024-05-04.csv.gz is late: the run refuses it" in planned


def test_a_slice_of_the_same_time_is_told_to_be_skipped(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    for name in ("2024-05-04.csv", "2024-05-04.csv.gz"):
        (tmp_path / "lake/bronze/orders" / name).write_text("id\n1\n")
    planned = " ".join(shop.run("plan", "daily", "build", "day=2024-05-04").all.split())
    assert "Or leave one out: `lakewright manifest skip orders/2024-05-04.csv.gz`" in planned
