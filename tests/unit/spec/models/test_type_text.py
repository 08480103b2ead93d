"""Types of columns in the forms that projects write."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lakewright.spec.expressions.values import ValueType
from lakewright.spec.models.fields import Field, PartitionField, parse_type


@pytest.mark.parametrize(
    ("declared", "ddl"),
    [
        ("string", "string"),
        ("TEXT", "string"),
        ("Integer", "int"),
        ("long", "bigint"),
        ("BIGINT", "bigint"),
        ("short", "smallint"),
        ("tinyint", "tinyint"),
        ("bool", "boolean"),
        ("float", "float"),
        ("double", "double"),
        ("date", "date"),
        ("timestamp", "timestamp"),
        ("timestamp_ntz", "timestamp_ntz"),
        ("binary", "binary"),
        ("decimal", "decimal(38,18)"),
        ("DECIMAL( 10 , 2 )", "decimal(10,2)"),
        ("decimal(5)", "decimal(5,0)"),
        ("varchar(20)", "varchar(20)"),
        ("CHAR(2)", "char(2)"),
        ("interval", "interval"),
        ("INTERVAL  Day To Second", "interval day to second"),
        (
            "struct<i: interval year to month, day: interval hour>",
            "struct<`i`: interval year to month, `day`: interval hour>",
        ),
        ("array<string>", "array<string>"),
        ("map<string, array<long>>", "map<string,array<bigint>>"),
        (
            "struct<a: int, b string not null, `c d`: date>",
            "struct<`a`: int, `b`: string NOT NULL, `c d`: date>",
        ),
        ("struct<>", "struct<>"),
        ({"kind": "array", "elementType": "long"}, "array<bigint>"),
        (
            {"kind": "map", "keyType": "string", "valueType": {"kind": "array", "elementType": "int"}},
            "map<string,array<int>>",
        ),
        (
            {"kind": "struct", "fields": [{"name": "a", "type": "int", "nullable": "false"}]},
            "struct<`a`: int NOT NULL>",
        ),
    ],
)
def test_a_type_is_read_in_any_case_and_form(declared: Any, ddl: str) -> None:
    found = parse_type(declared)
    assert found.ddl == ddl
    assert parse_type(found.ddl).ddl == ddl


@pytest.mark.parametrize(
    "declared",
    [
        *(
            "",
            "strin",
            "decimal(39,2)",
            "decimal(5,6)",
            "decimal(0)",
            "varchar",
            "varchar(0)",
            "array",
            "array<>",
        ),
        *(
            "array<string",
            "map<string>",
            "struct<a>",
            "interval day to year",
            "interval week",
            "int int",
            "int; drop table",
            "array<" * 150 + "int" + ">" * 150,
        ),
        "x" * 50_000,
        {"kind": "list"},
        {"kind": "array"},
        {"kind": "array", "elementType": "int", "nullable": "true"},
        None,
        ["int"],
    ],
)
def test_what_is_no_type_is_refused(declared: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_type(declared)


def test_a_nested_map_of_types_is_bounded() -> None:
    declared: dict[str, Any] = {"kind": "array", "elementType": "int"}
    for _ in range(150):
        declared = {"kind": "array", "elementType": declared}
    with pytest.raises(ValueError, match="nested more than"):
        parse_type(declared)


def test_a_field_reads_texts_and_quotes_its_name() -> None:
    field = Field.model_validate({"name": "a`b", "type": "LONG", "nullable": "false", "renamedFrom": "x"})
    assert (field.ddl, field.renamed_from) == ("`a``b` bigint NOT NULL", "x")
    assert Field(name="x", type=parse_type("int")).nullable


def test_a_field_needs_name_and_type() -> None:
    with pytest.raises(ValidationError) as caught:
        Field.model_validate({"nam": "x"})
    assert {error["type"] for error in caught.value.errors()} == {"missing", "unknown_key"}


def test_a_partition_column_has_a_type_for_its_values() -> None:
    column = PartitionField.model_validate({"name": "month", "type": "varchar(7)"})
    assert column.value_type is ValueType.STRING
    assert not column.as_field().nullable
