"""Claims: an item's lock together with its lease, held by one run, and the numbers that are their tokens.

The tokens number the data commits of a table, by a counter. A number belongs to one item, application and
revision; slices that are folded into one commit share it. The commit carries it, so the table itself shows
whether that commit landed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakewright.errors import ItemWaits, LeaseLost, SequenceConflict
from lakewright.manifest.item import Item
from lakewright.manifest.lease import MOST_RACES, Lease
from lakewright.manifest.lock import Lock, failed_error, invalid_error, locked_error
from lakewright.manifest.payload import RecordDrafter
from lakewright.manifest.record import Application, Draft, State
from lakewright.manifest.store import Append, Document, Put, Store, Write
from lakewright.manifest.verdict import Verdict

COUNTER = "counter"
"""The kind of the documents that hold the last number given to a data commit of a table."""


def choose_token(
    item: Item,
    application: Application,
    key: str,
    counter: Document | None,
    *,
    floor: int,
    refused: int | None,
    shared: int | None = None,
) -> tuple[int, Put | None]:
    """Return the number of the item's data commit, and the put that raises the counter if the number is new.

    Args:
        item: The item to claim.
        application: The application on whose behalf the item is claimed.
        key: The key of the counter.
        counter: The counter's document, None if there is none.
        floor: The number that the table already holds; a new number is greater.
        refused: A number that the table can never accept; an item that has it gets a new one.
        shared: The number of a commit of several items, which an item without a number gets.
    """
    given = item.tokens.get(application.key)
    if given is not None and given != refused:
        return given, None
    if shared is not None:
        return shared, None
    token = max(counter.value["last"] if counter else 0, floor) + 1
    return token, Put(COUNTER, key, {"last": token}, counter.version if counter else 0)


def raise_counter(store: Store, counter: str, last: int) -> None:
    """Raise a counter to at least `last`, so that it gives only greater numbers.

    Raises:
        SequenceConflict: Another process changed the counter during each of `MOST_RACES` attempts.
    """
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
    raise SequenceConflict(f"too many processes change the counter {counter} at once")


@dataclass(frozen=True, slots=True)
class Claim:
    """An item that this run, and no other, processes.

    Attributes:
        item: The item as the claim left it.
        token: The number of the data commit. The revision gets it when it is first claimed; every further
            attempt has the same number, unless the table can never accept it. 0 if there is no such commit.
        record_id: The id of the PROCESSING record.
        processed_id: The id of the PROCESSED record that may end the claim; fixed, so that a repeated write
            is recognised.
        failed_id: The id of the FAILED record that may end the claim.
    """

    item: Item
    application: Application
    lease: Lease
    token: int
    record_id: str
    processed_id: str
    failed_id: str

    @property
    def item_id(self) -> str:
        """The id of the item."""
        return self.item.item_id

    @property
    def run_id(self) -> str:
        """The run that holds the claim."""
        return self.lease.holder.run_id


def check_ready(
    item: Item,
    lock: Lock | None,
    application: Application,
    *,
    may_take_over: bool,
    after: Sequence[Application] = (),
) -> None:
    """Raise an error unless the item is ready for `application`, if need be by taking over a stale lock.

    Args:
        item: The item.
        lock: Its lock, if it has one.
        application: The application that claims the item.
        may_take_over: Whether a stale lock may be taken over.
        after: Applications that must have processed the item first.

    Raises:
        ItemWaits: An application in `after` has not processed the item.
        ManifestCorrupt: The item's records are invalid.
        ItemLocked: Another run holds the item, or its lock is stale and may not be taken over.
        ItemFailed: The item has an unresolved failure.
        SequenceConflict: The item has another verdict, such as skipped or processed; `details` names it.
    """
    if item.problem is not None:
        raise invalid_error(item)
    if lock is not None and not (lock.is_stale and may_take_over):
        raise locked_error(lock)
    if item.failed is not None:
        raise failed_error(item)
    verdict = replace(item, processing=None).verdict(application)
    if verdict is not Verdict.READY:
        raise SequenceConflict(
            f"{item.item_id} isn't ready for {application}: it is {verdict}",
            details={"item_id": item.item_id, "verdict": verdict.value},
        )
    if waits_for := [str(each) for each in after if not item.is_processed_by(each)]:
        raise ItemWaits(
            f"{item.item_id} waits for {', '.join(waits_for)}",
            remedy="It is ready once they have processed it.",
            details={"item_id": item.item_id, "waits_for": waits_for},
        )


def claim_write(
    drafter: RecordDrafter,
    item: Item,
    lock: Lock | None,
    lease: Lease,
    application: Application,
    *,
    record_id: str,
    token: int | None,
    counter: Put | None,
) -> Write:
    """Return the write of a claim: PROCESSING, its lease, and the counter if it is raised.

    If a stale lock is taken over, RESOLVED goes first, and the lease replaces the last one seen.
    """
    resolved = () if lock is None else (_takeover(drafter, lock, lease),)
    mark = item.resolved or item.new
    numbered = {} if token is None else {"token": token}
    processing = drafter.draft(
        item.item_id,
        State.PROCESSING,
        application,
        content={**numbered, **({} if counter is None else {"counter": counter.key})},
        run_id=lease.holder.run_id,
        previous=resolved[0].record_id if resolved else (mark.record_id if mark else None),
        record_id=record_id,
    )
    # A lock that seems to have no lease may be getting one: items and documents are not read together.
    seen = None if lock is None else lock.lease.version if lock.lease is not None else 0
    return Write(
        (Append(item.item_id, (*resolved, processing), item.sequence),),
        (lease.put(expected=seen), *(() if counter is None else (counter,))),
    )


def _takeover(drafter: RecordDrafter, lock: Lock, lease: Lease) -> Draft:
    return drafter.draft(
        lock.item_id,
        State.RESOLVED,
        lock.processing.application,
        content={"reason": f"taken over from {lock.holder}: {lock.stale_reason}", "taken_over": True},
        run_id=lease.holder.run_id,
        previous=lock.processing.record_id,
    )


def lost_claim_error(item_id: str, run_id: str, lock: Lock | None) -> LeaseLost:
    """Return the error for a claim that was released or that another run has taken over."""
    now_with = "no one holds it now" if lock is None else f"{lock.holder} holds it now"
    return LeaseLost(
        f"the lock on {item_id} is lost: {now_with}",
        remedy="Run again; the next run checks whether the commit landed.",
        details={"item_id": item_id, "run_id": run_id},
    )
