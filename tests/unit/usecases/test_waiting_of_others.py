"""`status` does not promise runs that no run of the project makes, nor tells a fact twice. No Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.documents import checked
from tests.unit.usecases.slice_times.test_requeued_times import BY_DAY, processed


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (
            *("project.yml", "name: shop", "name: office"),
            "for a run of the project shop; no run of office takes it",
        ),
        (*("m.yml", "orders", "sales"), "until the project declares the entity; no run takes it"),
    ],
)
def test_a_slice_that_no_run_of_the_project_takes_is_said_to_be_such(
    tmp_path: Path, file: str, old: str, new: str, told: str
) -> None:
    """It waited "to be processed by the next run", which no run of the project does."""
    shop = processed(tmp_path, "merge", "")
    (tmp_path / "lake/bronze/orders/2024-05-04.csv").write_text("id\n1\n")
    shop.json("manifest", "discover")
    assert "orders: 1 slice waits to be processed by the next run" in shop.run("status").out
    path = tmp_path / file
    path.write_text(path.read_text().replace(old, new))
    page = " ".join(shop.run("status").out.split())
    assert f"orders: 1 slice waits {told}" in page
    assert "to be processed by the next run" not in page
    (waiting,) = checked(shop.json("status"))["waiting"]
    assert (waiting["refused"], waiting["do"]) == (f"it waits {told}", [])


def test_a_bronze_folder_that_is_gone_is_told_once(tmp_path: Path) -> None:
    """The look at bronze told it, and so did the warning of the last run."""
    shop = processed(tmp_path, "merge", BY_DAY)
    shutil.rmtree(tmp_path / "lake/bronze/orders")
    assert "is gone; slices from it are recorded" in shop.run("job", "daily", "build", "day=2024-05-09").all
    found = checked(shop.json("status"))
    assert len(found["unreadable"]) == 1
    assert found["warnings"] == []
    assert shop.run("status").out.count("is gone; slices from it are recorded") == 1
