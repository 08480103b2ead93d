"""Hashes of rows and keys: the SHA-256 of one canonical text of the columns that aren't null.

Equal values have equal texts, whatever their column's position, integer width or decimal scale, the session's
time zone or the JVM. Different values, nulls and values in other columns have different texts, because the
end of each part can be told from the part itself. A part is a number, then a mark: a lower-case letter for
the type, and the column's name up to a semicolon. The number of

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
from typing import TYPE_CHECKING

from lakewright.transform.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField

__all__ = ["HASH_VERSION", "hash_of", "hash_sql", "value_class"]

HASH_VERSION = "2"
"""Version of the canonical text, stored as a property of each silver table."""

_WHOLE = frozenset(("byte", "short", "integer", "long"))

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


def _kind(kind: DataType) -> str:
    name = kind.typeName().partition("(")[0].partition(" ")[0]
    return "string" if name in {"char", "varchar"} else name


def _joined(parts: Iterable[str]) -> str:
    """Return SQL of the text of these parts, each of which may be null."""
    return "concat_ws(''" + "".join(f", {part}" for part in parts) + ")"


def _of_fields(values: Iterable[tuple[StructField, str]], depth: int) -> list[str]:
    """Return the parts of columns or fields; they are null if the value is null."""
    return [
        part
        for field, value in values
        for part in _parts(value, field.dataType, depth, f"{_escaped(field.name.lower())};")
    ]


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(";", "\\;")


def _parts(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    """Return the parts of a value's text, in order; `depth` is the number of lambdas around it."""
    builder = _PARTS.get(_kind(kind))
    if builder is not None:
        return builder(value, kind, depth, name)
    start = _unless_null(value, f"o{name}{_escaped(_kind(kind))};")
    return [start, f"cast({value} as string)", _unless_null(value, ";")]


def _unless_null(value: str, text: str) -> str:
    return f"if({value} is null, null, {text_sql(text)})"


def _element(value: str, kind: DataType, depth: int) -> str:
    """Return SQL of the text of an array's or a map's element."""
    return f"if({value} is null, '{_NULL}', {_joined(_parts(value, kind, depth, ''))})"


def _of_string(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    del depth
    # Spark can't concatenate texts of different collations.
    text = value if kind.simpleString() == "string" else f"cast({value} as string)"
    return [f"hex(octet_length({value}))", _unless_null(value, f"s{name}"), text]


def _of_binary(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    del kind, depth
    return [f"hex(octet_length({value}))", _unless_null(value, f"x{name}"), f"hex({value})"]


def _of_void(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    del value, kind, depth, name
    return []


def _of_boolean(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    del kind, depth
    true, false = text_sql(f"1b{name}"), text_sql(f"0b{name}")
    return [f"case when {value} then {true} when not {value} then {false} end"]


def _of_whole(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    del kind, depth
    return [f"cast({value} as string)", _unless_null(value, f"n{name}")]


def _of_decimal(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    del depth
    digits = f"cast({value} as string)"
    if getattr(kind, "scale", 0) > 0:
        digits = f"rtrim('.', rtrim('0', {digits}))"
    return [digits, _unless_null(value, f"n{name}")]


def _of_double(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    del kind, depth
    wide = f"cast({value} as double)"
    number = f"hex(xxhash64(if({wide} = 0D, 0D, {wide})))"
    return [f"if({value} is null, null, {number})", _unless_null(value, f"f{name}")]


def _of_date(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    del kind, depth
    return [f"hex(unix_date({value}))", _unless_null(value, f"d{name}")]


def _of_timestamp(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    del kind, depth
    return [f"hex(unix_micros({value}))", _unless_null(value, f"t{name}")]


def _of_array(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    element = f"e{depth}"
    inner = _element(element, kind.elementType, depth + 1)  # type: ignore[attr-defined]  # as it is named
    texts = f"array_join(transform({value}, {element} -> {inner}), '')"
    return [_unless_null(value, f"a{name}["), texts, _unless_null(value, "]")]


def _of_map(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    entry = f"e{depth}"
    key = _element(f"{entry}.key", kind.keyType, depth + 1)  # type: ignore[attr-defined]  # as it is named
    inner = _element(f"{entry}.value", kind.valueType, depth + 1)  # type: ignore[attr-defined]  # as it is named
    texts = f"transform(map_entries({value}), {entry} -> concat({key}, {inner}))"
    return [
        _unless_null(value, f"m{name}{{"),
        f"array_join(array_sort({texts}), '')",
        _unless_null(value, "}"),
    ]


def _of_struct(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    fields = sorted(kind.fields, key=lambda field: field.name.lower())  # type: ignore[attr-defined]  # as it is named
    inner = _of_fields([(field, f"{value}.{name_sql(field.name)}") for field in fields], depth)
    return [_unless_null(value, f"r{name}("), *inner, _unless_null(value, ")")]


def _of_variant(value: str, kind: DataType, depth: int, name: str) -> list[str]:
    del kind, depth
    return [_unless_null(value, f"v{name}"), f"sha2(to_json({value}), 256)"]


_PARTS: dict[str, Callable[[str, DataType, int, str], list[str]]] = {
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
