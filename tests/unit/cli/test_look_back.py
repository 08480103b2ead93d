"""What `history diff` and `history row` print of values."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from lakewright.cli.page import Block, plain
from lakewright.cli.render.look_back import changes_page, life_page
from lakewright.usecases.look_back import RecordLife, RecordVersion, RowChange, SliceChanges

AMOUNT, OTHER = Decimal("1234567890.12345600"), Decimal("1234567890.12345601")


def lines(page: Iterable[Block]) -> list[str]:
    return [text for block in page for text in plain(block)]


def test_changes_of_a_slice_are_shown_by_record_with_all_digits_and_those_left_out_are_counted() -> None:
    before, after = {"v": "b", "amount": AMOUNT}, {"v": "B", "amount": OTHER}
    found = SliceChanges(
        entity="customers",
        slice="d3.parquet",
        item_id="customers/d3.parquet",
        version=2,
        run_id="12345678-9",
        together=(),
        rewound=None,
        counts={"inserted": 1, "updated": 1},
        rows=(RowChange({"id": 2}, "updated", before, after),),
    )
    assert lines(changes_page(found)) == [
        "customers: slice d3.parquet made version 2, run 12345678",
        "1 inserted, 1 updated",
        f"updated id=2: v: b → B, amount: {AMOUNT} → {OTHER}",
        "… and 1 record more; --rows shows more",
    ]


def test_versions_of_a_record_are_a_table_and_one_without_any_is_not_there() -> None:
    version = RecordVersion(
        since="2022-03-01",
        until=None,
        is_deleted=False,
        values={"id": "2", "v": "B", "amount": OTHER},
        slice="d3.parquet",
        run_id="12345678-9",
        version=2,
    )
    (_, table) = life_page(RecordLife("customers", {"id": "2"}, (version,), reaches_back_to=None))
    assert list(plain(table))[1].split() == [
        *("2022-03-01", "v=B,", f"amount={OTHER}", "d3.parquet", "12345678"),
    ]
    unknown = RecordLife("customers", {"id": "77"}, (), reaches_back_to=None)
    assert lines(life_page(unknown)) == ["customers id=77", "the table has no such record"]
