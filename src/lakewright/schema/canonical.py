"""Hashes of rows and keys: the SHA-256 of one canonical text of the columns that aren't absent.

Equal values have equal texts, regardless of their column's position, the session's time zone or the JVM.
Different values and values in other columns have different texts, because the end of each part is determined
by the part itself. A part is a number, then a mark: a lower-case letter for the class of the type, and the
column's name up to a semicolon. The number of

- a string or binary is its length in bytes; the text, or the bytes in hex, follow the mark,
- a number is its digits and a point, without zeros at the end of a fraction,
- a boolean is 0 or 1, a date or timestamp the days or microseconds since 1970 (UTC),
- an array, map or struct is empty; its elements, its sorted entries, or its fields in the form of columns
  follow the mark in brackets. Elements have marks without a name, and a tilde stands for an absent one.

All numbers but those of a number are hexadecimal: capital letters, 64 bits in two's complement.

A variant's mark is followed by the SHA-256 of its JSON. The mark of any other type is followed by the type's
name, and by the value as text up to a semicolon.

Which values are equal depends on the version of the form, which each table keeps. In version 3

- numbers are equal whatever their type. A float or double is its shortest decimal form, but has all its
  digits if it is whole and in the range of `bigint`. NaN is one value, and zero has no sign,
- times without a zone are instants in the lake's time zone: those that its clocks skip by the offset before,
  those that they show twice by the first,
- null, an empty list or map, and a struct whose fields are all absent are the same absence. A list with
  absent elements is not absent, nor is a map with absent values,
- numbers inside a variant have no zeros at the end of a fraction, and JSON's null, an empty list or an empty
  object are absent. Doubles from 10^7 on and below 10^-3 inside it have exponents, and its fields count even
  if they have no value: Spark would have to take it apart to find them.

In version 2, floats and doubles have a class of their own, with their bits as number, mapped one to one
(`xxhash64` of eight bytes is a bijection), a single zero and a single NaN. A whole number has no point. Times
without a zone are texts, only null is absent, and a variant is its JSON as Spark writes it.

One function joins all parts of a row: building a text for each column would take longer than the hash. A
strict session is needed (`lake.commit`): its ANSI mode, in which Spark writes small decimals without an
exponent, and its time zone UTC.

Source: `processing-strategies.md`, "Common Processing Pipeline" (Compute source hash, Generate primary key).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import Array, Chars, Decimal, MapOf, Scalar, Struct, StructField, Type

HASH_VERSION = "3"
"""Version of the canonical form of new tables, stored as a property of each silver table."""

KNOWN_VERSIONS = frozenset(("2", HASH_VERSION))

_WHOLE = frozenset(("tinyint", "smallint", "int", "bigint"))

_SINGLE = frozenset(
    map(Scalar, (*_WHOLE, "string", "binary", "boolean", "float", "double", "date", "timestamp"))
)
"""Types whose values are equal exactly if Spark's hash functions see them as equal.

These functions know one zero and one NaN. A text with a collation is of none of these types.
"""

_ABSENT = "~"

_CLASSES_2: Mapping[str, str] = {**dict.fromkeys((*_WHOLE, "decimal"), "number"), "float": "double"}
_CLASSES: Mapping[str, str] = {
    **_CLASSES_2,
    "float": "number",
    "double": "number",
    "timestamp_ntz": "timestamp",
}
"""Classes of types by their names; a type without a value counts as text, any other is a class of its own."""


@dataclass(frozen=True, slots=True)
class CanonicalForm:
    """The canonical form by which the hashes of a table are made.

    Attributes:
        version: Version of the form.
        zone: The lake's time zone, in which times without a zone are instants.
    """

    version: str
    zone: str

    @property
    def is_of_typed_values(self) -> bool:
        """Whether hashes are of values in the types of their columns; in version 2, they are the source's."""
        return self.version != "2"

    def hash_sql(self, fields: Iterable[StructField]) -> str:
        """Return SQL of the hash of these columns: 64 hex digits, never null.

        Args:
            fields: Columns by name and type, in any order; the case of names is ignored.
        """
        return self.hash_of((field, name_sql(field.name)) for field in fields)

    def hash_of(self, values: Iterable[tuple[StructField, str]]) -> str:
        """Return SQL of the hash of these values, each with the name and type that it is hashed with."""
        parts = (part for value in _named(self, values, 0) for part in value.parts())
        return f"sha2({_joined(parts)}, 256)"

    def digest_of(self, values: Iterable[tuple[StructField, str]]) -> tuple[str, ...]:
        """Return SQL of numbers that are equal for two rows exactly if their hashes are.

        They take a tenth of the time of the hash, and mean nothing but this: two rows with values of the same
        types are compared by them. Values of most types go into them as they are; those of the others as
        canonical texts. Two times 64 bits leave one chance in 10^38 that a change is not seen.

        Args:
            values: The values, as `hash_of` takes them.
        """
        named = [*_named(self, values, 0)]
        # Spark's function skips nulls, so that which values are null goes into it as well.
        masks = (
            " | ".join(f"if({each.is_present}, 0L, {1 << bit}L)" for bit, each in enumerate(some))
            for some in (named[place : place + 62] for place in range(0, len(named), 62))
        )
        terms = ", ".join((*masks, *(each.plain() for each in named))) or "0L"
        return (f"xxhash64(0L, {terms})", f"xxhash64(1L, {terms})")

    def class_of(self, kind: Type) -> str:
        """Return the class of a type: equal values of types of one class have equal hashes.

        Example:
            >>> form = CanonicalForm(HASH_VERSION, "UTC")
            >>> form.class_of(Scalar("int")), form.class_of(Scalar("double")), form.class_of(Chars(8))
            ('number', 'number', 'string')
        """
        name = _kind(kind)
        classes = _CLASSES_2 if self.version == "2" else _CLASSES
        return classes.get(name, "string" if name == "void" else name)


@dataclass(frozen=True, slots=True)
class _Value:
    """A value to hash.

    Attributes:
        form: The canonical form.
        sql: SQL of the value.
        type: Its type.
        name: The name in its mark, up to the semicolon; empty for elements.
        depth: The number of lambdas around it.
    """

    form: CanonicalForm
    sql: str
    type: Any
    name: str
    depth: int

    @property
    def is_present(self) -> str:
        """SQL of whether the value is not absent."""
        found = None if self.form.version == "2" else _PRESENCE.get(_kind(self.type))
        return f"{self.sql} is not null" if found is None else found(self)

    @property
    def fields(self) -> Iterator[_Value]:
        """The fields of a struct, in the order of their names."""
        inner = ((field, f"{self.sql}.{name_sql(field.name)}") for field in self.type.fields)
        return _named(self.form, inner, self.depth)

    def plain(self) -> str:
        """Return SQL of the value itself if equal values have one form in its type, else of its text."""
        is_single = isinstance(self.type, Decimal) or self.type in _SINGLE
        return self.sql if is_single else _joined(self.parts())

    def mark(self, text: str) -> str:
        """Return SQL of a text, which is null if the value is absent."""
        return f"if({self.is_present}, {text_sql(text)}, null)"

    def parts(self) -> list[str]:
        """Return the parts of the value's text, in order; they are null if the value is absent."""
        kind = _kind(self.type)
        builder = (_PARTS_2 if self.form.version == "2" else _PARTS).get(kind)
        if builder is not None:
            return builder(self)
        return [self.mark(f"o{self.name}{_escaped(kind)};"), f"cast({self.sql} as string)", self.mark(";")]

    def element(self, sql: str, kind: Type) -> str:
        """Return SQL of the text of an element of an array or a map."""
        inner = _Value(self.form, sql, kind, "", self.depth + 1)
        return f"if({inner.is_present}, {_joined(inner.parts())}, '{_ABSENT}')"


def _named(form: CanonicalForm, values: Iterable[tuple[StructField, str]], depth: int) -> Iterator[_Value]:
    """Yield columns or fields, in the order of their names."""
    for field, sql in sorted(values, key=lambda each: each[0].name.lower()):
        yield _Value(form, sql, field.type, f"{_escaped(field.name.lower())};", depth)


def _joined(parts: Iterable[str]) -> str:
    """Return SQL of the text of these parts, each of which may be null."""
    return "concat_ws(''" + "".join(f", {part}" for part in parts) + ")"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(";", "\\;")


def _kind(kind: Type) -> str:
    """Return the name of a type without its parameters; one of limited or collated text is `string`."""
    if not isinstance(kind, Scalar):
        return _KINDS[type(kind)]
    first, _, rest = kind.name.partition("(")[0].partition(" ")
    if first != "interval" or not rest:
        return first
    return "yearmonthinterval" if {"year", "month"} & {*rest.split()} else "daytimeinterval"


_KINDS: Mapping[type, str] = {
    Decimal: "decimal",
    Chars: "string",
    Array: "array",
    MapOf: "map",
    Struct: "struct",
}


def _of_string(value: _Value) -> list[str]:
    # Spark can't concatenate texts of different collations.
    text = value.sql if value.type == Scalar("string") else f"cast({value.sql} as string)"
    return [f"hex(octet_length({value.sql}))", value.mark(f"s{value.name}"), text]


def _of_binary(value: _Value) -> list[str]:
    return [f"hex(octet_length({value.sql}))", value.mark(f"x{value.name}"), f"hex({value.sql})"]


def _of_void(_: _Value) -> list[str]:
    return []


def _of_boolean(value: _Value) -> list[str]:
    true, false = text_sql(f"1b{value.name}"), text_sql(f"0b{value.name}")
    return [f"case when {value.sql} then {true} when not {value.sql} then {false} end"]


def _of_whole(value: _Value) -> list[str]:
    return [f"cast({value.sql} as string)", value.mark(f".n{value.name}")]


def _of_decimal(value: _Value) -> list[str]:
    if not value.type.scale:
        return _of_whole(value)
    return [f"rtrim('0', cast({value.sql} as string))", value.mark(f"n{value.name}")]


def _of_double(value: _Value) -> list[str]:
    # Nearly all values are of the first two cases. The third takes five times as long, and is a single call:
    # the JVM compiles no method of 8,000 bytes of code, and a row's hash is one method.
    sql, size = value.sql, f"abs({value.sql})"
    wide = sql if value.type == Scalar("double") else f"cast(cast({sql} as string) as double)"
    digits = f"""case
        when floor({sql}) = {sql} and {sql} < {2**63}D then concat(cast(floor({sql}) as string), '.')
        when {size} >= 0.001D and {size} < 1e7D then cast({sql} as string)
        else rtrim('0', format_number({wide}, concat('0.0', repeat('#', 339)))) end"""
    return [digits, value.mark(f"n{value.name}")]


def _of_date(value: _Value) -> list[str]:
    return [f"hex(unix_date({value.sql}))", value.mark(f"d{value.name}")]


def _of_timestamp(value: _Value) -> list[str]:
    return [f"hex(unix_micros({value.sql}))", value.mark(f"t{value.name}")]


def _of_local_time(value: _Value) -> list[str]:
    in_utc = f"convert_timezone({text_sql(value.form.zone)}, 'UTC', {value.sql})"
    return [f"hex(unix_micros(cast({in_utc} as timestamp)))", value.mark(f"t{value.name}")]


def _of_array(value: _Value) -> list[str]:
    element = f"e{value.depth}"
    inner = value.element(element, value.type.element)
    texts = f"array_join(transform({value.sql}, {element} -> {inner}), '')"
    return [value.mark(f"a{value.name}["), texts, value.mark("]")]


def _of_map(value: _Value) -> list[str]:
    entry = f"e{value.depth}"
    key = value.element(f"{entry}.key", value.type.key)
    inner = value.element(f"{entry}.value", value.type.value)
    texts = f"transform(map_entries({value.sql}), {entry} -> concat({key}, {inner}))"
    return [
        value.mark(f"m{value.name}{{"),
        f"array_join(array_sort({texts}), '')",
        value.mark("}"),
    ]


def _of_struct(value: _Value) -> list[str]:
    inner = [part for field in value.fields for part in field.parts()]
    return [value.mark(f"r{value.name}("), *inner, value.mark(")")]


def _of_variant(value: _Value) -> list[str]:
    json = f"regexp_replace(to_json({value.sql}), {text_sql(_NUMBERS)}, '$1$2$3$4')"
    return [value.mark(f"v{value.name}"), f"if({value.is_present}, sha2({json}, 256), null)"]


_NUMBERS = (
    r'("[^"\\]*+(?:\\.[^"\\]*+)*+")'  # a text, kept
    r"|-(0)\.0++(?![\dE])|(-?\d+)\.0++(?![\dE])|(-?\d+\.\d*[1-9])0++(?![\dE])"
)
"""Pattern of the texts and the numbers of JSON: its groups are what remains of them."""


def _is_filled(value: _Value) -> str:
    return f"size({value.sql}) > 0"


def _has_fields(value: _Value) -> str:
    return f"({' or '.join(field.is_present for field in value.fields) or 'false'})"


def _is_json(value: _Value) -> str:
    return f"to_json({value.sql}) not in ('null', '{{}}', '[]')"


_PRESENCE: Mapping[str, Callable[[_Value], str]] = {
    "void": lambda _: "false",
    "array": _is_filled,
    "map": _is_filled,
    "struct": _has_fields,
    "variant": _is_json,
}
"""What makes values present, by the names of types; a value of any other type is, unless it is null."""

_PARTS: Mapping[str, Callable[[_Value], list[str]]] = {
    "string": _of_string,
    "void": _of_void,
    "binary": _of_binary,
    "boolean": _of_boolean,
    **dict.fromkeys(_WHOLE, _of_whole),
    "decimal": _of_decimal,
    "float": _of_double,
    "double": _of_double,
    "date": _of_date,
    "timestamp": _of_timestamp,
    "timestamp_ntz": _of_local_time,
    "array": _of_array,
    "map": _of_map,
    "struct": _of_struct,
    "variant": _of_variant,
}


def _plain_whole(value: _Value) -> list[str]:
    return [f"cast({value.sql} as string)", value.mark(f"n{value.name}")]


def _plain_decimal(value: _Value) -> list[str]:
    if not value.type.scale:
        return _plain_whole(value)
    return [f"rtrim('.', rtrim('0', cast({value.sql} as string)))", value.mark(f"n{value.name}")]


def _bits_of_double(value: _Value) -> list[str]:
    wide = f"cast({value.sql} as double)"
    number = f"hex(xxhash64(if({wide} = 0D, 0D, {wide})))"
    return [f"if({value.sql} is null, null, {number})", value.mark(f"f{value.name}")]


def _json_of_variant(value: _Value) -> list[str]:
    return [value.mark(f"v{value.name}"), f"sha2(to_json({value.sql}), 256)"]


_PARTS_2: Mapping[str, Callable[[_Value], list[str]]] = {
    **{kind: builder for kind, builder in _PARTS.items() if kind != "timestamp_ntz"},
    **dict.fromkeys(_WHOLE, _plain_whole),
    "decimal": _plain_decimal,
    "float": _bits_of_double,
    "double": _bits_of_double,
    "variant": _json_of_variant,
}
