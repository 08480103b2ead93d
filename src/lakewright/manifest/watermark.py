"""Watermarks: the largest value of a column that slices have brought, by application.

The truth is in the PROCESSED records' payloads; a document beside them, put down in the same write, makes the
last one a single look-up. It never moves backwards unless an operator sets it.

Source: `processing-strategies.md`, "Merge Strategy" (watermark in the configuration).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from lakewright.errors import UsageError
from lakewright.manifest.record import Application, format_instant, parse_instant
from lakewright.manifest.store import Document, Put, Store, Write

__all__ = ["WATERMARK", "Standing", "Watermark", "Watermarks"]

WATERMARK = "watermark"
"""The kind of the documents that hold the last watermarks."""

Value = bool | int | float | Decimal | date | datetime | str


@dataclass(frozen=True, slots=True)
class Watermark:
    """A column's value, typed and in full precision.

    Attributes:
        type: `long`, `double`, `decimal`, `date`, `timestamp` (UTC) or `string`.
        value: As JSON holds it: a number, or text for decimals, dates, timestamps, NaN and infinities.
    """

    type: str
    value: int | float | str

    @classmethod
    def of(cls, value: Value) -> Watermark:
        """Return the watermark with a Python value; a timestamp without time zone is UTC.

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
        """Return the watermark that `as_json` wrote.

        Raises:
            UsageError: The type is unknown, or the value isn't of it.
        """
        watermark = cls(str(document["type"]), document["value"])
        _ = watermark.python
        return watermark

    def as_json(self) -> dict[str, Any]:
        """Return the watermark as payloads and documents hold it."""
        return {"type": self.type, "value": self.value}

    @property
    def python(self) -> Value:
        """The value as Python has it."""
        try:
            value: Value = _READERS[self.type](self.value)
        except (KeyError, ValueError, ArithmeticError) as error:
            raise UsageError(f"{self.value!r} is no {self.type} of a watermark") from error
        return value

    def is_after(self, other: Watermark) -> bool:
        """Return whether this one lies after `other`; of another family of types, the column has changed."""
        mine, theirs = self.python, other.python
        for family in _FAMILIES:
            if isinstance(mine, family) and isinstance(theirs, family):
                return bool(mine > theirs)
        return True


@dataclass(frozen=True, slots=True)
class Standing:
    """The last watermark of one column of an application.

    Attributes:
        item_id: The item that brought it; None where an operator set it.
        author: Who set it; None where an item brought it.
    """

    application: Application
    column: str
    watermark: Watermark
    item_id: str | None
    author: str | None = None

    @property
    def key(self) -> str:
        """The key of the document that holds it."""
        return f"{self.application}/{self.column}"

    def put(self, *, expected: int | None = None) -> Put:
        """Return the write that makes this the last one."""
        value = {
            "application": list(self.application.key),
            "column": self.column,
            "item_id": self.item_id,
            **({} if self.author is None else {"author": self.author}),
            **self.watermark.as_json(),
        }
        return Put(WATERMARK, self.key, value, expected)

    @classmethod
    def from_document(cls, document: Document) -> Standing:
        """Return the standing that a document holds."""
        name, instance_id = document.value["application"]
        return cls(
            application=Application.named(name, instance_id),
            column=document.value["column"],
            watermark=Watermark.from_json(document.value),
            item_id=document.value["item_id"],
            author=document.value.get("author"),
        )


@dataclass(frozen=True, slots=True)
class Watermarks:
    """The last watermarks in a store."""

    store: Store

    def last(self, application: Application) -> Mapping[str, Watermark]:
        """Return the last watermark of each column that has one."""
        standings = self.all(prefix=f"{application}/")
        return {s.column: s.watermark for s in standings if s.application.key == application.key}

    def all(self, *, prefix: str = "") -> Iterator[Standing]:
        """Yield every last watermark, by application and column."""
        return map(Standing.from_document, self.store.documents(WATERMARK, prefix=prefix))

    def set(
        self, application: Application, column: str, watermark: Watermark, *, author: str | None = None
    ) -> None:
        """Make this the last watermark of a column, also where that is a step back."""
        self.store.write(Write(puts=(Standing(application, column, watermark, None, author).put(),)))

    def reset(self, application: Application, column: str) -> None:
        """Forget a column's watermark, as if no slice had brought one."""
        self.store.write(Write(puts=(Put(WATERMARK, f"{application}/{column}", None),)))

    def advances(
        self, application: Application, item_id: str, brought: Mapping[str, Mapping[str, Any]]
    ) -> tuple[Put, ...]:
        """Return the puts that move watermarks on to what an item brought, those that lie after the last.

        Args:
            application: Whose watermarks they are.
            item_id: The item that brought them.
            brought: Column to `{"type", "value"}`, as a PROCESSED payload holds them.
        """
        if not brought:
            return ()
        standings = [
            Standing(application, column, Watermark.from_json(document), item_id)
            for column, document in brought.items()
        ]
        seen = self.store.look_up([], [(WATERMARK, standing.key) for standing in standings])
        puts = []
        for standing in standings:
            present = seen.documents.get((WATERMARK, standing.key))
            if present is None:
                puts.append(standing.put(expected=0))
            elif standing.watermark.is_after(Standing.from_document(present).watermark):
                puts.append(standing.put(expected=present.version))
        return tuple(puts)


_READERS: Mapping[str, Any] = {
    "long": int,
    "double": float,
    "decimal": Decimal,
    "date": date.fromisoformat,
    "timestamp": parse_instant,
    "string": str,
}

_FAMILIES: tuple[Any, ...] = ((int, float, Decimal), datetime, date, str)
"""Types that compare with each other; a datetime, being a date to Python, comes first."""
