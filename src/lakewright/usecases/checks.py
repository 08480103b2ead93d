"""Checks of `lakewright doctor`: what was looked at, whether it is right, and what to do if it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lakewright.errors import LakewrightError

__all__ = ["Check", "guarded", "told_once"]


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check, with a remedy if it failed.

    Attributes:
        is_ok: None if it could not be checked.
    """

    name: str
    is_ok: bool | None
    message: str
    remedy: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the check as `doctor -o json` prints it."""
        return {"name": self.name, "ok": self.is_ok, "message": self.message, "remedy": self.remedy}


def told_once(checks: Iterable[Check]) -> Iterator[Check]:
    """Yield checks; one that failed with the message of an earlier one only refers to it."""
    told: dict[str, str] = {}
    for check in checks:
        first = check.name if check.is_ok is not False else told.setdefault(check.message, check.name)
        yield check if first == check.name else Check(check.name, None, f"not checked: see {first}")


def guarded(name: str, ask: Callable[[], str]) -> Check:
    """Return the check of a question, which failed if the question raised an error."""
    try:
        return Check(name, True, ask())
    except LakewrightError as error:
        return Check(name, False, str(error), error.remedy)
    except OSError as error:
        return Check(name, False, str(error), "Make sure that the path exists and is writable.")
