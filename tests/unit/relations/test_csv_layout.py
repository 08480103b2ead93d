"""Which columns a CSV file of a relation has, found in its first bytes without Spark."""

from __future__ import annotations

import bz2
import gzip

import pytest

from lakewright.relations.csv_layout import CsvForm, columns_of_file, first_lines, grouped
from lakewright.relations.file_reading import header_doubt
from lakewright.spec.models.fields import Field, parse_type

DECLARED = [Field(name=name, type=parse_type(kind)) for name, kind in {"id": "int", "name": "string"}.items()]


def form(**options: str) -> CsvForm:
    found = CsvForm.of(options)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("options", "name", "content", "line"),
    [
        ({"header": "TRUE"}, "a.csv", b"id,name\n1,a\n", ("id", "name")),
        ({"sep": ";"}, "a.csv", b"\xef\xbb\xbfid; name\r\n1;a\r\n", ("id", "name")),
        ({"delimiter": "\\t"}, "a.csv", b"id\tname", ("id", "name")),
        ({}, "a.csv", b'"a,b",c\n', ("a,b", "c")),
        ({"quote": ""}, "a.csv", b'"a,b"\n', ('"a', 'b"')),
        ({"comment": "#"}, "a.csv", b"# made by x, y\n\nid\n", ("id",)),
        ({"encoding": "latin1"}, "a.csv", "größe,id\n".encode("latin1"), ("größe", "id")),
        ({}, "a.csv.gz", gzip.compress(b"id,name\n" * 9, mtime=0), ("id", "name")),
        ({}, "a.csv.bz2", bz2.compress(b"id,name\n" * 9), ("id", "name")),
        ({}, "a.csv.zst", b"(\xb5/\xfd", None),
        ({}, "a.csv.gz", b"no gzip", None),
        ({}, "a.csv", b"\n\n", None),
        ({}, "a.csv", b"x" * (1 << 20), None),
        ({"encoding": "no such"}, "a.csv", b"id\n", None),
    ],
)
def test_the_first_line_is_found(
    options: dict[str, str], name: str, content: bytes, line: tuple[str, ...] | None
) -> None:
    assert first_lines([name], form(**options), lambda _path, size: content[:size]) == [line]


@pytest.mark.parametrize("options", [{"sep": "||"}, {"lineSep": "\r"}])
def test_forms_that_only_spark_reads_are_left_to_it(options: dict[str, str]) -> None:
    assert CsvForm.of(options) is None


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
        (["name", "id"], False, ["id", "name"]),
        (["7", "x", "y"], False, ["id", "name", "_c2"]),
    ],
)
def test_names_count_where_the_header_has_them_at_other_places(
    line: list[str], has_header: bool, columns: list[str]
) -> None:
    found = columns_of_file(line, DECLARED, has_header=has_header)
    assert [each.name for each in found] == columns


def test_files_with_the_same_columns_are_read_together() -> None:
    lines = [("id", "name"), ("name", "id"), ("ID", "NAME"), None]
    paths = ["a", "b", "c", "d"]
    declared = grouped(paths, lines, DECLARED, form(header="true"))
    assert [each.paths for each in declared] == [["a", "c"], ["b"], ["d"]]
    inferred = grouped(paths, lines, None, form(header="true"))
    assert [(each.columns, each.paths) for each in inferred] == [
        (None, ["a"]),
        (None, ["b"]),
        (None, ["c"]),
        (None, ["d"]),
    ]


def test_a_header_with_a_name_twice_is_refused_unless_columns_are_declared() -> None:
    """Spark would call them id0 and ID1."""
    lines = [("id", "", "ID", "")]
    with pytest.raises(ValueError, match="the header of a has the column 'ID' twice"):
        grouped(["a"], lines, None, form(header="true"))
    assert len(grouped(["a"], lines, None, form())) == 1
    (group,) = grouped(["a"], [("id", "id")], DECLARED, form(header="true"))
    assert group.renamed == ("id", "name")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            ("id;name",),
            'is one column. If `;` separates its columns, set `options: {sep: ";"}`',
        ),
        (
            ("id\tname",),
            'is one column. If `\\t` separates its columns, set `options: {sep: "\\t"}`',
        ),
        (("key", "name"), "has key where the schema has id, which is read by position. If it is the same"),
        (("id", "name"), None),
    ],
)
def test_what_may_be_wrong_with_a_header_is_told(line: tuple[str, ...], told: str | None) -> None:
    (group,) = grouped(["a"], [line], DECLARED, form(header="true"))
    found = header_doubt(group, DECLARED)
    assert found is None if told is None else str(found).startswith(told)


def test_a_header_of_one_column_is_doubted_without_a_schema_too() -> None:
    (group,) = grouped(["a"], [("id|name",)], None, form(header="true"))
    assert '`options: {sep: "|"}`' in str(header_doubt(group, None))
