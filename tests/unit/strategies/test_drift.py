"""`processing-strategies.md`, "Schema Drift": a slice's columns beside its table's."""

from __future__ import annotations

from typing import Any

import pytest

from lakewright.errors import SchemaDriftError
from lakewright.schema.diff import Change, Difference
from lakewright.schema.types import Type
from lakewright.spec.models.type_text import parse_sql_type
from lakewright.strategies.drift import Drift, align
from lakewright.transform.typed_columns import target_type


def columns(**kinds: str) -> dict[str, Type]:
    return {name: parse_sql_type(kind) for name, kind in kinds.items()}


def changes(drift: Drift) -> list[tuple[str, str]]:
    return [(each.change.value, each.path) for each in drift.differences]


@pytest.mark.parametrize(
    ("table", "slice_", "is_widened"),
    [
        ("int", "bigint", True),
        ("smallint", "int", True),
        ("bigint", "int", False),
        ("float", "double", True),
        ("double", "float", False),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(12,4)", True),
        ("decimal(10,2)", "decimal(10,4)", False),
        ("string", "int", False),
        ("date", "string", False),
        ("int", "decimal(12,2)", False),
    ],
)
def test_a_type_is_widened_where_a_table_can_be_else_the_value_is_converted(
    table: str, slice_: str, is_widened: bool
) -> None:
    found = align(columns(v=slice_), columns(v=table), policy="evolve", fixed=[])

    assert found.widens is is_widened
    assert found.evolves is is_widened
    assert found.drift.retyped == {"v": (table, slice_)}
    own, known = parse_sql_type(slice_), parse_sql_type(table)
    assert found.drift.differences == (Difference(Change.RETYPED, "v", own, known),)
    assert (found.columns["v"] == "`v`") is is_widened


@pytest.mark.parametrize(
    ("policy", "is_fixed", "expected"),
    [("evolve", False, "bigint"), ("evolve", True, "int"), ("ignore", False, "int"), ("fail", False, "int")],
)
def test_a_table_is_widened_only_where_it_may_evolve(policy: str, is_fixed: bool, expected: str) -> None:
    own, known = parse_sql_type("bigint"), parse_sql_type("int")
    assert target_type(known, own, policy=policy, is_fixed=is_fixed).ddl == expected


def test_columns_that_come_and_go() -> None:
    found = align(
        columns(id="bigint", new="string"), columns(id="bigint", old="string"), policy="evolve", fixed=[]
    )
    assert (found.drift.added, found.drift.removed) == (("new",), ("old",))
    assert list(found.columns) == ["id", "old", "new"]
    assert found.columns["old"] == "cast(null as string)"
    assert (found.evolves, found.widens) == (True, False)
    assert changes(found.drift) == [("new", "new"), ("missing", "old")]
    assert found.drift.as_json() == {"added": ["new"], "removed": ["old"], "retyped": {}}


@pytest.mark.parametrize(
    ("policy", "expected"), [("evolve", ["id", "new"]), ("ignore", ["id"]), ("fail", SchemaDriftError)]
)
def test_policies(policy: str, expected: Any) -> None:
    slice_, table = columns(id="bigint", new="string"), columns(id="bigint")
    if expected is SchemaDriftError:
        with pytest.raises(SchemaDriftError) as raised:
            align(slice_, table, policy=policy, fixed=[])
        assert raised.value.details["added"] == ["new"]
    else:
        found = align(slice_, table, policy=policy, fixed=[])
        assert list(found.columns) == expected
        assert found.evolves is (policy == "evolve")


def test_names_match_in_any_case() -> None:
    found = align(columns(Value="string"), columns(value="string"), policy="evolve", fixed=[])
    assert (dict(found.columns), bool(found.drift)) == ({"value": "`Value`"}, False)


def test_fixed_columns_keep_their_type() -> None:
    found = align(columns(k="bigint"), columns(k="int"), policy="evolve", fixed=["K"])
    assert not found.widens
    assert "try_cast(`k` as int)" in found.columns["k"]
    assert '"owner":"table"' in found.columns["k"]


def test_what_was_delivered_differs_though_it_is_converted_already() -> None:
    """A slice that is converted to the table's types would show no drift."""
    own = columns(id="bigint", n="int")
    found = align(own, own, policy="evolve", fixed=[], delivered=columns(n="string"))
    assert found.columns == {"id": "`id`", "n": "`n`"}
    assert found.drift.retyped == {"n": ("int", "string")}
    assert (found.evolves, found.widens) == (False, False)
    with pytest.raises(SchemaDriftError):
        align(own, own, policy="fail", fixed=[], delivered=columns(n="string"))


def test_fields_inside_are_matched_by_name() -> None:
    table = columns(s="struct<a: int, b: string>")
    slice_ = columns(s="struct<c: string, a: bigint>")

    found = align(slice_, table, policy="evolve", fixed=[])

    assert (found.evolves, found.widens) == (True, True)
    assert found.columns["s"] == (
        "if(`s` is null, null, named_struct('a', `s`.`a`, 'b', cast(null as string), 'c', `s`.`c`))"
    )
    ignored = align(slice_, table, policy="ignore", fixed=[])
    assert (ignored.evolves, "'c'" in ignored.columns["s"]) == (False, False)


def test_elements_are_widened_as_columns_are() -> None:
    found = align(columns(v="array<bigint>"), columns(v="array<int>"), policy="evolve", fixed=[])
    assert (found.widens, found.columns) == (True, {"v": "`v`"})
    assert found.drift.retyped == {"v": ("array<int>", "array<bigint>")}
    assert changes(found.drift) == [("retyped", "v")]


def test_a_field_more_evolves_a_table_but_widens_nothing() -> None:
    table, slice_ = columns(s="struct<a: int>"), columns(s="struct<a: int, b: date>")
    found = align(slice_, table, policy="evolve", fixed=[])
    assert (found.evolves, found.widens) == (True, False)


def test_what_has_no_way_into_the_tables_type_is_refused() -> None:
    with pytest.raises(SchemaDriftError) as raised:
        align(columns(v="array<string>"), columns(v="int"), policy="evolve", fixed=[])
    assert raised.value.details == {"column": "v", "slice": "array<string>", "table": "int"}


def test_a_difference_inside_a_column_is_named_by_its_path() -> None:
    """A warning about one field does not repeat the whole type of its column."""
    table = columns(
        buyer="struct<id: bigint, home: struct<city: string, zip: string>>",
        lines="array<struct<sku: string, qty: bigint>>",
    )
    slice_ = columns(
        buyer="struct<id: string, home: struct<City: string, country: string>>",
        lines="array<struct<qty: bigint, sku: string, discount: double>>",
    )
    drift = align(slice_, table, policy="evolve", fixed=()).drift
    assert changes(drift) == [
        ("new", "buyer.home.country"),
        ("new", "lines.discount"),
        ("missing", "buyer.home.zip"),
        ("retyped", "buyer.id"),
    ]
    assert drift.messages == (
        "column 'buyer.home.country' is new",
        "column 'lines.discount' is new",
        "column 'buyer.home.zip' is missing; it is null in what is written",
        "column 'buyer.id' is string in the slice, bigint in the table",
    )
    assert set(drift.retyped) == {"buyer", "lines"}
    assert (drift.added, drift.removed) == ((), ())


def test_a_new_column_that_is_left_out_is_told_as_that() -> None:
    table = columns(id="bigint", home="struct<city: string, x: int>")
    slice_ = columns(id="bigint", home="struct<zip: string, x: int>", w="bigint")
    drift = align(slice_, table, policy="ignore", fixed=()).drift
    assert drift.leaves_out
    assert drift.messages == (
        "column 'w' is new, and left out (schema_drift: ignore)",
        "column 'home.zip' is new, and left out (schema_drift: ignore)",
        "column 'home.city' is missing; it is null in what is written",
    )
