"""Hashes of rows in plain Python: the canonical text as it is described, with nothing of Spark or a JVM.

`processing-strategies.md`, "Common Processing Pipeline": compute source hash.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

__all__ = ["Entries", "row_hash"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SEED = 42
PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
MASK = (1 << 64) - 1


class Entries(dict[Any, Any]):
    """A map's, to tell them from a struct's fields."""


def row_hash(row: Mapping[str, Any]) -> str:
    """Return the hash of a row, column to value."""
    return hashlib.sha256(_fields(row).encode()).hexdigest()


def _fields(values: Mapping[str, Any]) -> str:
    present = sorted((name.lower(), value) for name, value in values.items() if value is not None)
    return "".join(
        _text(value, name.replace("\\", "\\\\").replace(";", "\\;") + ";") for name, value in present
    )


def _text(value: Any, name: str = "") -> str:
    return next(text for kind, text in _TEXTS if isinstance(value, kind))(value, name)


def _element(value: Any) -> str:
    return "~" if value is None else _text(value)


def _map(entries: Mapping[Any, Any], name: str) -> str:
    texts = [_text(key) + _element(value) for key, value in entries.items()]
    return f"m{name}{{{''.join(sorted(texts, key=str.encode))}}}"


def _hex(number: int) -> str:
    return f"{number & MASK:X}"


# The first type that a value is of counts: to Python a bool is an int, and a datetime a date.
_TEXTS: tuple[tuple[type, Callable[[Any, str], str]], ...] = (
    (bool, lambda value, name: f"{int(value)}b{name}"),
    (int, lambda value, name: f"{value}n{name}"),
    (str, lambda value, name: f"{_hex(len(value.encode()))}s{name}{value}"),
    (bytes, lambda value, name: f"{_hex(len(value))}x{name}{value.hex().upper()}"),
    (Decimal, lambda value, name: f"{value.normalize() if value else Decimal():f}n{name}"),
    (float, lambda value, name: f"{_hex(_bits(value))}f{name}"),
    (datetime, lambda value, name: f"{_hex((value - EPOCH) // timedelta(microseconds=1))}t{name}"),
    (date, lambda value, name: f"{_hex((value - EPOCH.date()).days)}d{name}"),
    (list, lambda value, name: f"a{name}[{''.join(map(_element, value))}]"),
    (Entries, _map),
    (dict, lambda value, name: f"r{name}({_fields(value)})"),
)


def _bits(value: float) -> int:
    """XXH64 of a double's eight bytes; all zeros are one, and all NaN."""
    plain = 0.0 if value == 0 else math.nan if math.isnan(value) else value
    (number,) = struct.unpack("<Q", struct.pack("<d", plain))
    found = (SEED + PRIMES[4] + 8) & MASK
    found ^= _turned(number * PRIMES[1] & MASK, 31) * PRIMES[0] & MASK
    found = (_turned(found, 27) * PRIMES[0] + PRIMES[3]) & MASK
    for shift, prime in ((33, PRIMES[1]), (29, PRIMES[2]), (32, 1)):
        found = (found ^ found >> shift) * prime & MASK
    return found


def _turned(number: int, bits: int) -> int:
    return (number << bits | number >> (64 - bits)) & MASK
