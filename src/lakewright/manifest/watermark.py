"""A watermark's value: a typed column value that compares and has a JSON form.

Source: `processing-strategies.md`, "Merge Strategy" (watermark in the configuration).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from lakewright.errors import UsageError
from lakewright.manifest.record import format_instant, parse_instant

Value = bool | int | float | Decimal | date | datetime | str


@dataclass(frozen=True, slots=True)
class Watermark:
    """A column's value with its type, in full precision.

    Attributes:
        type: `long`, `double`, `decimal`, `date`, `timestamp` (UTC) or `string`.
        value: The JSON form: a number, or text for decimals, dates, timestamps, NaN and infinities.
    """

    type: str
    value: int | float | str

    @classmethod
    def of(cls, value: Value) -> Watermark:
        """Return the watermark of a Python value; a timestamp without a time zone is UTC.

        Example:
            >>> Watermark.of(Decimal("12.50"))
            Watermark(type='decimal', value='12.50')
        """
        if isinstance(value, datetime):
            return cls("timestamp", format_instant(parse_instant(value.isoformat())))
        if isinstance(value, date):
            return cls("date", value.isoformat())
        if isinstance(value, Decimal):
            return cls("decimal", str(value))
        if isinstance(value, int):
            return cls("long", int(value))
        if isinstance(value, float):
            return cls("double", value if math.isfinite(value) else str(value))
        return cls("string", value)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Watermark:
        """Return the watermark of a value that `as_json` returned.

        Raises:
            UsageError: The type is unknown, or the value does not have it.
        """
        watermark = cls(str(document["type"]), document["value"])
        _ = watermark.python
        return watermark

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form that payloads and documents hold."""
        return {"type": self.type, "value": self.value}

    @property
    def python(self) -> Value:
        """The Python value.

        Raises:
            UsageError: The type is unknown, or the value does not have it.
        """
        try:
            value: Value = _READERS[self.type](self.value)
        except (KeyError, ValueError, ArithmeticError) as error:
            raise UsageError(
                f"{self.value!r} isn't a watermark of type {self.type}", remedy=_FORMS.get(self.type)
            ) from error
        return value

    def is_after(self, other: Watermark) -> bool:
        """Return whether this watermark is greater than `other`, or of a type that does not compare with it.

        If the types do not compare, the column has changed its type.
        """
        mine, theirs = _comparable(self.python), _comparable(other.python)
        for family in _FAMILIES:
            if isinstance(mine, family) and isinstance(theirs, family):
                return bool(mine > theirs)
        return True


_READERS: Mapping[str, Any] = {
    "long": int,
    "double": float,
    "decimal": Decimal,
    "date": date.fromisoformat,
    "timestamp": parse_instant,
    "string": str,
}

_FORMS: Mapping[str, str] = {
    "long": "Write a whole number, such as 42.",
    "double": "Write a number, such as 1.5 or 1e6.",
    "decimal": "Write a number, such as 12.50.",
    "date": "Write it as 2022-01-31.",
    "timestamp": "Write it as 2022-01-31T12:00:00Z, or with another offset.",
}

_FAMILIES: tuple[Any, ...] = ((int, float, Decimal), datetime, str)
"""Groups of types that compare with each other."""


def _comparable(value: Value) -> Value:
    """Return the value; a date as its first moment, because a column may change from date to timestamp."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time(), UTC)
    return value
