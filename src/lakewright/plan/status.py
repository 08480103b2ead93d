"""The status of planned and executed steps, and of several steps together."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Planned(StrEnum):
    """The planned status of one target in one phase of one instance."""

    WOULD_RUN = "WOULD_RUN"
    CLEAN = "CLEAN"
    BLOCKED = "BLOCKED"


class Status(StrEnum):
    """The final status of one target in one phase of one instance."""

    SUCCESS = "SUCCESS"
    SUCCESS_WITH_ERRORS = "SUCCESS_WITH_ERRORS"
    SKIPPED = "SKIPPED"
    BLOCKED = "BLOCKED"
    FAILED = "FAILED"
    ABORTED = "ABORTED"

    @property
    def is_success(self) -> bool:
        """Whether the step did its work, possibly with tolerated errors."""
        return self in (Status.SUCCESS, Status.SUCCESS_WITH_ERRORS)

    @property
    def is_failure(self) -> bool:
        """Whether the step makes its phase, its instance and the run fail."""
        return self in (Status.FAILED, Status.BLOCKED, Status.ABORTED)


def overall(statuses: Iterable[Status]) -> Status:
    """Return the status of several steps together. Without any step it is SUCCESS.

    Example:
        >>> overall([Status.SKIPPED, Status.SUCCESS]).value
        'SUCCESS'
    """
    seen = set(statuses)
    if any(status.is_failure for status in seen):
        return Status.FAILED
    if Status.SUCCESS_WITH_ERRORS in seen:
        return Status.SUCCESS_WITH_ERRORS
    return Status.SKIPPED if seen == {Status.SKIPPED} else Status.SUCCESS
