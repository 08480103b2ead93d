"""Rewinds: an undo or a rebuild of a table, announced in the manifest before its commit.

The announcement keeps runs from processing slices meanwhile. If the process dies, the next command or run
looks into the table's log: it records the rewind if its commit landed, and otherwise removes the
announcement. It is recorded as a new revision of each slice that it concerns: all records, and the watermarks
that go back with them, are one write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from lakewright.errors import LeaseHeld, SequenceConflict
from lakewright.manifest.item import Item, Mark
from lakewright.manifest.lease import MOST_RACES, Holder, Lease, find_lease
from lakewright.manifest.lock import locked_error
from lakewright.manifest.operator_actions import OperatorActions
from lakewright.manifest.plain_values import document_of, of_json
from lakewright.manifest.record import Application, Draft, State, format_instant
from lakewright.manifest.store import Append, Document, Put, Query, Write
from lakewright.manifest.verdict import Verdict
from lakewright.manifest.watermarks import StoredWatermark

REWIND = "rewind"
"""The kind of the documents that announce rewinds; the key is the table, as its counter of commits has it."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """A rewind that has begun and is not recorded yet.

    Attributes:
        key: The table, by the key of its counter of commits.
        rewind_id: The identity of this rewind; its commit carries it too.
        words: What it does, such as `undo of 2024-05-03.csv of orders`.
        lease: Key of the lease on the table, which the rewind holds.
        since: When it began, by the store's clock.
        version: Version of the document.
    """

    key: str
    rewind_id: str
    words: str
    lease: str
    holder: Holder
    since: datetime
    version: int = 0

    @property
    def put(self) -> Put:
        """The put that announces it, if no other rewind of the table is announced."""
        value = document_of(self, "words", "lease", "holder", "since", id=self.rewind_id)
        return Put(REWIND, self.key, value, 0)

    @property
    def removal(self) -> Put:
        """The put that ends it, if nobody else has ended it."""
        return Put(REWIND, self.key, None, self.version)

    @classmethod
    def from_document(cls, document: Document) -> Rewind:
        """Return the rewind that a document announces."""
        value = {**document.value, "key": document.key, "version": document.version}
        return of_json(cls, {**value, "rewind_id": value["id"]})

    def error(self) -> LeaseHeld:
        """Return the error of a run that must wait for the rewind to end."""
        return LeaseHeld(
            f"the {self.words} by {self.holder} is not finished, since {format_instant(self.since)}",
            remedy="Wait for it to end. If its process has ended, the next run continues by itself.",
            details={"key": self.key, "holder": str(self.holder), "run_id": self.holder.run_id},
        )


@dataclass(frozen=True, slots=True)
class RewoundSlice:
    """A slice of which a rewind records a new revision.

    Attributes:
        item_id: The item.
        revision: The revision of it that the rewind concerns; a later one is left alone.
        note: What its NEW record keeps beside the reason, such as `fingerprint` and `processing_time`.
        is_skipped: Whether the entity skips it from now on.
        token: The number that its commit has now; None if it is not processed any more.
        content: Content of its PROCESSED record, if it has a token.
    """

    item_id: str
    revision: int
    note: Mapping[str, Any] = field(default_factory=dict)
    is_skipped: bool = False
    token: int | None = None
    content: Mapping[str, Any] = field(default_factory=dict)


def rewound_slices(documents: Sequence[Mapping[str, Any]]) -> tuple[RewoundSlice, ...]:
    """Return the slices that the content of a commit names; fields of later versions are ignored."""
    names = {each.name for each in fields(RewoundSlice)}
    return tuple(
        RewoundSlice(**{name: value for name, value in document.items() if name in names})
        for document in documents
    )


class RewindActions(OperatorActions):
    """Items with the actions of an operator, among them going back in a table."""

    def rewind_of(self, key: str) -> Rewind | None:
        """Return the rewind of a table that has begun and is not recorded, or None."""
        document = self.store.document(REWIND, key)
        return None if document is None else Rewind.from_document(document)

    def rewinds(self) -> dict[str, Rewind]:
        """Return the rewinds that have begun and are not recorded, by the key of their table."""
        return {each.key: Rewind.from_document(each) for each in self.store.documents(REWIND)}

    def is_rewinding(self, rewind: Rewind) -> bool:
        """Return whether the process that announced a rewind still holds its lease."""
        lease = find_lease(self.store, rewind.lease)
        if lease is None or lease.holder != rewind.holder:
            return False
        return not lease.is_expired(self.store.now()) and not self._is_dead(lease.holder)

    def announce_rewind(
        self, key: str, words: str, lease: Lease, rewind_id: str, application: Application
    ) -> Rewind:
        """Announce a rewind of a table, so that no run begins a slice until it ends.

        Args:
            key: Key of the table's counter of commits.
            words: What the rewind does.
            lease: The lease on the table.
            rewind_id: The identity of this rewind.
            application: The application that processes the table's slices.

        Raises:
            ItemLocked: A slice of the table is being processed; nothing is announced.
            LeaseHeld: Another rewind of the table is announced.
        """
        rewind = Rewind(key, rewind_id, words, lease.key, lease.holder, self.store.now())
        try:
            written = self.store.write(Write(puts=(rewind.put,)))
        except SequenceConflict:
            present = self.rewind_of(key)
            if present is None:
                raise
            raise present.error() from None
        rewind = Rewind.from_document(written.documents[0])
        # After the announcement: a run looks for one after it has locked its slice.
        for item in self.store.select(Query(application, frozenset({Verdict.LOCKED}))):
            lock = self.lock(item)
            if lock is not None:
                self.end_rewind(rewind)
                raise locked_error(lock)
        return rewind

    def end_rewind(self, rewind: Rewind) -> None:
        """Remove the announcement of a rewind that changed nothing, unless somebody else has."""
        try:
            self.store.write(Write(puts=(rewind.removal,)))
        except SequenceConflict:
            return

    def record_rewind(
        self,
        rewind: Rewind | None,
        application: Application,
        slices: Sequence[RewoundSlice],
        watermarks: Mapping[str, StoredWatermark | None],
        reason: str,
        *,
        also: Sequence[Put] = (),
    ) -> tuple[Item, ...]:
        """Start a new revision of each slice, set the watermarks and end the rewind, in one write.

        What other applications have done with slices whose content stays the same is kept. Nothing is
        written if somebody else has recorded the rewind.

        Args:
            rewind: The rewind as announced; None if it is in a table's log only, not in the manifest.
            application: The application that processes the slices.
            slices: The slices; one with a later revision was changed by an operator and is left alone.
            watermarks: Column to its watermark after the rewind; None removes it.
            reason: Why, for every record.
            also: Further documents of the same write.

        Returns:
            The items with new revisions.
        """
        ended = () if rewind is None else (rewind.removal,)
        for _ in range(MOST_RACES):
            if rewind is not None and self.rewind_of(rewind.key) != rewind:
                return ()
            appends = tuple(self._rewound(slices, application, reason))
            if rewind is None and not appends:
                return ()
            puts = tuple(self._watermark_puts(application, watermarks, reason))
            try:
                return self.store.write(Write(appends, (*puts, *also, *ended))).items
            except SequenceConflict:
                continue
        raise SequenceConflict(f"too many processes write to the slices of {application} at once")

    def _rewound(
        self, slices: Sequence[RewoundSlice], application: Application, reason: str
    ) -> Iterator[Append]:
        # Commits of earlier versions may name a slice twice.
        last = {each.item_id: each for each in slices}
        items = self.store.read(list(last))
        for each in last.values():
            item = items.get(each.item_id)
            if item is not None and item.revision == each.revision and item.processing is None:
                yield Append(
                    item.item_id, tuple(self._revision(item, each, application, reason)), item.sequence
                )

    def _revision(
        self, item: Item, rewound: RewoundSlice, application: Application, reason: str
    ) -> Iterator[Draft]:
        """Yield the records of a slice's new revision."""
        if item.failed is not None:
            yield self._resolved(item, reason)
        yield self._new(item, reason, **rewound.note)
        if rewound.token is None and not rewound.is_skipped:
            return
        yield from self._kept(item, application, reason)
        if rewound.is_skipped:
            yield self._drafter.draft(item.item_id, State.SKIPPED, application, content={"reason": reason})
            return
        if rewound.token is not None:
            content = {**rewound.content, "reason": reason}
            yield from self._applied(item, application, rewound.token, content)

    def _kept(self, item: Item, application: Application, reason: str) -> Iterator[Draft]:
        """Yield the records of other applications that the new revision keeps."""
        others = [mark for mark in item.processed if not mark.application.covers(application)]
        records = {r.record_id: r for r in self.store.records(item.item_id)} if others else {}
        for mark in others:
            processing = self._reclaimed(item, mark)
            yield processing
            yield records[mark.record_id].copied(
                record_id=self._ids(),
                author=self._drafter.author,
                previous_record_id=processing.record_id,
                timestamp=None,
            )
        for mark in item.skipped:
            if not mark.application.skips(application):
                content = {"reason": f"kept: {reason}"}
                yield self._drafter.draft(item.item_id, State.SKIPPED, mark.application, content=content)

    def _reclaimed(self, item: Item, mark: Mark) -> Draft:
        token = item.tokens.get(mark.application.key)
        return self._drafter.draft(
            item.item_id,
            State.PROCESSING,
            mark.application,
            content={} if token is None else {"token": token},
            run_id=mark.run_id,
        )

    def _watermark_puts(
        self, application: Application, watermarks: Mapping[str, StoredWatermark | None], reason: str
    ) -> Iterator[Put]:
        for column, after in watermarks.items():
            mark, item_id = (None, None) if after is None else (after.watermark, after.item_id)
            yield from self._watermark_change(application, column, mark, reason, item_id=item_id)[1]
