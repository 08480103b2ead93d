"""Reading of Avro files: those of one source may have different schemas, of which Spark takes the first one.

Source: the Apache Avro specification, "Object container files"; the rules of reading, "Inference".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.lake.paths import FileEntry
from lakewright.reader.groups import read_parts
from lakewright.reader.source import Reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_MAGIC = b"Obj\x01"
_HEADER = 1 << 16
_LARGEST_HEADER = 1 << 24


def read_avro(reading: Reading) -> DataFrame:
    """Return the rows of Avro files, lazily; columns of several files are merged by name.

    Raises:
        LakewrightError: A file is no Avro file.
        LakewrightError: A column has types that no type holds.
    """
    source, by_schema = reading.source, dict[bytes, list[FileEntry]]()
    if len(source.files) > 1:
        firsts = source.first_bytes(reading.system.begin, _HEADER)
        for file in source.files:
            by_schema.setdefault(_schema_of(reading, file, firsts[file.name]), []).append(file)
    return reading.load() if len(by_schema) < 2 else read_parts(reading, by_schema.values())


def _schema_of(reading: Reading, file: FileEntry, first: bytes) -> bytes:
    path = reading.source.path(file)
    try:
        try:
            return schema_text(first)
        except IndexError:
            return schema_text(reading.system.begin(path, _LARGEST_HEADER))
    except (IndexError, ValueError) as error:
        why = f"{path} is no complete Avro file"
        raise reading.source.error(why, "Deliver it again", may_skip=True) from error


def schema_text(content: bytes) -> bytes:
    r"""Return the schema in the header of an Avro file, of which the first bytes are given.

    Raises:
        IndexError: There are too few bytes.
        ValueError: It is no Avro file.

    Example:
        >>> schema_text(b'Obj\x01\x02\x16avro.schema\x08"int\x00')
        b'"int'
    """
    if not content.startswith(_MAGIC):
        raise ValueError("the magic number is missing")
    position = len(_MAGIC)

    def number() -> int:
        nonlocal position
        value = 0
        for shift in range(0, 64, 7):
            byte = content[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
        raise ValueError("a number has more than 64 bits")

    def text() -> bytes:
        nonlocal position
        length = number()
        if length < 0:
            raise ValueError("a length is negative")
        position += length
        if position > len(content):
            raise IndexError("there are too few bytes")
        return content[position - length : position]

    while count := number():
        if count < 0:  # the bytes of the block follow
            number()
        for _ in range(abs(count)):
            key, value = text(), text()
            if key == b"avro.schema":
                return value
    raise ValueError("the schema is missing")
