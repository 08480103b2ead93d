"""The kind of the records in JSON files, found by their bytes, before Spark parses them.

Records that one program writes are alike: their fields have one order, and their values few forms. A regular
expression made of the fields that were seen matches such lines in a third of the time in which Spark infers
types; a line that it does not match adds what is new in it. So the kind is known exactly: no text is taken
for what has several kinds or only nulls, and it is known which numbers a double holds with all their digits.

The look is bounded. It finds nothing in files that are too large, are not on this machine, or have lines of
other forms; Spark's variants show the kind of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import IO, Any, NoReturn

from lakewright.lake.file_probe import DAMAGED, is_near, opened
from lakewright.lake.paths import local_path
from lakewright.reader.json_types import NOTHING, merged
from lakewright.reader.source import Source
from lakewright.schema.types import (
    BOOLEAN,
    EXACT_DIGITS,
    MOST_DIGITS,
    TEXT,
    Array,
    Decimal,
    Scalar,
    Struct,
    StructField,
    Type,
)

_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 26
_MOST_BYTES = 1 << 30
"""Bytes of the files of a source that are looked at, which take about ten seconds."""

_MOST_FIELDS = 5_000
"""Fields in all expressions that are made for a source; objects with ever new fields have more."""

_LINES_AT_ONCE = 100
"""Lines that are parsed where one has something new."""

_MOST_LEVELS = 50
_BIGINT, _DOUBLE = Scalar("bigint"), Scalar("double")
_COMMA, _COLON = r"[ \t]*+,[ \t]*+", r"[ \t]*+:[ \t]*+"
_PLAIN = r"(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
_SURROGATES = r"[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_FORMS: Mapping[Type, str] = {
    TEXT: rf'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u(?:{_PLAIN}|{_SURROGATES}))[^"\\\x00-\x1f]*+)*+"',
    BOOLEAN: r"(?:true|false)",
    NOTHING: r"null",
}
"""How values of each kind are written, but for numbers."""

_END = r"(?![0-9.eE])"
_WHOLE, _FRACTION = r"(?:0|[1-9][0-9]*+)", r"\.[0-9]++"
_EXPONENT = rf"[eE][+-]?[0-9]{{1,2}}+{_END}"


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


@dataclass(slots=True)
class _Numbers:
    """How the numbers at one place are written.

    Attributes:
        whole: Most digits of one that has only digits.
        before: Most digits before the point of one with a point, and no exponent; None without such a number.
            One less than 1 has none.
        after: Most digits after it, without zeros at the end.
        mantissa: Most characters of one with an exponent, up to that.
    """

    whole: int = 0
    before: int | None = None
    after: int = 0
    mantissa: int = 0

    def add(self, number: _Number) -> None:
        """Add a number.

        Raises:
            ValueError: A variant may not hold it.
        """
        text = number.removeprefix("-")
        whole, point, fraction = text.partition(".")
        if "e" in text.lower():
            self.mantissa = max(self.mantissa, len(re.split("[eE]", text)[0]))
        elif point:
            after = len(fraction.rstrip("0"))
            self.before = max(self.before or 0, len(whole.lstrip("0") if after else whole))
            self.after = max(self.after, after)
        else:
            self.whole = max(self.whole, len(text))
        if not re.fullmatch(self.form, number) or max(self.mantissa, self._digits) > MOST_DIGITS:
            raise ValueError("a number that a variant may not hold")

    @property
    def _digits(self) -> int:
        return max(1, self.whole, self.before or 0) + self.after

    @property
    def kind(self) -> Type:
        """Their kind; a decimal of at most 15 digits if a double holds each of them."""
        if self.mantissa:
            return _DOUBLE
        whole = _BIGINT if self.whole else NOTHING
        if self.before is None:
            return whole
        if self._digits <= EXACT_DIGITS:
            return Decimal(self._digits, self.after)
        return merged((Decimal(max(1, self.before + self.after), self.after), whole))

    @property
    def are_exact(self) -> bool:
        """Whether a double holds each of them, or their kind is none."""
        return self.kind != _DOUBLE or max(self.mantissa, self._digits) <= EXACT_DIGITS

    @property
    def form(self) -> str:
        """A regular expression of them; empty if there is none."""
        forms = []
        if self.whole:
            digits = min(self.whole, 18)
            longest = "|[1-8][0-9]{18}" if self.whole > digits else ""
            forms.append(f"(?:0|[1-9][0-9]{{0,{digits - 1}}}{longest}){_END}")
        if self.before is not None:
            before = f"(?:0|[1-9][0-9]{{0,{self.before - 1}}}+)" if self.before else rf"0(?!\.0++{_END})"
            forms.append(rf"{before}\.(?=[0-9])[0-9]{{0,{self.after}}}+0*+{_END}")
        if self.mantissa:
            forms.append(rf"(?=[0-9.]{{1,{self.mantissa}}}+[eE]){_WHOLE}(?:{_FRACTION})?+{_EXPONENT}")
        return f"-?(?:{'|'.join(forms)})" if forms else ""


@dataclass(slots=True)
class _Seen:
    """What the values at one place are.

    Attributes:
        leaves: The kinds of those that have no others inside, but for numbers.
        numbers: The numbers.
        fields: The fields of objects; None if no value is an object.
        optional: Those that some object lacks.
        before: For each field, those that an object had directly before it.
        item: The elements of lists; None if no value is a list.
    """

    leaves: set[Type] = field(default_factory=set)
    numbers: _Numbers = field(default_factory=_Numbers)
    fields: dict[str, _Seen] | None = None
    optional: set[str] = field(default_factory=set)
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
        elif isinstance(value, _Number):
            self.numbers.add(value)
        else:
            self.leaves.add(_kind_of(value))

    def _add_fields(self, pairs: list[tuple[str, object]], levels: int) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names) or not all(names):
            raise ValueError("a name is there twice, or empty")
        if self.fields is None:
            self.fields = {}
        else:
            self.optional.update(set(names) ^ set(self.fields))
        for previous, (name, value) in zip([None, *names], pairs, strict=False):
            before = self.before.setdefault(name, {})
            if previous is not None:
                before[previous] = None
            self.fields.setdefault(name, _Seen()).add(value, levels - 1)

    @property
    def size(self) -> int:
        """The number of fields, those inside of others among them."""
        return len(self.inside) + sum(each.size for each in self.inside)

    @property
    def inside(self) -> list[_Seen]:
        """What fields and elements have."""
        return [*(self.fields or {}).values(), *([self.item] if self.item else [])]

    @property
    def is_exact(self) -> bool:
        """Whether a double holds each number whose kind is that."""
        return self.numbers.are_exact and all(each.is_exact for each in self.inside)

    @property
    def kind(self) -> Type:
        """The kind of all values, as Spark's `schema_of_variant_agg` shows it.

        Only of short numbers the decimals may differ, which become doubles.
        """
        kinds = [*self.leaves, self.numbers.kind]
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
        forms += filter(None, [self.numbers.form])
        if self.fields is not None:
            forms.append(self.object_form)
        if self.item is not None:
            item = self.item.form
            forms.append(rf"\[[ \t]*+(?:{item}(?:{_COMMA}{item})*+)?+[ \t]*+\]" if item else r"\[[ \t]*+\]")
        return forms[0] if len(forms) == 1 else f"(?:{'|'.join(forms)})" if forms else ""

    @property
    def object_form(self) -> str:
        """A regular expression of the objects.

        Raises:
            ValueError: The fields have no order.
        """
        forms, comma = [], rf"(?:(?<=\{{)[ \t]*+|{_COMMA})"
        fields = self.fields or {}
        for name in TopologicalSorter(self.before).static_order():
            form = rf'{comma}"{re.escape(name)}"{_COLON}{fields[name].form}'
            if name in self.optional:
                form = f"(?:{form})?+"
            else:
                comma = _COMMA  # this one has others before it
            forms.append(form)
        return rf"\{{{''.join(forms)}[ \t]*+\}}"


@dataclass(frozen=True, slots=True)
class _Pairs:
    pairs: list[tuple[str, object]]


def _kind_of(value: object) -> Type:
    if value is None:
        return NOTHING
    return BOOLEAN if isinstance(value, bool) else TEXT


def _refuse(_: str) -> NoReturn:
    raise ValueError("no JSON")


def _parse(line: bytes) -> Any:
    return json.loads(
        line.decode(),
        object_pairs_hook=_Pairs,
        parse_int=_Number,
        parse_float=_Number,
        parse_constant=_refuse,
    )


@dataclass(frozen=True, slots=True)
class Look:
    """What the bytes of a source show.

    Attributes:
        kind: The kind of its records, each of which is an object in a line.
        is_exact: Whether a double holds each number whose kind is that. No other has more than 38 digits.
    """

    kind: Struct
    is_exact: bool


def look_at(source: Source, options: Mapping[str, str]) -> Look | None:
    """Return the kind of the records of a source; None if its bytes do not show it.

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
            with opened(local_path(place) or Path(place)) as stream:
                for block in _blocks(stream):
                    records.read(block)
    except (ValueError, RecursionError, *DAMAGED):
        return None  # Spark reports the error when it reads the file
    return records.look


def look_at_records(lines: Iterable[str]) -> Look | None:
    """Return the kind of records, each in a line; None if one of them is no object, or can't be matched.

    Example:
        >>> look_at_records(['{"a": 1}', '{"a": null, "b": [true]}']).kind.ddl
        'struct<`a`: bigint, `b`: array<boolean>>'
    """
    records = _Records()
    try:
        records.read("".join(f"{line}\n" for line in lines).encode())
    except (ValueError, RecursionError):
        return None
    return records.look


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield whole lines, the last one with a line break."""
    while block := stream.read(_BLOCK):
        block += stream.readline(_LONGEST_LINE)
        yield block if block.endswith(b"\n") else block + b"\n"


class _Records:
    """The records that were read, and the expression that matches lines like theirs."""

    def __init__(self) -> None:
        self.seen = _Seen()
        self._lines = re.compile(rb"(?!)")
        self._fields = 0

    @property
    def look(self) -> Look | None:
        """What they show; None if there is none."""
        kind = self.seen.kind
        return Look(kind, self.seen.is_exact) if isinstance(kind, Struct) else None

    def read(self, block: bytes) -> None:
        """Read lines.

        Raises:
            ValueError: A line is no record of the forms that have an expression.
        """
        if not block.isascii():
            block.decode()  # raises an error for what is no UTF-8
        at, match = 0, self._lines.match
        while at < len(block):
            found = match(block, at)
            if found is None:
                self._learn(block, at)
                match = self._lines.match
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
        self._lines = re.compile(rf"(?:\s*+{self.seen.object_form}[ \t\r]*+\n\s*+)++".encode())
