"""How files are written: one value, of an entity's format and of a relation's options."""

from __future__ import annotations

from typing import Any

import pytest

from lakewright.reader.source import WHOLE_TIMES, Form, form_of_options, form_of_slices, writing_options
from lakewright.spec.models.entity_settings import EntitySettings

CSV = {"header": "true", "sep": ",", "quote": '"', "escape": '"'}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        ({"bronze_format": "CSV"}, CSV),
        ({"format": "csv"}, CSV),
        ({"format": {"kind": "csv", "separator": ";"}}, CSV | {"sep": ";"}),
        ({"bronze_format": "csv", "format": {"separator": "tab"}}, CSV | {"sep": "\t"}),
        (
            {"format": {"kind": "csv", "header": "no", "quote": ""}},
            CSV | {"header": "false", "quote": "", "escape": "\\"},
        ),
        ({"format": {"kind": "csv", "quote": "'"}}, CSV | {"quote": "'", "escape": "'"}),
        ({"format": {"kind": "csv", "encoding": "latin-1"}}, CSV | {"encoding": "ISO-8859-1"}),
        ({"format": {"kind": "json", "encoding": "UTF-16LE"}}, {"encoding": "utf-16-le", "lineSep": "\n"}),
        ({"format": {"kind": "json", "encoding": "utf8"}}, {}),
    ],
)
def test_what_spark_is_given_for_slices(settings: dict[str, Any], expected: dict[str, str]) -> None:
    assert form_of_slices(EntitySettings.model_validate(settings).slice_format).options == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Form("csv", header=False)),
        ({"HEADER": "True", "delimiter": "\\t"}, Form("csv", separator="\t")),
        ({"quote": "'", "comment": "#"}, Form("csv", header=False, quote="'", escape="'", comment="#")),
        ({"quote": "", "lineSep": "\r"}, Form("csv", header=False, quote="", escape="", line_end="\r")),
        ({"escape": "\\", "charset": "cp037"}, Form("csv", header=False, escape="\\", encoding="cp037")),
    ],
)
def test_the_form_of_a_relation(options: dict[str, str], expected: Form) -> None:
    found = form_of_options("csv", options)
    assert form_of_options("csv", {}).options["header"] == "false"
    assert found.options == expected.options
    assert (found.comment, found.line_end, found.escape) == (
        expected.comment,
        expected.line_end,
        expected.escape,
    )


@pytest.mark.parametrize(
    ("encoding", "has_plain_bytes", "is_of_spark"),
    [
        ("utf-8", True, True),
        ("latin-1", True, True),
        ("windows-1252", True, False),
        ("utf-16-le", False, False),
        ("UTF-16", False, True),
        ("shift_jis", False, False),  # its second bytes may be those of `|`
        ("cp037", False, False),
        ("x-only-java", True, False),
    ],
)
def test_encodings(encoding: str, has_plain_bytes: bool, is_of_spark: bool) -> None:
    form = Form("csv", encoding=encoding)
    assert (form.has_plain_bytes, form.is_of_spark) == (has_plain_bytes, is_of_spark)


def test_files_are_written_as_they_are_read() -> None:
    spaces = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
    always = {**WHOLE_TIMES, **spaces}
    assert writing_options("csv", {}) == {"escape": '"', **always}
    assert writing_options("csv", {"Quote": "'"}) == {"Quote": "'", "escape": "'", **always}
    assert writing_options("csv", {"Escape": "\\"}) == {"Escape": "\\", **always}
    own = {"TimestampFormat": "yyyy", "timestampntzformat": "yyyy"}
    assert (writing_options("json", own), writing_options("orc", {})) == (own, {})
