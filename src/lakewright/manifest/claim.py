"""Claims: an item's lock together with its lease, as one run holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lakewright.errors import LeaseLost, SequenceConflict
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.lease import Lease
from lakewright.manifest.lock import Lock, failed_error, invalid_error, locked_error
from lakewright.manifest.record import Application, Draft, State
from lakewright.manifest.scribe import Scribe
from lakewright.manifest.store import Put

__all__ = ["Claim", "Discovered", "Discovery", "claim_drafts", "claim_puts", "lost_claim", "refuse_unready"]


@dataclass(frozen=True, slots=True)
class Claim:
    """An item that this run, and no other, processes.

    Attributes:
        item: As the claim left it.
        token: The number of the data commit: given to the revision when it is first claimed, the same for
            every further attempt at it, unless the table went on without it and refuses it for ever.
        record_id: Of the PROCESSING.
        processed_id: Of the PROCESSED that may end the claim; fixed, so that a repeated one is known.
        failed_id: Of the FAILED that may end it.
        is_repeat: Whether an earlier attempt at this revision had the lock: the table must be asked first
            whether that one's commit landed.
    """

    item: Item
    application: Application
    lease: Lease
    token: int
    record_id: str
    processed_id: str
    failed_id: str
    is_repeat: bool

    @property
    def item_id(self) -> str:
        """The id of the item."""
        return self.item.item_id

    @property
    def run_id(self) -> str:
        """The run that holds the claim."""
        return self.lease.holder.run_id


@dataclass(frozen=True, slots=True)
class Discovered:
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
    """What the manifest made of slices found: items it didn't know, and items it knew before."""

    new: tuple[Item, ...]
    known: tuple[Item, ...]


def refuse_unready(item: Item, lock: Lock | None, application: Application, *, may_take_over: bool) -> None:
    """Raise unless the item is ready for `application`, or would be once its stale lock is taken over."""
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


def claim_drafts(
    scribe: Scribe,
    item: Item,
    lock: Lock | None,
    lease: Lease,
    application: Application,
    *,
    record_id: str,
    token: int,
    counter: Put | None,
) -> tuple[Draft, ...]:
    """Return the records of a claim: PROCESSING, after RESOLVED where a stale lock is taken over."""
    freed = () if lock is None else (_takeover(scribe, lock, lease),)
    mark = item.resolved or item.new
    processing = scribe.draft(
        item.item_id,
        State.PROCESSING,
        application,
        content={"token": token, **({} if counter is None else {"counter": counter.key})},
        run_id=lease.holder.run_id,
        previous=freed[0].record_id if freed else (mark.record_id if mark else None),
        record_id=record_id,
    )
    return (*freed, processing)


def claim_puts(lock: Lock | None, lease: Lease, counter: Put | None) -> tuple[Put, ...]:
    """Return the documents of a claim: its lease, in place of the one last seen, and a counter that moved."""
    # A lock that seems to have no lease may just be getting it: what was read needn't be of one moment.
    seen = None if lock is None else lock.lease.version if lock.lease is not None else 0
    return (lease.put(expected=seen), *(() if counter is None else (counter,)))


def _takeover(scribe: Scribe, lock: Lock, lease: Lease) -> Draft:
    return scribe.draft(
        lock.item_id,
        State.RESOLVED,
        lock.processing.application,
        content={"reason": f"taken over from {lock.holder}: {lock.stale}", "taken_over": True},
        run_id=lease.holder.run_id,
        previous=lock.processing.record_id,
    )


def lost_claim(claim: Claim, lock: Lock | None) -> LeaseLost:
    """Return the error for a claim that somebody else has, or that was taken away."""
    now_with = "nobody holds it now" if lock is None else f"{lock.holder} holds it now"
    return LeaseLost(
        f"the lock on {claim.item_id} is lost: {now_with}",
        remedy="Run again: whether the commit landed is found out then.",
        details={"item_id": claim.item_id, "run_id": claim.run_id},
    )
