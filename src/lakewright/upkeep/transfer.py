"""Exporting and importing a manifest: its records, and its documents except leases.

Source: `processing-manifest.md`, "Record".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, groupby
from typing import TypeVar

from lakewright.errors import Fault, LakewrightError, StoreUnavailable
from lakewright.manifest.batch import touched
from lakewright.manifest.claim import COUNTER, raise_counter
from lakewright.manifest.journal import BUILD, unsettled
from lakewright.manifest.record import Draft, Record, State
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.store import (
    Append,
    Damage,
    Document,
    DocumentKey,
    Outcome,
    Put,
    Seen,
    Store,
    Write,
    batched,
)
from lakewright.manifest.watermarks import (
    CHANGE,
    WATERMARK,
    StoredWatermark,
    WatermarkChange,
    Watermarks,
)
from lakewright.stores.memory import MemoryStore
from lakewright.upkeep.fsck import RecordedWatermarks
from lakewright.upkeep.transfer_lines import (
    KINDS,
    DocumentLine,
    Line,
    RecordLine,
    document_text,
    parse_lines,
    record_text,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import.

    Attributes:
        records: How many records were added.
        documents: How many documents were added.
        present: How many of both existed already.
        faults: A fault, with its line, for each line, item or document that is wrong. An item with an illegal
            record is wrong as a whole.
        is_refused: Whether nothing was imported because of the faults.
    """

    records: int
    documents: int
    present: int
    faults: tuple[Fault, ...]
    is_refused: bool = False


def export_manifest(store: Store) -> Iterator[str]:
    """Yield a line of JSON for each readable record, by item id and sequence, and for each document."""
    for record in store.history():
        if isinstance(record, Record):
            yield record_text(record)
    for kind in KINDS:
        for document in store.documents(kind):
            yield document_text(document)


def import_manifest(
    store: Store,
    lines: Iterable[str],
    *,
    source: str = "import",
    keep_going: bool = False,
    redactor: Redactor | None = None,
) -> Imported:
    """Add the records and documents of NDJSON lines to a store; existing ones are left unchanged.

    All lines are checked first. If one is wrong, nothing is imported, unless `keep_going`.
    Adjacent records of one item are imported together, in the order of their sequence or, for Snowplow's
    records, of their time, and get new sequences. Where no document says otherwise, watermarks and the
    numbers of data commits continue from the records.

    Args:
        store: The store to add to.
        lines: One record or document each, as JSON; empty lines are ignored. They are read twice; those of
            an iterator are kept in memory.
        source: Names the lines' origin in faults.
        keep_going: Whether to import what is right although something is wrong.
        redactor: Removes secrets from what is imported.
    """
    redactor = redactor or Redactor()
    if not keep_going:
        lines = list(lines) if isinstance(lines, Iterator) else lines
        faults = _import(_Import(Rehearsal(store), redactor), lines, source, "Nothing was imported.")
        if faults:
            return Imported(0, 0, 0, faults, is_refused=True)
    importing = _Import(store, redactor)
    faults = _import(importing, lines, source, "It was left out.")
    importing.finish(store)
    return Imported(importing.added, importing.documents, importing.present, faults)


def _import(importing: _Import, lines: Iterable[str], source: str, effect: str) -> tuple[Fault, ...]:
    faults: list[Fault] = []
    parsed = parse_lines(lines, source, importing.redactor, faults)
    groups = groupby(parsed, key=lambda line: line.subject)
    subjects = (list(group) for _, group in groups)
    for batch in batched(subjects):
        faults += (
            replace(fault, remedy=f"{effect} Fix the file, then import it again.")
            for fault in importing.add(list(chain.from_iterable(batch)))
        )
    return tuple(faults)


@dataclass(slots=True)
class _Import:
    """An import in progress.

    Attributes:
        redactor: Removes secrets.
        added: How many records were added.
        documents: How many documents were added.
        present: How many of both existed already.
        refused: Items that were not imported.
        stored: The watermarks of imported documents, by key.
        changes: Operators' changes of watermarks, by the key of their document, and whether each one is new
            here.
        recorded: The greatest watermark of each application and column among the imported records.
        counters: The greatest number of a data commit seen for each counter.
    """

    store: Store
    redactor: Redactor
    added: int = 0
    documents: int = 0
    present: int = 0
    refused: set[str] = field(default_factory=set)
    stored: dict[str, StoredWatermark] = field(default_factory=dict)
    changes: dict[str, tuple[WatermarkChange, bool]] = field(default_factory=dict)
    recorded: RecordedWatermarks = field(default_factory=RecordedWatermarks)
    counters: dict[str, int] = field(default_factory=dict)

    def add(self, lines: Sequence[Line]) -> Iterator[Fault]:
        """Import some items and documents, each wholly or not at all, and yield the faults of the others."""
        by_item: dict[str, list[RecordLine]] = {}
        documents: dict[DocumentKey, DocumentLine] = {}
        for line in lines:
            if isinstance(line, RecordLine):
                by_item.setdefault(line.subject, []).append(line)
            else:
                documents.setdefault(line.subject, line)
        yield from self._add_items(by_item)
        yield from self._add_documents(documents)

    def _add_items(self, by_item: Mapping[str, Sequence[RecordLine]]) -> Iterator[Fault]:
        known = self.store.read(list(by_item))
        fresh = {
            item_id: self._fresh(item_id, of_item, item_id in known) for item_id, of_item in by_item.items()
        }
        writes = (
            Write(
                (Append(item_id, drafts, known[item_id].sequence if item_id in known else 0),)
                if drafts
                else ()
            )
            for item_id, drafts in fresh.items()
        )
        for (item_id, drafts), outcome in self._written(fresh.items(), writes):
            if outcome is not None:
                self.refused.add(item_id)
                yield _fault(by_item[item_id], outcome)
            else:
                self.added += len(drafts)
                self._note_records(by_item[item_id])

    def _add_documents(self, lines: Mapping[DocumentKey, DocumentLine]) -> Iterator[Fault]:
        present = self.store.look_up(keys=list(lines)).documents
        for key, line in lines.items():
            self._note_document(line.document, is_new=key not in present)
        fresh = [
            line for key, line in lines.items() if key not in present and line.document.kind != WATERMARK
        ]
        self.present += len(present)
        writes = (Write(puts=tuple(_puts(line.document))) for line in fresh)
        for line, outcome in self._written(fresh, writes):
            if outcome is not None:
                yield _fault([line], outcome)
            else:
                self.documents += 1

    def _note_document(self, document: Document, *, is_new: bool) -> None:
        """Remember what a document says about watermarks and counters."""
        if document.kind == WATERMARK:
            self.stored[document.key] = StoredWatermark.from_document(document)
        elif document.kind == CHANGE:
            self.changes[document.key] = (WatermarkChange.from_document(document), is_new)
        elif document.kind == COUNTER:
            self._count(document.key, document.value["last"])

    def _count(self, counter: str, number: int) -> None:
        self.counters[counter] = max(number, self.counters.get(counter, 0))

    def _written(
        self, subjects: Iterable[T], writes: Iterable[Write]
    ) -> Iterator[tuple[T, LakewrightError | None]]:
        """Yield each subject with the error of its write, or None."""
        for subject, outcome in zip(subjects, self.store.write_many(writes), strict=True):
            if isinstance(outcome, StoreUnavailable):
                raise outcome
            yield subject, outcome if isinstance(outcome, LakewrightError) else None

    def _fresh(self, item_id: str, lines: Sequence[RecordLine], is_known: bool) -> tuple[Draft, ...]:
        """Return drafts of the records that do not exist yet, in order."""
        present = {record.record_id for record in self.store.records(item_id)} if is_known else set()
        fresh = {line.record.record_id: line.record for line in lines if line.record.record_id not in present}
        self.present += len(lines) - len(fresh)
        return tuple(record.copied() for record in sorted(fresh.values(), key=_order))

    def _note_records(self, lines: Iterable[RecordLine]) -> None:
        """Remember the watermarks and numbers of data commits that records hold."""
        for record in (line.record for line in lines):
            content = record.content
            self.recorded.add(record)
            token, counter = content.get("token"), content.get("counter")
            if record.state is State.PROCESSING and isinstance(token, int) and isinstance(counter, str):
                self._count(counter, token)

    def finish(self, store: Store) -> None:
        """Advance watermarks and counters to those of the imported records and documents."""
        self._finish_watermarks(store)
        for counter, last in self.counters.items():
            raise_counter(store, counter, last)

    def _finish_watermarks(self, store: Store) -> None:
        """Set watermarks as slices and operators left them; changes made in this store take precedence."""
        watermarks = Watermarks(store)
        local = (each for each in store.documents(CHANGE) if each.key not in self.changes)
        here = {WatermarkChange.from_document(each).watermark_key for each in local}
        changed = {change.watermark_key for change, _ in self.changes.values()}
        new = {change.watermark_key for change, is_new in self.changes.values() if is_new}
        recorded = self.recorded.greatest
        for key in sorted((recorded.keys() | self.stored.keys() | new) - here):
            present = store.document(WATERMARK, key)
            stored = self.stored.get(key)
            if stored is not None and stored.item_id in self.refused:
                stored = None
            if (key in new or present is None) and (stored is not None or key in changed):
                put = Put(WATERMARK, key, None) if stored is None else stored.put()
                store.write(Write(puts=(put,)))
                self.documents += present is None and stored is not None
                continue
            if key in recorded:
                store.write(Write(puts=watermarks.puts_for([recorded[key]])))


def _puts(document: Document) -> Iterator[Put]:
    """Yield the puts that add a document; a build makes its target one that has to be looked at."""
    yield Put(document.kind, document.key, document.value, 0)
    if document.kind == BUILD:
        yield unsettled(document.value["project"], document.value["target"])


def _order(record: Record) -> tuple[int, datetime]:
    return (record.sequence, record.timestamp)


def _fault(lines: Sequence[Line], error: LakewrightError) -> Fault:
    guilty = error.details.get("record_id")
    known = (line for line in lines if isinstance(line, RecordLine) and line.record.record_id == guilty)
    return Fault(error.message, next(known, lines[0]).location, code=error.code)


class Rehearsal(MemoryStore):
    """A store that begins with what another one holds, which does not change.

    A record id that only an item outside of the writes has is not noticed.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store.now)
        self._store = store

    def look_up(self, item_ids: Sequence[str] = (), keys: Sequence[DocumentKey] = ()) -> Seen:
        """Return the items and documents that exist."""
        seen = self._store.look_up(
            [item_id for item_id in item_ids if item_id not in self._items],
            [key for key in keys if key not in self._documents],
        )
        self._items.update(seen.items)
        self._documents.update(seen.documents)
        return super().look_up(item_ids, keys)

    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        """Yield the outcome that each write would have."""
        planned = list(writes)
        self.look_up(*touched(planned))
        return super().write_many(planned)

    def history(self, item_id: str | None = None) -> Iterator[Record | Damage]:
        """Yield the records of the other store, then those written here."""
        return chain(self._store.history(item_id), super().history(item_id))
