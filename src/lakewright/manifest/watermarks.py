"""Watermarks: for each application, the largest value of a column in the processed slices, with its type.

The payloads of PROCESSED records are authoritative. A document, saved in the same write, makes the current
watermark a single look-up. It moves backwards only if an operator sets it; that change is recorded with its
author, time and reason.

Marks of what an application has processed so far are beside them: only processing moves them on, while the
number of processed items and the numbers of commits also change with an undo, and with an attempt that fails.

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
from lakewright.manifest.plain_values import document_of
from lakewright.manifest.record import Application, format_instant, parse_instant
from lakewright.manifest.store import Document, DocumentKey, Put, Store

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


WATERMARK = "watermark"
"""The kind of the documents that hold the current watermarks."""

CHANGE = "watermark_change"
"""The kind of the documents that record what operators did to watermarks; they are written once."""


@dataclass(frozen=True, slots=True)
class StoredWatermark:
    """The current watermark of one column of an application.

    Attributes:
        item_id: The item it came from; None if an operator set it.
        author: Who set it; None if an item did as it was processed.
        reason: Why it was set; None if an item did.
        at: When it was set; None if an item did.
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
        """Return the put that makes this the current watermark."""
        value = {
            "application": list(self.application.key),
            "column": self.column,
            "item_id": self.item_id,
            **({} if self.author is None else document_of(self, "author", "reason", "at")),
            **self.watermark.as_json(),
        }
        return Put(WATERMARK, self.key, value, expected)

    def as_json(self) -> dict[str, Any]:
        """Return the watermark as `watermark ls -o json` lists it."""
        named = {"entity": self.application.name.rpartition("/")[2], "value": self.watermark.value}
        return {**named, **document_of(self, "column", "item_id", "author", "at", "reason")}

    @classmethod
    def from_document(cls, document: Document) -> StoredWatermark:
        """Return the watermark that a document holds."""
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
class WatermarkChange:
    """A change that an operator made to the watermark of a column.

    Attributes:
        watermark: The new watermark; None if it was deleted.
        before: The watermark before; None if there was none.
        author: Who changed it.
        reason: Why it was changed.
        at: When it was changed, by the store's clock.
        item_id: The item that the new watermark comes from, if it goes back to that of an earlier one.
    """

    application: Application
    column: str
    watermark: Watermark | None
    before: Watermark | None
    author: str
    reason: str
    at: datetime
    item_id: str | None = None

    def puts(self, change_id: str, *, expected: int) -> tuple[Put, Put]:
        """Return the puts that save the change, if the watermark's document has the expected version.

        Args:
            change_id: An id that no other change has.
            expected: The version of the watermark's document; 0 if there is none.
        """
        value = {
            "application": list(self.application.key),
            "value": None if self.watermark is None else self.watermark.as_json(),
            **document_of(self, "column", "before", "author", "reason", "at"),
            **({} if self.item_id is None else {"item_id": self.item_id}),
        }
        stored = self.stored
        put = Put(WATERMARK, self.watermark_key, None, expected)
        if stored is not None:
            put = stored.put(expected=expected)
        return put, Put(CHANGE, f"{format_instant(self.at)}/{change_id}", value, 0)

    @property
    def stored(self) -> StoredWatermark | None:
        """The current watermark after the change; None if it was deleted."""
        if self.watermark is None:
            return None
        return StoredWatermark(
            self.application, self.column, self.watermark, self.item_id, self.author, self.reason, self.at
        )

    @property
    def watermark_key(self) -> str:
        """The key of the document that holds the watermark."""
        return watermark_key(self.application, self.column)

    def as_json(self) -> dict[str, Any]:
        """Return the change as `watermark history -o json` lists it."""
        return {
            "entity": self.application.name.rpartition("/")[2],
            "value": None if self.watermark is None else self.watermark.value,
            "before": None if self.before is None else self.before.value,
            **document_of(self, "at", "column", "author", "reason"),
        }

    @classmethod
    def from_document(cls, document: Document) -> WatermarkChange:
        """Return the change that a document records."""
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
            item_id=value.get("item_id"),
        )


def watermark_key(application: Application, column: str) -> str:
    """Return the key of the document that holds a column's current watermark."""
    return f"{application}/{column}"


def _read(document: Mapping[str, Any] | None) -> Watermark | None:
    return None if document is None else Watermark.from_json(document)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)


@dataclass(frozen=True, slots=True)
class Watermarks:
    """The current watermarks in a store."""

    store: Store

    def last(self, application: Application) -> Mapping[str, Watermark]:
        """Return the current watermark of each column that has one."""
        stored = self.all(prefix=f"{application}/")
        return {s.column: s.watermark for s in stored if s.application.key == application.key}

    def all(self, *, prefix: str = "") -> Iterator[StoredWatermark]:
        """Yield every current watermark, by application and column."""
        return map(StoredWatermark.from_document, self.store.documents(WATERMARK, prefix=prefix))

    def changes(self) -> Iterator[WatermarkChange]:
        """Yield the changes that operators made to watermarks, newest first."""
        return map(WatermarkChange.from_document, self.store.documents(CHANGE, is_newest_first=True))

    def puts_for_item(
        self,
        application: Application,
        item_id: str,
        recorded: Mapping[str, Mapping[str, Any]],
        beside: Sequence[DocumentKey] = (),
    ) -> tuple[Put, ...]:
        """Return the puts that advance the watermarks to those of an item; smaller ones are ignored.

        Args:
            application: Whose watermarks they are.
            item_id: The item they came from.
            recorded: Column to `{"type", "value"}`, as a PROCESSED payload holds them.
            beside: Documents that the same write puts: looking them up here saves a round trip.
        """
        found = [
            StoredWatermark(application, column, Watermark.from_json(document), item_id)
            for column, document in recorded.items()
        ]
        return self.puts_for(found, beside)

    def puts_for(
        self, watermarks: Sequence[StoredWatermark], beside: Sequence[DocumentKey] = ()
    ) -> tuple[Put, ...]:
        """Return the puts that advance the watermarks to those greater than the current ones."""
        if not watermarks:
            return ()
        seen = self.store.look_up([], [*((WATERMARK, each.key) for each in watermarks), *beside])
        puts = []
        for each in watermarks:
            present = seen.documents.get((WATERMARK, each.key))
            if present is None:
                puts.append(each.put(expected=0))
            elif each.watermark.is_after(StoredWatermark.from_document(present).watermark):
                puts.append(each.put(expected=present.version))
        return tuple(puts)


_PROCESSED = "processed"
"""The kind of the documents whose versions are the marks. They are not exported: versions differ by store."""


def processed_put(application: Application) -> Put:
    """Return the put that moves the mark of an application on."""
    return Put(_PROCESSED, str(application), {})


def processed_mark(store: Store, application: Application) -> str:
    """Return the mark of what an application has processed so far; it differs after each slice."""
    document = store.document(_PROCESSED, str(application))
    return "0" if document is None else str(document.version)
