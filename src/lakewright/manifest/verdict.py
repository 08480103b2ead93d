"""Verdicts: what an application may do with an item."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from lakewright.manifest.record import Application


class Verdict(StrEnum):
    """What an application may do with an item."""

    UNKNOWN = "unknown"
    READY = "ready"
    LOCKED = "locked"
    FAILED = "failed"
    SKIPPED = "skipped"
    PROCESSED = "processed"
    INVALID = "invalid"

    @property
    def is_blocking(self) -> bool:
        """Whether an item with this verdict holds back later items."""
        return self in (Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID)


def decide_verdict(
    application: Application,
    *,
    blocked: Verdict | None,
    skipped: Iterable[Application],
    processed: Iterable[Application],
) -> Verdict:
    """Return the verdict of an item that has records.

    Args:
        application: The application that asks.
        blocked: The verdict that the item has for every application, if it has one.
        skipped: The applications for which the item is skipped.
        processed: The applications that have processed it.
    """
    if blocked is not None:
        return blocked
    if any(each.skips(application) for each in skipped):
        return Verdict.SKIPPED
    is_processed = any(each.covers(application) for each in processed)
    return Verdict.PROCESSED if is_processed else Verdict.READY
