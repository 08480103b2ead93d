"""The headers of Avro files."""

from __future__ import annotations

import pytest

from lakewright.reader.avro import schema_text


def number(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def text(value: bytes) -> bytes:
    return number(len(value)) + value


SCHEMA = b'{"type": "record", "name": "r", "fields": []}' * 9
ENTRIES = text(b"avro.codec") + text(b"null") + text(b"avro.schema") + text(SCHEMA)


@pytest.mark.parametrize("count", [number(2), number(-2) + number(len(ENTRIES))])
def test_the_schema_is_found_in_the_header(count: bytes) -> None:
    whole = b"Obj\x01" + count + ENTRIES + number(0) + b"s" * 16
    assert schema_text(whole) == SCHEMA
    for cut in (5, 20, 60):
        with pytest.raises(IndexError):
            schema_text(whole[:cut])


@pytest.mark.parametrize("content", [b"", b"PAR1", b"Obj\x01\x00", b"Obj\x01\x02\x01"])
def test_other_files_are_none_of_avro(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"missing|negative"):
        schema_text(content)
