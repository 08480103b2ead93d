"""The rules of `Store.write`, the same for every back end.

A back end reads the items and documents that some writes touch, adds the writes to a `Batch`, and saves what
the batch has collected, all in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from lakewright.errors import IllegalTransition, LakewrightError, SequenceConflict, UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import Item
from lakewright.manifest.plain_values import plain
from lakewright.manifest.record import Application, Author, Draft, Record
from lakewright.manifest.store import Append, Document, DocumentKey, Outcome, Put, Seen, Write, Written

LONGEST_ID = 2_000
"""Maximum bytes of an item id or a document's key; index entries of the back ends hold no more."""

LONGEST_NAME = 250
"""Maximum bytes of any other name in a record: an application's, an instance's, an author's, a run's."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Subjects = tuple[list[str], list[DocumentKey]]
"""The ids of items, and the keys of documents."""


class Batch:
    """The changes that some writes make to the items and documents they touch.

    Attributes:
        now: The store's time, in UTC.
        records: Records to append, in order.
        items: The changed items, in their new state.
        documents: The changed documents, in their new state; None for deleted ones.

    Args:
        seen: The items and documents that the writes touch, as the store holds them.
        now: The store's time, in UTC.
        taken: The ids of records that the store holds already, as far as they are known.
    """

    def __init__(self, seen: Seen, *, now: datetime, taken: Set[str] = frozenset()) -> None:
        self.now = now
        self.records: list[Record] = []
        self.items: dict[str, Item] = {}
        self.documents: dict[DocumentKey, Document | None] = {}
        self._seen = seen
        self._taken = taken
        self._ids: set[str] = set()

    def add(self, write: Write) -> Written:
        """Add one write wholly, or not at all if it raises.

        Raises:
            SequenceConflict: An item or document is not as expected.
            IllegalTransition: A record may not follow, or another one has its id.
            UsageError: A value of the write cannot be stored.
        """
        items = {each.item_id: self._item(each.item_id) for each in write.appends}
        documents = {(put.kind, put.key): self._document(put) for put in write.puts}
        if _has_landed(write, items):
            return _written(items, documents)
        records = [record for append in write.appends for record in _append(append, items, self.now)]
        ids = {record.record_id for record in records}
        if len(ids) < len(records) or ids & self._ids or ids & self._taken:
            raise duplicate_record()
        for put in write.puts:
            documents[put.kind, put.key] = self._put(put, documents[put.kind, put.key])
        self._ids |= ids
        self.records += records
        self.items |= {record.item_id: items[record.item_id] for record in records}
        self.documents |= documents
        return _written(items, documents)

    def attempt(self, write: Write) -> Outcome:
        """Add one write as `add` does, and return its result or its error."""
        try:
            return self.add(write)
        except LakewrightError as error:
            return error

    def _item(self, item_id: str) -> Item:
        return self.items.get(item_id) or self._seen.items.get(item_id) or Item(item_id)

    def _document(self, put: Put) -> Document | None:
        key = (put.kind, put.key)
        return self.documents[key] if key in self.documents else self._seen.documents.get(key)

    def _put(self, put: Put, present: Document | None) -> Document | None:
        _check_text("kind", put.kind, LONGEST_NAME)
        _check_text("key", put.key, LONGEST_ID)
        version = present.version if present else 0
        if put.expected is not None and put.expected != version:
            raise _conflict(f"{put.kind} {put.key}", put.expected, version)
        if put.value is None:
            return None
        return Document(put.kind, put.key, plain(put.value), max(version + 1, self._ticks()))

    def _ticks(self) -> int:
        """Microseconds by the store's clock: a document written again gets a version that it never had."""
        return (self.now - EPOCH) // timedelta(microseconds=1)


def _append(append: Append, items: dict[str, Item], now: datetime) -> Iterator[Record]:
    item = items[append.item_id]
    if item.sequence != append.expected:
        raise _conflict(append.item_id, append.expected, item.sequence)
    for draft in append.drafts:
        record = _checked(draft).recorded(sequence=item.sequence + 1, now=now)
        item = items[append.item_id] = item.after(record)
        yield record


def duplicate_record() -> IllegalTransition:
    """Return the error for a write with a record id that another record has."""
    return IllegalTransition(
        "a record with one of these ids exists already; nothing was written",
        remedy=Phrase("If somebody has edited the manifest by hand: ", Command("manifest", "fsck"), "."),
    )


def touched(writes: Sequence[Write]) -> Subjects:
    """Return the items that writes append to and the documents that they put, each sorted and distinct."""
    item_ids = {append.item_id for write in writes for append in write.appends}
    keys = {(put.kind, put.key) for write in writes for put in write.puts}
    return storable(sorted(item_ids), sorted(keys))


def storable(item_ids: Iterable[str], keys: Iterable[DocumentKey]) -> Subjects:
    """Return items and documents without those whose names databases can't hold: they don't exist."""
    return list(filter(is_storable, item_ids)), [key for key in keys if all(map(is_storable, key))]


def is_storable(text: str) -> bool:
    """Return whether databases can hold a text: it has no NUL character and is valid UTF-8."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return "\x00" not in text


def _has_landed(write: Write, items: Mapping[str, Item]) -> bool:
    """Return whether the write's records were saved already; no other write has records with the same ids."""
    appends = [append for append in write.appends if append.drafts]
    return bool(appends) and all(
        items[append.item_id].has(append.drafts[-1].record_id, append.expected + len(append.drafts))
        for append in appends
    )


def _written(items: Mapping[str, Item], documents: Mapping[DocumentKey, Document | None]) -> Written:
    return Written(
        tuple(item for item in items.values() if item.sequence),
        tuple(document for document in documents.values() if document is not None),
    )


def _conflict(what: str, expected: int, actual: int) -> SequenceConflict:
    return SequenceConflict(
        f"{what} is at {actual}, not at {expected} as it was when last seen",
        details={"subject": what, "expected": expected, "actual": actual},
    )


def _checked(draft: Draft) -> Draft:
    """Return the draft with its payload converted to plain JSON values.

    Raises:
        UsageError: A name is too long, or a value cannot be stored.
    """
    _check_text("item id", draft.item_id, LONGEST_ID)
    _check_text("record id", draft.record_id, LONGEST_NAME)
    _check_text("run id", draft.run_id, LONGEST_NAME)
    _check_text("previous record id", draft.previous_record_id, LONGEST_NAME)
    _check_application(draft.application)
    _check_author(draft.author)
    return draft if draft.payload is None else replace(draft, payload=plain(draft.payload))


@lru_cache(maxsize=4096)
def _check_application(application: Application) -> None:
    _check_text("application", application.name, LONGEST_NAME)
    _check_text("application's version", application.agent.version, LONGEST_NAME)
    _check_text("instance id", application.instance_id, LONGEST_NAME)


@lru_cache(maxsize=256)
def _check_author(author: Author) -> None:
    _check_text("author", author.agent.name, LONGEST_NAME)
    _check_text("author's version", author.agent.version, LONGEST_NAME)
    _check_text("manifest version", author.manifest_version, LONGEST_NAME)


def _check_text(what: str, text: str | None, longest: int) -> None:
    if text is None or (len(text) <= longest and text.isascii() and "\x00" not in text):
        return
    if not is_storable(text):
        raise UsageError(f"the {what} {text[:80]!r} holds a character that databases can't store")
    size = len(text.encode())
    if size > longest:
        raise UsageError(f"the {what} {text[:80]!r}… has {size} bytes; at most {longest} can be stored")
