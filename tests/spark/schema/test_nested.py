"""Conversion of structs, lists, maps, JSON texts and variants, in one query each."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakewright.lake.commit import DEPRECATED, STRICT
from lakewright.schema.conversion import convert
from lakewright.schema.fault import Fault
from lakewright.spec.models.type_text import parse_sql_type


@pytest.fixture(scope="module")
def strict_spark(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for key, value in STRICT.items():
        if key not in DEPRECATED:
            session.conf.set(key, value)
    return session


STRUCT = "struct<a: int, b: string>"

CASES: list[tuple[str, str, str, Any]] = [
    # a literal, its type, the target, and the value or the path and the type of the misfit
    ("named_struct('b', 'x', 'A', '5')", "struct<b: string, A: string>", STRUCT, (5, "x")),
    ("named_struct('b', 'x')", "struct<b: string>", STRUCT, (None, "x")),
    ("named_struct('a', 'x', 'b', 'y')", "struct<a: string, b: string>", STRUCT, ("v.a", "int")),
    ("named_struct('c', 1)", "struct<c: int>", STRUCT, ("v", "struct<`a`: int, `b`: string>")),
    ("array('1', '2')", "array<string>", "array<int>", [1, 2]),
    ("array('1', null, 'x')", "array<string>", "array<int>", ("v", "int")),
    ("map('k', '1')", "map<string, string>", "map<string, bigint>", {"k": 1}),
    ("map('k', 'x')", "map<string, string>", "map<string, bigint>", ("v", "bigint")),
    ("named_struct('k', '1', 'l', null)", "struct<k: string, l: string>", "map<string, int>", {"k": 1}),
    ("map('1', 'a', '01', 'b')", "map<string, string>", "map<int, string>", ("v", "map<int,string>")),
    ("array(named_struct('a', 1.50D))", "array<struct<a: double>>", "array<struct<a: int>>", ("v.a", "int")),
    ('\'{"a": 5, "b": "x", "c": 1}\'', "string", STRUCT, (5, "x")),
    ("'{\"a\": 5.0}'", "string", STRUCT, (5, None)),
    ('\'{"a": "5"}\'', "string", STRUCT, (5, None)),
    ("'{\"a\": 5.5}'", "string", STRUCT, ("v.a", "int")),
    ("'[1, 2]'", "string", "array<int>", [1, 2]),
    ("'[1, \"x\"]'", "string", "array<int>", ("v", "int")),
    ("'[1'", "string", "array<int>", ("v", "array<int>")),
    ("'5'", "string", STRUCT, ("v", "struct<`a`: int, `b`: string>")),
    (
        '\'{"k": 1.25, "K": 2}\'',
        "string",
        "map<string, decimal(5,2)>",
        {"k": Decimal("1.25"), "K": Decimal(2)},
    ),
    ("'null'", "string", STRUCT, None),
    ("parse_json('12345678')", "variant", "string", "12345678"),
    ("parse_json('1.5')", "variant", "string", "1.5"),
    ("parse_json('\"007\"')", "variant", "string", "007"),
    ("parse_json('true')", "variant", "string", "true"),
    ("parse_json('{\"a\":[1]}')", "variant", "string", '{"a":[1]}'),
    ("parse_json('\"5.0\"')", "variant", "int", ("v", "int")),
    ("parse_json('5.0')", "variant", "int", 5),
    ("parse_json('null')", "variant", "int", None),
    ("parse_json('\"2024-05-01\"')", "variant", "string", "2024-05-01"),
    ("parse_json('1714557600000')", "variant", "timestamp", ("v", "timestamp")),
    (
        "named_struct('a', 1, 'b', array('x'))",
        "struct<a: int, b: array<string>>",
        "string",
        '{"a":1,"b":["x"]}',
    ),
    ("array(1.5D)", "array<double>", "string", "[1.5]"),
    ("5", "int", STRUCT, ("v", "struct<`a`: int, `b`: string>")),
    ("null", "void", STRUCT, None),
    ("array('abc', 'abcd')", "array<string>", "array<varchar(3)>", ("v", "varchar(3)")),
]


def plain(value: Any) -> Any:
    return tuple(value) if hasattr(value, "__fields__") else value


def test_values_inside_others_are_converted_with_the_path_of_a_misfit(strict_spark: SparkSession) -> None:
    columns = []
    for number, (literal, source, target, _) in enumerate(CASES):
        found = convert("v", parse_sql_type(source), parse_sql_type(target), column="v")
        assert found.fault is not None or found.sql
        inner = f"(select {found.sql} as v from (select {literal} as v))"
        fault = "null" if found.fault is None else found.fault
        columns += [
            f"{inner} as v{number}",
            f"(select {fault} as f from (select {literal} as v)) as f{number}",
        ]
    row = strict_spark.sql(f"select {', '.join(columns)}").first()
    assert row is not None
    for number, (literal, _, target, expected) in enumerate(CASES):
        fault = row[f"f{number}"]
        if isinstance(expected, tuple) and isinstance(expected[0], str):
            assert fault is not None, literal
            assert (Fault.parsed(fault).column, Fault.parsed(fault).type) == expected, literal
        else:
            assert fault is None, literal
            assert plain(row[f"v{number}"]) == expected, (literal, target)
