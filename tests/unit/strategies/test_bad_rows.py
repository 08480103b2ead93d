"""Bad rows that fail a slice, and what is said if the declaration, not the slice, is the likely cause."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.projects import make_workspace

from lakewright.errors import BadRowsError
from lakewright.lake.delta_log import ABSENT, TableState
from lakewright.schema.fault import Fault, Owner, Reason
from lakewright.slices import slice_commit
from lakewright.slices.attempt import SliceProcessor
from lakewright.slices.discovery import Slice
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.fields import Field, parse_type
from lakewright.strategies.bad_rows import BadRow, check_bad_rows, collect_bad_rows, message_with_rows
from lakewright.strategies.preparation import BadSlice
from lakewright.strategies.slice_statistics import SliceStatistics

TABLE = TableState(exists=True, columns=(Field(name="total", type=parse_type("decimal(8,2)")),))
ORDERS = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}", on_bad_rows: quarantine}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: merge
    columns:
      - {name: id, fieldroles: [businesskey]}
      - {name: amount, newname: Total, datatype: integer}
    settings: {max_bad_rows: 1, format: csv}
"""
UNPARSED = BadRow(Fault(Reason.UNPARSED), "s1.csv", line=3)


@pytest.fixture
def orders(tmp_path: Path) -> Entity:
    return make_workspace(tmp_path, ORDERS).entity("orders")


@dataclass(frozen=True)
class _Load:
    """What putting rows aside needs of a slice."""

    state: TableState
    bad_rows: tuple[BadRow, ...]
    statistics: SliceStatistics


def misfits(
    *values: str, column: str = "amount", target: str = "int", owner: Owner = Owner.DECLARED
) -> list[BadRow]:
    faults = (Fault(Reason.NOT_WRITTEN_SO, column, target, value, owner) for value in values)
    return [BadRow(fault, "s1.csv", key={"id": number}) for number, fault in enumerate(faults)]


def refusal(
    orders: Entity, rows: list[BadRow], table: TableState = TABLE, *, records: int = 1
) -> BadRowsError:
    with pytest.raises(BadRowsError) as raised:
        check_bad_rows(rows, orders, table, records=records)
    return raised.value


@pytest.mark.parametrize("records", [0, 1])
@pytest.mark.parametrize(
    ("column", "target", "owner", "table", "told"),
    [
        ("amount", "int", Owner.DECLARED, ABSENT, "int, which is declared. "),
        ("amount", "int", Owner.DECLARED, TABLE, "int, which is declared; the table has decimal(8,2). "),
        ("total", "date", Owner.TABLE, TABLE, "date, which is that of the table; int is declared. "),
        ("day", "date", Owner.TABLE, TABLE, "date, which is that of the table. "),
    ],
)
def test_too_many_rows_that_all_misfit_one_column_have_its_type_checked(
    orders: Entity, column: str, target: str, owner: Owner, table: TableState, *, told: str, records: int
) -> None:
    rows = misfits("1.5", "it's 2\n3.5", column=column, target=target, owner=owner)
    found = str(refusal(orders, rows, table, records=records).remedy)
    assert found.startswith(f"Check the type of column {column!r}: no bad row fits {told}Correct the slice")
    assert ("`lakewright rebuild orders`" in found) is (owner is Owner.TABLE)
    assert "max_bad_rows" not in found


@pytest.mark.parametrize(
    "rows",
    [
        [*misfits("1.5", "2.5"), *misfits("x", column="day", target="date")],
        [*misfits("1.5"), *misfits("2.5", owner=Owner.TABLE)],
        [*misfits("1.5"), UNPARSED],
        [UNPARSED, UNPARSED],
        [BadRow(Fault(Reason.NULL_KEY, "id"), "s1.csv")] * 2,
    ],
)
def test_rows_with_several_faults_are_for_the_slice_to_correct(orders: Entity, rows: list[BadRow]) -> None:
    remedy = "Correct the slice, or raise max_bad_rows."
    assert refusal(orders, rows).remedy == remedy


@pytest.mark.parametrize("is_many", [False, True])
def test_a_slice_fails_if_every_row_is_bad_whatever_the_limit_says(orders: Entity, is_many: bool) -> None:
    """It would count as processed, and Full would empty the table; an operator may leave it out."""
    rows = misfits("1.5", "2.5") if is_many else misfits("1.5")
    error = refusal(orders, rows, records=0)
    assert error.message.startswith("every row of the slice is bad: id=0: column 'amount': the value '1.5'")
    assert "the table has decimal(8,2)" in str(error.remedy)
    assert error.details["may_skip"]


@pytest.mark.parametrize(
    ("rows", "remedy"),
    [
        ([UNPARSED], "Check the `format`: no row parses as csv. Correct the declaration, or the slice."),
        ([UNPARSED, *misfits("x")], "Correct the slice, or what the entity declares of its columns."),
    ],
)
def test_a_slice_of_bad_rows_names_what_of_the_declaration_to_check(
    orders: Entity, rows: list[BadRow], remedy: str
) -> None:
    assert refusal(orders, rows, records=0).remedy == remedy


@pytest.mark.parametrize(("count", "records"), [(0, 0), (0, 5), (1, 1)])
def test_a_few_bad_rows_and_a_slice_without_rows_are_no_fault(
    orders: Entity, count: int, records: int
) -> None:
    check_bad_rows(misfits("x")[:count], orders, TABLE, records=records)


def test_a_row_is_kept_with_its_fault_and_what_is_wrong_in_words() -> None:
    fault = Fault(Reason.OUT_OF_RANGE, "n", "tinyint", "300", Owner.TABLE)
    row = BadRow(fault, "s1.csv", line=3, key={"id": 1}, record='{"id":1,"n":"300"}')
    assert row.as_json() == {
        "reason": "column 'n': the value '300' doesn't fit the type tinyint of the table: it is out of range",
        "fault": {
            "reason": "out_of_range",
            "column": "n",
            "type": "tinyint",
            "value": "300",
            "owner": "table",
        },
        "file": "s1.csv",
        "line": 3,
        "key": {"id": 1},
        "record": '{"id":1,"n":"300"}',
    }
    assert Fault.parsed(json.dumps(row.as_json()["fault"])) == fault
    assert UNPARSED.as_json()["fault"] == {"reason": "unparsed"}


def test_a_row_names_all_its_faults() -> None:
    (one,), other = misfits("x"), Fault(Reason.INEXACT, "m", "int", "1.5")
    row = replace(one, further=(other,))
    assert row.as_json()["reason"] == (
        "column 'amount': the value 'x' doesn't fit the type int, "
        "column 'm': the value '1.5' doesn't fit the type int: not without loss"
    )
    assert row.as_json()["further"] == [other.as_json()]
    also = "(also column 'm': the value '1.5' doesn't fit the type int: not without loss)"
    assert message_with_rows("m", one.fault, [row]) == f"m, in id=0 {also}"


def test_a_column_that_all_rows_misfit_is_named_beside_other_faults(orders: Entity) -> None:
    rows = [replace(row, further=(Fault(Reason.NULL_KEY, "id"),)) for row in misfits("x", "y")]
    assert refusal(orders, rows, records=0).remedy == refusal(orders, misfits("x", "y"), records=0).remedy


def test_the_place_of_a_raised_fault_is_found_by_its_value_not_its_words() -> None:
    rows = misfits("1", "2")
    assert message_with_rows("m", rows[1].fault, rows) == f"m, in id=1; further rows: {rows[0].text()}"
    assert message_with_rows("m", replace(rows[1].fault, owner=Owner.TABLE), rows).startswith("m; rows: id=0")


def test_a_slice_of_bad_rows_alone_ends_a_fold_before_it(tmp_path: Path) -> None:
    workspace, checked = make_workspace(tmp_path, ORDERS), list[bool]()
    context = SimpleNamespace(lake=workspace.lake)
    processor: Any = SliceProcessor.__new__(SliceProcessor)
    processor.context, processor.entity = context, workspace.entity("orders")
    slices: Any = [(Slice(name, name, ()), None) for name in ("s1", "s2")]
    loads: Any = [
        _Load(TABLE, tuple(misfits(value)), SliceStatistics(records, 0))
        for value, records in (("x", 3), ("y", 0))
    ]
    with pytest.raises(BadSlice, match="every row of the slice is bad") as raised:
        slice_commit._looked_at(
            processor.entity, slices, loads, lambda: checked.append(True), processor.with_saved_rows
        )
    assert (raised.value.position, checked) == (1, [True])


def test_the_types_of_slices_that_are_applied_again_are_those_of_earlier_slices(orders: Entity) -> None:
    """The table that users see may have another type than the one that is being built."""
    own = "the type that the earlier slices give the column"
    for owner, whose in ((Owner.TABLE, own), (Owner.DECLARED, "which is declared")):
        with pytest.raises(BadRowsError) as raised:
            check_bad_rows(misfits("x", owner=owner), orders, TABLE, records=0, is_replayed=True)
        assert f"no bad row fits int, {whose}" in str(raised.value.remedy)
        assert "the table has" not in str(raised.value.remedy)


def test_files_of_one_name_in_a_folder_are_told_apart_by_their_paths_in_it() -> None:
    fault = json.dumps(Fault(Reason.UNPARSED).as_json())
    files = ("/lake/d1/plant=1/part-0.csv", "/lake/d1/plant=2/part-0.csv", "/lake/d1.csv")
    rows = [{"fault": fault, "file": each, "key": None, "record": "x"} for each in files]
    bad: Any = SimpleNamespace(limit=lambda _: SimpleNamespace(collect=lambda: rows))
    found = collect_bad_rows(bad, 10, "d1")
    assert [each.place for each in found] == ["d1.csv, x", "plant=1/part-0.csv, x", "plant=2/part-0.csv, x"]
