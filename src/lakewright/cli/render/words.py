"""Numbers, times and statuses as all pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from lakewright.cli.page import Span
from lakewright.spec.words import counted

__all__ = ["ago", "assignments", "counted", "seconds", "status", "took"]

STYLES = {
    "SUCCESS": "green",
    "SUCCESS_WITH_ERRORS": "yellow",
    "WOULD_RUN": "cyan",
    "CLEAN": "dim",
    "SKIPPED": "dim",
    "BLOCKED": "bold yellow",
    "FAILED": "bold red",
    "ABORTED": "bold red",
    "RUNNING": "cyan",
    "NEW": "cyan",
    "PROCESSING": "cyan",
    "PROCESSED": "green",
    "RESOLVED": "yellow",
    "READY": "cyan",
    "LOCKED": "bold yellow",
    "INVALID": "bold red",
}
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def status(word: str) -> Span:
    """Return a status, state or verdict in its colour, spelled as given."""
    return Span(word, STYLES.get(word.upper(), ""))


def assignments(values: Mapping[str, object]) -> str:
    """Return `name=value` for each parameter, as typed on the command line."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def seconds(length: float) -> str:
    """Return a duration for people to read.

    Example:
        >>> seconds(0.04), seconds(12.34), seconds(754)
        ('0.0 s', '12.3 s', '12 min 34 s')
    """
    if length < 60:
        return f"{length:.1f} s"
    whole = round(length)
    for size, unit in UNITS:
        if whole >= size:
            smaller, smaller_unit = {86_400: (3_600, "h"), 3_600: (60, "min"), 60: (1, "s")}[size]
            return f"{whole // size} {unit} {whole % size // smaller} {smaller_unit}"
    raise AssertionError("unreachable")


def took(start: datetime, end: datetime) -> str:
    """Return the duration between two instants."""
    return seconds((end - start).total_seconds())


def ago(since: datetime, now: datetime) -> str:
    """Return how long ago an instant was.

    Example:
        >>> ago(datetime(2022, 1, 1), datetime(2022, 1, 1, 3, 20))
        '3 h 20 min ago'
    """
    passed = now - since
    return "just now" if passed < timedelta(seconds=5) else f"{seconds(max(passed.total_seconds(), 0))} ago"
