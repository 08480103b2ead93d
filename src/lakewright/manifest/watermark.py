"""Watermarks: the largest value of a column that slices have brought, by application.

The truth is in the PROCESSED records' payloads; a document beside them, put down in the same write, makes the
last one a single look-up. It never moves backwards unless an operator sets it; who did so, when and why is
written together with it.

Source: `processing-strategies.md`, "Merge Strategy" (watermark in the configuration).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from lakewright.errors import UsageError
from lakewright.manifest.record import Application, format_instant, parse_instant
from lakewright.manifest.store import Document, Put, Store, Write

__all__ = ["CHANGE", "WATERMARK", "Change", "Standing", "Watermark", "Watermarks", "watermark_key"]

WATERMARK = "watermark"
"""The kind of the documents that hold the last watermarks."""

CHANGE = "watermark_change"
"""The kind of the documents that tell what operators did to watermarks; they are never written again."""

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
            raise UsageError(
                f"{self.value!r} is no {self.type} of a watermark", remedy=_FORMS.get(self.type)
            ) from error
        return value

    def is_after(self, other: Watermark) -> bool:
        """Return whether this one lies after `other`; of another family of types, the column has changed."""
        mine, theirs = _comparable(self.python), _comparable(other.python)
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
        reason: Why it was set.
        at: When it was set.
    """

    application: Application
    column: str
    watermark: Watermark
    item_id: str | None
    author: str | None = None
    reason: str | None = None
    at: datetime | None = None

    @property
    def key(self) -> str:
        """The key of the document that holds it."""
        return watermark_key(self.application, self.column)

    def put(self, *, expected: int | None = None) -> Put:
        """Return the write that makes this the last one."""
        value = {
            "application": list(self.application.key),
            "column": self.column,
            "item_id": self.item_id,
            **({} if self.author is None else {"author": self.author, "reason": self.reason}),
            **({} if self.at is None else {"at": format_instant(self.at)}),
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
            reason=document.value.get("reason"),
            at=_instant(document.value.get("at")),
        )


@dataclass(frozen=True, slots=True)
class Change:
    """What somebody did to the last watermark of a column, apart from slices that moved it on.

    Attributes:
        watermark: What it was made; None where it was forgotten.
        before: What it was; None where there was none.
        author: Who did it.
        at: When, by the store's clock.
    """

    application: Application
    column: str
    watermark: Watermark | None
    before: Watermark | None
    author: str
    reason: str
    at: datetime

    def puts(self, change_id: str, *, expected: int) -> tuple[Put, Put]:
        """Return the writes that do it, if the watermark's document is the expected one, and put it down.

        Args:
            change_id: One that no other change has.
            expected: Version of the watermark's document, 0 for none.
        """
        value = {
            "application": list(self.application.key),
            "column": self.column,
            "value": None if self.watermark is None else self.watermark.as_json(),
            "before": None if self.before is None else self.before.as_json(),
            "author": self.author,
            "reason": self.reason,
            "at": format_instant(self.at),
        }
        standing = self.standing
        done = Put(WATERMARK, self.watermark_key, None, expected)
        if standing is not None:
            done = standing.put(expected=expected)
        return done, Put(CHANGE, f"{format_instant(self.at)}/{change_id}", value, 0)

    @property
    def standing(self) -> Standing | None:
        """The last watermark as this leaves it; None where it was forgotten."""
        if self.watermark is None:
            return None
        return Standing(
            self.application, self.column, self.watermark, None, self.author, self.reason, self.at
        )

    @property
    def watermark_key(self) -> str:
        """The key of the document that holds the watermark, if there is one."""
        return watermark_key(self.application, self.column)

    @classmethod
    def from_document(cls, document: Document) -> Change:
        """Return the change that a document tells of."""
        value = document.value
        name, instance_id = value["application"]
        return cls(
            application=Application.named(name, instance_id),
            column=value["column"],
            watermark=_read(value["value"]),
            before=_read(value["before"]),
            author=value["author"],
            reason=value["reason"],
            at=parse_instant(value["at"]),
        )


def watermark_key(application: Application, column: str) -> str:
    """Return the key of the document that holds a column's last watermark."""
    return f"{application}/{column}"


def _read(document: Mapping[str, Any] | None) -> Watermark | None:
    return None if document is None else Watermark.from_json(document)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)


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

    def changes(self) -> Iterator[Change]:
        """Yield what was done to watermarks apart from slices, newest first."""
        return map(Change.from_document, self.store.documents(CHANGE, is_newest_first=True))

    def change(
        self,
        application: Application,
        column: str,
        watermark: Watermark | None,
        *,
        author: str,
        reason: str,
        change_id: str,
    ) -> Change:
        """Make this the last watermark of a column, also where that is a step back; None forgets it.

        Args:
            application: Whose watermark it is.
            column: The column.
            watermark: The value, or None for the state before any slice brought one.
            author: Who does it.
            reason: Why.
            change_id: One that no other change has.

        Raises:
            SequenceConflict: A slice or somebody else changed it at this moment; nothing was written.
        """
        present = self.store.document(WATERMARK, watermark_key(application, column))
        before = None if present is None else Standing.from_document(present).watermark
        change = Change(application, column, watermark, before, author, reason, self.store.now())
        version = 0 if present is None else present.version
        self.store.write(Write(puts=change.puts(change_id, expected=version)))
        return change

    def advances(
        self, application: Application, item_id: str, brought: Mapping[str, Mapping[str, Any]]
    ) -> tuple[Put, ...]:
        """Return the puts that move watermarks on to what an item brought, those that lie after the last.

        Args:
            application: Whose watermarks they are.
            item_id: The item that brought them.
            brought: Column to `{"type", "value"}`, as a PROCESSED payload holds them.
        """
        return self.moves(
            [
                Standing(application, column, Watermark.from_json(document), item_id)
                for column, document in brought.items()
            ]
        )

    def moves(self, standings: Sequence[Standing]) -> tuple[Put, ...]:
        """Return the puts that move watermarks on to those that lie after the last ones."""
        if not standings:
            return ()
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

_FORMS: Mapping[str, str] = {
    "long": "Write a whole number, such as 42.",
    "double": "Write a number, such as 1.5 or 1e6.",
    "decimal": "Write a number, such as 12.50.",
    "date": "Write it as 2022-01-31.",
    "timestamp": "Write it as 2022-01-31T12:00:00Z, or with another offset.",
}

_FAMILIES: tuple[Any, ...] = ((int, float, Decimal), datetime, str)
"""Types that compare with each other."""


def _comparable(value: Value) -> Value:
    """The value, a day as its first moment: a column may change from one to the other."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time(), UTC)
    return value
