"""What can never fit, and the shape of conversions; tests on Spark show their values."""

from __future__ import annotations

import re

import pytest

from lakewright.schema.conversion import Conversion, convert, first_of
from lakewright.schema.fault import Owner, Reason
from lakewright.schema.rules import ASSIGNED, LENIENT, STRICT, Unit, ValueRules
from lakewright.spec.models.type_text import parse_sql_type

NUMBERS = ["int", "bigint", "double", "float", "decimal(5,2)"]
TIMES = ["date", "timestamp", "timestamp_ntz"]
NESTED = ["array<int>", "map<string, int>", "struct<a: int>"]
ALL = [*NUMBERS, *TIMES, *NESTED, "boolean", "string", "varchar(3)", "binary", "variant"]


def made(source: str, target: str, rules: ValueRules = STRICT, value: str = "v") -> Conversion:
    return convert(value, parse_sql_type(source), parse_sql_type(target), column="v", rules=rules)


def places(found: Conversion) -> list[tuple[str, str, str]]:
    """Return reason, path and type of each fault that a value may have."""
    faults = (found.fault or "").replace("\\'", "'")
    return re.findall(r'"reason":"(\w+)","column":"([^"]*)","type":"([^"]*)"', faults)


@pytest.mark.parametrize(
    ("sources", "targets"),
    [
        (NUMBERS, [*TIMES, *NESTED, "binary"]),
        (TIMES, [*NUMBERS, *NESTED, "boolean", "binary"]),
        (["boolean"], [*NUMBERS, *TIMES, *NESTED, "binary"]),
        (["binary"], [*NUMBERS, *TIMES, *NESTED, "boolean"]),
        (NESTED, [*NUMBERS, *TIMES, "boolean", "binary"]),
        (["array<int>"], NESTED[1:]),
        (["map<string, int>"], ["array<int>", "struct<a: int>"]),
        (["struct<a: int>"], ["array<int>", "struct<b: int>"]),
    ],
)
def test_pairs_of_types_of_which_no_value_fits(sources: list[str], targets: list[str]) -> None:
    for source in sources:
        for target in targets:
            found = made(source, target)
            assert found.is_never, (source, target)
            assert found.sql.startswith("cast(null as "), (source, target)
            ((reason, _, _),) = places(found)
            is_number = source in NUMBERS and target in TIMES
            assert reason == (Reason.NO_UNIT if is_number else Reason.NO_CONVERSION), (source, target)


@pytest.mark.parametrize("target", ALL)
def test_a_text_a_variant_and_nothing_may_be_of_any_type(target: str) -> None:
    assert not made("string", target).is_never
    assert not made("variant", target).is_never
    nothing = made("void", target)
    assert (nothing.fault, nothing.is_never) == (None, False)


@pytest.mark.parametrize("source", ALL)
def test_every_type_has_a_text_and_a_variant(source: str) -> None:
    assert not made(source, "string").is_never
    assert not made(source, "variant").is_never


@pytest.mark.parametrize("kind", ALL)
def test_what_keeps_its_type_is_left_alone_unless_it_has_years(kind: str) -> None:
    found = made(kind, kind)
    if kind != "varchar(3)":
        assert (found.sql, found.fault) == ("v", None)
    bounded = made(kind, kind, ValueRules(is_bounded=True))
    assert (bounded.fault is not None) is (kind in TIMES)


@pytest.mark.parametrize(
    ("unit", "target", "is_never"),
    [
        (Unit.MILLIS, "timestamp", False),
        (Unit.SECONDS, "timestamp_ntz", False),
        (Unit.DAYS, "date", False),
        (Unit.EXCEL, "date", False),
        (Unit.DAYS, "timestamp", True),
        (Unit.NANOS, "date", True),
    ],
)
def test_numbers_are_times_in_a_unit_of_theirs(unit: Unit, target: str, is_never: bool) -> None:
    for number in NUMBERS:
        assert made(number, target, ValueRules(unit=unit)).is_never is is_never, number


def test_faults_inside_name_the_path_and_the_type_there() -> None:
    found = made(
        "struct<l: array<struct<q: string, same: string>>, N: string>",
        "struct<n: bigint, l: array<struct<q: int, same: string, new: bigint>>>",
    )
    assert places(found) == [("not_written_so", "v.n", "bigint"), ("not_written_so", "v.l.q", "int")]
    assert "get(filter(transform(v.`l`, x0 -> if(x0.`q` is not null and " in str(found.fault)
    assert "same" not in str(found.fault)
    assert "'same', x0.`same`, 'new', cast(null as bigint)" in found.sql


def test_each_depth_has_a_variable_of_its_own() -> None:
    found = made("map<string, array<string>>", "map<bigint, array<int>>")
    # The last one is of a map in which two keys become one.
    assert [type_ for _, _, type_ in places(found)] == ["bigint", "int", "map<bigint,array<int>>"]
    assert "map_from_entries(transform(map_entries(v), x0 -> struct(" in found.sql
    assert "transform(x0.value, x1 -> " in found.sql


def test_what_gives_the_type_stands_in_the_fault() -> None:
    for owner in Owner:
        assert f'"owner":"{owner}"' in str(made("string", "int", ValueRules(owner=owner)).fault)


@pytest.mark.parametrize(
    ("source", "target", "sql"),
    [
        (
            "struct<a: int>",
            "struct<A: bigint>",
            "if(v is null, null, named_struct('A', cast(v.`a` as bigint)))",
        ),
        (
            "struct<y: int, x: int>",
            "struct<x: int, y: int, z: date>",
            "if(v is null, null, named_struct('x', v.`x`, 'y', v.`y`, 'z', cast(null as date)))",
        ),
        ("array<int>", "array<bigint>", "transform(v, x0 -> cast(x0 as bigint))"),
        (
            "map<string, int>",
            "map<string, bigint>",
            "map_from_entries(transform(map_entries(v), x0 -> struct(x0.key, cast(x0.value as bigint))))",
        ),
        (
            "struct<a: string, b: int>",
            "map<string, string>",
            "if(v is null, null, map_from_entries(filter(array(struct('a' as key, v.`a` as value), "
            "struct('b' as key, cast(v.`b` as string) as value)), x0 -> x0.value is not null)))",
        ),
        ("struct<a: int>", "string", "to_json(v)"),
        ("array<int>", "variant", "to_variant_object(v)"),
        ("struct<`it's`: int>", "struct<`it's`: bigint>", None),
    ],
)
def test_the_sql_of_nested_values_that_all_fit(source: str, target: str, sql: str | None) -> None:
    found = made(source, target)
    assert found.fault is None
    assert found.strict == found.sql
    if sql is not None:
        assert found.sql == sql


def test_a_name_that_is_no_key_of_a_map_fails_only_rows_that_have_it() -> None:
    found = made("struct<a: int, n: string>", "map<int, int>")
    assert "struct(if(v.`a` is null, null, " in found.sql
    assert [each[1] for each in places(found)] == ["v key", "v key", "v.n", "v"]
    assert "if(v.`a` is null, null, if('a' is not null and " in str(found.fault)


def test_only_assignments_take_fields_by_position_and_only_as_many_without_one_of_the_same_name() -> None:
    one, other, more, mixed = (
        "struct<a: int>",
        "struct<b: bigint>",
        "struct<b: bigint, c: int>",
        "struct<a: int, z: int>",
    )
    by_position = "if(v is null, null, named_struct('b', cast(v.`a` as bigint)))"
    assert made(one, other).is_never
    for rules in (ASSIGNED, LENIENT):
        assert made(one, other, rules).sql == by_position
        assert made(one, more, rules).is_never
        assert "'b', cast(null as bigint)" in made(mixed, "struct<b: bigint, a: int>", rules).sql


def test_what_is_assigned_is_rounded_and_what_is_cast_is_never_checked() -> None:
    assert made("double", "float").fault is not None
    assert made("double", "float", ASSIGNED).fault is None
    assert [each[0] for each in places(made("decimal(9,4)", "decimal(5,2)"))] == ["inexact"]
    assert [each[0] for each in places(made("decimal(9,4)", "decimal(5,2)", ASSIGNED))] == ["out_of_range"]
    assert made("timestamp", "date", ASSIGNED).fault is None
    for source, target in (("string", "int"), ("decimal(9,4)", "decimal(5,2)"), ("timestamp", "date")):
        assert made(source, target, LENIENT).sql == f"cast(v as {target})"


def test_a_text_that_is_no_json_or_other_json_has_reasons_of_its_own() -> None:
    assert places(made("string", "variant")) == [("not_json", "v", "variant")]
    reasons = [each[0] for each in places(made("string", "array<int>"))]
    assert reasons == ["not_json", "not_of_shape", "not_written_so"]


@pytest.mark.parametrize(
    ("source", "target"),
    [("string", "varchar(3)"), ("array<varchar(9)>", "array<varchar(3)>"), ("int", "char(2)")],
)
def test_texts_of_bounded_length_are_measured(source: str, target: str) -> None:
    found = made(source, target)
    ((reason, path, _),) = places(found)
    assert (reason, path) == ("too_long", "v")


def test_a_strict_value_is_converted_once_unless_parts_inside_may_be_null() -> None:
    plain, nested = made("string", "int"), made("array<string>", "array<int>")
    assert plain.strict.startswith(f"coalesce({plain.sql}, if(v is null, null, raise_error(")
    assert nested.strict.startswith(f"if(({nested.fault}) is null, {nested.sql}, raise_error(")


def test_the_first_fault_counts() -> None:
    assert first_of([]) is None
    assert first_of(["a"]) == "a"
    assert first_of(["a", "b"]) == "coalesce(a, b)"
