"""The ledger: discovering, claiming and finishing items, over any back end.

Each step is one `Write` that fails if the item has changed meanwhile: if two processes act at once, the
second writes nothing and learns who was first.

Source: `processing-manifest.md`, "Item", "State" and "Use cases".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from lakewright.errors import LakewrightError, SequenceConflict
from lakewright.manifest.claim import COUNTER, Claim, check_ready, choose_token, claim_write, lost_claim_error
from lakewright.manifest.item import Item
from lakewright.manifest.lease import LEASE, MOST_RACES, Holder, Lease
from lakewright.manifest.record import Application, Draft, State
from lakewright.manifest.rewind import RewindActions
from lakewright.manifest.store import Append, Put, Store, Write, Written, batched
from lakewright.manifest.watermarks import processed_put


@dataclass(frozen=True, slots=True)
class DiscoveredSlice:
    """A slice as found in the lake.

    Attributes:
        item_id: Its canonical URI.
        application: The entity target for which it was found.
        entity: The entity's name.
        slice: The slice's name below the entity's bronze place.
        fingerprint: `{"size", "modified" or "etag", "files"}`.
    """

    item_id: str
    application: Application
    entity: str
    slice: str
    fingerprint: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Discovery:
    """Items that were found: those recorded by this call, and those already known."""

    new: tuple[Item, ...]
    known: tuple[Item, ...]


def record_unknown(store: Store, item_ids: Iterable[str], draft: Callable[[str], Draft]) -> Discovery:
    """Record items that the manifest does not know, each with its draft; known ones are left unchanged."""
    new: list[Item] = []
    known: list[Item] = []
    for batch in batched(dict.fromkeys(item_ids)):
        present = store.read(batch)
        known += present.values()
        drafts = [draft(item_id) for item_id in batch if item_id not in present]
        for one, item in zip(drafts, _record(store, drafts), strict=True):
            if item is not None:
                new.append(item)
            else:
                known.append(store.read([one.item_id]).get(one.item_id) or Item(one.item_id))
    return Discovery(tuple(new), tuple(known))


def _record(store: Store, drafts: Sequence[Draft]) -> Iterator[Item | None]:
    """Yield the item of each NEW record, or None if another process recorded the item first."""
    writes = (Write((Append(draft.item_id, (draft,), 0),)) for draft in drafts)
    for outcome in store.write_many(writes):
        if isinstance(outcome, SequenceConflict):
            yield None
        elif isinstance(outcome, LakewrightError):
            raise outcome
        else:
            yield outcome.items[0]


class Takeover(StrEnum):
    """Who may take over a stale lock: the next run automatically, or only an operator by `release`."""

    AUTO = "auto"
    OPERATOR = "operator"


class Ledger(RewindActions):
    """The items of a manifest, and the changes that runs and operators make to them."""

    def discover(self, found: Iterable[DiscoveredSlice], *, run_id: str | None = None) -> Discovery:
        """Record slices that the manifest does not know as NEW; known ones are left unchanged."""
        slices = {each.item_id: each for each in found}

        def draft(item_id: str) -> Draft:
            one = slices[item_id]
            content = {"entity": one.entity, "slice": one.slice, "fingerprint": dict(one.fingerprint)}
            return self._drafter.draft(item_id, State.NEW, one.application, content=content, run_id=run_id)

        return record_unknown(self.store, slices, draft)

    def announce(
        self,
        item_ids: Iterable[str],
        application: Application,
        content: Mapping[str, Any] | None,
        *,
        run_id: str | None = None,
    ) -> Discovery:
        """Record items that another program announces as NEW; known ones are left unchanged.

        Raises:
            UsageError: The payload is not JSON, or too large.
        """

        def draft(item_id: str) -> Draft:
            return self._drafter.draft(
                item_id, State.NEW, application, content=content, run_id=run_id, is_foreign=True
            )

        return record_unknown(self.store, item_ids, draft)

    def acquire(
        self,
        item_id: str,
        application: Application,
        holder: Holder,
        *,
        duration: timedelta,
        token_counter: str | None,
        token_floor: int = 0,
        refused: int | None = None,
        shared: int | None = None,
        takeover: Takeover | str = Takeover.AUTO,
        after: Sequence[Application] = (),
    ) -> Claim:
        """Return the claim on an item that is ready, or whose stale lock may be taken over.

        Args:
            item_id: The item.
            application: The application on whose behalf the item is claimed.
            holder: This process and its run.
            duration: How long the lease lasts without a heartbeat.
            token_counter: Key of the counter that numbers the data commits of the table written to; None if
                what is written takes no numbers.
            token_floor: The number that the table already holds; a new number is greater.
            refused: A number that the table can never accept; an item that has it gets a new one.
            shared: The number of a commit of several items; an item that has no number yet gets it.
            takeover: Who may take over a stale lock; this call does so if it is `auto`.
            after: Applications that must have processed the item first.

        Raises:
            ItemLocked: Another run holds the item, or a stale lock waits for an operator.
            ItemFailed: A failure waits for an operator.
            ItemWaits: An application in `after` has not processed the item.
            ManifestCorrupt: The item's records are invalid.
            SequenceConflict: The item is no longer ready: it is unknown, or was skipped or processed
                meanwhile; `details` has the `verdict`.
        """
        record_id, lease_token = self._ids(), self._ids()
        may_take_over = takeover == Takeover.AUTO
        counters = [] if token_counter is None else [(COUNTER, token_counter)]
        for _ in range(MOST_RACES):
            seen = self.store.look_up([item_id], [(LEASE, item_id), *counters])
            item = seen.items.get(item_id) or Item(item_id)
            now = self.store.now()
            lock = self._lock_of(item, seen.documents.get((LEASE, item_id)), now)
            check_ready(item, lock, application, may_take_over=may_take_over, after=after)
            lease = Lease(item_id, holder, lease_token, now, now + duration)
            token, counter = None, None
            if token_counter is not None:
                last = seen.documents.get((COUNTER, token_counter))
                token, counter = choose_token(
                    item, application, token_counter, last, floor=token_floor, refused=refused, shared=shared
                )
            write = claim_write(
                self._drafter,
                item,
                lock,
                lease,
                application,
                record_id=record_id,
                token=token,
                counter=counter,
            )
            try:
                written = self.store.write(write)
            except SequenceConflict:
                continue
            return self._claim(application, written, record_id=record_id, token=token or 0)
        raise _race_error(item_id)

    def _claim(self, application: Application, written: Written, *, record_id: str, token: int) -> Claim:
        return Claim(
            item=written.items[0],
            application=application,
            lease=Lease.from_document(next(d for d in written.documents if d.kind == LEASE)),
            token=token,
            record_id=record_id,
            processed_id=self._ids(),
            failed_id=self._ids(),
        )

    def processed(self, claim: Claim, content: Mapping[str, Any]) -> Item:
        """End a claim with PROCESSED: advance the watermarks and release the lease in one write.

        Args:
            claim: The claim that `acquire` returned. Repeating the call after a lost acknowledgement changes
                nothing.
            content: Content of the payload: `metrics`, `fingerprint`, `watermarks` (column to `{"type",
                "value"}`), `drift`, `delta_version`.

        Raises:
            LeaseLost: The claim is no longer held; nothing was written.
        """

        def all_puts() -> tuple[Put, ...]:
            recorded, mark = content.get("watermarks") or {}, processed_put(claim.application)
            beside = [(mark.kind, mark.key)]
            advanced = self.watermarks.puts_for_item(claim.application, claim.item_id, recorded, beside)
            return (*advanced, mark)

        return self._finish(claim, self._ending(claim, State.PROCESSED, content), all_puts)

    def processed_by_other(self, claim: Claim, content: Mapping[str, Any] | None) -> Item:
        """End another program's claim with PROCESSED and its payload, and release the lease in one write.

        Raises:
            LeaseLost: The claim is no longer held; nothing was written.
            UsageError: The payload is not JSON, or too large; nothing was written.
        """
        return self._finish(claim, self._ending(claim, State.PROCESSED, content, is_foreign=True))

    def failed(self, claim: Claim, content: Mapping[str, Any]) -> Item:
        """End a claim with FAILED and release the lease in one write.

        Args:
            claim: The claim that `acquire` returned. Repeating the call after a lost acknowledgement changes
                nothing.
            content: Content of the payload, as `payload.failure` returns it.

        Raises:
            LeaseLost: The claim is no longer held; nothing was written.
        """
        return self._finish(claim, self._ending(claim, State.FAILED, content))

    def _ending(
        self, claim: Claim, state: State, content: Mapping[str, Any] | None, *, is_foreign: bool = False
    ) -> Draft:
        return self._drafter.draft(
            claim.item_id,
            state,
            claim.application,
            content=content,
            run_id=claim.run_id,
            previous=claim.record_id,
            record_id=claim.failed_id if state is State.FAILED else claim.processed_id,
            is_foreign=is_foreign,
        )

    def give_back(self, claim: Claim, reason: str, *, fingerprint: Mapping[str, Any] | None = None) -> None:
        """Make a claimed item ready again, unless the claim is no longer held.

        The item adopts the fingerprint of its slice if one is given.
        """
        held = self.item(claim.item_id).processing
        if held is not None and held.record_id == claim.record_id:
            self.release(claim.item_id, reason, is_forced=True, fingerprint=fingerprint)

    def _finish(self, claim: Claim, draft: Draft, puts: Callable[[], tuple[Put, ...]] = lambda: ()) -> Item:
        item = claim.item
        for _ in range(MOST_RACES):
            append = Append(item.item_id, (draft,), item.sequence)
            try:
                return self.store.write(Write((append,), (Put(LEASE, claim.item_id, None), *puts()))).items[0]
            except SequenceConflict:
                item = self.item(claim.item_id)
                if item.has(draft.record_id):
                    return item
                if item.processing is None or item.processing.record_id != claim.record_id:
                    raise lost_claim_error(claim.item_id, claim.run_id, self.lock(item)) from None
        raise _race_error(claim.item_id)

    def recover_processed(
        self,
        item: Item,
        application: Application,
        *,
        token: int,
        content: Mapping[str, Any],
        run_id: str | None,
    ) -> Item:
        """Record that an item which was never claimed is processed, as a commit in the table's log shows.

        PROCESSING, PROCESSED and the watermarks are one write. If another process has recorded something
        about the item meanwhile, nothing is written.

        Args:
            item: The item, as last read.
            application: The application on whose behalf the commit was made.
            token: The number of the commit.
            content: Content of the payload, see `processed`.
            run_id: The run that made the commit; None if it is unknown.
        """
        mark = item.resolved or item.new
        drafts = self._applied(
            item,
            application,
            token,
            content,
            run_id=run_id,
            previous=mark.record_id if mark else None,
        )
        append = Append(item.item_id, drafts, item.sequence)
        recorded = content.get("watermarks") or {}
        for _ in range(MOST_RACES):
            advanced = self.watermarks.puts_for_item(application, item.item_id, recorded)
            puts = (*advanced, processed_put(application))
            try:
                return self.store.write(Write((append,), puts)).items[0]
            except SequenceConflict:
                present = self.item(item.item_id)
                if present.sequence != item.sequence:
                    return present
        raise _race_error(item.item_id)


def _race_error(item_id: str) -> SequenceConflict:
    return SequenceConflict(
        f"too many processes write {item_id} at once",
        remedy="Run again.",
        details={"item_id": item_id},
    )
