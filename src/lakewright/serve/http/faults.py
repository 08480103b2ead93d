"""How a request over HTTP fails: the status of an error, and its body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lakewright.errors import (
    Fault,
    IllegalTransition,
    LakewrightError,
    LeaseLost,
    ManifestCorrupt,
    NotInstalled,
    NotOffered,
    OperatorError,
    RetryableError,
    SequenceConflict,
    SpecError,
    UsageError,
)

_CONFLICTS = (OperatorError, SequenceConflict, LeaseLost, IllegalTransition, ManifestCorrupt)

_STATUSES: Sequence[tuple[type[LakewrightError] | tuple[type[LakewrightError], ...], int]] = (
    (NotOffered, 409),
    (UsageError, 400),
    (SpecError, 422),
    (_CONFLICTS, 409),
    (RetryableError, 503),
    (NotInstalled, 501),
)
"""The status of each class of errors; the first class that matches counts."""


class HttpFault(Exception):
    """A request that is answered with an error of HTTP itself: unknown, not allowed, too large.

    Attributes:
        status: The status code.
        fault: The code, the message and what to do.
    """

    def __init__(self, status: int, code: str, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.fault = Fault(message, remedy=remedy, code=code)


@contextmanager
def unknown() -> Iterator[None]:
    """Raise an error of the block about a name as one that says that there is nothing of that name."""
    try:
        yield
    except (SpecError, UsageError) as error:
        raise HttpFault(404, "unknown", error.message, error.remedy) from error


def status_of(error: Exception) -> int:
    """Return the status with which a request fails that ends with an error.

    Example:
        >>> status_of(UsageError("no")), status_of(ValueError("no"))
        (400, 500)
    """
    if isinstance(error, HttpFault):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def fault_of(error: Exception) -> Fault:
    """Return the fault that an error is answered with; that of an unexpected one says nothing of it."""
    if isinstance(error, HttpFault):
        return error.fault
    if isinstance(error, LakewrightError):
        return error.as_fault()
    return Fault(
        f"an unexpected {type(error).__name__} ended the request",
        remedy="The server's log has the traceback; if it is a bug in Lakewright, please report it.",
        code="unexpected",
    )


def body_of(error: Exception) -> dict[str, Any]:
    """Return the JSON body of an error; those of a project's files are all in `errors`.

    That of a decision which is not offered has what is offered now: `choices` and `subjects`.
    """
    body = fault_of(error).as_json()
    if isinstance(error, NotOffered):
        return {**body, **error.details}
    if isinstance(error, SpecError) and len(error.faults) > 1:
        return {**body, "errors": [fault.as_json() for fault in error.faults]}
    return body
