"""Hashes of rows and keys: one canonical text of the columns that have a value, through SHA-256.

Equal values have equal texts whatever their column's position, integer width or decimal scale, and whatever
the session's time zone or the JVM; different values, also nulls and values in other columns, have different
texts, because each part tells its own end. The text of

- a string starts with its length in bytes,
- a number is its plain decimal digits, without zeros at the end of a fraction,
- a float or double is a number that stands for its bits one to one (`xxhash64` of eight bytes is a
  bijection), with one zero and one NaN,
- a date or timestamp is the number of days or microseconds since 1970 (UTC),
- an array is its elements; a map its entries, sorted; a struct its fields that have a value, sorted by name.

The casts of decimals need a session in ANSI mode: only there Spark writes small ones without an exponent.

Source: `processing-strategies.md`, "Common Processing Pipeline" (Compute source hash, Generate primary key).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakewright.transform.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField

__all__ = ["HASH_VERSION", "hash_of", "hash_sql", "value_class"]

HASH_VERSION = "1"
"""Version of the canonical text, kept as a property of each silver table."""

_WHOLE = frozenset(("byte", "short", "integer", "long"))


def hash_sql(fields: Iterable[StructField]) -> str:
    """Return the SQL of the hash of these columns: 64 hex digits, never null.

    Args:
        fields: Columns by name and type, in any order; case of names doesn't count.
    """
    return hash_of((field, name_sql(field.name)) for field in fields)


def hash_of(values: Iterable[tuple[StructField, str]]) -> str:
    """Return the SQL of the hash of these values, each with the name and type that it counts under."""
    ordered = sorted(values, key=lambda each: each[0].name.lower())
    return f"sha2({_concat([_named(field, value, 0) for field, value in ordered])}, 256)"


def value_class(kind: DataType) -> str:
    """Return what types have in common whose equal values have equal hashes.

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


def _by_name(fields: Iterable[StructField]) -> list[StructField]:
    return sorted(fields, key=lambda field: field.name.lower())


def _named(field: StructField, value: str, depth: int) -> str:
    """The text of a field: its name and value, or nothing where it is null."""
    name = field.name.lower()
    start = text_sql(f"{len(name.encode())}:{name}")
    return f"coalesce(concat({start}, {_text(value, field.dataType, depth)}), '')"


def _concat(parts: list[str]) -> str:
    return f"concat({', '.join(parts)})" if parts else "''"


def _text(value: str, kind: DataType, depth: int) -> str:
    """The canonical text of a value, null for null; `depth` counts the lambdas around it."""
    name = _kind(kind)
    builder = _TEXTS.get(name)
    if builder is not None:
        return builder(value, kind, depth)
    return f"concat({text_sql(f'o{name}=')}, cast({value} as string), ';')"


def _of_string(value: str, kind: DataType, depth: int) -> str:
    del kind, depth
    return f"concat('s', cast(octet_length({value}) as string), ':', {value})"


def _of_binary(value: str, kind: DataType, depth: int) -> str:
    del kind, depth
    return f"concat('x', hex({value}), ';')"


def _of_boolean(value: str, kind: DataType, depth: int) -> str:
    del kind, depth
    return f"concat('b', cast(cast({value} as int) as string), ';')"


def _of_whole(value: str, kind: DataType, depth: int) -> str:
    del kind, depth
    return f"concat('n', cast({value} as string), ';')"


def _of_decimal(value: str, kind: DataType, depth: int) -> str:
    del depth
    digits = f"cast({value} as string)"
    if getattr(kind, "scale", 0) > 0:
        digits = f"rtrim('.', rtrim('0', {digits}))"
    return f"concat('n', {digits}, ';')"


def _of_double(value: str, kind: DataType, depth: int) -> str:
    del kind, depth
    wide = f"cast({value} as double)"
    return (
        f"if({value} is null, null, concat('f', cast(xxhash64(if({wide} = 0D, 0D, {wide})) as string), ';'))"
    )


def _of_date(value: str, kind: DataType, depth: int) -> str:
    del kind, depth
    return f"concat('d', cast(unix_date({value}) as string), ';')"


def _of_timestamp(value: str, kind: DataType, depth: int) -> str:
    del kind, depth
    return f"concat('t', cast(unix_micros({value}) as string), ';')"


def _of_array(value: str, kind: DataType, depth: int) -> str:
    element = f"e{depth}"
    inner = _text(element, kind.elementType, depth + 1)  # type: ignore[attr-defined]  # as it is named
    return f"concat('[', array_join(transform({value}, {element} -> coalesce({inner}, '-')), ''), ']')"


def _of_map(value: str, kind: DataType, depth: int) -> str:
    entry = f"e{depth}"
    key = _text(f"{entry}.key", kind.keyType, depth + 1)  # type: ignore[attr-defined]  # as it is named
    inner = _text(f"{entry}.value", kind.valueType, depth + 1)  # type: ignore[attr-defined]  # as it is named
    texts = f"transform(map_entries({value}), {entry} -> concat({key}, coalesce({inner}, '-')))"
    return f"concat('{{', array_join(array_sort({texts}), ''), '}}')"


def _of_struct(value: str, kind: DataType, depth: int) -> str:
    fields = _by_name(kind.fields)  # type: ignore[attr-defined]  # as it is named
    parts = [_named(field, f"{value}.{name_sql(field.name)}", depth) for field in fields]
    return f"if({value} is null, null, {_concat([text_sql('('), *parts, text_sql(')')])})"


def _of_variant(value: str, kind: DataType, depth: int) -> str:
    del kind, depth
    return f"concat('v', sha2(to_json({value}), 256), ';')"


_TEXTS = {
    "string": _of_string,
    "void": _of_string,
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
