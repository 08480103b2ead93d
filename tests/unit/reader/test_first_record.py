"""The first record of a CSV file."""

from __future__ import annotations

from typing import Any

import pytest

from lakewright.reader.lines import FirstRecord, first_record
from lakewright.reader.source import Form


@pytest.mark.parametrize(
    ("given", "text", "values", "is_alone"),
    [
        ({}, "id,name\n1,a\n", ("id", "name"), False),
        ({}, "\ufeffid,name\r\n\r\n", ("id", "name"), True),
        ({"separator": ";"}, "id; name\r1;a\r", ("id", " name"), False),
        ({"separator": "||"}, "id||a|b\n", ("id", "a|b"), True),
        ({}, '"a,b", "c"\n', ("a,b", ' "c"'), True),
        ({}, '"a\r\nb","c""d" \n1,2\n', ("a\r\nb", 'c"d'), False),
        ({}, '"a"b,5" c\n', ('"a"b', '5" c'), True),
        ({"escape": "\\"}, '"a\\"b\\\\",c\n', ('a"b\\', "c"), True),
        ({"quote": "", "escape": ""}, '"a,b"\n', ('"a', 'b"'), True),
        ({"quote": "'", "escape": "'"}, "'it''s',\"b\"\n", ("it's", '"b"'), True),
        ({"comment": "#"}, "# made by x, y\n \n\nid\n", ("id",), True),
        ({"line_end": "|"}, "id,na\nme|1,2|", ("id", "na\nme"), False),
        ({}, "id,,\n", ("id", "", ""), True),
        ({}, "\n \r\n", (), True),
        ({}, "", (), True),
    ],
)
def test_the_first_record(given: dict[str, Any], text: str, values: tuple[str, ...], is_alone: bool) -> None:
    found = first_record(text, Form("csv", **given), is_whole=True)
    assert found is not None
    assert (found.values, found.is_alone) == (values, is_alone)


@pytest.mark.parametrize("text", ["", "\n", "id,na", "id,name", 'id,"na"', "id,"])
def test_a_record_may_end_later(text: str) -> None:
    assert first_record(text, Form("csv"), is_whole=False) is None
    assert first_record(f"{text}\nx", Form("csv"), is_whole=False) != FirstRecord((), is_alone=True)
