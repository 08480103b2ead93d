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
    return "".join(f"{len(name.encode())}:{name}{_text(value)}" for name, value in present)


def _text(value: Any) -> str:
    return next(text for kind, text in _TEXTS if isinstance(value, kind))(value)


def _element(value: Any) -> str:
    return "-" if value is None else _text(value)


def _map(entries: Mapping[Any, Any]) -> str:
    texts = [_text(key) + _element(value) for key, value in entries.items()]
    return f"{{{''.join(sorted(texts, key=str.encode))}}}"


# The first type that a value is of counts: to Python a bool is an int, and a datetime a date.
_TEXTS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda value: f"b{int(value)};"),
    (int, lambda value: f"n{value};"),
    (str, lambda value: f"s{len(value.encode())}:{value}"),
    (bytes, lambda value: f"x{value.hex().upper()};"),
    (Decimal, lambda value: f"n{value.normalize():f};" if value else "n0;"),
    (float, lambda value: f"f{_bits(value)};"),
    (datetime, lambda value: f"t{(value - EPOCH) // timedelta(microseconds=1)};"),
    (date, lambda value: f"d{(value - EPOCH.date()).days};"),
    (list, lambda value: f"[{''.join(map(_element, value))}]"),
    (Entries, _map),
    (dict, lambda value: f"({_fields(value)})"),
)


def _bits(value: float) -> int:
    """XXH64 of a double's eight bytes, as a signed number; all zeros are one, and all NaN."""
    plain = 0.0 if value == 0 else math.nan if math.isnan(value) else value
    (number,) = struct.unpack("<Q", struct.pack("<d", plain))
    found = (SEED + PRIMES[4] + 8) & MASK
    found ^= _turned(number * PRIMES[1] & MASK, 31) * PRIMES[0] & MASK
    found = (_turned(found, 27) * PRIMES[0] + PRIMES[3]) & MASK
    for shift, prime in ((33, PRIMES[1]), (29, PRIMES[2]), (32, 1)):
        found = (found ^ found >> shift) * prime & MASK
    return found - (1 << 64) if found >> 63 else found


def _turned(number: int, bits: int) -> int:
    return (number << bits | number >> (64 - bits)) & MASK
