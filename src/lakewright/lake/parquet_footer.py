"""The footer of a Parquet file, read without Spark: its number of rows and its schema.

The footer is a struct in the compact protocol of Apache Thrift. Only its first fields are decoded: what
follows them, the statistics of each row group, is by far the largest part. Why no library is used:
docs/decisions/011-parquet-footers.md.

Source: the Apache Parquet format, "File format" and "Metadata"; Apache Thrift, "Thrift Compact protocol".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_MAGIC = b"PAR1"
_SPARKS_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"

# Numbers of fields in the struct FileMetaData.
SCHEMA, _ROWS = 2, 3

_TAIL = 1 << 14
"""Bytes at the end that are read first; most footers are shorter."""

# Types of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)

Struct = Mapping[int, Any]
"""The values of a Thrift struct by the numbers of their fields."""


def count_rows(path: Path) -> int:
    """Return the number of rows in a Parquet file.

    Raises:
        ValueError: The file isn't Parquet, or its footer is damaged.
    """
    return _read(path, lambda footer: _field_of(footer, _ROWS, int))


def schema_fingerprint(path: Path) -> str:
    """Return a text that is equal for files whose columns and types are equal, as Spark reads them.

    Raises:
        ValueError: The file isn't Parquet, or its footer is damaged.
    """
    return _read(path, _schema_fingerprint)


def footer_of(path: str, size: int, read: Callable[[int, int], bytes]) -> bytes:
    """Return the footer of a Parquet file, without its length and the magic number.

    Args:
        path: The file, for messages.
        size: Its bytes.
        read: Returns bytes of the file, by the position of the first one and their number.

    Raises:
        ValueError: The file isn't Parquet, or its footer is damaged.
    """
    if size < 12:
        raise ValueError(f"{path} is too short for a Parquet file")
    tail = read(max(size - _TAIL, 0), min(size, _TAIL))
    length = int.from_bytes(tail[-8:-4], "little")
    if tail[-4:] != _MAGIC or length > size - 12:
        raise ValueError(f"{path} isn't a complete Parquet file")
    return tail[-8 - length : -8] if length + 8 <= len(tail) else read(size - 8 - length, length)


def sparks_schema(footer: bytes) -> bytes | None:
    """Return the schema that Spark itself has written into a footer, as text; None if it hasn't."""
    start = footer.find(_SPARKS_SCHEMA)
    if start < 0:
        return None
    # It is the value that follows this key.
    _, text = next(CompactReader(footer, start + len(_SPARKS_SCHEMA)).fields())
    return expect(text, bytes)


def _schema_fingerprint(footer: bytes) -> str:
    digest = hashlib.sha256(repr(_field_of(footer, SCHEMA, list)).encode())
    digest.update(sparks_schema(footer) or b"")
    return digest.hexdigest()


def _read(path: Path, question: Callable[[bytes], T]) -> T:
    with path.open("rb") as file:

        def read(start: int, size: int) -> bytes:
            file.seek(start)
            return file.read(size)

        footer = footer_of(str(path), file.seek(0, 2), read)
    try:
        return question(footer)
    except (AttributeError, IndexError, RecursionError, StopIteration, TypeError, ValueError) as error:
        raise ValueError(f"the footer of {path} is damaged: {error}") from error


def _field_of(footer: bytes, wanted: int, kind: type[T]) -> T:
    """Return a field of the footer, after decoding only the fields before it."""
    for number, value in CompactReader(footer).fields():
        if number == wanted:
            return expect(value, kind)
    raise ValueError(f"field {wanted} is missing")


def expect(value: Any, kind: type[T]) -> T:
    """Return a value of a footer, which must be of a type of Python.

    Raises:
        ValueError: It is of another one.
    """
    if not isinstance(value, kind):
        raise ValueError(f"{kind.__name__} expected, found {type(value).__name__}")
    return value


class CompactReader:
    """Decodes values of Thrift's compact protocol: structs become dicts by the numbers of their fields."""

    def __init__(self, content: bytes, position: int = 0) -> None:
        self._content = content
        self._position = position

    @property
    def position(self) -> int:
        """Where the next value begins."""
        return self._position

    def fields(self) -> Iterator[tuple[int, Any]]:
        """Yield number and value of each field of the struct at the present position."""
        number = 0
        while header := self._byte():
            step, kind = header >> 4, header & 0x0F
            number = number + step if step else self.signed()
            yield number, kind == _TRUE if kind in {_TRUE, _FALSE} else self._value(kind)

    def _value(self, kind: int) -> Any:
        if kind in {_I16, _I32, _I64}:
            return self.signed()
        if kind in {_TRUE, _FALSE, _BYTE}:  # in a list, a boolean takes a byte
            return self._byte()
        if kind in {_BINARY, _DOUBLE}:
            return self.take(8 if kind == _DOUBLE else self._unsigned())
        if kind == _STRUCT:
            return dict(self.fields())
        if kind in {_LIST, _SET}:
            return self._list()
        if kind == _MAP:
            return self._map()
        raise ValueError(f"type {kind} is unknown")

    def _list(self) -> list[Any]:
        header = self._byte()
        count, kind = header >> 4, header & 0x0F
        return [self._value(kind) for _ in self._range(self._unsigned() if count == 0x0F else count)]

    def _map(self) -> list[tuple[Any, Any]]:
        count = self._unsigned()
        kinds = self._byte() if count else 0
        return [(self._value(kinds >> 4), self._value(kinds & 0x0F)) for _ in self._range(count)]

    def _range(self, count: int) -> range:
        if count > len(self._content) - self._position:
            raise ValueError("a list is longer than the footer")
        return range(count)

    def take(self, length: int) -> bytes:
        """Return that many bytes at the present position, which moves on.

        Raises:
            IndexError: There are too few.
            ValueError: The length is negative.
        """
        if length < 0:
            raise ValueError("a length is negative")
        self._position += length
        if self._position > len(self._content):
            raise IndexError("there are too few bytes")
        return self._content[self._position - length : self._position]

    def _byte(self) -> int:
        self._position += 1
        return self._content[self._position - 1]

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 64, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return value
        raise ValueError("a number has more than 64 bits")

    def signed(self) -> int:
        """Return the zigzag number at the present position, which moves on: Thrift and Avro have the same."""
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
