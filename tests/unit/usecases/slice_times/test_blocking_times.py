"""A slice without a processing time holds back all slices of its entity, and `status` says so. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import InProcess
from tests.documents import checked
from tests.unit.usecases.slice_times.test_requeued_times import BY_DAY, BY_SLICE, MODEL, processed

BAD = "2026-13-40.csv"
WHY = f"the processing time '${{slice.date}}' has no value for the slice {BAD}: its name has no date such as"
SKIP = f"lakewright manifest skip orders/{BAD}"


def shop_with(folder: Path, target: str, *names: str, strategy: str = "historic") -> InProcess:
    """A project with slices that no run has seen yet."""
    bronze = folder / "lake/bronze/orders"
    bronze.mkdir(parents=True)
    (folder / "project.yml").write_text("name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (folder / "m.yml").write_text(MODEL.format(strategy=strategy, target=target))
    for name in names:
        (bronze / name).write_text("id\n1\n")
    return InProcess(folder)


@pytest.mark.parametrize("strategy", ["historic", "merge"])
def test_new_slices_are_told_to_be_blocked_by_the_one_without_a_time(tmp_path: Path, strategy: str) -> None:
    """It said that two slices are new, as if the next run took them."""
    shop = shop_with(tmp_path, BY_SLICE, "2026-01-01.csv", BAD, strategy=strategy)
    page = " ".join(shop.run("status").out.split())
    assert (
        f"2 slices that no run has seen yet: 2026-01-01.csv, {BAD} a run would not take them: {WHY}" in page
    )
    assert f"`{SKIP}`" in page
    (arrived,) = checked(shop.json("status"))["arrived"]
    assert arrived["refused"]["message"].startswith(WHY)


@pytest.mark.parametrize("is_gone", [False, True])
def test_recorded_slices_are_told_to_be_blocked_until_the_slice_is_skipped(
    tmp_path: Path, is_gone: bool
) -> None:
    """It said that they wait for the next run; the record holds them back when the slice is removed, too."""
    shop = shop_with(tmp_path, BY_SLICE, "2026-01-01.csv", BAD)
    shop.json("manifest", "discover")
    (tmp_path / "lake/bronze/orders/2026-01-02.csv").write_text("id\n1\n")
    if is_gone:
        (tmp_path / "lake/bronze/orders" / BAD).unlink()
    page = " ".join(shop.run("status").out.split())
    assert "orders: 2 slices wait until no slice blocks the next run" in page
    assert "orders: 1 slice that no run has seen yet: 2026-01-02.csv a run would not take it either" in page
    assert (page.count(WHY), page.count(f"`{SKIP}`")) == (1, 2 if is_gone else 1)
    waiting = checked(shop.json("status"))["waiting"]
    assert all(each["refused"].startswith(WHY) and each["do"] == [] for each in waiting)
    assert shop.run(*SKIP.split()[1:]).code == 0
    page = " ".join(shop.run("status").out.split())
    assert "orders: 1 slice waits to be processed by the next run" in page


def test_a_failed_run_that_such_a_slice_would_block_again_says_so_beside_its_resume(tmp_path: Path) -> None:
    """`--resume` was named alone, and failed again."""
    shop = shop_with(tmp_path, BY_SLICE, "2026-01-01.csv", "2026-01-01b.csv")
    failed = shop.run("job", "daily", "build", "day=2026-01-01")
    assert failed.code in (1, 4), failed.all
    page = " ".join(shop.run("status").out.split())
    assert "it would fail again: the processing time 2026-01-01T00:00:00+00:00 of slice 2026-01-01b" in page
    assert "--resume" in page


def test_slices_whose_times_are_out_of_order_block_the_next_run(tmp_path: Path) -> None:
    shop = shop_with(tmp_path, BY_SLICE, "2026-01-01.csv", "2026-01-01b.csv")
    page = " ".join(shop.run("status").out.split())
    assert (
        "a run would not take them: the processing time 2026-01-01T00:00:00+00:00 of slice 2026-01-01b"
        in page
    )


@pytest.mark.parametrize(
    ("target", "names"),
    [(BY_SLICE, ("2026-01-01.csv", "2026-01-02.csv")), (BY_DAY, ("2026-01-01.csv", BAD))],
)
def test_nothing_is_said_of_times_that_are_right_or_of_a_parameter(
    tmp_path: Path, target: str, names: tuple[str, ...]
) -> None:
    page = shop_with(tmp_path, target, *names).run("status").out
    assert "would not take" not in page


def test_a_late_slice_without_a_time_is_refused_as_late_and_blocks_nothing(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    for name in ("2024-05-02-x-13-40.csv", "2024-05-09.csv", "0.csv"):
        (tmp_path / "lake/bronze/orders" / name).write_text("id\n1\n")
    page = shop.run("status").out
    assert "has no value" not in page


def test_what_a_run_refuses_stands_above_what_it_takes(tmp_path: Path) -> None:
    """The job for the others stood first, and failed because of it."""
    shop = shop_with(tmp_path, BY_SLICE, BAD)
    model = (tmp_path / "m.yml").read_text()
    first = "entities:\n  first: {id: 2, connection: shop, processtype: full}\n"
    (tmp_path / "m.yml").write_text(model.replace("entities:\n", first, 1))
    (tmp_path / "lake/bronze/first").mkdir()
    (tmp_path / "lake/bronze/first/2026-01-02.csv").write_text("id\n1\n")
    page = shop.run("status").out
    assert 0 < page.index("orders: 1 slice") < page.index("first: 1 slice"), page
