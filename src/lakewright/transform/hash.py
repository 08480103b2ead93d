"""Hashes of rows and keys: the SHA-256 of one canonical text of the columns that aren't null.

Equal values have equal texts, regardless of their column's position, integer width or decimal scale, the
session's time zone or the JVM. Different values, nulls and values in other columns have different texts,
because the end of each part is determined by the part itself. A part is a number, then a mark: a lower-case
letter for the type, and the column's name up to a semicolon. The number of

- a string or binary is its length in bytes; the text, or the bytes in hex, follow the mark,
- an integer or decimal is its plain digits, without trailing zeros in a fraction,
- a float or double maps its bits one to one (`xxhash64` of eight bytes is a bijection), with a single zero
  and a single NaN,
- a boolean is 0 or 1, a date or timestamp the days or microseconds since 1970 (UTC),
- an array, map or struct is empty; its elements, its sorted entries, or its fields in the form of columns
  follow the mark in brackets. Elements have marks without a name, and a tilde stands for null.

All numbers except the plain digits are hexadecimal: capital letters, 64 bits in two's complement.

A variant's mark is followed by the SHA-256 of its JSON. The mark of any other type is followed by the type's
name, and by the value as text up to a semicolon.

One function joins all parts of a row: building a text for each column would take longer than the hash. The
casts of decimals need a session in ANSI mode: only there does Spark write small ones without an exponent.

Source: `processing-strategies.md`, "Common Processing Pipeline" (Compute source hash, Generate primary key).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.schema.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField

__all__ = ["HASH_VERSION", "class_of_ddl", "hash_of", "hash_sql", "value_class"]

HASH_VERSION = "2"
"""Version of the canonical text, stored as a property of each silver table."""

_WHOLE = frozenset(("byte", "short", "integer", "long"))

_CLASSES = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "decimal"), "number"),
    **dict.fromkeys(("float", "double"), "double"),
    **dict.fromkeys(("char", "varchar", "void"), "string"),
}
"""Classes of types by their names in Spark's SQL; any other type is a class of its own."""

_NULL = "~"


def hash_sql(fields: Iterable[StructField]) -> str:
    """Return SQL of the hash of these columns: 64 hex digits, never null.

    Args:
        fields: Columns by name and type, in any order; the case of names is ignored.
    """
    return hash_of((field, name_sql(field.name)) for field in fields)


def hash_of(values: Iterable[tuple[StructField, str]]) -> str:
    """Return SQL of the hash of these values, each with the name and type that it is hashed with."""
    ordered = sorted(values, key=lambda each: each[0].name.lower())
    return f"sha2({_joined(_of_fields(ordered, 0))}, 256)"


def value_class(kind: DataType) -> str:
    """Return the class of a type: equal values of types of one class have equal hashes.

    Example:
        >>> from pyspark.sql.types import DecimalType, IntegerType
        >>> value_class(IntegerType()) == value_class(DecimalType(10, 2))
        True
    """
    name = _kind(kind)
    if name in _WHOLE or name == "decimal":
        return "number"
    if name in {"float", "double"}:
        return "double"
    return name if name != "void" else "string"


def class_of_ddl(ddl: str) -> str:
    """Return the class of a type that is written in Spark's SQL, as `value_class` has it.

    Example:
        >>> class_of_ddl("decimal(10,2)"), class_of_ddl("bigint"), class_of_ddl("varchar(8)")
        ('number', 'number', 'string')
    """
    name = ddl.partition("(")[0].partition("<")[0]
    return _CLASSES.get(name, name)


def _kind(kind: DataType) -> str:
    name = kind.typeName().partition("(")[0].partition(" ")[0]
    return "string" if name in {"char", "varchar"} else name


def _joined(parts: Iterable[str]) -> str:
    """Return SQL of the text of these parts, each of which may be null."""
    return "concat_ws(''" + "".join(f", {part}" for part in parts) + ")"


@dataclass(frozen=True, slots=True)
class _Value:
    """A value to hash.

    Attributes:
        sql: SQL of the value.
        kind: Its type.
        name: The name in its mark, up to the semicolon; empty for elements.
        depth: The number of lambdas around it.
    """

    sql: str
    kind: Any
    name: str
    depth: int

    def mark(self, text: str) -> str:
        """Return SQL of a text, which is null if the value is."""
        return f"if({self.sql} is null, null, {text_sql(text)})"


def _of_fields(values: Iterable[tuple[StructField, str]], depth: int) -> list[str]:
    """Return the parts of columns or fields; they are null if the value is null."""
    return [
        part
        for field, sql in values
        for part in _parts(_Value(sql, field.dataType, f"{_escaped(field.name.lower())};", depth))
    ]


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(";", "\\;")


def _parts(value: _Value) -> list[str]:
    """Return the parts of a value's text, in order."""
    builder = _PARTS.get(_kind(value.kind))
    if builder is not None:
        return builder(value)
    start = value.mark(f"o{value.name}{_escaped(_kind(value.kind))};")
    return [start, f"cast({value.sql} as string)", value.mark(";")]


def _element(sql: str, kind: DataType, depth: int) -> str:
    """Return SQL of the text of an array's or a map's element."""
    return f"if({sql} is null, '{_NULL}', {_joined(_parts(_Value(sql, kind, '', depth)))})"


def _of_string(value: _Value) -> list[str]:
    # Spark can't concatenate texts of different collations.
    text = value.sql if value.kind.simpleString() == "string" else f"cast({value.sql} as string)"
    return [f"hex(octet_length({value.sql}))", value.mark(f"s{value.name}"), text]


def _of_binary(value: _Value) -> list[str]:
    return [f"hex(octet_length({value.sql}))", value.mark(f"x{value.name}"), f"hex({value.sql})"]


def _of_void(_: _Value) -> list[str]:
    return []


def _of_boolean(value: _Value) -> list[str]:
    true, false = text_sql(f"1b{value.name}"), text_sql(f"0b{value.name}")
    return [f"case when {value.sql} then {true} when not {value.sql} then {false} end"]


def _of_whole(value: _Value) -> list[str]:
    return [f"cast({value.sql} as string)", value.mark(f"n{value.name}")]


def _of_decimal(value: _Value) -> list[str]:
    digits = f"cast({value.sql} as string)"
    if value.kind.scale > 0:
        digits = f"rtrim('.', rtrim('0', {digits}))"
    return [digits, value.mark(f"n{value.name}")]


def _of_double(value: _Value) -> list[str]:
    wide = f"cast({value.sql} as double)"
    number = f"hex(xxhash64(if({wide} = 0D, 0D, {wide})))"
    return [f"if({value.sql} is null, null, {number})", value.mark(f"f{value.name}")]


def _of_date(value: _Value) -> list[str]:
    return [f"hex(unix_date({value.sql}))", value.mark(f"d{value.name}")]


def _of_timestamp(value: _Value) -> list[str]:
    return [f"hex(unix_micros({value.sql}))", value.mark(f"t{value.name}")]


def _of_array(value: _Value) -> list[str]:
    element = f"e{value.depth}"
    inner = _element(element, value.kind.elementType, value.depth + 1)
    texts = f"array_join(transform({value.sql}, {element} -> {inner}), '')"
    return [value.mark(f"a{value.name}["), texts, value.mark("]")]


def _of_map(value: _Value) -> list[str]:
    entry = f"e{value.depth}"
    key = _element(f"{entry}.key", value.kind.keyType, value.depth + 1)
    inner = _element(f"{entry}.value", value.kind.valueType, value.depth + 1)
    texts = f"transform(map_entries({value.sql}), {entry} -> concat({key}, {inner}))"
    return [
        value.mark(f"m{value.name}{{"),
        f"array_join(array_sort({texts}), '')",
        value.mark("}"),
    ]


def _of_struct(value: _Value) -> list[str]:
    fields = sorted(value.kind.fields, key=lambda field: field.name.lower())
    inner = _of_fields([(field, f"{value.sql}.{name_sql(field.name)}") for field in fields], value.depth)
    return [value.mark(f"r{value.name}("), *inner, value.mark(")")]


def _of_variant(value: _Value) -> list[str]:
    return [value.mark(f"v{value.name}"), f"sha2(to_json({value.sql}), 256)"]


_PARTS: dict[str, Callable[[_Value], list[str]]] = {
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
    "array": _of_array,
    "map": _of_map,
    "struct": _of_struct,
    "variant": _of_variant,
}
