"""A slice without a processing time holds back all slices of its entity, and `status` says so. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import InProcess
from tests.unit.usecases.slice_times.test_requeued_times import BY_DAY, BY_SLICE, MODEL, processed

BAD = "2026-13-40.csv"


def shop_with(folder: Path, target: str, *names: str, strategy: str = "historic") -> InProcess:
    """A project with slices that no run has seen yet."""
    bronze = folder / "lake/bronze/orders"
    bronze.mkdir(parents=True)
    (folder / "project.yml").write_text("name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (folder / "m.yml").write_text(MODEL.format(strategy=strategy, target=target))
    for name in names:
        (bronze / name).write_text("id\n1\n")
    return InProcess(folder)


@pytest.mark.parametrize(
    ("target", "names"),
    [(BY_SLICE, ("2026-01-01.csv", "2026-01-02.csv")), (BY_DAY, ("2026-01-01.csv", BAD))],
)
def test_nothing_is_said_of_times_that_are_right_or_of_a_parameter(
    tmp_path: Path, target: str, names: tuple[str, ...]
) -> None:
    steps = shop_with(tmp_path, target, *names).json("status")["steps"]
    assert "broken" not in [each["reason"]["code"] for each in steps]


def test_a_late_slice_without_a_time_is_refused_as_late_and_blocks_nothing(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    for name in ("2024-05-02-x-13-40.csv", "2024-05-09.csv", "0.csv"):
        (tmp_path / "lake/bronze/orders" / name).write_text("id\n1\n")
    steps = shop.json("status")["steps"]
    assert "broken" not in [each["reason"]["code"] for each in steps]
