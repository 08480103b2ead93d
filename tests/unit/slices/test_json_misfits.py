"""Values of JSON are read as in a slice without its bad rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
)
from tests.unit.slices.test_json_values import orders, struct

from lakewright.slices.json_columns import KnownColumns
from lakewright.slices.json_misfits import good_type, variants_of
from lakewright.slices.json_suspects import Suspect, Wanted, suspects_of
from lakewright.spec.models.entity import Entity

TEXT, WHOLE, FLOAT, FLAG = StringType(), LongType(), DoubleType(), BooleanType()
TABLE = KnownColumns({"rate": WHOLE, "ok": FLAG, "name": TEXT, "share": FLOAT})


def quarantining(tmp_path: Path, columns: str, schema_drift: str = "evolve") -> Entity:
    entity = orders(tmp_path, columns)
    update = {"on_bad_rows": "quarantine", "schema_drift": schema_drift}
    return entity.model_copy(update={"settings": entity.settings.model_copy(update=update)})


def names(tmp_path: Path, columns: str, more: str = "evolve") -> list[str]:
    """Return the columns that are looked at if Spark infers text for most, fractions for `n` and `rate`."""
    inferred = struct(id=TEXT, age=TEXT, rate=FLOAT, ok=TEXT, name=TEXT, share=TEXT, n=FLOAT, new=TEXT)
    return [each.column for each in suspects_of(inferred, TABLE, quarantining(tmp_path, columns, more))]


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


INSIDE = """{name: d, datatype: "struct<l: array<struct<w: int>>, ok: boolean, s: string>"},
    {name: m, datatype: "map<string, int>"}, {name: net.eur, newname: eur, datatype: "decimal(20,6)"},
    {name: a.b, newname: other, datatype: int}"""


def test_parts_of_columns_are_looked_at_with_their_paths(tmp_path: Path) -> None:
    lines = ArrayType(struct(q=TEXT, p=TEXT, new=TEXT))
    inferred = struct(
        **{"a.b": LongType(), "a": struct(b=TEXT), "tags": ArrayType(TEXT), "lines": lines},
        t=struct(N=TEXT, price=FLOAT, twice=TEXT),
        d=struct(l=ArrayType(struct(w=TEXT)), ok=TEXT, s=TEXT),
        m=struct(k=FLOAT, n=TEXT),
        net=struct(eur=TEXT, usd=TEXT),
        twins=struct(v=TEXT, V=TEXT),
        shape=struct(q=TEXT),
    )
    table = KnownColumns(
        {
            "tags": ArrayType(WHOLE),
            "lines": ArrayType(struct(q=WHOLE, p=TEXT)),
            "t": struct(n=WHOLE, price=WHOLE),
            "twins": struct(v=WHOLE),
            "shape": WHOLE,
            "d": struct(s=WHOLE),
            "m": MapType(TEXT, WHOLE),
        }
    )
    found = suspects_of(inferred, table, quarantining(tmp_path, INSIDE))
    assert {each.path: (each.wanted.place, each.wanted.is_of_table) for each in found} == {
        ("tags", None): ("tags", True),
        ("lines", None, "q"): ("lines.q", True),
        ("t", "N"): ("t.n", True),
        ("t", "price"): ("t.price", True),
        ("d", "l", None, "w"): ("d.l.w", False),
        ("d", "ok"): ("d.ok", False),
        ("m", "k"): ("m", False),
        ("m", "n"): ("m", False),
        ("net", "eur"): ("net.eur", False),
    }
    variants = variants_of(struct(t=inferred["t"].dataType, lines=lines, age=TEXT), found)
    assert variants.simpleString() == (
        "struct<t:struct<N:variant,price:variant,twice:string>,"
        "lines:array<struct<q:variant,p:string,new:string>>,age:string>"
    )


def test_what_fits_inside_a_declared_type_is_what_its_conversion_takes() -> None:
    """A text inside is rounded to the digits of a decimal; that of a column must not have more."""
    inside = Wanted(DecimalType(6, 2), "d.w", is_inside=True)
    assert "rlike" not in Suspect(("d", "w"), TEXT, inside).fault_sql("v", TEXT)
    assert "rlike" in Suspect(("d",), TEXT, Wanted(DecimalType(6, 2), "d")).fault_sql("v", TEXT)


def suspect(inferred: DataType, wanted: DataType, of_table: str | None = None, **more: bool) -> Suspect:
    own = Wanted(wanted, of_table or "age", is_of_table=of_table is not None, **more)
    return Suspect((of_table or "age",), inferred, own)


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
    assert good_type(suspect(TEXT, wanted, of_table), found, are_typed=True) == expected


def test_a_type_that_bad_rows_do_not_change_is_kept() -> None:
    assert good_type(suspect(FLOAT, WHOLE, "n"), facts(fractions=True), are_typed=True) is None
    assert good_type(suspect(FLOAT, WHOLE, "n"), facts(), are_typed=True) == WHOLE


def test_a_table_with_hashes_of_the_inferred_types_keeps_them() -> None:
    assert good_type(suspect(TEXT, DecimalType(10, 2)), facts(), are_typed=False) == WHOLE


def test_values_inside_a_declared_map_are_read_as_spark_infers_them() -> None:
    """JSON has an object in place of the map, whose values are not read in their types."""
    wanted = suspect(TEXT, FLOAT, is_inside=True, is_in_map=True)
    assert good_type(wanted, facts(), are_typed=True) == WHOLE
