"""What a Parquet file's footer tells without Spark: its rows, and whether two files have the same columns.

The footer is a Thrift struct in the compact protocol; its second field is the schema, its third the number of
rows.
Source: the Apache Parquet format, "File format" and "Metadata".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

__all__ = ["Peculiar", "columns_mark", "count_rows", "peculiar_columns"]

T = TypeVar("T")

_MAGIC = b"PAR1"
_SCHEMA_FIELD, _ROWS_FIELD = 2, 3
_NAME_FIELD, _CHILDREN_FIELD, _LOGICAL_TYPE_FIELD = 4, 5, 10
_NULL_FIELD = 11
_TIMESTAMP_FIELD, _IS_UTC_FIELD, _UNIT_FIELD, _NANOS_FIELD = 8, 1, 2, 3
_SPARKS_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_BOOLEANS = (1, 2)
_BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(3, 13)


def count_rows(path: Path) -> int:
    """Return the number of rows in a Parquet file.

    Raises:
        ValueError: The file isn't Parquet, or its footer is damaged.
    """
    return _ask(path, lambda footer: _Compact(footer).integer_field(_ROWS_FIELD))


def columns_mark(path: Path) -> str:
    """Return a text that is the same for files of the same columns and types, as Spark reads them.

    Raises:
        ValueError: The file isn't Parquet, or its footer is damaged.
    """
    return _ask(path, _columns_mark)


@dataclass(frozen=True, slots=True)
class Peculiar:
    """Columns that Spark doesn't read as what they are.

    Attributes:
        nanoseconds: Columns with times in nanoseconds, and whether these are instants in UTC; None if fields
            inside a column hold such times.
        typeless: Columns that hold only nulls and have no type; Spark takes them for numbers.
        typed: All other columns.
    """

    nanoseconds: Mapping[str, bool] | None
    typeless: frozenset[str]
    typed: frozenset[str]


def peculiar_columns(path: Path) -> Peculiar:
    """Return what is peculiar about a file's columns.

    Raises:
        ValueError: The file isn't Parquet, or its footer is damaged.
    """
    return _ask(path, _peculiar_columns)


def _peculiar_columns(footer: bytes) -> Peculiar:
    root, *elements = list(_Compact(footer).schema())
    nanoseconds: dict[str, bool] = {}
    are_inside = False
    tops: list[_Element] = []
    waiting = [root.children]
    for element in elements:
        waiting[-1] -= 1
        if len(waiting) == 1:
            tops.append(element)
        if element.is_utc is not None:
            are_inside = are_inside or len(waiting) > 1
            nanoseconds[element.name] = element.is_utc
        waiting.append(element.children)
        while waiting and not waiting[-1]:
            waiting.pop()
    return Peculiar(
        None if are_inside else nanoseconds,
        typeless=frozenset(top.name for top in tops if top.is_typeless),
        typed=frozenset(top.name for top in tops if not top.is_typeless),
    )


@dataclass(frozen=True, slots=True)
class _Element:
    """A node of the schema; `is_utc` is None unless it holds times in nanoseconds."""

    name: str
    children: int
    is_utc: bool | None
    is_typeless: bool


def _columns_mark(footer: bytes) -> str:
    digest = hashlib.sha256(_Compact(footer).field(_SCHEMA_FIELD))
    start = footer.find(_SPARKS_SCHEMA)
    if start >= 0:
        # Spark takes what it wrote itself for the schema: the text that follows its name.
        digest.update(_Compact(footer, start + len(_SPARKS_SCHEMA)).text_field())
    return digest.hexdigest()


def _ask(path: Path, question: Callable[[bytes], T]) -> T:
    with path.open("rb") as file:
        footer = _footer(file, path)
    try:
        return question(footer)
    except (IndexError, RecursionError) as error:
        raise ValueError(f"the footer of {path} is damaged") from error


def _footer(file: BinaryIO, path: Path) -> bytes:
    size = file.seek(0, 2)
    if size < 12:
        raise ValueError(f"{path} is too short for a Parquet file")
    file.seek(size - 8)
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length > size - 12:
        raise ValueError(f"{path} isn't a whole Parquet file")
    file.seek(size - 8 - length)
    return file.read(length)


class _Compact:
    """As much of Thrift's compact protocol as finding one field needs."""

    def __init__(self, content: bytes, position: int = 0) -> None:
        self.content = content
        self.position = position

    def integer_field(self, wanted: int) -> int:
        kind = self._find(wanted)
        if kind not in {_I16, _I32, _I64}:
            raise ValueError(f"field {wanted} of the footer is no number")
        return self._signed()

    def field(self, wanted: int) -> bytes:
        """Return a field as it is written."""
        kind = self._find(wanted)
        start = self.position
        self._skip(kind)
        return self.content[start : self.position]

    def schema(self) -> Iterator[_Element]:
        """Yield the nodes of the schema, each before those below it."""
        self._find(_SCHEMA_FIELD)
        header = self._byte()
        count = header >> 4
        for _ in range(self._unsigned() if count == 0x0F else count):
            yield self._element()

    def _element(self) -> _Element:
        name, children, is_utc, is_typeless = "", 0, None, False
        for number, kind in self._fields():
            if number == _NAME_FIELD and kind == _BINARY:
                length = self._unsigned()
                name = self.content[self.position : self.position + length].decode("utf-8", "replace")
                self.position += length
            elif number == _CHILDREN_FIELD and kind == _I32:
                children = self._signed()
            elif number == _LOGICAL_TYPE_FIELD and kind == _STRUCT:
                is_utc, is_typeless = self._logical_type()
            else:
                self._skip(kind)
        return _Element(name, children, is_utc, is_typeless)

    def _logical_type(self) -> tuple[bool | None, bool]:
        """Read a logical type: whether times in nanoseconds are instants, and whether it has nulls only.

        The first is None if it is another one.
        """
        found, is_null = None, False
        for number, kind in self._fields():
            is_null = is_null or number == _NULL_FIELD
            if number != _TIMESTAMP_FIELD:
                self._skip(kind)
                continue
            is_utc, is_nano = False, False
            for part, inner in self._fields():
                if part == _IS_UTC_FIELD:
                    is_utc = inner == _BOOLEANS[0]
                elif part == _UNIT_FIELD:
                    for unit, empty in self._fields():
                        is_nano = unit == _NANOS_FIELD
                        self._skip(empty)
                else:
                    self._skip(inner)
            found = is_utc if is_nano else None
        return found, is_null

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and kind of each field of a struct; whoever asks reads its value."""
        number = 0
        while header := self._byte():
            step, kind = header >> 4, header & 0x0F
            number = number + step if step else self._signed()
            yield number, kind

    def text_field(self) -> bytes:
        """Return the text that is the next field."""
        if self._byte() & 0x0F != _BINARY:
            raise ValueError("a text was expected in the footer")
        length = self._unsigned()
        return self.content[self.position : self.position + length]

    def _find(self, wanted: int) -> int:
        """Go to the beginning of a field's value, and return its kind."""
        for number, kind in self._fields():
            if number == wanted:
                return kind
            self._skip(kind)
        raise ValueError(f"the footer has no field {wanted}")

    def _byte(self) -> int:
        self.position += 1
        return self.content[self.position - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _skip(self, kind: int) -> None:
        if kind in {_I16, _I32, _I64}:
            self._unsigned()
        elif kind in {_BYTE, _DOUBLE}:
            self.position += 1 if kind == _BYTE else 8
        elif kind == _BINARY:
            length = self._unsigned()
            self.position += length
        elif kind in {_LIST, _SET}:
            self._skip_list()
        elif kind == _STRUCT:
            self._skip_struct()
        elif kind == _MAP:
            self._skip_map()
        elif kind not in _BOOLEANS:
            raise ValueError(f"unknown type {kind} in a Parquet footer")

    def _skip_list(self) -> None:
        header = self._byte()
        count, kind = header >> 4, header & 0x0F
        self._skip_elements(self._unsigned() if count == 0x0F else count, kind)

    def _skip_elements(self, count: int, *kinds: int) -> None:
        if count > len(self.content) - self.position:
            raise ValueError("a list in a Parquet footer is longer than the footer")
        for _ in range(count):
            for kind in kinds:
                if kind in _BOOLEANS:
                    self.position += 1
                else:
                    self._skip(kind)

    def _skip_map(self) -> None:
        if count := self._unsigned():
            kinds = self._byte()
            self._skip_elements(count, kinds >> 4, kinds & 0x0F)

    def _skip_struct(self) -> None:
        while header := self._byte():
            if not header >> 4:
                self._unsigned()
            self._skip(header & 0x0F)
