"""Reading of Avro files: those of one source may have different schemas, of which Spark takes the first one.

Source: the Apache Avro specification, "Object container files"; the rules of reading, "Inference".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.lake.parquet_footer import CompactReader
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
    reader = CompactReader(content, len(_MAGIC))
    while count := reader.signed():
        if count < 0:  # the bytes of the block follow
            reader.signed()
        for _ in range(abs(count)):
            key, value = reader.take(reader.signed()), reader.take(reader.signed())
            if key == b"avro.schema":
                return value
    raise ValueError("the schema is missing")
