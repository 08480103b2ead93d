"""Locks: what an item's open PROCESSING and its lease say together, and the errors they are refused with.

Source: `processing-manifest.md`, "State" (Processing, Failed). The lease is Lakewright's own.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakewright.errors import CommitTooLate, ItemFailed, ItemLocked, ManifestCorrupt
from lakewright.manifest.item import Item, Mark
from lakewright.manifest.lease import Holder, Lease
from lakewright.manifest.record import format_instant

__all__ = [
    "IsDead",
    "Lock",
    "command",
    "failed_error",
    "invalid_error",
    "knows_of_no_death",
    "locked_error",
    "way_out",
]

IsDead = Callable[[Holder], bool]
"""Tells whether a holder is a process of this host that has ended; of others it can't know, and says no."""


def knows_of_no_death(_holder: Holder) -> bool:
    """Say of every holder that it may live, so that leases end by running out only."""
    return False


@dataclass(frozen=True, slots=True)
class Lock:
    """An open PROCESSING, and whether anybody stands behind it.

    Attributes:
        lease: Beside the record; None where it was imported without one.
        stale: Why the lock may be taken over, or None while its holder lives.
    """

    item_id: str
    processing: Mark
    lease: Lease | None
    stale: str | None

    @classmethod
    def of(cls, item: Item, lease: Lease | None, *, now: datetime, is_dead: IsDead) -> Lock | None:
        """Return the item's lock, or None where it has none."""
        if item.processing is None:
            return None
        return cls(item.item_id, item.processing, lease, _staleness(lease, now, is_dead))

    @property
    def is_stale(self) -> bool:
        """Whether the lock may be taken over."""
        return self.stale is not None

    @property
    def holder(self) -> str:
        """Who holds the lock, for a person."""
        if self.lease is not None:
            return str(self.lease.holder)
        return f"{self.processing.application} (run {self.processing.run_id})"

    def as_json(self) -> dict[str, Any]:
        """Return the lock as errors' details and lists show it."""
        return {
            "item_id": self.item_id,
            "application": str(self.processing.application),
            "holder": self.holder,
            "run_id": self.processing.run_id,
            "since": format_instant(self.processing.since),
            "expires": format_instant(self.lease.expires) if self.lease else None,
            "is_stale": self.is_stale,
        }


def _staleness(lease: Lease | None, now: datetime, is_dead: IsDead) -> str | None:
    if lease is None:
        return "it has no lease"
    if lease.is_expired(now):
        return f"its lease ran out at {format_instant(lease.expires)}"
    return f"{lease.holder} has ended" if is_dead(lease.holder) else None


def locked_error(lock: Lock) -> ItemLocked:
    """Return the error for an item that another holds."""
    free = command("release", lock.item_id)
    since = format_instant(lock.processing.since)
    if lock.stale is not None:
        said, remedy = f"; {lock.stale}", f"Free it with `{free}`."
    else:
        said, remedy = "", f"Wait for that run to end; if it never will, `{free} --force`."
    return ItemLocked(
        f"{lock.item_id} is locked by {lock.holder} since {since}{said}",
        remedy=remedy,
        details=lock.as_json(),
    )


def failed_error(item: Item, *, refused: str | None = None) -> ItemFailed:
    """Return the error for an item with an unresolved failure.

    Args:
        item: The item.
        refused: The verb that is to be typed again once the failure is resolved; None if it's to be mended.
    """
    if item.failed is None:
        raise ValueError(f"{item.item_id} has not failed")
    error = item.failed.note.get("error")
    message = (error.get("message") if isinstance(error, dict) else error) or "no reason was recorded"
    since = format_instant(item.failed.since)
    return ItemFailed(
        f"{item.item_id} failed for {item.failed.application} at {since}: {message}",
        remedy=f"First `{command('resolve', item.item_id)}`, then {refused} it."
        if refused
        else f"Mend the cause, then `{way_out(item)}`.",
        details={
            "item_id": item.item_id,
            "application": str(item.failed.application),
            "run_id": item.failed.run_id,
            "since": since,
            "error": error,
        },
    )


def way_out(item: Item) -> str:
    """Return what to type, once the cause is mended, to have a failed item processed after all."""
    if item.failed is None:
        raise ValueError(f"{item.item_id} has not failed")
    error = item.failed.note.get("error")
    if not item.failed.note.get("holds_back", True):
        return f"{command('requeue', item.item_id)} --late"
    if isinstance(error, dict) and error.get("code") == CommitTooLate.code:
        return command("requeue", item.item_id)
    return command("resolve", item.item_id)


def invalid_error(item: Item) -> ManifestCorrupt:
    """Return the error for an item whose records contradict each other."""
    return ManifestCorrupt(
        f"the records of {item.item_id} are invalid: {item.problem}",
        remedy=f"Look at them with `{command('show', item.item_id)}`; then skip the item, or requeue it.",
        details={"item_id": item.item_id, "problem": item.problem},
    )


def command(verb: str, item_id: str) -> str:
    """Return what to type to apply a verb of `lakewright manifest` to an item.

    Example:
        >>> command("resolve", "file:///lake/a b")
        "lakewright manifest resolve 'file:///lake/a b'"
    """
    return f"lakewright manifest {verb} {shlex.quote(item_id)}"
