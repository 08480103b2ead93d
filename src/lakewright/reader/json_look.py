"""The kind of the records in JSON files, found by their bytes, before Spark parses them.

Records that one program writes are alike: their fields have one order, and their values few forms. A regular
expression made of the fields that were seen matches such lines in a third of the time in which Spark infers
types; a line that it does not match adds what is new in it. So the kind is known exactly: no text is taken
for what has several kinds or only nulls, and each number is one that a double holds with all its digits.

The look is bounded. It finds nothing in files that are too large, are not on this machine, or have lines of
other forms; Spark's variants show the kind of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import IO, Any, NoReturn

from lakewright.lake.file_probe import DAMAGED, is_near, opened
from lakewright.lake.paths import local_path
from lakewright.reader.json_types import NOTHING, merged
from lakewright.reader.source import Source
from lakewright.schema.types import TEXT, Array, Decimal, Scalar, Struct, StructField, Type

__all__ = ["look_at"]

_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 26
_MOST_BYTES = 1 << 30
"""Bytes of the files of a source that are looked at, which take about ten seconds."""

_MOST_FIELDS = 5_000
"""Fields in all expressions that are made for a source; objects with ever new fields have more."""

_LINES_AT_ONCE = 100
"""Lines that are parsed where one has something new."""

_MOST_LEVELS = 50
_WHOLE, _FRACTION, _FLOAT = Scalar("bigint"), Decimal(15, 15), Scalar("double")
_BOOLEAN = Scalar("boolean")
_COMMA, _COLON = r"[ \t]*+,[ \t]*+", r"[ \t]*+:[ \t]*+"
_INTEGER, _END = r"(?:0|[1-9][0-9]*+)", r"(?![0-9.eE])"

_FORMS: Mapping[Type, str] = {
    TEXT: r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"',
    _WHOLE: rf"-?(?:0|[1-9][0-9]{{0,14}}+){_END}",
    _FRACTION: rf"-?(?=[0-9.]{{3,16}}+{_END}){_INTEGER}\.[0-9]++{_END}",
    _FLOAT: rf"-?(?=[0-9.]{{1,15}}+[eE]){_INTEGER}(?:\.[0-9]++)?+[eE][+-]?[0-9]{{1,2}}+{_END}",
    _BOOLEAN: r"(?:true|false)",
    NOTHING: r"null",
}
"""How values of each kind are written, from the most frequent form to the rarest.

Numbers have at most 15 digits and a small exponent, so that a double always gives them back.
"""


@dataclass(slots=True)
class _Seen:
    """What the values at one place are.

    Attributes:
        leaves: The kinds of those that have no others inside.
        fields: The fields of objects; None if no value is an object.
        before: For each field, those that an object had directly before it.
        item: The elements of lists; None if no value is a list.
    """

    leaves: set[Type] = field(default_factory=set)
    fields: dict[str, _Seen] | None = None
    before: dict[str, dict[str, None]] = field(default_factory=dict)
    item: _Seen | None = None

    def add(self, value: object, levels: int = _MOST_LEVELS) -> None:
        """Add a value, whose objects are lists of pairs in a `_Pairs`.

        Raises:
            ValueError: It has too many levels, a name twice, or none.
        """
        if not levels:
            raise ValueError("too many levels")
        if isinstance(value, _Pairs):
            self._add_fields(value.pairs, levels)
        elif isinstance(value, list):
            self.item = self.item or _Seen()
            for each in value:
                self.item.add(each, levels - 1)
        else:
            self.leaves.add(value if isinstance(value, Scalar | Decimal) else _kind_of(value))

    def _add_fields(self, pairs: list[tuple[str, object]], levels: int) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names) or not all(names):
            raise ValueError("a name is there twice, or empty")
        self.fields = {} if self.fields is None else self.fields
        for previous, (name, value) in zip([None, *names], pairs, strict=False):
            before = self.before.setdefault(name, {})
            if previous is not None:
                before[previous] = None
            self.fields.setdefault(name, _Seen()).add(value, levels - 1)

    @property
    def size(self) -> int:
        """The number of fields, those inside of others among them."""
        inside = [*(self.fields or {}).values(), *([self.item] if self.item else [])]
        return len(inside) + sum(each.size for each in inside)

    @property
    def kind(self) -> Type:
        """The kind of all values, as Spark's `schema_of_variant_agg` shows it; only decimals are longer."""
        kinds = [*self.leaves]
        if self.fields is not None:
            kinds.append(
                Struct(tuple(StructField(name, self.fields[name].kind) for name in sorted(self.fields)))
            )
        if self.item is not None:
            kinds.append(Array(self.item.kind))
        return merged(kinds)

    @property
    def form(self) -> str:
        """A regular expression of the values."""
        forms = [form for kind, form in _FORMS.items() if kind in self.leaves]
        if self.fields is not None:
            forms.append(self.object_form)
        if self.item is not None:
            item = self.item.form
            forms.append(rf"\[[ \t]*+(?:{item}(?:{_COMMA}{item})*+)?+[ \t]*+\]" if item else r"\[[ \t]*+\]")
        return forms[0] if len(forms) == 1 else f"(?:{'|'.join(forms)})" if forms else ""

    @property
    def object_form(self) -> str:
        """A regular expression of the objects, each field of which may be absent.

        Raises:
            ValueError: The fields have no order.
        """
        fields = (
            rf'(?:(?:(?<=\{{)[ \t]*+|{_COMMA})"{re.escape(name)}"{_COLON}{seen.form})?+'
            for name, seen in self._ordered()
        )
        return rf"\{{{''.join(fields)}[ \t]*+\}}"

    def _ordered(self) -> Iterator[tuple[str, _Seen]]:
        fields = self.fields or {}
        for name in TopologicalSorter(self.before).static_order():
            yield name, fields[name]


@dataclass(frozen=True, slots=True)
class _Pairs:
    pairs: list[tuple[str, object]]


def _kind_of(value: object) -> Type:
    if value is None:
        return NOTHING
    return _BOOLEAN if isinstance(value, bool) else TEXT


def _refuse(_: str) -> NoReturn:
    raise ValueError("no JSON")


def _kind_of_number(text: str) -> Scalar | Decimal:
    """Return the kind of a number; only those are taken whose form has an expression."""
    for kind in (_WHOLE, _FRACTION, _FLOAT):
        if re.fullmatch(_FORMS[kind], text):
            return kind
    raise ValueError("a number that a double may not hold")


def _parse(line: bytes) -> Any:
    return json.loads(
        line.decode(),
        object_pairs_hook=_Pairs,
        parse_int=_kind_of_number,
        parse_float=_kind_of_number,
        parse_constant=_refuse,
    )


def look_at(source: Source, options: Mapping[str, str]) -> Struct | None:
    """Return the kind of the records of a source; None if its bytes do not show it.

    Each record is an object in a line, and a double holds each number with all its digits, if it is shown.

    Args:
        source: The files.
        options: The options of Spark's reader. Of most, only it knows the meaning.
    """
    given = {name.lower() for name, text in options.items() if text.lower() not in ("false", "utf-8")}
    is_large = sum(file.size for file in source.files) > _MOST_BYTES
    is_other = any(name in ("multiline", "linesep", "encoding") or name.startswith("allow") for name in given)
    if is_other or is_large or not all(map(is_near, source.paths)):
        return None
    records = _Records()
    try:
        for place in source.paths:
            path = local_path(place)
            stream = None if path is None else opened(path)
            if stream is None:
                return None
            with stream:
                for block in _blocks(stream):
                    records.read(block)
    except (ValueError, RecursionError, *DAMAGED):
        return None  # Spark reports the error when it reads the file
    kind = records.seen.kind
    return kind if isinstance(kind, Struct) else None


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield whole lines, the last one with a line break."""
    while block := stream.read(_BLOCK):
        block += stream.readline(_LONGEST_LINE)
        yield block if block.endswith(b"\n") else block + b"\n"


class _Records:
    """The records that were read, and the expression that matches a line like theirs."""

    def __init__(self) -> None:
        self.seen = _Seen()
        self._line = re.compile(rb"(?!)")
        self._fields = 0

    def read(self, block: bytes) -> None:
        """Read lines.

        Raises:
            ValueError: A line is no record of the forms that have an expression.
        """
        at, match = 0, self._line.match
        while at < len(block):
            found = match(block, at)
            if found is None:
                self._learn(block, at)
                match = self._line.match
                found = match(block, at)
                if found is None:
                    raise ValueError("a form that has no expression")
            at = found.end()

    def _learn(self, block: bytes, at: int) -> None:
        for _ in range(_LINES_AT_ONCE):
            end = block.find(b"\n", at)
            if end < 0:
                break
            if line := block[at:end].strip():
                record = _parse(line)
                if not isinstance(record, _Pairs):
                    raise ValueError("no object")
                self.seen.add(record)
            at = end + 1
        self._fields += self.seen.size
        if self._fields > _MOST_FIELDS:
            raise ValueError("too many fields")
        self._line = re.compile(rf"\s*+{self.seen.object_form}[ \t\r]*+\n\s*+".encode())
