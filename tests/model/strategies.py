"""The three strategies in plain Python, as simple as they can be said: what Spark's are compared with.

Source: `processing-strategies.md`, with what Lakewright decided: half-open versions, revival, deletes, drift.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any


class Refused(Exception):
    """The slice can't be processed, and leaves everything as it was; the text says why."""


def canonical(value: Any) -> Hashable:
    """Return what equal values have in common, whatever their type, scale, sign of zero or order.

    A dict is a struct, a list of pairs a map. What is absent is None, at any depth.
    """
    if isinstance(value, dict):
        found = {(k.lower(), canonical(v)) for k, v in value.items()}
        return ("struct", frozenset(present)) if (present := {f for f in found if f[1] is not None}) else None
    if isinstance(value, list):
        return _of_list(value) if value else None
    return value if value is None or isinstance(value, bool) else _of_scalar(value)


def _of_list(value: list[Any]) -> Hashable:
    if isinstance(value[0], tuple):
        return ("map", frozenset((canonical(k), canonical(v)) for k, v in value))
    return ("list", tuple(canonical(v) for v in value))


def _of_scalar(value: Any) -> Hashable:
    if isinstance(value, float):
        return ("number", "nan" if math.isnan(value) else Decimal(repr(value)).normalize() + 0)
    if isinstance(value, (int, Decimal)):
        return ("number", Decimal(value).normalize() + 0)
    return (type(value).__name__, value)


@dataclass(frozen=True)
class Record:
    """One row of a slice.

    Attributes:
        key: Values of the business key, as the table has them.
        written: The same as the source has them, if it has others.
        values: All other values that count as a change, by column; None and absent are the same.
        stored: What of them comes into the table, as the table's types have it.
        loose: A value that doesn't count as a change.
        fits: Whether each value has a place in the table's types.
    """

    key: tuple[Any, ...]
    values: Mapping[str, Any]
    stored: Mapping[str, Any]
    mark: int | None = None
    part: str | None = None
    loose: int | None = None
    sequence: int | None = None
    deleted: bool | None = None
    fits: bool = True
    written: tuple[Any, ...] = ()

    @property
    def identity(self) -> Hashable:
        """What tells this record from others."""
        return tuple(canonical(value) for value in self.key)

    @property
    def content(self) -> Hashable:
        """What counts as a change."""
        counted = {**self.values, "mark": self.mark, "part": self.part, "seq": self.sequence}
        counted |= {f"key {number}": value for number, value in enumerate(self.written)}
        found = ((name, canonical(value)) for name, value in counted.items())
        return frozenset(each for each in found if each[1] is not None)

    @property
    def rank(self) -> tuple[bool, int]:
        """What orders the states of a record; one without a value is the oldest."""
        return (self.sequence is not None, self.sequence or 0)


@dataclass(frozen=True)
class Row:
    """One row of a silver table."""

    record: Record
    deleted: bool
    seen: int
    file: str
    valid_from: int | None = None
    valid_to: int | None = None

    @property
    def is_current(self) -> bool:
        """Whether no later version closed it."""
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
    superseded: int = 0
    outdated: int = 0
    quarantined: int = 0


@dataclass
class Model:
    """A table, and the largest watermark so far.

    Attributes:
        strategy: `full`, `merge` or `historic`.
        scope: None without delete inference, else `closed`, `open` or `full`.
        last_seen: `column` or `on_change`.
        is_partitioned: Whether Full replaces partitions only.
        duplicates: None without `sequence_by`, else `refuse` or `latest`.
        quarantines: Whether rows without a key, or with a value that does not fit, are put aside.
    """

    strategy: str
    scope: str | None = None
    last_seen: str = "column"
    is_partitioned: bool = False
    duplicates: str | None = None
    quarantines: bool = False
    rows: list[Row] = field(default_factory=list)
    is_late: bool = False
    has_bad: bool = False
    last: int | None = None

    def apply(self, slice_: Iterable[Record], at: int, file: str, *, is_late: bool = False) -> Counts:
        """Return the metrics after a slice is in the table; a late one is older than one applied before.

        Raises:
            Refused: It can't be.
        """
        sent = list(slice_)
        whole = [record for record in sent if not self._is_bad(record)]
        self.has_bad = len(whole) < len(sent)
        if self.has_bad and not whole:
            raise Refused("every row is bad")
        self.is_late = is_late and self.duplicates is not None
        records = self._latest(whole) if self.duplicates == "latest" else whole
        if len({record.identity for record in records}) < len(records):
            raise Refused("duplicate keys")
        change = {"full": self._full, "merge": self._merge, "historic": self._historic}[self.strategy]
        counts = Counts(len(sent), superseded=len(whole) - len(records), quarantined=len(sent) - len(whole))
        rows = change(records, at, file, counts)
        if any(not row.record.fits for row in rows):
            raise Refused("a value that doesn't fit")
        self.rows = rows
        marks = [record.mark for record in whole if record.mark is not None]
        self.last = max([*marks, *([] if self.last is None else [self.last])], default=None)
        return counts

    def _is_bad(self, record: Record) -> bool:
        misfits = not record.fits and not record.deleted
        return self.quarantines and (misfits or None in record.key)

    def _latest(self, records: list[Record]) -> list[Record]:
        """Return the latest row of each key; those that are equal count once."""
        by_key: dict[Hashable, list[Record]] = {}
        for record in records:
            by_key.setdefault(record.identity, []).append(record)
        kept: list[Record] = []
        for rows in by_key.values():
            top = max(row.rank for row in rows)
            kept += {(row.content, bool(row.deleted)): row for row in rows if row.rank == top}.values()
        return kept

    def _loses(self, new: Record, present: Record | None, *, is_deleted: bool) -> bool:
        """Return whether a row changes nothing: a late one brings back no record that later slices lack."""
        if self.duplicates is None or present is None:
            return False
        is_lacking = self.is_late and self.scope is not None and is_deleted
        return is_lacking or new.rank < present.rank

    def _as_deleted(self, row: Row, by: tuple[bool, int]) -> Row:
        """Return a deleted row, which knows at which point of the sequence it was deleted."""
        if self.duplicates is not None and by > row.record.rank:
            row = replace(row, record=replace(row.record, sequence=by[1]))
        return replace(row, deleted=True)

    def _full(self, records: list[Record], at: int, file: str, counts: Counts) -> list[Row]:
        counts.inserted = len(records)
        if not records and self.rows and not self.is_partitioned:
            raise Refused("an empty slice")
        replaced = {record.part for record in records}
        kept = [row for row in self.rows if self.is_partitioned and row.record.part not in replaced]
        newest = max((record.rank for record in records), default=(False, 0))
        if self.is_late and any(row.record.rank > newest for row in self.rows if row not in kept):
            raise Refused("a late slice would replace newer rows")
        return [*kept, *(Row(record, bool(record.deleted), at, file) for record in records)]

    def _merge(self, records: list[Record], at: int, file: str, counts: Counts) -> list[Row]:
        table = {row.record.identity: row for row in self.rows}
        missing = self._missing(records, [row for row in self.rows if not row.deleted])
        for record in records:
            self._merge_one(table, Row(record, False, at, file), counts)
        for row in missing:
            table[row.record.identity] = replace(row, deleted=True)
        counts.inferred_deletes = len(missing)
        return list(table.values())

    def _merge_one(self, table: dict[Hashable, Row], new: Row, counts: Counts) -> None:
        key = new.record.identity
        present = table.get(key)
        former = None if present is None else present.record
        if self._loses(new.record, former, is_deleted=present is not None and present.deleted):
            counts.outdated += 1
        elif new.record.deleted:
            counts.deleted += 1
            if present is not None:
                deleted = self._as_deleted(present, new.record.rank)
                if deleted != present or self.last_seen == "column":
                    table[key] = replace(deleted, seen=new.seen)
            elif self.duplicates is not None:
                part = new.record.part if self.is_partitioned else None
                bare = replace(new.record, values={}, stored={}, mark=None, loose=None, part=part, fits=True)
                table[key] = replace(new, record=bare, deleted=True)
        elif present is None:
            counts.inserted += 1
            table[key] = new
        elif present.deleted or present.record.content != new.record.content:
            counts.updated += 1
            counts.changed += 1
            table[key] = new
        else:
            counts.updated += 1
            if self.last_seen == "column":
                table[key] = replace(present, seen=new.seen)

    def _historic(self, records: list[Record], at: int, file: str, counts: Counts) -> list[Row]:
        current = {row.record.identity: row for row in self.rows if row.is_current}
        past = [row for row in self.rows if not row.is_current]
        missing = self._missing(records, list(current.values()))
        for record in records:
            self._version_one(current, past, Row(record, False, at, file, valid_from=at), counts)
        for row in missing:
            past.append(replace(current.pop(row.record.identity), valid_to=at, deleted=True))
        counts.deleted = counts.inferred_deletes = len(missing)
        return [*past, *current.values()]

    def _version_one(self, current: dict[Hashable, Row], past: list[Row], new: Row, counts: Counts) -> None:
        key, at = new.record.identity, new.valid_from
        present = current.get(key)
        gone = [row.record for row in past if row.deleted and row.record.identity == key]
        last = (
            present.record if present is not None else max(gone, key=lambda record: record.rank, default=None)
        )
        if self._loses(new.record, last, is_deleted=present is None):
            counts.outdated += 1
        elif new.record.deleted:
            counts.closed += 1
            if present is not None:
                past.append(self._as_deleted(replace(current.pop(key), valid_to=at), new.record.rank))
        elif present is None:
            counts.inserted += 1
            current[key] = new
        elif present.record.content != new.record.content:
            counts.updated += 1
            counts.changed += 1
            past.append(replace(present, valid_to=at))
            current[key] = new
        else:
            counts.unchanged += 1

    def _missing(self, records: list[Record], rows: list[Row]) -> list[Row]:
        """Rows that the slice should have brought again: none on the first run."""
        if self.scope is None or not records or not self.rows or self.is_late or self.has_bad:
            return []
        keys = {record.identity for record in records}
        if self.scope == "full":
            return [row for row in rows if row.record.identity not in keys]
        top = max((record.mark for record in records if record.mark is not None), default=None)
        if self.last is None or top is None:
            return []
        return [
            row for row in rows if row.record.identity not in keys and self._is_inside(row.record.mark, top)
        ]

    def _is_inside(self, mark: int | None, top: int) -> bool:
        if mark is None or self.last is None:
            return False
        return (self.last < mark if self.scope == "open" else self.last <= mark) and mark <= top
