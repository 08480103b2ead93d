"""What an operator may do to an item, as pure functions: the item as it is in, the records to append out.

Source: `processing-manifest.md`, "State" (Resolved, Skipped) and "Use cases" (command post).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright.errors import UsageError
from lakewright.manifest.item import Item
from lakewright.manifest.lock import Lock, command, failed_error, locked_error
from lakewright.manifest.record import ANYONE, Application, Draft, State
from lakewright.manifest.scribe import Scribe
from lakewright.manifest.store import Append

__all__ = ["release", "requeue", "resolve", "skip", "unskip"]


def resolve(
    scribe: Scribe,
    item: Item,
    lock: Lock | None,
    reason: str,
    *,
    fingerprint: Mapping[str, Any] | None = None,
) -> Append:
    """Return the append that lets a failed item be processed again, with its slice as it is now.

    Raises:
        ItemLocked: It is being processed; `release` is the verb for that.
        UsageError: There is no failure to resolve.
    """
    if lock is not None:
        raise locked_error(lock)
    if item.failed is None:
        raise UsageError(
            f"{item.item_id} has no unresolved failure",
            remedy=f"See where it stands with `{command('show', item.item_id)}`.",
        )
    adopted = {} if fingerprint is None else {"fingerprint": fingerprint}
    return _append(item, _resolved(scribe, item, reason, **adopted))


def release(scribe: Scribe, item: Item, lock: Lock | None, reason: str, *, is_forced: bool = False) -> Append:
    """Return the append that frees an item from a lock whose holder is gone, or from any if forced.

    Raises:
        ItemLocked: The lease is alive, and it isn't forced.
        UsageError: There is no lock to release.
    """
    if lock is None:
        raise UsageError(
            f"{item.item_id} isn't locked",
            remedy=f"See where it stands with `{command('show', item.item_id)}`.",
        )
    if not (lock.is_stale or is_forced):
        raise locked_error(lock)
    return _append(item, _resolved(scribe, item, reason))


def skip(
    scribe: Scribe, item: Item, lock: Lock | None, reason: str, *, application: Application
) -> Append | None:
    """Return the append that makes `application` leave the item alone; None where it does already.

    A failed item must be resolved first, unless it is a late slice: that one holds nothing back.

    Raises:
        ItemLocked, ItemFailed: It must be released or resolved first.
    """
    is_late = item.failed is not None and not item.failed.note.get("holds_back", True)
    if is_late:
        _refuse_locked(item, lock)
    else:
        _refuse_held(item, lock, "skip")
    if item.is_skipped_for(application):
        return None
    skipped = scribe.draft(item.item_id, State.SKIPPED, application, content={"reason": reason})
    resolved = [_resolved(scribe, item, reason)] if is_late else []
    return _append(item, *resolved, skipped)


def unskip(scribe: Scribe, item: Item, lock: Lock | None, reason: str, *, application: Application) -> Append:
    """Return the append that takes back a skip by a new revision; skips for others are put down again.

    Raises:
        ItemLocked, ItemFailed: It must be released or resolved first.
        UsageError: It isn't skipped for `application`.
    """
    _refuse_held(item, lock, "unskip")
    if not item.is_skipped_for(application):
        named = " or ".join(dict.fromkeys(str(mark.application) for mark in item.skipped))
        raise UsageError(
            f"{item.item_id} isn't skipped for {'everyone' if application == ANYONE else application}",
            remedy=f"Give --for {named}."
            if named
            else f"See where it stands with `{command('show', item.item_id)}`.",
        )
    others = [mark.application for mark in item.skipped if not mark.application.skips(application)]
    kept = [
        scribe.draft(item.item_id, State.SKIPPED, other, content={"reason": f"kept: {reason}"})
        for other in dict.fromkeys(others)
    ]
    return _append(item, _new(scribe, item, reason), *kept)


def requeue(
    scribe: Scribe,
    item: Item,
    lock: Lock | None,
    reason: str,
    *,
    names: Mapping[str, str] | None = None,
    fingerprint: Mapping[str, Any] | None = None,
    allow_late: bool = False,
) -> Append:
    """Return the append by which a new revision of the item is to be processed, whatever became of the last.

    Args:
        scribe: Who writes.
        item: A processed, failed, skipped, ready or invalid item.
        lock: The item's, if it has one.
        reason: Why.
        names: The slice's `entity` and `slice`; by default as they were.
        fingerprint: The slice as it is now; by default as it was.
        allow_late: Whether it may be applied though later slices are processed.

    Raises:
        ItemLocked: It is being processed.
    """
    _refuse_locked(item, lock)
    extra: dict[str, Any] = dict(names or {})
    if fingerprint is not None:
        extra["fingerprint"] = fingerprint
    if allow_late:
        extra["allow_late"] = True
    if item.problem is not None:
        return _append(item, _new(scribe, item, reason, **extra, mends=True, problem=item.problem))
    resolved = [] if item.failed is None else [_resolved(scribe, item, reason)]
    return _append(item, *resolved, _new(scribe, item, reason, **extra))


def _refuse_locked(item: Item, lock: Lock | None) -> None:
    """An invalid item can't be released, so a stale lock on it doesn't count."""
    if lock is not None and not (lock.is_stale and item.problem is not None):
        raise locked_error(lock)


def _refuse_held(item: Item, lock: Lock | None, verb: str) -> None:
    _refuse_locked(item, lock)
    if item.failed is not None and item.problem is None:
        raise failed_error(item, refused=verb)


def _append(item: Item, *drafts: Draft) -> Append:
    return Append(item.item_id, drafts, item.sequence)


def _resolved(scribe: Scribe, item: Item, reason: str, **extra: Any) -> Draft:
    held = item.processing or item.failed
    if held is None:
        raise ValueError(f"nothing holds {item.item_id}")
    return scribe.draft(
        item.item_id,
        State.RESOLVED,
        held.application,
        content={"reason": reason, **extra},
        previous=held.record_id,
    )


def _new(scribe: Scribe, item: Item, reason: str, **extra: Any) -> Draft:
    """A NEW that takes over what the last one said of the slice, but for what `extra` says better."""
    note = {} if item.new is None else {k: v for k, v in item.new.note.items() if k != "allow_late"}
    return scribe.draft(item.item_id, State.NEW, _owner(item), content={**note, "reason": reason, **extra})


def _owner(item: Item) -> Application:
    """For whom the item was discovered, or else the first that had a record of it."""
    return item.new.application if item.new is not None else next(iter(item.verdicts()))
