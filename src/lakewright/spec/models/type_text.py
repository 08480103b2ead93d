"""The text form of types, such as `decimal(10,2)`, as projects and entities declare them.

Source: the project files' rules, fields and data types: Flowman's names, in any case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from lakewright.schema.types import Array, Chars, Decimal, MapOf, Scalar, Struct, StructField, Type
from lakewright.spec.suggestions import meant

DEEPEST = 120
"""Levels of types inside each other; a slice of JSON may have 100."""

LONGEST = 20_000

_SCALARS: Mapping[str, str] = {
    "string": "string", "text": "string", "clob": "string",
    "binary": "binary",
    "byte": "tinyint", "tinyint": "tinyint",
    "short": "smallint", "smallint": "smallint",
    "int": "int", "integer": "int",
    "long": "bigint", "bigint": "bigint",
    "float": "float", "real": "float",
    "double": "double",
    "boolean": "boolean", "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp", "timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp_ntz",
    "null": "void", "void": "void",
    "interval": "interval",
    "duration": "interval day to second",
    "variant": "variant",
}  # fmt: skip

_TOKENS = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][\w]*)|`(?P<quoted>(?:[^`]|``)+)`|(?P<number>\d{1,9})|(?P<sign>[<>(),:]))"
)

_UNITS = re.compile(
    r"\s+(year(?:\s+to\s+month)?|month|day(?:\s+to\s+(?:hour|minute|second))?|"
    r"hour(?:\s+to\s+(?:minute|second))?|minute(?:\s+to\s+second)?|second)\b",
    re.IGNORECASE,
)
"""The units of an interval: years and months, or days to seconds."""


@lru_cache(maxsize=1024)
def parse_sql_type(text: str) -> Type:
    """Return the type that a text such as `array<struct<a: int>>` names, in any case.

    Raises:
        ValueError: There is no such type.

    Example:
        >>> parse_sql_type("ARRAY<Long>").ddl
        'array<bigint>'
    """
    reader = _Reader(text)
    found = reader.read_type()
    reader.end()
    return found


def parse_json_type(document: Any) -> Type:
    """Return the type of a document in the JSON form that Spark and Delta's log share.

    Raises:
        ValueError: There is no such type.
        KeyError: A part is missing.
    """
    if isinstance(document, str):
        return parse_sql_type(document)
    if document["type"] == "array":
        return Array(parse_json_type(document["elementType"]))
    if document["type"] == "map":
        return MapOf(parse_json_type(document["keyType"]), parse_json_type(document["valueType"]))
    return Struct(parse_json_columns(document))


def parse_json_columns(document: Mapping[str, Any]) -> tuple[StructField, ...]:
    """Return the columns of a struct in the same form, with their comments."""
    return tuple(
        StructField(
            field["name"],
            parse_json_type(field["type"]),
            bool(field.get("nullable", True)),
            field.get("metadata", {}).get("comment"),
        )
        for field in document["fields"]
    )


class _Reader:
    """Recursive-descent parser for the SQL text of a type."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0

    def fail(self, why: str) -> ValueError:
        return ValueError(f"{self.text!r} is not a type: {why}")

    def take(self, group: str, what: str) -> str:
        found = _TOKENS.match(self.text, self.position)
        if found is None or found[group] is None:
            raise self.fail(f"{what} expected at position {self.position + 1}")
        self.position = found.end()
        return found[group]

    def take_if(self, sign: str) -> bool:
        found = _TOKENS.match(self.text, self.position)
        if found is None or found["sign"] != sign:
            return False
        self.position = found.end()
        return True

    def expect(self, sign: str) -> None:
        if not self.take_if(sign):
            is_cut = self.position >= len(self.text.rstrip()) and "(" in self.text
            cut = "; a text with a comma needs quotes between { and }" if is_cut else ""
            raise self.fail(f"{sign!r} expected at position {self.position + 1}{cut}")

    def end(self) -> None:
        if self.text[self.position :].strip():
            raise self.fail(f"unexpected {self.text[self.position :].strip()[:20]!r}")

    def read_type(self) -> Type:
        if self.depth > DEEPEST:
            raise self.fail(f"nested more than {DEEPEST} deep")
        name = self.take("name", "a type's name").lower()
        if name == "interval" and (units := _UNITS.match(self.text, self.position)):
            self.position = units.end()
            return Scalar(f"interval {' '.join(units[1].lower().split())}")
        if name in _COMPOUND:
            self.depth += 1
            found = _COMPOUND[name](self)
            self.depth -= 1
            return found
        if name not in _SCALARS:
            remedy = meant(name, (*_SCALARS, *_COMPOUND))
            raise self.fail(f"there is no type {name!r}{f'; {remedy}' if remedy else ''}")
        return Scalar(_SCALARS[name])

    def read_numbers(self, most: int) -> list[int]:
        numbers: list[int] = []
        if self.take_if("("):
            numbers.append(int(self.take("number", "a number")))
            while len(numbers) < most and self.take_if(","):
                numbers.append(int(self.take("number", "a number")))
            self.expect(")")
        return numbers

    def read_decimal(self) -> Type:
        numbers = self.read_numbers(2)
        precision, scale = [*numbers, 0][:2] if numbers else (38, 18)
        if not 1 <= precision <= 38 or scale > precision:
            raise self.fail("precision is 1 to 38 and scale at most the precision")
        return Decimal(precision, scale)

    def read_chars(self, *, is_fixed: bool) -> Type:
        numbers = self.read_numbers(1)
        if not numbers or numbers[0] < 1:
            raise self.fail("a length is needed, as in varchar(20)")
        return Chars(numbers[0], is_fixed)

    def read_inner(self, *signs: str) -> list[Type]:
        """Read types, each after its sign, and the closing bracket."""
        found: list[Type] = []
        for sign in signs:
            self.expect(sign)
            found.append(self.read_type())
        self.expect(">")
        return found

    def read_array(self) -> Type:
        return Array(*self.read_inner("<"))

    def read_map(self) -> Type:
        return MapOf(*self.read_inner("<", ","))

    def read_struct(self) -> Type:
        self.expect("<")
        fields: list[StructField] = []
        while not self.take_if(">"):
            if fields:
                self.expect(",")
            name = self.read_field_name()
            self.take_if(":")
            found = self.read_type()
            fields.append(StructField(name, found, nullable=not self.take_not_null()))
        return Struct(tuple(fields))

    def read_field_name(self) -> str:
        found = _TOKENS.match(self.text, self.position)
        if found is not None and found["quoted"] is not None:
            self.position = found.end()
            return found["quoted"].replace("``", "`")
        return self.take("name", "a field's name")

    def take_not_null(self) -> bool:
        found = re.compile(r"\s*not\s+null\b", re.IGNORECASE).match(self.text, self.position)
        if found is None:
            return False
        self.position = found.end()
        return True


_COMPOUND: Mapping[str, Callable[[_Reader], Type]] = {
    "decimal": _Reader.read_decimal,
    "numeric": _Reader.read_decimal,
    "varchar": partial(_Reader.read_chars, is_fixed=False),
    "char": partial(_Reader.read_chars, is_fixed=True),
    "array": _Reader.read_array,
    "map": _Reader.read_map,
    "struct": _Reader.read_struct,
}
