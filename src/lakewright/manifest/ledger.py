"""The ledger: discovering, claiming and finishing items, and the operator's verbs, over any back end.

Everything here is one `Write` with expectations; who comes second writes nothing and learns who was first.

Source: `processing-manifest.md`, "Item", "State" and "Use cases".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any, TypeVar

from lakewright.errors import LakewrightError, SequenceConflict, UsageError
from lakewright.manifest import operator_actions as verbs
from lakewright.manifest.claim import (
    Claim,
    Discovered,
    Discovery,
    claim_drafts,
    claim_puts,
    lost_claim,
    refuse_unready,
)
from lakewright.manifest.item import Item
from lakewright.manifest.lease import LEASE, Holder, Lease
from lakewright.manifest.lock import IsDead, Lock, knows_of_no_death
from lakewright.manifest.record import ANYONE, Application, Author, Draft, State
from lakewright.manifest.redact import Redactor
from lakewright.manifest.scribe import Scribe
from lakewright.manifest.store import Append, Document, Put, Store, Write, Written
from lakewright.manifest.watermark import Change, Watermark, Watermarks

__all__ = ["COUNTER", "Ledger", "Takeover"]

COUNTER = "counter"
"""The kind of the documents that number the data commits of a table."""

BATCH = 500
"""Items read or written in one round trip."""

MOST_RACES = 100
"""Attempts at a write that others get in the way of; each time another one got through."""

T = TypeVar("T")


class Takeover(StrEnum):
    """Who may take over a stale lock: the next run by itself, or only an operator by `release`."""

    AUTO = "auto"
    OPERATOR = "operator"


class Ledger:
    """Items and their locks, on behalf of one author.

    Args:
        store: The back end.
        author: Who writes the records: a run of the tool, or an operator.
        ids: Gives an id that nothing has yet.
        is_dead: Tells whether a holder is a process of this host that has ended.
        redactor: Takes secrets out of what is recorded.
    """

    def __init__(
        self,
        store: Store,
        author: Author,
        *,
        ids: Callable[[], str],
        is_dead: IsDead = knows_of_no_death,
        redactor: Redactor | None = None,
    ) -> None:
        self.store = store
        self.watermarks = Watermarks(store)
        self._ids = ids
        self._is_dead = is_dead
        self._scribe = Scribe(author, ids, redactor or Redactor())

    def item(self, item_id: str) -> Item:
        """Return the item as it stands; one without records where nothing is known of it."""
        return self.store.read([item_id]).get(item_id) or Item(item_id)

    def lock(self, item: Item) -> Lock | None:
        """Return who holds the item, and whether anybody stands behind that, or None."""
        if item.processing is None:
            return None
        return self._lock_of(item, self.store.document(LEASE, item.item_id), self.store.now())

    def stale_locks(self, items: Iterable[Item]) -> Iterator[Lock]:
        """Yield the locks on some items that nobody stands behind any more."""
        for item in items:
            lock = self.lock(item)
            if lock is not None and lock.is_stale:
                yield lock

    def _lock_of(self, item: Item, held: Document | None, now: datetime) -> Lock | None:
        lease = None if held is None else Lease.from_document(held)
        return Lock.of(item, lease, now=now, is_dead=self._is_dead)

    # Discovery

    def discover(self, found: Iterable[Discovered], *, run_id: str | None = None) -> Discovery:
        """Record slices that the manifest doesn't know as NEW, and leave those that it knows alone."""
        new: list[Item] = []
        known: list[Item] = []
        for batch in _batched({slice_.item_id: slice_ for slice_ in found}.values(), BATCH):
            present = self.store.read([slice_.item_id for slice_ in batch])
            known += present.values()
            unknown = [slice_ for slice_ in batch if slice_.item_id not in present]
            for slice_, item in zip(unknown, self._record_new(unknown, run_id), strict=True):
                if item is not None:
                    new.append(item)
                else:
                    known.append(self.item(slice_.item_id))
        return Discovery(tuple(new), tuple(known))

    def _record_new(self, unknown: Sequence[Discovered], run_id: str | None) -> Iterator[Item | None]:
        """Yield for each slice its item, or None where another discovery was quicker."""
        writes = (Write((Append(s.item_id, (self._new_draft(s, run_id),), 0),)) for s in unknown)
        for outcome in self.store.write_many(writes):
            if isinstance(outcome, SequenceConflict):
                yield None
            elif isinstance(outcome, LakewrightError):
                raise outcome
            else:
                yield outcome.items[0]

    def _new_draft(self, found: Discovered, run_id: str | None) -> Draft:
        content = {"entity": found.entity, "slice": found.slice, "fingerprint": dict(found.fingerprint)}
        return self._scribe.draft(found.item_id, State.NEW, found.application, content=content, run_id=run_id)

    # Claims

    def acquire(
        self,
        item_id: str,
        application: Application,
        holder: Holder,
        *,
        duration: timedelta,
        token_counter: str,
        token_floor: int = 0,
        refused: int | None = None,
        takeover: Takeover | str = Takeover.AUTO,
    ) -> Claim:
        """Return the claim on an item that is ready, or whose lock is stale and may be taken over.

        Args:
            item_id: The item.
            application: On whose behalf.
            holder: This process and its run.
            duration: How long the lease lasts without a heartbeat.
            token_counter: Key of the counter that numbers the data commits of the table written to.
            token_floor: The number that the table already holds; a new one lies above it.
            refused: A number that the table hasn't and will never take: an item that has it gets a new one.
            takeover: Whether a stale lock is taken over here.

        Raises:
            ItemLocked: Another run holds it, or a stale lock waits for an operator.
            ItemFailed: A failure waits for an operator.
            ManifestCorrupt: Its records are invalid.
            SequenceConflict: It isn't ready any more: unknown, or skipped or processed meanwhile;
                `details` has the `verdict`.
        """
        record_id, lease_token = self._ids(), self._ids()
        may_take_over = takeover == Takeover.AUTO
        for _ in range(MOST_RACES):
            seen = self.store.look_up([item_id], [(LEASE, item_id), (COUNTER, token_counter)])
            item = seen.items.get(item_id) or Item(item_id)
            now = self.store.now()
            held = seen.documents.get((LEASE, item_id))
            lock = self._lock_of(item, held, now)
            refuse_unready(item, lock, application, may_take_over=may_take_over)
            lease = Lease(item_id, holder, lease_token, now, now + duration)
            last = seen.documents.get((COUNTER, token_counter))
            token, counter = _token(
                item, application, token_counter, last, floor=token_floor, refused=refused
            )
            drafts = claim_drafts(
                self._scribe,
                item,
                lock,
                lease,
                application,
                record_id=record_id,
                token=token,
                counter=counter,
            )
            puts = claim_puts(lock, lease, counter)
            try:
                written = self.store.write(Write((Append(item_id, drafts, item.sequence),), puts))
            except SequenceConflict:
                continue
            return self._claim(item, application, written, record_id=record_id, token=token)
        raise SequenceConflict(f"{item_id} is claimed by too many at once", details={"item_id": item_id})

    def _claim(
        self, before: Item, application: Application, written: Written, *, record_id: str, token: int
    ) -> Claim:
        return Claim(
            item=written.items[0],
            application=application,
            lease=Lease.from_document(next(d for d in written.documents if d.kind == LEASE)),
            token=token,
            record_id=record_id,
            processed_id=self._ids(),
            failed_id=self._ids(),
            is_repeat=application.key in before.tokens,
        )

    def processed(self, claim: Claim, content: Mapping[str, Any], puts: Sequence[Put] = ()) -> Item:
        """End a claim with PROCESSED, its watermarks moved on, and the lease given back, in one write.

        Args:
            claim: What `acquire` returned. Calling again after a lost acknowledgement changes nothing.
            content: Of the payload: `metrics`, `fingerprint`, `watermarks` (column to `{"type", "value"}`),
                `drift`, `delta_version`.
            puts: Further documents of the same write.

        Raises:
            LeaseLost: The claim isn't held any more; nothing was written.
        """

        def all_puts() -> tuple[Put, ...]:
            brought = content.get("watermarks") or {}
            return (*self.watermarks.advances(claim.application, claim.item_id, brought), *puts)

        return self._finish(claim, State.PROCESSED, claim.processed_id, content, all_puts)

    def failed(self, claim: Claim, content: Mapping[str, Any], *, holds_back: bool = True) -> Item:
        """End a claim with FAILED, and give the lease back, in one write.

        Args:
            claim: What `acquire` returned. Calling again after a lost acknowledgement changes nothing.
            content: Of the payload, as `payload.failure` makes it.
            holds_back: Whether later slices of the entity must wait.

        Raises:
            LeaseLost: The claim isn't held any more; nothing was written.
        """
        content = {**content, "holds_back": holds_back}
        return self._finish(claim, State.FAILED, claim.failed_id, content, lambda: ())

    def _finish(
        self,
        claim: Claim,
        state: State,
        record_id: str,
        content: Mapping[str, Any],
        puts: Callable[[], tuple[Put, ...]],
    ) -> Item:
        draft = self._scribe.draft(
            claim.item_id,
            state,
            claim.application,
            content=content,
            run_id=claim.run_id,
            previous=claim.record_id,
            record_id=record_id,
        )
        item = claim.item
        for _ in range(MOST_RACES):
            append = Append(item.item_id, (draft,), item.sequence)
            try:
                return self.store.write(Write((append,), (Put(LEASE, claim.item_id, None), *puts()))).items[0]
            except SequenceConflict:
                item = self.item(claim.item_id)
                if item.has(record_id):
                    return item
                if item.processing is None or item.processing.record_id != claim.record_id:
                    raise lost_claim(claim, self.lock(item)) from None
        raise SequenceConflict(f"{claim.item_id} is written by too many at once")

    # What only the tables know

    def recall(
        self,
        item: Item,
        application: Application,
        *,
        token: int,
        content: Mapping[str, Any],
        run_id: str | None,
    ) -> Item:
        """Record that an item that was never claimed is processed, as the commit with that number tells.

        PROCESSING, PROCESSED and the watermarks are one write. Where somebody else has written a record of
        the item meanwhile, that stands, and nothing is written.
        """
        mark = item.resolved or item.new
        begun = self._scribe.draft(
            item.item_id,
            State.PROCESSING,
            application,
            content={"token": token},
            run_id=run_id,
            previous=mark.record_id if mark else None,
        )
        done = self._scribe.draft(
            item.item_id,
            State.PROCESSED,
            application,
            content=content,
            run_id=run_id,
            previous=begun.record_id,
        )
        append = Append(item.item_id, (begun, done), item.sequence)
        brought = content.get("watermarks") or {}
        for _ in range(MOST_RACES):
            puts = self.watermarks.advances(application, item.item_id, brought)
            try:
                return self.store.write(Write((append,), puts)).items[0]
            except SequenceConflict:
                present = self.item(item.item_id)
                if present.sequence != item.sequence:
                    return present
        raise SequenceConflict(f"{item.item_id} is written by too many at once")

    # The operator's verbs

    def resolve(self, item_id: str, reason: str, *, fingerprint: Mapping[str, Any] | None = None) -> Item:
        """Let a failed item be processed again, with its slice as `fingerprint` says it now is.

        Raises:
            ItemLocked: It is being processed; `release` is the verb for that.
            UsageError: There is no failure to resolve.
        """
        item, lock = self._known(item_id)
        return self._apply(verbs.resolve(self._scribe, item, lock, reason, fingerprint=fingerprint))

    def release(self, item_id: str, reason: str, *, is_forced: bool = False) -> Item:
        """Free an item from a lock whose holder is gone, or from any if forced.

        Raises:
            ItemLocked: The lease is alive, and it isn't forced.
            UsageError: There is no lock to release.
        """
        item, lock = self._known(item_id)
        append = verbs.release(self._scribe, item, lock, reason, is_forced=is_forced)
        seen = lock.lease.version if lock and lock.lease and not is_forced else None
        return self._apply(append, lease=seen)

    def skip(self, item_id: str, reason: str, *, application: Application = ANYONE) -> Item:
        """Make an application, or all, leave the item alone.

        Raises:
            ItemLocked, ItemFailed: It must be released or resolved first.
        """
        item, lock = self._known(item_id)
        append = verbs.skip(self._scribe, item, lock, reason, application=application)
        return item if append is None else self._apply(append)

    def unskip(self, item_id: str, reason: str, *, application: Application = ANYONE) -> Item:
        """Take back every skip that keeps `application` away, by a new revision of the item.

        Raises:
            ItemLocked, ItemFailed: It must be released or resolved first.
            UsageError: It isn't skipped for `application`.
        """
        item, lock = self._known(item_id)
        return self._apply(verbs.unskip(self._scribe, item, lock, reason, application=application))

    def requeue(
        self,
        item_id: str,
        reason: str,
        *,
        names: Mapping[str, str] | None = None,
        fingerprint: Mapping[str, Any] | None = None,
        allow_late: bool = False,
        cascade: Sequence[str] = (),
    ) -> Item:
        """Have an item processed anew as its next revision, and those of `cascade` with it, all or none.

        Args:
            item_id: The item.
            reason: Why.
            names: Its `entity` and `slice`; by default as they were.
            fingerprint: Its slice as it is now; by default as it was.
            allow_late: Whether it may be applied though later slices are processed.
            cascade: Later items that are to be processed anew after it.

        Raises:
            ItemLocked: One of them is being processed.
        """
        item, lock = self._known(item_id)
        appends = [
            verbs.requeue(
                self._scribe, item, lock, reason, names=names, fingerprint=fingerprint, allow_late=allow_late
            ),
            *(verbs.requeue(self._scribe, *self._known(other), reason) for other in cascade),
        ]
        return self._apply(*appends)

    def set_watermark(
        self, application: Application, column: str, watermark: Watermark | None, reason: str
    ) -> Change:
        """Make this the last watermark of a column, also where that is a step back; None forgets it.

        Raises:
            SequenceConflict: A slice or somebody else changed it at this moment; nothing was written.
        """
        scribe = self._scribe
        return self.watermarks.change(
            application,
            column,
            watermark,
            author=scribe.author.agent.name,
            reason=scribe.redactor.text(reason),
            change_id=self._ids(),
        )

    def _known(self, item_id: str) -> tuple[Item, Lock | None]:
        item = self.item(item_id)
        if item.sequence == 0:
            raise UsageError(
                f"the manifest has no item {item_id}",
                remedy="See what there is with `lakewright manifest ls`; `discover` records new slices.",
            )
        return item, self.lock(item)

    def _apply(self, *appends: Append, lease: int | None = None) -> Item:
        """Write what verbs came to; whatever lease there was goes, if it is still the one last seen."""
        puts = tuple(Put(LEASE, append.item_id, None, lease) for append in appends)
        return self.store.write(Write(appends, puts)).items[0]


def count_from(store: Store, counter: str, last: int) -> None:
    """Have a counter of data commits give numbers above `last`, if it doesn't already."""
    for _ in range(MOST_RACES):
        present = store.document(COUNTER, counter)
        if present is not None and present.value["last"] >= last:
            return
        version = 0 if present is None else present.version
        try:
            store.write(Write(puts=(Put(COUNTER, counter, {"last": last}, version),)))
        except SequenceConflict:
            continue
        return
    raise SequenceConflict(f"{counter} is counted by too many at once")


def _token(
    item: Item,
    application: Application,
    key: str,
    counter: Document | None,
    *,
    floor: int,
    refused: int | None,
) -> tuple[int, Put | None]:
    """Return the number of the item's data commit, and what is to be put down if it is a new one."""
    given = item.tokens.get(application.key)
    if given is not None and given != refused:
        return given, None
    token = max(counter.value["last"] if counter else 0, floor) + 1
    return token, Put(COUNTER, key, {"last": token}, counter.version if counter else 0)


def _batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch
