"""What is said of bad rows if the type of a column, not the slice, is the likely cause."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.errors import BadRowsError
from lakewright.lake.table_state import ABSENT, TableState
from lakewright.slices.attempt import SliceProcessor
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.fields import Field, parse_type
from lakewright.strategies.bad_rows import BadRow, check_number, type_hint

TABLE = TableState(exists=True, columns=(Field(name="Amount", type=parse_type("decimal(8,2)")),))
ORDERS = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}", on_bad_rows: quarantine}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
"""


def misfits(*values: str, column: str = "amount", target: str = "int") -> list[BadRow]:
    reasons = (f"column {column!r}: the value '{each}' doesn't fit the type {target}" for each in values)
    return [BadRow(reason, "s1.csv", key={"id": number}) for number, reason in enumerate(reasons)]


def remedy(rows: list[BadRow], table: TableState) -> str:
    with pytest.raises(BadRowsError) as raised:
        check_number(rows, 1, table)
    return str(raised.value.remedy)


@pytest.mark.parametrize(
    ("target", "table", "told"),
    [
        ("int", ABSENT, "no bad row fits int, which is declared. "),
        ("int", TABLE, "no bad row fits int, which is declared; the table has decimal(8,2). "),
        ("int of the table", TABLE, "no bad row fits int, which is that of the table. "),
    ],
)
def test_too_many_rows_that_all_misfit_one_column_have_its_type_checked(
    target: str, table: TableState, told: str
) -> None:
    found = remedy(misfits("1.5", "it's 2\n3.5", target=target), table)
    assert found.startswith(f"Check the type of column 'amount': {told}Correct the slice")
    assert ("lakewright rebuild" in found) is target.endswith("table")
    assert "max_bad_rows" not in found
    assert found.endswith("Then resolve the item.")


@pytest.mark.parametrize(
    "rows",
    [
        [*misfits("1.5", "2.5"), *misfits("x", column="day", target="date")],
        [*misfits("1.5"), BadRow("the row does not parse", "s1.csv", line=3)],
        [BadRow("column 'id' of the business key is null", "s1.csv")] * 2,
    ],
)
def test_rows_with_several_faults_are_for_the_slice_to_correct(rows: list[BadRow]) -> None:
    assert remedy(rows, TABLE) == "Correct the slice, or raise max_bad_rows; then resolve the item."


def test_one_bad_row_says_nothing_about_the_type() -> None:
    assert type_hint(misfits("x"), TABLE) is None
    assert type_hint([], TABLE) is None


@pytest.mark.parametrize(("records", "is_all"), [(2, True), (3, False)])
def test_a_slice_of_bad_rows_alone_is_told_as_that_with_the_type_to_check(
    tmp_path: Path, records: int, is_all: bool
) -> None:
    """All of them may be put aside, so that the slice is processed: no one is to think that it was right."""
    workspace = make_context(make_workspace(tmp_path, ORDERS)).workspace
    context = SimpleNamespace(lake=workspace.lake)
    processor: Any = SimpleNamespace(
        context=context, entity=workspace.entity("orders"), strategy=Strategy.MERGE
    )
    rows, request = misfits("1.5", "2.5"), SimpleNamespace(slice_name="s1.csv")
    load: Any = SimpleNamespace(bad_rows=rows, state=TABLE, request=request)
    summary: Any = SimpleNamespace(records_in_slice=records)
    (told,) = SliceProcessor.delete_warnings(processor, load, summary)
    assert told.startswith("no row of the slice was processed: 2 bad rows were put aside in ") is is_all
    assert (
        told.endswith(
            "Check the type of column 'amount': no bad row fits int, which is declared; "
            "the table has decimal(8,2)."
        )
        is is_all
    )
