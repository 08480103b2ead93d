"""Deletes that the next slice would infer, counted before it is processed.

`processing-strategies.md`, "Delete Inference".
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.strategies.bench import SmallLake, entity, pa

from lakewright.slices.pending_slices import find_pending
from lakewright.slices.validation import preview_next_slice
from lakewright.spec.models.entity import Entity

SCHEMA = [("id", pa.int64()), ("at", pa.int64())]
ALLOWED = "(max_delete_ratio allows 50%, and delete_floor 20 rows whatever their share)"
MARK = [{"column_name": "at", "expression": "${last_value}"}]


def preview(lake: SmallLake, things: Entity) -> str | None:
    """Return the preview; not a byte of the lake changes, and nothing is recorded."""
    before = bytes_of(lake.root)
    records = {item.item_id: item.sequence for item in lake.items()}
    bench = lake.bench(things)
    pending = find_pending(bench, things, is_recorded=False)
    found = preview_next_slice(bench, things, pending)
    assert bytes_of(lake.root) == before
    assert {item.item_id: item.sequence for item in lake.items()} == records
    return found


def bytes_of(root: Path) -> dict[str, bytes]:
    return {
        str(file): file.read_bytes()
        for layer in ("bronze", "silver")
        for file in (root / layer).rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize(
    "strategies",
    [
        {"historic": "close"},
        pytest.param({"merge": "soft-delete", "historic": "close"}, marks=pytest.mark.nightly),
    ],
)
def test_a_preview_counts_what_the_slice_then_deletes(lake: SmallLake, strategies: dict[str, str]) -> None:
    rows = [{"id": n, "at": 10 * n} for n in range(6)]
    for strategy, verb in strategies.items():
        orders = entity(strategy, name=strategy, watermark=MARK, settings={"delete_missing": True})
        lake.put(orders, "s1", rows, SCHEMA)
        assert preview(lake, orders) is None  # there is no table, and no last watermark
        assert lake.process(orders).error is None
        lake.put(orders, "s2", [{"id": 9, "at": 60}], SCHEMA)

        assert preview(lake, orders) == f"s2 lacks 1 of 1 rows in its window, and would {verb} them {ALLOWED}"
        assert lake.process(orders).slices[0].summary.inferred_deletes == 1


@pytest.mark.nightly
def test_a_preview_of_a_whole_export_counts_what_the_slice_then_deletes(lake: SmallLake) -> None:
    rows = [{"id": n, "at": 10 * n} for n in range(6)]
    whole = entity(name="whole", settings={"delete_missing": True, "delete_scope": "full"})
    lake.load(whole, "s1", rows, SCHEMA)
    lake.put(whole, "s2", rows[:4], SCHEMA)
    assert preview(lake, whole) == f"s2 lacks 2 of 6 rows in its window, and would soft-delete them {ALLOWED}"
    assert lake.process(whole).slices[0].summary.inferred_deletes == 2
    lake.put(whole, "s3", rows[:4], SCHEMA)
    assert preview(lake, whole) == "s3 lacks none of the 4 rows in its window"
    lake.put(whole, "s3", [], SCHEMA)
    assert str(preview(lake, whole)).startswith("s3: the slice has no rows, so no deletes are inferred")


def test_a_preview_tells_of_the_brake_and_of_slices_that_would_fail(lake: SmallLake) -> None:
    """A4: the preview names both limits of the brake, whether the slice would pass it or not."""
    stock = entity(settings={"delete_missing": True, "delete_scope": "full", "delete_floor": 9})
    lake.load(stock, "s1", [{"id": n, "at": 0} for n in range(11)], SCHEMA)
    lake.put(stock, "s2", [{"id": 1, "at": 0}], SCHEMA)

    told = preview(lake, stock)

    assert told == (
        "s2 lacks 10 of 11 rows in its window, and would soft-delete them, but the slice would fail: "
        "max_delete_ratio allows 50%, and delete_floor 9 rows whatever their share"
    )
    lake.put(stock, "s2", [{"id": 1, "at": 0}, {"id": 1, "at": 0}], SCHEMA)
    assert "s2 would fail: 1 business key occurs more than once in the slice" in str(preview(lake, stock))


def test_where_nothing_is_inferred_no_query_is_run(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakewright.slices.validation.strict_session", lambda _: pytest.fail("no query"))
    plain, full = entity(name="plain"), entity("full", name="full", settings={"delete_missing": True})
    for things in (plain, full):
        lake.load(things, "s1", [{"id": 1, "at": 0}], SCHEMA)
        assert preview(lake, things) is None
        lake.put(things, "s2", [{"id": 2, "at": 0}], SCHEMA)
        assert preview(lake, things) is None
