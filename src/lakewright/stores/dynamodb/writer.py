"""Saving writes, each computed from what was read and repeated if that is no longer current.

Items and documents change only if they have not changed since they were read. The lists by standing and their
counts, which are derived from them, change in the same transaction.

A write of more rows than one transaction takes is atomic, too. The rows that decide the outcome, items and
documents, go into one transaction. All other changes are saved before it in parts that no one reads, and the
transaction marks them as due. The writer then applies each part exactly once; if it is interrupted, the next
process that uses the table does.
"""

from __future__ import annotations

import base64
import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from secrets import randbelow
from threading import Lock
from typing import Any
from uuid import uuid4

from lakewright.errors import LakewrightError, UsageError
from lakewright.manifest.batch import Batch, duplicate_record, touched
from lakewright.manifest.item import Item
from lakewright.manifest.record import Record
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.store import Document, DocumentKey, Outcome, Seen, Write, Written
from lakewright.stores.dynamodb.rows import (
    Key,
    Row,
    checked,
    count_key,
    document_key,
    document_row,
    item_row,
    key_of,
    listing_rows,
    marker_row,
    number,
    record_row,
    row_of,
    size_of,
    text,
)
from lakewright.stores.dynamodb.table import Change, Refused, Table, if_absent, if_equal

LARGEST = 1_024
"""Maximum number of items and documents that are cached."""


class Cache:
    """Items and documents as last read, including those that did not exist.

    Entries may be outdated: they are used only for writes that DynamoDB refuses in that case.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: OrderedDict[str | DocumentKey, Any] = OrderedDict()

    def store(self, item_ids: Iterable[str], keys: Iterable[DocumentKey], seen: Seen) -> None:
        """Cache the result of reading these items and documents."""
        found: dict[str | DocumentKey, Any] = {item_id: seen.items.get(item_id) for item_id in item_ids}
        found |= {key: seen.documents.get(key) for key in keys}
        self.drop(found)
        with self._lock:
            self._entries.update(found)
            while len(self._entries) > LARGEST:
                self._entries.popitem(last=False)

    def get(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen | None:
        """Return all of these as last read, or None if one of them is not cached."""
        with self._lock:
            if not self._entries.keys() >= {*item_ids, *keys}:
                return None
            items = {name: item for name in item_ids if (item := self._entries[name]) is not None}
            documents = {key: found for key in keys if (found := self._entries[key]) is not None}
        return Seen(items, documents)

    def drop(self, names: Iterable[str | DocumentKey]) -> None:
        """Remove the entries of these items and documents."""
        with self._lock:
            for name in names:
                self._entries.pop(name, None)


ROWS_OF_COUNTS = 12
"""Rows of a bundle's transaction that are reserved for counts of items by standing."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes to a table.

    Attributes:
        clock: Returns the store's time, in UTC.
        cache: Items and documents as they were last read.
        load: Reads items and documents, and caches them.
    """

    table: Table
    clock: Callable[[], datetime]
    cache: Cache
    load: Callable[[Sequence[str], Sequence[DocumentKey]], Seen]

    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        """Save independent writes, in bundles that one transaction is likely to take."""
        for bundle in _bundles(writes):
            together = self._write_together(bundle) if len(bundle) > 1 else None
            yield from map(self._write, bundle) if together is None else together

    def _write(self, write: Write) -> Outcome:
        """Save one write."""
        try:
            return self._write_from_cache(write) or self._write_anew(write)
        except LakewrightError as error:
            return error

    def _write_anew(self, write: Write) -> Written:
        """Save a write that is computed from what is read now."""
        refused: frozenset[str] = frozenset()
        for _ in self.table.attempts():
            seen = self.load(*touched([write]))
            batch = Batch(seen, now=self.clock())
            written = batch.add(write)
            if any(record.record_id in refused for record in batch.records):
                raise duplicate_record()
            try:
                self._save(batch, seen)
            except Refused as refusal:
                # Another record has the id, unless the next attempt finds this very write saved already.
                refused = frozenset(
                    pk.removeprefix(MARKER) for pk, _ in refusal.keys if pk.startswith(MARKER)
                )
            else:
                return written
        raise AssertionError("attempts end by raising StoreUnavailable")

    def _write_from_cache(self, write: Write) -> Written | None:
        """Save a write that is computed from the cache, or return None if that fails."""
        seen = self.cache.get(*touched([write]))
        if seen is None:
            return None
        batch = Batch(seen, now=self.clock())
        try:
            written = batch.add(write)
            self._save(batch, seen)
        except (LakewrightError, Refused):
            return None
        return written if batch.items or batch.documents else None

    def _write_together(self, writes: Sequence[Write]) -> Sequence[Outcome] | None:
        """Save several writes in one transaction, or return None if that fails."""
        seen = self.load(*touched(writes))
        batch = Batch(seen, now=self.clock())
        outcomes = [batch.attempt(write) for write in writes]
        try:
            self._save(batch, seen)
        except (LakewrightError, Refused):
            return None
        return outcomes

    def _save(self, batch: Batch, seen: Seen) -> None:
        changes = changes_of(batch, seen)
        ids, keys = list(batch.items), list(batch.documents)
        self.cache.drop([*ids, *keys])
        if len(changes) > MOST_CHANGES or sum(change.size for change in changes) > MOST_BYTES:
            write_large(self.table, changes)
        elif changes:
            self.table.transact(changes)
        documents = {key: document for key, document in batch.documents.items() if document is not None}
        self.cache.store(ids, keys, Seen(batch.items, documents))


def _bundles(writes: Iterable[Write]) -> Iterator[list[Write]]:
    """Yield writes in bundles of about as many rows as one transaction takes."""
    bundle: list[Write] = []
    rows = 0
    for write in writes:
        # A record takes two rows, itself and its reserved id; an item its own and up to four of its lists.
        needed = len(write.puts) + sum(
            (5 if append.expected else 3) + 2 * len(append.drafts) for append in write.appends
        )
        if bundle and rows + needed > MOST_CHANGES - ROWS_OF_COUNTS:
            yield bundle
            bundle, rows = [], 0
        bundle.append(write)
        rows += needed
    if bundle:
        yield bundle


MARKER = "id/"
"""The prefix of the partitions whose rows reserve the ids of records."""

SLOTS = 8
"""Rows that each count is split into: transactions that change the same row conflict."""


def changes_of(batch: Batch, seen: Seen) -> list[Change]:
    """Return the changes of a batch, on the condition that nothing has changed since it was read.

    Raises:
        UsageError: A row would be too large.
    """
    counted: Counter[Standing] = Counter()
    changes: list[Change] = []
    for item in batch.items.values():
        before = seen.items.get(item.item_id)
        changes.append(_put(item_row(item), if_equal("sequence", before.sequence) if before else if_absent()))
        changes += _listing(before, item)
        counted[standing_of(item)] += 1
        if before is not None:
            counted[standing_of(before)] -= 1
    changes += _records(batch.records)
    changes += _documents(batch.documents, seen.documents)
    changes += count_changes(counted)
    return changes


def _listing(before: Item | None, after: Item) -> Iterator[Change]:
    """Yield the changes to the lists that an item is in."""
    old = set() if before is None else {key_of(row) for row in listing_rows(before)}
    new = {key_of(row): row for row in listing_rows(after)}
    yield from (_delete(key) for key in sorted(old - new.keys()))
    yield from (_put(row) for key, row in new.items() if key not in old)


def _records(records: Sequence[Record]) -> Iterator[Change]:
    for record in records:
        yield _put(record_row(record), if_absent())
        yield _put(marker_row(record), if_absent())


def _documents(
    after: Mapping[DocumentKey, Document | None], before: Mapping[DocumentKey, Document]
) -> Iterator[Change]:
    for key, document in after.items():
        present = before.get(key)
        condition = if_equal("version", present.version) if present else if_absent()
        if document is not None:
            yield _put(document_row(document), condition)
        elif present is not None:
            yield _delete(document_key(*key), condition)


def count_changes(counted: Mapping[Standing, int]) -> Iterable[Change]:
    """Yield the changes that add to the counts of items by standing."""
    for standing, change in counted.items():
        if change == 0:
            continue
        key = count_key(standing, randbelow(SLOTS))
        yield Change(
            key,
            "Update",
            {
                "Key": row_of(key),
                "UpdateExpression": "SET #s = :s ADD #n :n",
                "ExpressionAttributeNames": {"#s": "standing", "#n": "number"},
                "ExpressionAttributeValues": {":s": text(standing.text), ":n": number(change)},
            },
            size=500 + len(standing.text),
        )


def _put(row: Row, condition: Mapping[str, object] | None = None) -> Change:
    arguments = {"Item": checked(row), **(condition or {})}
    return Change(key_of(row), "Put", arguments, size_of(row))


def _delete(key: Key, condition: Mapping[str, object] | None = None) -> Change:
    return Change(key, "Delete", {"Key": row_of(key), **(condition or {})})


MOST_CHANGES = 100
"""Maximum rows of one DynamoDB transaction."""

MOST_BYTES = 3_500_000
"""Maximum bytes of one transaction; DynamoDB allows 4 MB, including its own overhead."""

PART_CHANGES, PART_BYTES = 50, 200_000
"""Maximum changes and bytes of one part, which must fit in a row."""

PENDING = "pending"
"""An item's attribute that names its last write while parts of that write are due."""

DUE = "due"
"""The partition that lists the writes with due parts."""


def write_large(table: Table, changes: Sequence[Change]) -> None:
    """Apply all changes, or none.

    Raises:
        Refused: A row is not as its change expects; nothing was changed.
        UsageError: Too many items and documents change at once.
    """
    name = uuid4().hex
    decisive = [change for change in changes if _is_decisive(change)]
    following = [change for change in changes if not _is_decisive(change)]
    _check_size(decisive, following)
    _check_absent(table, following)
    parts = [_part_row(name, n, part) for n, part in enumerate(_parts(following))]
    table.put_all(parts)
    try:
        table.transact([*(_marked(change, name) for change in decisive), _due(name, decisive)])
    except Refused:
        table.delete_all(map(key_of, parts))
        raise
    finish(table, name)


def finish_all(table: Table) -> None:
    """Apply the due parts of all interrupted writes; usually there are none."""
    for row in table.query(DUE):
        finish(table, row["sk"]["S"])


def finish(table: Table, name: str) -> None:
    """Apply the due parts of a write; several processes may do so at once."""
    for part in table.query(f"part/{name}"):
        gone = Change(
            key_of(part),
            "Delete",
            {
                "Key": row_of(key_of(part)),
                "ConditionExpression": "attribute_exists(pk)",
            },
        )
        _once(table, [*_changes(part), gone])
    _close(table, name)


def _once(table: Table, changes: Sequence[Change]) -> None:
    """Apply changes unless another process has applied them."""
    for _ in table.attempts():
        try:
            table.transact(changes)
            return
        except Refused as refused:
            if refused.keys:
                return


def _close(table: Table, name: str) -> None:
    """Remove the marks of a completed write from its items and from the list."""
    due = table.get([(DUE, name)]).get((DUE, name))
    if due is None:
        return
    for pk, sk in json.loads(due["items"]["S"]):
        unmark = {
            "Key": row_of((pk, sk)),
            "UpdateExpression": "REMOVE #p",
            "ConditionExpression": "#p = :p",
            "ExpressionAttributeNames": {"#p": PENDING},
            "ExpressionAttributeValues": {":p": text(name)},
        }
        _once(table, [Change((pk, sk), "Update", unmark)])
    table.delete_all([(DUE, name)])


def _is_decisive(change: Change) -> bool:
    return change.key[0].startswith(("item/", "document/"))


def _due(name: str, decisive: Sequence[Change]) -> Change:
    items = json.dumps([change.key for change in decisive if change.key[0].startswith("item/")])
    return Change((DUE, name), "Put", {"Item": row_of((DUE, name), items=text(items))}, len(items))


def _marked(change: Change, name: str) -> Change:
    """Return a change, marked with the write that is due if it changes an item."""
    if not change.key[0].startswith("item/"):
        return change
    marked = {**change.arguments["Item"], PENDING: text(name)}
    return replace(change, arguments={**change.arguments, "Item": marked})


def _check_size(decisive: Sequence[Change], following: Sequence[Change]) -> None:
    if len(decisive) >= MOST_CHANGES or sum(change.size for change in decisive) > MOST_BYTES:
        raise UsageError(
            f"{len(decisive)} items and documents can't be written together: "
            f"DynamoDB takes {MOST_CHANGES - 1} of them, and {MOST_BYTES:,} bytes, at once",
            remedy="Do it in smaller steps, or choose another back end for the manifest.",
        )
    largest = max((change.size for change in following), default=0)
    if largest > PART_BYTES:
        raise UsageError(
            f"a record of {largest} bytes can't be written together with so much else; "
            f"{PART_BYTES} bytes is the most",
            remedy="Do it in smaller steps, or choose another back end for the manifest.",
        )


def _check_absent(table: Table, following: Sequence[Change]) -> None:
    """Raise `Refused` if a row exists that must be new."""
    new = [change.key for change in following if "ConditionExpression" in change.arguments]
    present = table.get(new)
    if present:
        raise Refused(frozenset(present))


def _parts(changes: Sequence[Change]) -> Iterator[list[Change]]:
    part: list[Change] = []
    size = 0
    for change in changes:
        if part and (len(part) == PART_CHANGES or size + change.size > PART_BYTES):
            yield part
            part, size = [], 0
        part.append(change)
        size += change.size
    if part:
        yield part


def _part_row(name: str, number: int, changes: Sequence[Change]) -> Row:
    """Return the row that holds some changes, without their conditions: they have been checked."""
    held = [
        [*change.key, change.kind, {k: v for k, v in change.arguments.items() if k != "ConditionExpression"}]
        for change in changes
    ]
    changed = json.dumps(held, default=lambda value: base64.b64encode(value).decode())
    return row_of((f"part/{name}", f"{number:06d}"), changes=text(changed))


def _changes(row: Row) -> list[Change]:
    held = json.loads(row["changes"]["S"])
    return [Change((pk, sk), kind, _with_bytes(arguments)) for pk, sk, kind, arguments in held]


def _with_bytes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    if "Item" not in arguments:
        return dict(arguments)
    restored = {
        name: {"B": base64.b64decode(value["B"])} if "B" in value else value
        for name, value in arguments["Item"].items()
    }
    return {**arguments, "Item": restored}
