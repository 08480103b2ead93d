"""Values of JSON are read as in a slice without its bad rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import BooleanType, DataType, DecimalType, DoubleType, LongType, StringType
from tests.unit.slices.test_json_values import orders, struct

from lakewright.slices.json_columns import KnownColumns
from lakewright.slices.json_misfits import Suspect, good_type, suspects_of

TEXT, WHOLE, FLOAT, FLAG = StringType(), LongType(), DoubleType(), BooleanType()
TABLE = KnownColumns({"rate": WHOLE, "ok": FLAG, "name": TEXT, "share": FLOAT})


def names(tmp_path: Path, columns: str, more: str = "") -> list[str]:
    """Return the columns that are looked at if Spark infers text for most, fractions for `n` and `rate`."""
    entity = orders(tmp_path, columns)
    settings = entity.settings.model_copy(
        update={"on_bad_rows": "quarantine", "schema_drift": more or "evolve"}
    )
    entity = entity.model_copy(update={"settings": settings})
    inferred = struct(id=TEXT, age=TEXT, rate=FLOAT, ok=TEXT, name=TEXT, share=TEXT, n=FLOAT, new=TEXT)
    return [each.name for each in suspects_of(inferred, TABLE, entity)]


AGE = "{name: age, datatype: int}, {name: n, datatype: int}"


def test_columns_whose_types_may_be_those_of_bad_rows_are_looked_at(tmp_path: Path) -> None:
    assert names(tmp_path, AGE) == ["age", "rate", "ok", "share"]


def test_columns_that_an_expression_replaces_are_left_out(tmp_path: Path) -> None:
    assert names(tmp_path, f"{AGE}, {{name: rate, expression: 'cast(1 as bigint)'}}") == [
        "age",
        "ok",
        "share",
    ]


def test_with_schema_drift_fail_another_type_than_the_tables_still_fails_the_slice(tmp_path: Path) -> None:
    assert names(tmp_path, AGE, "fail") == ["age"]


def test_nothing_is_looked_at_if_a_bad_row_fails_the_slice(tmp_path: Path) -> None:
    assert suspects_of(struct(age=TEXT), TABLE, orders(tmp_path, AGE)) == ()


def facts(**given: Any) -> dict[str, Any]:
    return {"other": False, "values": True, "fractions": False, "digits": 2, "large": False, **given}


@pytest.mark.parametrize(
    ("wanted", "of_table", "found", "expected"),
    [
        (WHOLE, None, facts(), WHOLE),
        (WHOLE, None, facts(fractions=True), DecimalType(38, 18)),
        (WHOLE, "age", facts(fractions=True), FLOAT),
        (WHOLE, "age", facts(digits=25, large=True), DecimalType(25, 0)),
        (DecimalType(10, 2), None, facts(), FLOAT),
        (DecimalType(30, 2), None, facts(), DecimalType(38, 10)),
        (FLOAT, "age", facts(), FLOAT),
        (FLAG, "age", facts(), FLAG),
        (WHOLE, None, facts(other=True), None),  # a text that fits: the column is one of texts
        (WHOLE, None, facts(values=False), None),
    ],
)
def test_the_type_is_that_of_the_good_values(
    wanted: DataType, of_table: str | None, found: dict[str, Any], expected: DataType | None
) -> None:
    assert good_type(Suspect("age", TEXT, wanted, of_table), found, are_typed=True) == expected


def test_a_type_that_bad_rows_do_not_change_is_kept() -> None:
    assert good_type(Suspect("n", FLOAT, WHOLE, "n"), facts(fractions=True), are_typed=True) is None
    assert good_type(Suspect("n", FLOAT, WHOLE, "n"), facts(), are_typed=True) == WHOLE


def test_a_table_with_hashes_of_the_inferred_types_keeps_them() -> None:
    assert good_type(Suspect("age", TEXT, DecimalType(10, 2), None), facts(), are_typed=False) == WHOLE
