"""Slices that a rebuild includes: the place that each has by its processing time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.usecases.test_requeued_times import BY_DAY, BY_SLICE, processed

from lakewright import Project
from lakewright.errors import UsageError
from lakewright.usecases.included_slices import included_slices


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
