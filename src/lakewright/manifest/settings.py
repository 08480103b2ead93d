"""The settings of `manifest:` that every back end shares: lease, takeover and retention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from lakewright.errors import Fault, SpecError, UsageError
from lakewright.manifest.ledger import Takeover
from lakewright.spec.expressions.values import before_now, parse_length

SETTINGS = frozenset({"lease", "retention", "takeover"})
"""The keys of `manifest:` that this module reads."""

_ANY_DAY = datetime(2022, 1, 1, tzinfo=UTC)


def lease_duration(settings: Mapping[str, Any]) -> timedelta:
    """Return how long a lease lasts without a heartbeat: `lease`, by default 60 seconds.

    Raises:
        SpecError: The text is not a duration, or it is shorter than a second.
    """
    text = str(settings.get("lease", "60s"))
    try:
        found = parse_length(text.strip())
    except ValueError as error:
        raise SpecError.of(f"manifest: lease: {error}", remedy="Write 60s, 5m or PT1M.") from error
    if found < timedelta(seconds=1):
        raise SpecError.of(f"manifest: lease: {text} is too short", remedy="Give a second or more.")
    return found


def takeover(settings: Mapping[str, Any]) -> Takeover:
    """Return who may take over a stale lock: `takeover`, by default the next run.

    Raises:
        SpecError: The text is neither `auto` nor `operator`.
    """
    text = str(settings.get("takeover", "auto")).lower()
    try:
        return Takeover(text)
    except ValueError:
        raise SpecError.of(
            f"manifest: takeover: {text!r} is neither auto nor operator", remedy="Write one of the two."
        ) from None


def is_taken_over(settings: Mapping[str, Any]) -> bool:
    """Return whether runs take over stale locks."""
    return takeover(settings) is Takeover.AUTO


def kept_since(settings: Mapping[str, Any], now: Callable[[], datetime]) -> datetime | None:
    """Return the time before which `retention` removes runs from the history; None if it keeps all.

    Raises:
        SpecError: The text is not an age.
    """
    retention = settings.get("retention")
    if retention is None:
        return None
    try:
        return before_now(now(), str(retention))
    except UsageError as error:
        raise SpecError.of(f"manifest: retention: {error.message}", remedy=error.remedy) from None


def check_locks_and_history(settings: Mapping[str, Any]) -> Iterator[tuple[str, Fault]]:
    """Yield the faults of these settings, each with its key."""
    readers: Mapping[str, Callable[[], object]] = {
        "lease": lambda: lease_duration(settings),
        "takeover": lambda: takeover(settings),
        "retention": lambda: kept_since(settings, lambda: _ANY_DAY),
    }
    for key, read in readers.items():
        try:
            read()
        except SpecError as error:
            yield key, error.faults[0]
