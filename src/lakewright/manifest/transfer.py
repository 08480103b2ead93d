"""Taking a manifest out and in as NDJSON: its records, and the documents beside them but for leases.

Source: `processing-manifest.md`, "Record"; records have Snowplow's form, whose own of eight keys come in too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, groupby, islice
from typing import Any, TypeVar

from lakewright.errors import Fault, LakewrightError, Location, StoreUnavailable
from lakewright.manifest.brought import Brought
from lakewright.manifest.journal import (
    ABORTED,
    BUILT,
    RUN,
    RUN_KEY,
    RUN_TARGET,
    RUNNING,
    TAINT,
    Place,
    Run,
)
from lakewright.manifest.ledger import COUNTER, count_from
from lakewright.manifest.record import Draft, Record, State
from lakewright.manifest.store import Append, Document, DocumentKey, Put, Store, Write
from lakewright.manifest.watermark import (
    CHANGE,
    WATERMARK,
    Change,
    Standing,
    Watermarks,
)

__all__ = ["Imported", "export_manifest", "import_manifest"]

KINDS = (WATERMARK, CHANGE, COUNTER, RUN, RUN_KEY, RUN_TARGET, TAINT, BUILT)
"""Documents that go along, in this order; a lease is of no use elsewhere."""

T = TypeVar("T")

BATCH = 500
"""Items or documents taken in with one round trip."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import came to.

    Attributes:
        records: How many were added.
        documents: How many were added.
        present: How many of both were there already.
        faults: What was not taken in, each with its line; an item with an illegal record is left out whole.
    """

    records: int
    documents: int
    present: int
    faults: tuple[Fault, ...]


def export_manifest(store: Store) -> Iterator[str]:
    """Yield a line of JSON for each readable record, by item and sequence, and for each document."""
    for record in store.history():
        if isinstance(record, Record):
            yield json.dumps(record.as_json(), ensure_ascii=False)
    for kind in KINDS:
        for document in store.documents(kind):
            content = {"kind": kind, "key": document.key, "value": document.value}
            yield json.dumps({"document": content}, ensure_ascii=False)


def import_manifest(store: Store, lines: Iterable[str], *, source: str = "import") -> Imported:
    """Add the records and documents of NDJSON to a store; those that are there already are left alone.

    Records of an item that stand together are taken in together, in the order of their sequence or, as in
    Snowplow's, time, and numbered anew. Where no document says otherwise, watermarks and the numbers of data
    commits go on from what the records say.

    Args:
        store: Where they go.
        lines: One record or document each, as JSON; empty ones don't count.
        source: What the lines come from, for faults.
    """
    faults: list[Fault] = []
    importing = _Importing(store)
    groups = groupby(_parsed(lines, source, faults), key=lambda line: line.subject)
    subjects = (list(group) for _, group in groups)
    while batch := list(chain.from_iterable(islice(subjects, BATCH))):
        faults += importing.take(batch)
    importing.finish()
    return Imported(importing.added, importing.documents, importing.present, tuple(faults))


@dataclass(frozen=True, slots=True)
class _RecordLine:
    record: Record
    location: Location

    @property
    def subject(self) -> str:
        """What the line is about."""
        return self.record.item_id


@dataclass(frozen=True, slots=True)
class _DocumentLine:
    document: Document
    location: Location

    @property
    def subject(self) -> DocumentKey:
        """What the line is about."""
        return (self.document.kind, self.document.key)


_Line = _RecordLine | _DocumentLine


def _parsed(lines: Iterable[str], source: str, faults: list[Fault]) -> Iterator[_Line]:
    """Yield the readable lines; what is wrong with others goes to `faults`."""
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        location = Location(source, number)
        try:
            yield _line(json.loads(text), location)
        except KeyError as missing:
            faults.append(Fault(f"the line has no {missing.args[0]!r}", location))
        except (
            ArithmeticError,
            AttributeError,
            LakewrightError,
            TypeError,
            ValueError,
            RecursionError,
        ) as error:
            faults.append(
                Fault(
                    f"this is neither a record nor a document of a manifest: {error}",
                    location,
                    remedy="Import what `lakewright manifest export` wrote, in UTF-8.",
                )
            )


def _line(content: Mapping[str, Any], location: Location) -> _Line:
    if "document" not in content:
        return _RecordLine(Record.from_json(content), location)
    kind, key, value = (content["document"][name] for name in ("kind", "key", "value"))
    if kind not in KINDS or not isinstance(key, str) or not isinstance(value, Mapping):
        raise ValueError(f"a document of the kind {kind!r} isn't like this")
    document = Document(kind, key, _ended(value) if kind == RUN else value, 0)
    if kind in _KEYS and _KEYS[kind](document) != key:
        raise ValueError(f"its key isn't that of such a {kind}")
    return _DocumentLine(document, location)


def _ended(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """A run as it is kept elsewhere, where nobody could tell any more that it has ended."""
    return {**run, "status": ABORTED} if run["status"] == RUNNING else run


def _counter_key(document: Document) -> str:
    last = document.value["last"]
    if type(last) is not int or last < 0:
        raise ValueError(f"a counter stands at {last!r}")
    return document.key


def _change_key(document: Document) -> str:
    Change.from_document(document)
    return document.key


_KEYS: Mapping[str, Callable[[Document], str]] = {
    WATERMARK: lambda document: Standing.from_document(document).key,
    CHANGE: _change_key,
    COUNTER: _counter_key,
    RUN: lambda document: Run.from_json(document.value).key,
    RUN_KEY: lambda document: document.key if str(document.value["key"]) else "",
    TAINT: lambda document: Place(**document.value["place"]).key if str(document.value["reason"]) else "",
}
"""What reads a document of a kind, and returns the key that it has to have."""


@dataclass(slots=True)
class _Importing:
    """An import under way.

    Attributes:
        refused: Items that were not taken in.
        standings: Watermarks that documents tell of, by key.
        changes: What somebody did to watermarks, by key of the document, and whether that is new here.
        brought: The greatest watermark seen of each application and column.
        counters: The greatest number of a data commit seen of each counter.
    """

    store: Store
    added: int = 0
    documents: int = 0
    present: int = 0
    refused: set[str] = field(default_factory=set)
    standings: dict[str, Standing] = field(default_factory=dict)
    changes: dict[str, tuple[Change, bool]] = field(default_factory=dict)
    brought: Brought = field(default_factory=Brought)
    counters: dict[str, int] = field(default_factory=dict)

    def take(self, lines: Sequence[_Line]) -> Iterator[Fault]:
        """Take some items and documents in, each wholly or not at all, and yield why not."""
        by_item: dict[str, list[_RecordLine]] = {}
        documents: dict[DocumentKey, _DocumentLine] = {}
        for line in lines:
            if isinstance(line, _RecordLine):
                by_item.setdefault(line.subject, []).append(line)
            else:
                documents.setdefault(line.subject, line)
        yield from self._take_items(by_item)
        yield from self._take_documents(documents)

    def _take_items(self, by_item: Mapping[str, Sequence[_RecordLine]]) -> Iterator[Fault]:
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
                self._follow(by_item[item_id])

    def _take_documents(self, lines: Mapping[DocumentKey, _DocumentLine]) -> Iterator[Fault]:
        there = self.store.look_up([], list(lines)).documents
        for key, line in lines.items():
            self._heed(line.document, is_new=key not in there)
        fresh = [line for key, line in lines.items() if key not in there and line.document.kind != WATERMARK]
        self.present += len(there)
        writes = (Write(puts=(Put(*line.subject, line.document.value, 0),)) for line in fresh)
        for line, outcome in self._written(fresh, writes):
            if outcome is not None:
                yield _fault([line], outcome)
            else:
                self.documents += 1

    def _heed(self, document: Document, *, is_new: bool) -> None:
        """Take note of what tells of watermarks and counters."""
        if document.kind == WATERMARK:
            self.standings[document.key] = Standing.from_document(document)
        elif document.kind == CHANGE:
            self.changes[document.key] = (Change.from_document(document), is_new)
        elif document.kind == COUNTER:
            self._count(document.key, document.value["last"])

    def _count(self, counter: str, number: int) -> None:
        self.counters[counter] = max(number, self.counters.get(counter, 0))

    def _written(
        self, subjects: Iterable[T], writes: Iterable[Write]
    ) -> Iterator[tuple[T, LakewrightError | None]]:
        """Yield each subject with what kept its write from being put down, None for nothing."""
        for subject, outcome in zip(subjects, self.store.write_many(writes), strict=True):
            if isinstance(outcome, StoreUnavailable):
                raise outcome
            yield subject, outcome if isinstance(outcome, LakewrightError) else None

    def _fresh(self, item_id: str, lines: Sequence[_RecordLine], is_known: bool) -> tuple[Draft, ...]:
        """Return drafts of the records that aren't there yet, in order."""
        there = {record.record_id for record in self.store.records(item_id)} if is_known else set()
        fresh = {line.record.record_id: line.record for line in lines if line.record.record_id not in there}
        self.present += len(lines) - len(fresh)
        return tuple(_draft(record) for record in sorted(fresh.values(), key=_order))

    def _follow(self, lines: Iterable[_RecordLine]) -> None:
        """Take note of the watermarks and numbers of data commits that records bring."""
        for record in (line.record for line in lines):
            content = record.content
            self.brought.follow(record)
            token, counter = content.get("token"), content.get("counter")
            if record.state is State.PROCESSING and isinstance(token, int) and isinstance(counter, str):
                self._count(counter, token)

    def finish(self) -> None:
        """Move watermarks and counters on to where what was taken in has them."""
        self._finish_watermarks()
        for counter, last in self.counters.items():
            count_from(self.store, counter, last)

    def _finish_watermarks(self) -> None:
        """Put watermarks where slices and people have them; what somebody did here goes before all else."""
        watermarks = Watermarks(self.store)
        own = (each for each in self.store.documents(CHANGE) if each.key not in self.changes)
        here = {Change.from_document(each).watermark_key for each in own}
        said = {change.watermark_key for change, _ in self.changes.values()}
        news = {change.watermark_key for change, is_new in self.changes.values() if is_new}
        brought = self.brought.standings
        for key in sorted((brought.keys() | self.standings.keys() | news) - here):
            present = self.store.document(WATERMARK, key)
            standing = self.standings.get(key)
            if standing is not None and standing.item_id in self.refused:
                standing = None
            if (key in news or present is None) and (standing is not None or key in said):
                put = Put(WATERMARK, key, None) if standing is None else standing.put()
                self.store.write(Write(puts=(put,)))
                self.documents += present is None and standing is not None
                continue
            if key in brought:
                self.store.write(Write(puts=watermarks.moves([brought[key]])))


def _order(record: Record) -> tuple[int, datetime]:
    return (record.sequence, record.timestamp)


def _draft(record: Record) -> Draft:
    return Draft(
        record_id=record.record_id,
        item_id=record.item_id,
        state=record.state,
        application=record.application,
        author=record.author,
        run_id=record.run_id,
        previous_record_id=record.previous_record_id,
        payload=record.payload,
        timestamp=record.timestamp,
    )


def _fault(lines: Sequence[_Line], error: LakewrightError) -> Fault:
    guilty = error.details.get("record_id")
    known = (line for line in lines if isinstance(line, _RecordLine) and line.record.record_id == guilty)
    return Fault(
        error.message,
        next(known, lines[0]).location,
        "It is left out; mend the file and import it again.",
        error.code,
    )
