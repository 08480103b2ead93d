"""Claims that outlive a process: one command acquires them, others renew and end them, with JSON between."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from lakewright.bus.manifest import Manifest
from lakewright.bus.worklist import Demand
from lakewright.errors import CommandFailed, UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.claim import Claim, lost_claim_error
from lakewright.manifest.item import Item
from lakewright.manifest.lease import find_lease, renew
from lakewright.manifest.payload import failure
from lakewright.manifest.plain_values import document_of, of_json
from lakewright.manifest.record import Application, format_instant


@dataclass(frozen=True, slots=True)
class WrittenClaim:
    """A claim as a program keeps it between two commands.

    Attributes:
        token: Identifies this acquisition of the lease.
        lease_seconds: How long the lease lasts after each renewal.
        expires: When the lease expires, by the store's clock.
    """

    item_id: str
    application: str
    instance: str | None
    record_id: str
    run_id: str
    token: str
    processed_id: str
    failed_id: str
    lease_seconds: float
    expires: str

    def as_json(self) -> dict[str, Any]:
        """Return the document that `manifest acquire` prints."""
        return document_of(self)

    def ended_as_json(self, item: Item) -> dict[str, Any]:
        """Return the document that `manifest processed` and `manifest failed` print of the item."""
        application = Application.named(self.application, self.instance)
        verdict = item.verdict(application).value
        return {"item_id": item.item_id, "application": str(application), "verdict": verdict}

    @classmethod
    def of(cls, claim: Claim, duration: timedelta) -> WrittenClaim:
        """Return a claim in the form in which it is kept."""
        return cls(
            item_id=claim.item_id,
            application=claim.application.name,
            instance=claim.application.instance_id,
            record_id=claim.record_id,
            run_id=claim.run_id,
            token=claim.lease.token,
            processed_id=claim.processed_id,
            failed_id=claim.failed_id,
            lease_seconds=duration.total_seconds(),
            expires=format_instant(claim.lease.expires),
        )

    @classmethod
    def parse(cls, text: str) -> WrittenClaim:
        """Return the claim of a text that `manifest acquire` printed.

        Raises:
            UsageError: The text is no claim.
        """
        try:
            return cls.read(json.loads(text))
        except ValueError as error:
            raise _unreadable(str(error)) from error

    @classmethod
    def read(cls, document: Any) -> WrittenClaim:
        """Return the claim of the document that `manifest acquire` printed.

        Raises:
            UsageError: The document is no claim.
        """
        try:
            return of_json(cls, document)
        except ValidationError as error:
            first = error.errors()[0]
            where = "".join(f"{name}: " for name in first["loc"])
            raise _unreadable(f"{where}{first['msg']}") from error


def _unreadable(why: str) -> UsageError:
    printed = Phrase(
        "Give what ", Command("manifest", "acquire"), " printed, as text, as @FILE, or - for stdin."
    )
    return UsageError(f"the claim can't be read: {why}", remedy=printed)


def acquire(manifest: Manifest, demand: Demand, item_id: str, duration: timedelta) -> WrittenClaim:
    """Return the claim on an item; it is held until it is ended, or its lease expires.

    Raises:
        ItemLocked, ItemFailed, ItemWaits, SequenceConflict: See `Ledger.acquire`.
    """
    # The process ends at once, which must not make the lease stale.
    holder = replace(manifest.holder, started="")
    return WrittenClaim.of(demand.acquire(manifest.ledger, item_id, holder, duration), duration)


def renew_claim(manifest: Manifest, written: WrittenClaim) -> WrittenClaim:
    """Return a claim whose lease lasts as long again from now.

    Raises:
        LeaseLost: Another holder has the item, or it was released.
    """
    claim = _claim(manifest, written)
    duration = timedelta(seconds=written.lease_seconds)
    renewed = renew(manifest.store, claim.lease, duration)
    return WrittenClaim.of(replace(claim, lease=renewed), duration)


def finish(manifest: Manifest, written: WrittenClaim, payload: Mapping[str, Any] | None) -> Item:
    """End a claim with PROCESSED; repeating the call changes nothing.

    Raises:
        LeaseLost: Another holder has the item, or it was released.
        UsageError: The payload is not JSON, or too large.
    """
    item = manifest.item(written.item_id)
    if item.has(written.processed_id):
        return item
    return manifest.ledger.processed_by_other(_claim(manifest, written), payload)


def fail(manifest: Manifest, written: WrittenClaim, message: str) -> Item:
    """End a claim with FAILED; repeating the call changes nothing.

    Raises:
        LeaseLost: Another holder has the item, or it was released.
    """
    item = manifest.item(written.item_id)
    if item.has(written.failed_id):
        return item
    return manifest.ledger.failed(_claim(manifest, written), failure(CommandFailed(message)))


def _claim(manifest: Manifest, written: WrittenClaim) -> Claim:
    """Return a claim if it is still held.

    Raises:
        LeaseLost: Another holder has the item, or it was released.
    """
    item = manifest.item(written.item_id)
    lease = find_lease(manifest.store, written.item_id)
    is_held = item.processing is not None and item.processing.record_id == written.record_id
    if lease is None or lease.token != written.token or not is_held:
        raise lost_claim_error(written.item_id, written.run_id, manifest.ledger.lock(item))
    return Claim(
        item=item,
        application=Application.named(written.application, written.instance),
        lease=lease,
        token=0,
        record_id=written.record_id,
        processed_id=written.processed_id,
        failed_id=written.failed_id,
    )
