"""Hashes of rows in plain Python: the canonical text as it is described, with nothing of Spark or a JVM.

`processing-strategies.md`, "Common Processing Pipeline": compute source hash.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)
SEED = 42
PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
MASK = (1 << 64) - 1


class Entries(dict[Any, Any]):
    """A map's, to tell them from a struct's fields."""


class Single(float):
    """A number of 32 bits."""

    def __new__(cls, value: float) -> Single:
        return super().__new__(cls, struct.unpack("<f", struct.pack("<f", value))[0])


def row_hash(row: Mapping[str, Any], version: str, zone: str = "UTC") -> str:
    """Return the hash of a row, column to value."""
    return hashlib.sha256(_Form(version, ZoneInfo(zone)).fields(row).encode()).hexdigest()


@dataclass(frozen=True)
class _Form:
    version: str
    zone: ZoneInfo

    def fields(self, values: Mapping[str, Any]) -> str:
        present = sorted(
            (name.lower(), value) for name, value in values.items() if not self._is_absent(value)
        )
        return "".join(
            self._text(value, name.replace("\\", "\\\\").replace(";", "\\;") + ";") for name, value in present
        )

    def _is_absent(self, value: Any) -> bool:
        if value is None or self.version == "2":
            return value is None
        if isinstance(value, dict) and not isinstance(value, Entries):
            return all(map(self._is_absent, value.values()))
        return isinstance(value, list | dict) and not value

    def _text(self, value: Any, name: str = "") -> str:
        # The first type that a value is of counts: to Python a bool is an int, and a datetime a date.
        texts: tuple[tuple[Any, Callable[[], str]], ...] = (
            (bool, lambda: f"{int(value)}b{name}"),
            (int | Decimal | float, lambda: self._number(value) + name),
            (str, lambda: f"{_hex(len(value.encode()))}s{name}{value}"),
            (bytes, lambda: f"{_hex(len(value))}x{name}{value.hex().upper()}"),
            (datetime, lambda: self._time(value, name)),
            (date, lambda: f"{_hex((value - EPOCH.date()).days)}d{name}"),
            (list, lambda: f"a{name}[{''.join(map(self._element, value))}]"),
            (Entries, lambda: self._map(value, name)),
            (dict, lambda: f"r{name}({self.fields(value)})"),
        )
        return next(text() for kind, text in texts if isinstance(value, kind))

    def _element(self, value: Any) -> str:
        return "~" if self._is_absent(value) else self._text(value)

    def _map(self, entries: Mapping[Any, Any], name: str) -> str:
        texts = [self._text(key) + self._element(value) for key, value in entries.items()]
        return f"m{name}{{{''.join(sorted(texts, key=str.encode))}}}"

    def _time(self, value: datetime, name: str) -> str:
        if value.tzinfo is not None:
            return f"{_hex((value.astimezone(UTC).replace(tzinfo=None) - EPOCH) // MICROSECOND)}t{name}"
        if self.version == "2":
            text = value.isoformat(" ")
            return f"o{name}timestamp_ntz;{text.rstrip('0') if '.' in text else text};"
        offset = self.zone.utcoffset(value)
        assert offset is not None
        return f"{_hex((value - EPOCH) // MICROSECOND - offset // MICROSECOND)}t{name}"

    def _number(self, value: float | Decimal) -> str:
        if self.version == "2":
            return f"{_hex(_bits(value))}f" if isinstance(value, float) else f"{_digits(value).rstrip('.')}n"
        if isinstance(value, float) and not math.isfinite(value):
            return {math.inf: "∞", -math.inf: "-∞"}.get(value, "NaN") + "n"
        if isinstance(value, float) and not (value.is_integer() and -(2**63) <= value < 2**63):
            return _digits(Decimal(_shortest(value))) + "n"
        return _digits(int(value) if isinstance(value, float) else value) + "n"


def _digits(value: int | Decimal) -> str:
    text = f"{value:f}" if isinstance(value, Decimal) else f"{value}"
    return text.rstrip("0") if "." in text else f"{text}."


def _shortest(value: float) -> str:
    if not isinstance(value, Single):
        return repr(value)
    tried = (f"{float(value):.{digits}g}" for digits in range(1, 10))
    return next(text for text in tried if Single(float(text)) == value)


def _hex(number: int) -> str:
    return f"{number & MASK:X}"


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
