"""A slice whose processing time is in the future is processed with a warning. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.commands import InProcess
from tests.unit.usecases.slice_times.test_requeued_times import BY_SLICE, MODEL

from lakewright.slices.processing_time import future_warning
from lakewright.slices.slice_commit import load_warnings
from lakewright.spec.models.entity import Strategy

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
TOLD = "the processing time 2062-01-01T00:00:00+00:00 is in the future"
REFUSED = ": new versions begin then, and slices with earlier times are refused afterwards"


@pytest.mark.parametrize(("hours", "is_told"), [(-1, False), (24, False), (25, True)])
def test_a_time_is_in_the_future_if_no_time_zone_explains_it(hours: int, is_told: bool) -> None:
    told = future_warning(NOW + timedelta(hours=hours), NOW, Strategy.HISTORIC)
    assert (told is not None) == is_told


@pytest.mark.parametrize(("strategy", "after"), [("historic", REFUSED), ("merge", "")])
def test_a_plan_warns_of_slices_whose_dates_are_in_the_future(
    tmp_path: Path, strategy: str, after: str
) -> None:
    bronze = tmp_path / "lake/bronze/orders"
    bronze.mkdir(parents=True)
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (tmp_path / "m.yml").write_text(MODEL.format(strategy=strategy, target=BY_SLICE))
    for name in ("2024-05-01.csv", "2062-01-01.csv", "2062-01-02.csv"):
        (bronze / name).write_text("id\n1\n")
    shop = InProcess(tmp_path)
    page = " ".join(shop.run("plan", "daily", "build", "day=2024-05-01").out.split())
    assert f"warning: 2062-01-01.csv: {TOLD}{after} 2062-01-02.csv: the processing time 2062-01-02" in page
    skipping = "lakewright manifest skip orders/2062-01-01.csv orders/2062-01-02.csv"
    assert f"do: Leave out what has a wrong date: `{skipping}`." in page
    assert "2024-05-01.csv: the processing time" not in page
    assert shop.run(*skipping.split()[1:]).code == 0
    assert "in the future" not in shop.run("plan", "daily", "build", "day=2024-05-01").out


def test_the_report_of_a_run_warns_of_it_with_the_undo() -> None:
    entity: Any = SimpleNamespace(called="orders")
    context: Any = SimpleNamespace(clock=lambda: NOW)
    drift: Any = SimpleNamespace(messages=("another",))
    summary: Any = None
    undo = "lakewright undo orders 2062-01-01.csv"
    for at, told in (
        (datetime(2062, 1, 1, tzinfo=UTC), ["another", f"{TOLD}{REFUSED}. If its date is wrong: `{undo}`"]),
        (NOW, ["another"]),
    ):
        request = SimpleNamespace(at=at, slice_name="2062-01-01.csv", strategy=Strategy.HISTORIC)
        load: Any = SimpleNamespace(request=request, drift=drift, bad_rows=["a bad row"])
        assert list(load_warnings(context, entity, load, summary)) == told
