"""The three strategies in plain Python, as simple as they can be said: what Spark's are compared with.

Source: `processing-strategies.md`, with what Lakewright decided: half-open versions, revival, deletes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

Key = Any


@dataclass(frozen=True)
class Record:
    """One row of a slice: a key, the values that count, a watermark, and whether it arrives deleted."""

    key: Key
    values: tuple[Any, ...]
    mark: int | None = None
    deleted: bool | None = None


@dataclass(frozen=True)
class Row:
    """One row of a silver table."""

    key: Key
    values: tuple[Any, ...]
    mark: int | None
    deleted: bool
    seen: int
    valid_from: int | None = None
    valid_to: int | None = None

    @property
    def is_current(self) -> bool:
        return self.valid_to is None


@dataclass
class Counts:
    """The metrics of one slice."""

    records_in_slice: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    changed: int = 0
    closed: int = 0
    inferred_deletes: int = 0


@dataclass
class Model:
    """A table, and the largest watermark so far.

    Attributes:
        scope: None without delete inference, else `closed`, `open` or `full`.
        last_seen: `column` or `on_change`.
    """

    scope: str | None = None
    last_seen: str = "column"
    rows: list[Row] = field(default_factory=list)
    last: int | None = None

    def full(self, slice_: Iterable[Record], at: int) -> Counts:
        records = list(slice_)
        self.rows = [_row(record, at, deleted=bool(record.deleted)) for record in records]
        return Counts(len(records), inserted=len(records))

    def merge(self, slice_: Iterable[Record], at: int) -> Counts:
        records = list(slice_)
        counts = Counts(len(records))
        table = {row.key: row for row in self.rows}
        missing = self._missing(records, [row for row in self.rows if not row.deleted])
        for record in records:
            self._merge_one(table, record, at, counts)
        for row in missing:
            table[row.key] = replace(table[row.key], deleted=True)
        counts.inferred_deletes = len(missing)
        self.rows = list(table.values())
        self._advance(records)
        return counts

    def _merge_one(self, table: dict[Key, Row], record: Record, at: int, counts: Counts) -> None:
        present = table.get(record.key)
        if record.deleted:
            counts.deleted += 1
            if present is not None and (not present.deleted or self.last_seen == "column"):
                table[record.key] = replace(present, deleted=True, seen=at)
        elif present is None:
            counts.inserted += 1
            table[record.key] = _row(record, at)
        elif present.deleted or _differs(present, record):
            counts.updated += 1
            counts.changed += 1
            table[record.key] = _row(record, at)
        else:
            counts.updated += 1
            if self.last_seen == "column":
                table[record.key] = replace(present, seen=at)

    def historic(self, slice_: Iterable[Record], at: int) -> Counts:
        records = list(slice_)
        counts = Counts(len(records))
        current = {row.key: row for row in self.rows if row.is_current}
        past = [row for row in self.rows if not row.is_current]
        missing = self._missing(records, list(current.values()))
        for record in records:
            self._version_one(current, past, record, at, counts)
        for row in missing:
            past.append(replace(current.pop(row.key), valid_to=at, deleted=True))
        counts.deleted = counts.inferred_deletes = len(missing)
        self.rows = [*past, *current.values()]
        self._advance(records)
        return counts

    def _version_one(
        self, current: dict[Key, Row], past: list[Row], record: Record, at: int, counts: Counts
    ) -> None:
        present = current.get(record.key)
        if record.deleted:
            counts.closed += 1
            if present is not None:
                past.append(replace(current.pop(record.key), valid_to=at, deleted=True))
        elif present is None:
            counts.inserted += 1
            current[record.key] = _row(record, at, valid_from=at)
        elif _differs(present, record):
            counts.updated += 1
            counts.changed += 1
            past.append(replace(present, valid_to=at))
            current[record.key] = _row(record, at, valid_from=at)
        else:
            counts.unchanged += 1

    def _missing(self, records: list[Record], rows: list[Row]) -> list[Row]:
        """Rows that the slice should have brought again: none on the first run."""
        if self.scope is None or not records or not self.rows:
            return []
        keys = {record.key for record in records}
        if self.scope == "full":
            return [row for row in rows if row.key not in keys]
        top = max((record.mark for record in records if record.mark is not None), default=None)
        if self.last is None or top is None:
            return []
        return [row for row in rows if row.key not in keys and self._is_inside(row.mark, top)]

    def _is_inside(self, mark: int | None, top: int) -> bool:
        if mark is None or self.last is None:
            return False
        return (self.last < mark if self.scope == "open" else self.last <= mark) and mark <= top

    def _advance(self, records: list[Record]) -> None:
        marks = [record.mark for record in records if record.mark is not None]
        self.last = max([*marks, *([] if self.last is None else [self.last])], default=None)


def _row(record: Record, at: int, *, deleted: bool = False, valid_from: int | None = None) -> Row:
    return Row(record.key, record.values, record.mark, deleted, at, valid_from)


def _differs(row: Row, record: Record) -> bool:
    return (row.values, row.mark) != (record.values, record.mark)
