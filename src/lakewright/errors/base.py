"""The base class of all errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lakewright.errors.fault import Fault, Location

__all__ = [
    "LakewrightError",
    "retryable_codes",
]


class LakewrightError(Exception):
    """Base class of all errors that Lakewright raises.

    Attributes:
        code: Identifies the class to programs. It is unique and stable.
        message: What happened and where, as a sentence for people.
        remedy: What to do next, in one line, or None.
        location: The position in the project's files, or None if unknown.
        details: Values that the message is made from; they can be written as JSON.
        is_retryable: Whether the same work may succeed when it is tried again.
    """

    code: ClassVar[str] = "error"
    is_retryable: ClassVar[bool] = False
    default_remedy: ClassVar[str | None] = None

    def __init__(
        self,
        message: str,
        *,
        remedy: str | None = None,
        location: Location | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy if remedy is not None else self.default_remedy
        self.location = location
        self.details: Mapping[str, Any] = dict(details or {})

    def as_fault(self) -> Fault:
        """Return the error as a value that can be stored, printed or sent."""
        return Fault(
            self.message,
            location=self.location,
            remedy=self.remedy,
            code=self.code,
            details=self.details,
        )


def retryable_codes() -> frozenset[str]:
    """Return the codes of all errors after which the same work may succeed when it is tried again."""
    pending: list[type[LakewrightError]] = [LakewrightError]
    found = set()
    while pending:
        error = pending.pop()
        pending += error.__subclasses__()
        if error.is_retryable:
            found.add(error.code)
    return frozenset(found)
