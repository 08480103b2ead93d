"""Actions of an operator on an item: resolve, release, skip, unskip, requeue, accept; or set a watermark.

Each action reads the item with its lock, raises an error if the action is not allowed, and otherwise appends
records in one `Write` that fails if the item has changed meanwhile.

Source: `processing-manifest.md`, "State" (Resolved, Skipped) and "Use cases" (command post).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import Item, is_changed
from lakewright.manifest.lease import LEASE, IsDead, Lease, assume_alive
from lakewright.manifest.lock import Lock, command, failed_error, invalid_error, locked_error
from lakewright.manifest.payload import RecordDrafter
from lakewright.manifest.record import ANYONE, Application, Author, Draft, State
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.store import Append, Document, Put, Store, Write
from lakewright.manifest.watermarks import (
    WATERMARK,
    StoredWatermark,
    Watermark,
    WatermarkChange,
    Watermarks,
    watermark_key,
)


class OperatorActions:
    """Items with their locks, and the actions that an operator may take, on behalf of one author.

    Args:
        store: The back end.
        author: The author of the records: a run of the tool, or an operator.
        ids: Returns an unused id.
        is_dead: Returns whether a holder is a process of this host that has ended.
        redactor: Removes secrets from what is recorded.
        trigger: What started this run, if it was not a person at the command line.
    """

    def __init__(
        self,
        store: Store,
        author: Author,
        *,
        ids: Callable[[], str],
        is_dead: IsDead = assume_alive,
        redactor: Redactor | None = None,
        trigger: str | None = None,
    ) -> None:
        self.store = store
        self.watermarks = Watermarks(store)
        self._ids = ids
        self._is_dead = is_dead
        self._drafter = RecordDrafter(author, ids, redactor or Redactor(), trigger)

    def item(self, item_id: str) -> Item:
        """Return the item in its current state; an unknown one has no records."""
        return self.store.read([item_id]).get(item_id) or Item(item_id)

    def lock(self, item: Item) -> Lock | None:
        """Return the item's lock, with whether it is stale, or None if the item is not locked."""
        if item.processing is None:
            return None
        return self._lock_of(item, self.store.document(LEASE, item.item_id), self.store.now())

    def stale_locks(self, items: Iterable[Item]) -> Iterator[Lock]:
        """Yield the locks of some items that may be taken over."""
        for item in items:
            lock = self.lock(item)
            if lock is not None and lock.is_stale:
                yield lock

    def resolve(self, item_id: str, reason: str, *, fingerprint: Mapping[str, Any] | None = None) -> Item:
        """Allow a failed item to be processed again.

        Args:
            item_id: The item.
            reason: The operator's reason, which is recorded.
            fingerprint: The present fingerprint of its slice, which the item adopts; None if it is unknown.

        Raises:
            ItemLocked: The item is being processed; a lock needs `release`.
            UsageError: The item has no unresolved failure.
        """
        item, lock = self._known(item_id)
        if lock is not None:
            raise locked_error(lock)
        if item.failed is None:
            raise UsageError(f"{item_id} has no unresolved failure", remedy=_show(item))
        return self._append(item, self._resolved(item, reason, **_adopted(fingerprint)))

    def release(
        self,
        item_id: str,
        reason: str,
        *,
        is_forced: bool = False,
        fingerprint: Mapping[str, Any] | None = None,
    ) -> Item:
        """Release an item's stale lock, or any lock if forced.

        Args:
            item_id: The item.
            reason: Why, which is recorded.
            is_forced: Whether a lock is released that is not stale.
            fingerprint: The present fingerprint of its slice, which the item adopts; by default it keeps
                the recorded one.

        Raises:
            ItemLocked: The lease has not expired, its holder is not known to have ended, and the release is
                not forced.
            UsageError: The item is not locked.
        """
        item, lock = self._known(item_id)
        if lock is None:
            raise UsageError(f"{item_id} isn't locked", remedy=_show(item))
        if not (lock.is_stale or is_forced):
            raise locked_error(lock)
        seen = lock.lease.version if lock.lease and not is_forced else None
        return self._append(item, self._resolved(item, reason, **_adopted(fingerprint)), lease=seen)

    def skip(self, item_id: str, reason: str, *, application: Application = ANYONE) -> Item:
        """Make an application, or all of them, skip the item; nothing is written if it does already.

        A failed item must be resolved first, unless it is a late slice: that one holds nothing back.

        Raises:
            ItemLocked, ItemFailed: The item must be released or resolved first.
        """
        item, lock = self._known(item_id)
        is_late = item.failed is not None and not item.failed.note.get("holds_back", True)
        if is_late:
            _check_unlocked(item, lock)
        else:
            _check_free(item, lock, "skip")
        if item.is_skipped_for(application):
            return item
        resolved = [self._resolved(item, reason)] if is_late else []
        skipped = self._drafter.draft(item_id, State.SKIPPED, application, content={"reason": reason})
        return self._append(item, *resolved, skipped)

    def unskip(
        self,
        item_id: str,
        reason: str,
        *,
        application: Application = ANYONE,
        fingerprint: Mapping[str, Any] | None = None,
    ) -> Item:
        """Undo every skip that covers `application`, by a new revision; skips for others are kept.

        Args:
            item_id: The item.
            reason: Why, which is recorded.
            application: Whom it is for.
            fingerprint: The present fingerprint of its slice; by default the recorded one.

        Raises:
            ItemLocked, ItemFailed: The item must be released or resolved first.
            UsageError: The item is not skipped for `application`.
        """
        item, lock = self._known(item_id)
        _check_free(item, lock, "unskip")
        if not item.is_skipped_for(application):
            named = " or ".join(dict.fromkeys(str(mark.application) for mark in item.skipped))
            raise UsageError(
                f"{item_id} isn't skipped for {'everyone' if application == ANYONE else application}",
                remedy=f"Give --for {named}." if named else _show(item),
            )
        others = [mark.application for mark in item.skipped if not mark.application.skips(application)]
        kept = [
            self._drafter.draft(item_id, State.SKIPPED, other, content={"reason": f"kept: {reason}"})
            for other in dict.fromkeys(others)
        ]
        return self._append(item, self._new(item, reason, **_adopted(fingerprint)), *kept)

    def requeue(
        self,
        item_id: str,
        reason: str,
        *,
        names: Mapping[str, str] | None = None,
        fingerprint: Mapping[str, Any] | None = None,
        allow_late: bool = False,
        emptied_by: str | None = None,
        cascade: Sequence[str] = (),
        fingerprints: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Item:
        """Start a new revision of an item and of those in `cascade`, all or none, to process them again.

        Args:
            item_id: A processed, failed, skipped, ready or invalid item.
            reason: The operator's reason, which is recorded.
            names: Its `entity` and `slice`; by default those recorded.
            fingerprint: The present fingerprint of its slice; by default the recorded one.
            allow_late: Whether the item may be processed although later slices are.
            emptied_by: The run in which a person emptied or removed the table; None if that is not why.
            cascade: Later items that must be processed again after it.
            fingerprints: The present fingerprints of items in `cascade`; by default those recorded.

        Raises:
            ItemLocked: One of the items is being processed.
        """
        item, lock = self._known(item_id)
        note: dict[str, Any] = dict(names or {})
        if fingerprint is not None:
            note["fingerprint"] = fingerprint
        if allow_late:
            note["allow_late"] = True
        if emptied_by is not None:
            note["emptied_by"] = emptied_by
        appends = [self._requeued(item, lock, reason, **note)]
        for other in cascade:
            present = (fingerprints or {}).get(other)
            noted: dict[str, Any] = {} if present is None else {"fingerprint": present}
            appends.append(self._requeued(*self._known(other), reason, **noted))
        return self._write(*appends)

    def accept(self, item_id: str, reason: str, *, fingerprint: Mapping[str, Any]) -> Item:
        """Adopt the present content of an item's slice; its verdicts stay: what is processed is not repeated.

        The records are a PROCESSING and the RESOLVED that adopts the fingerprint, in one write: nobody finds
        the item locked.

        Args:
            item_id: An item that is neither locked nor failed.
            reason: The operator's reason, which is recorded.
            fingerprint: The present fingerprint of its slice.

        Raises:
            ItemLocked, ItemFailed: The item must be released or resolved first.
            UsageError: The item has this fingerprint already, or its records are invalid.
        """
        item, lock = self._known(item_id)
        _check_free(item, lock, "accept")
        if item.problem is not None:
            raise invalid_error(item)
        if item.fingerprint is not None and not is_changed(item.fingerprint, fingerprint):
            raise UsageError(f"{item_id} has not changed since it was recorded", remedy=_show(item))
        previous = None if item.new is None else item.new.record_id
        drafter, application = self._drafter, _owner(item)
        begun = drafter.draft(
            item_id, State.PROCESSING, application, content={"reason": reason}, previous=previous
        )
        adopted = {"reason": reason, "fingerprint": fingerprint}
        ended = drafter.draft(item_id, State.RESOLVED, application, content=adopted, previous=begun.record_id)
        return self._append(item, begun, ended)

    def set_watermark(
        self, application: Application, column: str, watermark: Watermark | None, reason: str
    ) -> WatermarkChange:
        """Set the watermark of a column, even to a smaller value; None deletes it.

        Raises:
            SequenceConflict: A slice or another operator has changed it meanwhile; nothing was written.
        """
        change, puts = self._watermark_change(application, column, watermark, reason)
        self.store.write(Write(puts=puts))
        return change

    def _watermark_change(
        self,
        application: Application,
        column: str,
        watermark: Watermark | None,
        reason: str,
        *,
        item_id: str | None = None,
    ) -> tuple[WatermarkChange, tuple[Put, Put]]:
        """Return a change of a watermark, and the puts that save it unless it has changed meanwhile.

        Args:
            application: Whose watermark it is.
            column: The column.
            watermark: The value; None deletes it: the state before the first slice.
            reason: Why it is changed.
            item_id: The item that the value comes from, if it goes back to that of an earlier one.
        """
        present = self.store.document(WATERMARK, watermark_key(application, column))
        change = WatermarkChange(
            application,
            column,
            watermark,
            None if present is None else StoredWatermark.from_document(present).watermark,
            self._drafter.author.agent.name,
            self._drafter.redactor.text(reason),
            self.store.now(),
            item_id,
        )
        return change, change.puts(self._ids(), expected=0 if present is None else present.version)

    def _lock_of(self, item: Item, held: Document | None, now: datetime) -> Lock | None:
        lease = None if held is None else Lease.from_document(held)
        return Lock.of(item, lease, now=now, is_dead=self._is_dead)

    def _known(self, item_id: str) -> tuple[Item, Lock | None]:
        """Return an item with its lock.

        Raises:
            UsageError: The manifest does not know the item.
        """
        item = self.item(item_id)
        if item.sequence == 0:
            raise UsageError(
                f"the manifest has no item {item_id}",
                remedy=Phrase(
                    "List the items with ",
                    Command("manifest", "ls"),
                    "; ",
                    Command("manifest", "discover"),
                    " records new slices.",
                ),
            )
        return item, self.lock(item)

    def _requeued(self, item: Item, lock: Lock | None, reason: str, **note: Any) -> Append:
        """Return the append that starts a new revision of an item, whatever its verdict."""
        _check_unlocked(item, lock)
        if item.problem is not None:
            drafts = [self._new(item, reason, **note, mends=True, problem=item.problem)]
        else:
            resolved = [] if item.failed is None else [self._resolved(item, reason)]
            drafts = [*resolved, self._new(item, reason, **note)]
        return Append(item.item_id, tuple(drafts), item.sequence)

    def _resolved(self, item: Item, reason: str, **note: Any) -> Draft:
        held = item.processing or item.failed
        if held is None:
            raise ValueError(f"{item.item_id} is neither locked nor failed")
        return self._drafter.draft(
            item.item_id,
            State.RESOLVED,
            held.application,
            content={"reason": reason, **note},
            previous=held.record_id,
        )

    def _applied(
        self,
        item: Item,
        application: Application,
        token: int,
        content: Mapping[str, Any],
        *,
        run_id: str | None = None,
        previous: str | None = None,
    ) -> tuple[Draft, Draft]:
        """Return a PROCESSING and its PROCESSED, for a commit that is in the table already."""
        drafter, item_id = self._drafter, item.item_id
        processing = drafter.draft(
            item_id, State.PROCESSING, application, content={"token": token}, run_id=run_id, previous=previous
        )
        processed = drafter.draft(
            item_id,
            State.PROCESSED,
            application,
            content=content,
            run_id=run_id,
            previous=processing.record_id,
        )
        return processing, processed

    def _new(self, item: Item, reason: str, **note: Any) -> Draft:
        """Return a NEW with the note of the last one; the values in `note` replace those of the same name."""
        of_revision = ("allow_late", "processing_time")
        kept = {} if item.new is None else {k: v for k, v in item.new.note.items() if k not in of_revision}
        content = {**kept, "reason": reason, **note}
        return self._drafter.draft(item.item_id, State.NEW, _owner(item), content=content)

    def _append(self, item: Item, *drafts: Draft, lease: int | None = None) -> Item:
        return self._write(Append(item.item_id, drafts, item.sequence), lease=lease)

    def _write(self, *appends: Append, lease: int | None = None) -> Item:
        """Save appends and delete the items' leases; return the first item.

        Args:
            appends: One for each item.
            lease: The version that the leases must have; None for any.
        """
        puts = tuple(Put(LEASE, append.item_id, None, lease) for append in appends)
        return self.store.write(Write(appends, puts)).items[0]


def _adopted(fingerprint: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the part of a note by which an item adopts the present fingerprint of its slice, if given."""
    return {} if fingerprint is None else {"fingerprint": fingerprint}


def _check_unlocked(item: Item, lock: Lock | None) -> None:
    """Raise `ItemLocked` if the item is locked.

    A stale lock on an invalid item is ignored, because such an item cannot be released.
    """
    if lock is not None and not (lock.is_stale and item.problem is not None):
        raise locked_error(lock)


def _check_free(item: Item, lock: Lock | None, verb: str) -> None:
    """Raise `ItemLocked` or `ItemFailed` if the item must be released or resolved before the action."""
    _check_unlocked(item, lock)
    if item.failed is not None and item.problem is None:
        raise failed_error(item, refused=verb)


def _owner(item: Item) -> Application:
    """Return the application for which the item was discovered, otherwise the first one of its records."""
    return item.new.application if item.new is not None else next(iter(item.verdicts()))


def _show(item: Item) -> str:
    return Phrase("Show its state with ", command("show", item.item_id), ".")
