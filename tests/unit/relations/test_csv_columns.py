"""Which columns a CSV file of a relation has, and what may be wrong with its header."""

from __future__ import annotations

import pytest

from lakewright.relations.file_reading import columns_of_file, header_doubt
from lakewright.spec.models.fields import Field, parse_type

DECLARED = [Field(name=name, type=parse_type(kind)) for name, kind in {"id": "int", "name": "string"}.items()]


@pytest.mark.parametrize(
    ("line", "has_header", "columns"),
    [
        (["id", "name"], True, ["id", "name"]),
        (["ID", "Name"], True, ["id", "name"]),
        (["key", "label"], True, ["id", "name"]),  # renamed by the declaration, as in Flowman
        (["name", "id"], True, ["name", "id"]),
        (["id", "more", "name"], True, ["id", "_c1", "name"]),
        (["name", "name", "id"], True, ["name", "_c1", "id"]),
        (["id", "id"], True, ["id", "name"]),
        (["id"], True, ["id"]),
        (["id", "name", "more"], True, ["id", "name", "_c2"]),
        (["id\u00a0", "name"], True, ["id", "name"]),
        (["name", "id"], False, ["id", "name"]),
        (["7", "x", "y"], False, ["id", "name", "_c2"]),
    ],
)
def test_names_count_where_the_header_has_them_at_other_places(
    line: list[str], has_header: bool, columns: list[str]
) -> None:
    found = columns_of_file(line, DECLARED, has_header=has_header)
    assert [each.name for each in found] == columns


def test_a_name_that_only_looks_like_a_declared_one_is_no_null() -> None:
    with pytest.raises(ValueError, match=r"'id\\u00a0', which only looks like the declared column 'id'"):
        columns_of_file(["name", "id\u00a0"], DECLARED, has_header=True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["id;name"], 'is one column. If `;` separates its columns, set `options: {sep: ";"}`'),
        (["id\tname"], 'is one column. If `\\t` separates its columns, set `options: {sep: "\\t"}`'),
        (["key", "name"], "has key where the schema has id, which is read by position. If it is the same"),
        (["id\u00a0", "name"], "has 'id\\u00a0' where the schema has id"),
        (["id", "name"], None),
    ],
)
def test_what_may_be_wrong_with_a_header(line: list[str], said: str | None) -> None:
    found = header_doubt(line, ",", columns_of_file(line, DECLARED, has_header=True), DECLARED)
    assert found is None if said is None else str(found).startswith(said)


def test_a_header_of_one_column_is_doubted_without_a_schema_too() -> None:
    assert '`options: {sep: "|"}`' in str(header_doubt(["id|name"], ","))
    assert header_doubt(["id"], ",") is None
