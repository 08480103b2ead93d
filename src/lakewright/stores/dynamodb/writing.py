"""Putting writes down: worked out from what was seen, made only if that still holds, else again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from lakewright.errors import IllegalTransition, LakewrightError
from lakewright.manifest.batch import Batch, document_keys, item_ids
from lakewright.manifest.store import DocumentKey, Seen, Write, Written
from lakewright.stores.dynamodb.changes import MARKER, changes_of
from lakewright.stores.dynamodb.large import MOST_BYTES, MOST_CHANGES, put_down_large
from lakewright.stores.dynamodb.memo import Memo
from lakewright.stores.dynamodb.table import Refused, Table

__all__ = ["Writer"]

Outcome = Written | LakewrightError

ROWS_OF_NUMBERS = 12
"""Rows of a bundle's transaction kept for numbers of items by verdict."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes to a table.

    Attributes:
        clock: Gives the store's time, in UTC.
        memo: What was read lately.
        load: Reads items and documents, and has the memo remember them.
    """

    table: Table
    clock: Callable[[], datetime]
    memo: Memo
    load: Callable[[Sequence[str], Sequence[DocumentKey]], Seen]

    def write(self, write: Write) -> Written:
        """Put down one write; see `Store.write`."""
        written = self._from_memory(write)
        if written is not None:
            return written
        refused: frozenset[str] = frozenset()
        for _ in self.table.attempts():
            seen = self.load(item_ids([write]), document_keys([write]))
            batch = _batch(seen, self.clock())
            written = batch.add(write)
            if any(record.record_id in refused for record in batch.records):
                raise _taken()
            try:
                self._put_down(batch, seen)
            except Refused as refusal:
                # Unless it turns out that the same write has landed before, the id is another record's.
                refused = frozenset(
                    pk.removeprefix(MARKER) for pk, _ in refusal.keys if pk.startswith(MARKER)
                )
            else:
                return written
        raise AssertionError("attempts end by themselves")

    def _from_memory(self, write: Write) -> Written | None:
        """Put down a write on what is remembered, or return None if that doesn't do."""
        seen = self.memo.recall(item_ids([write]), document_keys([write]))
        if seen is None:
            return None
        batch = _batch(seen, self.clock())
        try:
            written = batch.add(write)
            self._put_down(batch, seen)
        except (LakewrightError, Refused):
            return None
        return written if batch.items or batch.documents else None

    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        """Put down many independent writes, as many at once as one transaction is likely to take."""
        for bundle in _bundles(writes):
            yield from self._write_bundle(bundle)

    def _write_bundle(self, writes: Sequence[Write]) -> Sequence[Outcome]:
        together = self._write_together(writes) if len(writes) > 1 else None
        return [self._write_one(write) for write in writes] if together is None else together

    def _write_one(self, write: Write) -> Outcome:
        try:
            return self.write(write)
        except LakewrightError as error:
            return error

    def _write_together(self, writes: Sequence[Write]) -> Sequence[Outcome] | None:
        """Put several writes down in one transaction, or return None if that can't be done."""
        seen = self.load(item_ids(writes), document_keys(writes))
        batch = _batch(seen, self.clock())
        outcomes = [_attempt(batch, write) for write in writes]
        try:
            self._put_down(batch, seen)
        except (LakewrightError, Refused):
            return None
        return outcomes

    def _put_down(self, batch: Batch, seen: Seen) -> None:
        if len({record.record_id for record in batch.records}) < len(batch.records):
            raise _taken()
        changes = changes_of(batch, seen)
        ids, keys = list(batch.items), list(batch.documents)
        self.memo.forget(ids, keys)
        if len(changes) > MOST_CHANGES or sum(change.size for change in changes) > MOST_BYTES:
            put_down_large(self.table, changes)
        elif changes:
            self.table.transact(changes)
        documents = {key: document for key, document in batch.documents.items() if document is not None}
        self.memo.note(ids, keys, Seen(batch.items, documents))


def _batch(seen: Seen, now: datetime) -> Batch:
    return Batch(items=dict(seen.items), documents=dict(seen.documents), now=now)


def _attempt(batch: Batch, write: Write) -> Outcome:
    try:
        return batch.add(write)
    except LakewrightError as error:
        return error


def _taken() -> IllegalTransition:
    return IllegalTransition("a record with one of these ids is there already; nothing was written")


def _bundles(writes: Iterable[Write]) -> Iterator[list[Write]]:
    """Yield writes in bundles, each of about as many rows as one transaction takes."""
    bundle: list[Write] = []
    rows = 0
    for write in writes:
        # A record takes three rows: itself, its id and its place in the list of a verdict.
        needed = len(write.puts) + sum(1 + 3 * len(append.drafts) for append in write.appends)
        if bundle and rows + needed > MOST_CHANGES - ROWS_OF_NUMBERS:
            yield bundle
            bundle, rows = [], 0
        bundle.append(write)
        rows += needed
    if bundle:
        yield bundle
