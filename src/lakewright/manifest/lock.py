"""Locks: an item's open PROCESSING together with its lease, and the errors for items that are not free.

Source: `processing-manifest.md`, "State" (Processing, Failed). Leases are Lakewright's addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakewright.errors import (
    CommitTooLate,
    ItemFailed,
    ItemLocked,
    LakewrightError,
    LateSliceError,
    ManifestCorrupt,
)
from lakewright.errors.fault import BRIEF, remedy_of
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import Item, Mark
from lakewright.manifest.lease import IsDead, Lease
from lakewright.manifest.payload import MAY_SKIP, PERMITTED_BY
from lakewright.manifest.plain_values import document_of
from lakewright.manifest.record import format_instant


@dataclass(frozen=True, slots=True)
class Lock:
    """An open PROCESSING, and whether a live process holds it.

    Attributes:
        lease: The lease that belongs to the record; None if the record was imported without one.
        stale_reason: Why the lock may be taken over; None while its holder may be alive.
    """

    item_id: str
    processing: Mark
    lease: Lease | None
    stale_reason: str | None

    @classmethod
    def of(cls, item: Item, lease: Lease | None, *, now: datetime, is_dead: IsDead) -> Lock | None:
        """Return the item's lock, or None if it has none."""
        if item.processing is None:
            return None
        return cls(item.item_id, item.processing, lease, _stale_reason(lease, now, is_dead))

    @property
    def is_stale(self) -> bool:
        """Whether the lock may be taken over."""
        return self.stale_reason is not None

    @property
    def holder(self) -> str:
        """A description of who holds the lock."""
        if self.lease is not None:
            return str(self.lease.holder)
        return f"{self.processing.application} (run {self.processing.run_id})"

    def as_json(self) -> dict[str, Any]:
        """Return the lock in the form that lists and the details of errors show."""
        return {
            "application": str(self.processing.application),
            "expires": None if self.lease is None else format_instant(self.lease.expires),
            **document_of(self.processing, "run_id", "since"),
            **document_of(self, "item_id", "holder", "is_stale"),
        }


def _stale_reason(lease: Lease | None, now: datetime, is_dead: IsDead) -> str | None:
    if lease is None:
        return "it has no lease"
    if lease.is_expired(now):
        return f"its lease expired at {format_instant(lease.expires)}"
    return f"{lease.holder} has ended" if is_dead(lease.holder) else None


FAILED_ITEMS = "failed_items"
"""Detail of an error that lists the items whose failures it contains."""

STALE_LOCKS = "stale_locks"
"""The metric of a target that lists locks whose holder has ended; hooks raise an alert of it."""

LONGEST_SAID = 200
"""Characters of an error's first line that are shown for an item."""


def locked_error(lock: Lock, name: str | None = None) -> ItemLocked:
    """Return the error for an item that is locked; `name` is what commands call it, by default its id."""
    free = command("release", name or lock.item_id)
    since = format_instant(lock.processing.since)
    if lock.stale_reason is not None:
        note = f"; {lock.stale_reason}"
        remedy = Phrase("Free it with ", free, ".")
    else:
        note = ""
        remedy = Phrase("Wait for that run to end. If it cannot end, use ", free.plus("--force"), ".")
    return ItemLocked(
        f"{name or lock.item_id} is locked by {lock.holder} since {since}{note}",
        remedy=remedy,
        details=lock.as_json(),
    )


def failed_error(
    item: Item,
    *,
    refused: str | None = None,
    name: str | None = None,
    run_id: str | None = None,
    owner: str | None = None,
) -> ItemFailed:
    """Return the error for an item with an unresolved failure.

    Args:
        item: The item.
        refused: The action that may be repeated once the failure is resolved; None if there was no such
            action.
        name: What the item is called, such as `entity/slice`; its id by default.
        run_id: The run that asks. Its own failures are already in its report, and the message says so; what
            it says without the cause is in the details.
        owner: The other application for which it failed, such as an entity that reads the same folder: what
            is named there frees it for all.
    """
    if item.failed is None:
        raise ValueError(f"{item.item_id} has not failed")
    error = item.failed.note.get("error")
    message = (error.get("message") if isinstance(error, dict) else error) or "no reason was recorded"
    since = format_instant(item.failed.since)
    is_ours = name is not None and item.failed.application.is_of_entity
    is_earlier = run_id is not None and run_id == item.failed.run_id
    text = f"failed at {since}" if is_ours else f"failed for {item.failed.application} at {since}"
    if is_earlier:
        message = "; ".join(str(message).splitlines())
        text = f"{'' if owner is None else f'waits, as for {owner} it '}failed earlier in this run"
    brief = f"{name or item.item_id} {text}"
    remedy: str
    if refused:
        remedy = Phrase("First ", command("resolve", name or item.item_id), f", then {refused} it.")
    elif owner is not None and is_earlier:
        remedy = "What is named there frees it, and the next run takes it here, too."
    else:
        remedy = recovery_advice(item, name)
    return ItemFailed(
        f"{brief}: {message}",
        remedy=remedy,
        details={
            "item_id": item.item_id,
            "application": str(item.failed.application),
            "run_id": item.failed.run_id,
            "since": since,
            "error": error,
            FAILED_ITEMS: [item.item_id],
            **({BRIEF: brief} if is_earlier else {}),
        },
    )


def recovery_command(item: Item, name: str | None = None) -> Command:
    """Return the command that has a failed item processed again once the cause is fixed.

    Args:
        item: The item.
        name: What the command calls it, such as `entity/slice`; its id by default.
    """
    if item.failed is None:
        raise ValueError(f"{item.item_id} has not failed")
    named = name or item.item_id
    error = _recorded_error(item)
    if error.get("code") == CommitTooLate.code:
        return command("requeue", named)
    is_late = error.get("code") == LateSliceError.code
    typed = command("requeue", named).plus("--late") if is_late else command("resolve", named)
    remedy = remedy_of(error) if is_late or error.get(PERMITTED_BY) else None
    parts = remedy.parts if isinstance(remedy, Phrase) else ()
    return next((each for each in parts if isinstance(each, Command)), typed)


def recovery_advice(item: Item, name: str | None = None) -> str:
    """Return what to do about a failed item: the remedy of its error, then the commands to type.

    Another application than an entity does not run again by itself, so it is named.

    Args:
        item: The item.
        name: What the command calls it, such as `entity/slice`; its id by default.
    """
    typed, named = recovery_command(item, name), name or item.item_id
    skip = Phrase(command("resolve", named), ", then ", command("skip", named))
    error = _recorded_error(item)
    remedy = remedy_of(error) or ""
    if remedy and error.get("code") == CommitTooLate.code:
        first = Phrase(remedy, " If they are, resolve and skip it: ", skip)
        return Phrase(first, ". If not, requeue it: ", typed, ".")
    after = ""
    if item.failed is not None and not item.failed.application.is_of_entity:
        after = f", and run {item.failed.application} again"
    otherwise = Phrase(" Otherwise resolve and skip it: ", skip, ".") if error.get(MAY_SKIP) else ""
    if isinstance(remedy, Phrase) and typed in remedy.parts:
        return Phrase(remedy, otherwise)
    first = Phrase(remedy, " Then ") if remedy else Phrase("Fix the cause, then ")
    return Phrase(first, typed, f"{after}.", otherwise)


def _recorded_error(item: Item) -> Mapping[str, Any]:
    """Return the error by which an item failed, as it was recorded; empty if it has none."""
    error = item.failed.note.get("error") if item.failed is not None else None
    return error if isinstance(error, Mapping) else {}


def failure_words(item: Item) -> str | None:
    """Return what is wrong with an item: the first line of its error, cut to a readable length, or None."""
    if item.problem is not None or item.failed is None:
        return item.problem
    message = _recorded_error(item).get("message") or item.failed.note.get("error")
    first = str(message or "no reason was recorded").splitlines()[0]
    return first if len(first) <= LONGEST_SAID else first[:LONGEST_SAID] + "…"


def failure_remedy(item: Item) -> str | None:
    """Return the remedy of the error by which an item failed; None if it has none."""
    return remedy_of(_recorded_error(item))


def failure_permit(item: Item) -> str | None:
    """Return the grant that permits what the error refused by which an item failed; None if none does."""
    return _recorded_error(item).get(PERMITTED_BY)


def stale_advice(lock: Lock, typed: Command | None = None, *, is_taken_over: bool) -> str:
    """Return what to do about a stale lock, as the rest of a sentence.

    The next run of a job takes over an entity's lock, unless the manifest leaves that to an operator. What
    another program did before it was killed is not known to the manifest, so an operator frees the item.

    Args:
        lock: The lock.
        typed: The command that releases the item; made from its id by default.
        is_taken_over: Whether runs take over stale locks.
    """
    release = Phrase(typed or command("release", lock.item_id))
    if lock.processing.application.is_of_entity and not is_taken_over:
        return Phrase(release, ", then run the job again")
    if lock.processing.application.is_of_entity:
        return Phrase("run the job again, which takes it over, or ", release)
    application = lock.processing.application
    return Phrase("see whether its work is done, then ", release, f", and run {application} again")


def add_recovery(error: LakewrightError, item: Item, name: str) -> None:
    """Give the error by which an item failed the commands to type, and the item among its details.

    Args:
        error: The error, which is changed.
        item: The item, whose failure is recorded.
        name: What the commands call it.
    """
    error.remedy = recovery_advice(item, name)
    error.details = {**error.details, FAILED_ITEMS: [item.item_id]}


def invalid_error(item: Item, name: str | None = None) -> ManifestCorrupt:
    """Return the error for an item with invalid records; `name` is what commands call the item."""
    named = name or item.item_id
    return ManifestCorrupt(
        f"the records of {named} are invalid: {item.problem}",
        remedy=Phrase(
            "Inspect them with ",
            command("show", named),
            ", then ",
            command("skip", named),
            ", or ",
            command("requeue", named),
            ".",
        ),
        details={"item_id": item.item_id, "problem": item.problem},
    )


def command(verb: str, *items: str) -> Command:
    """Return the command line of a `lakewright manifest` command for items: ids, or `entity/slice`.

    Example:
        >>> command("resolve", "file:///lake/a b")
        "lakewright manifest resolve 'file:///lake/a b'"
    """
    return Command("manifest", verb, *items)
