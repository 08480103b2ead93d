"""Errors after which a retry may succeed."""

from __future__ import annotations

from lakewright.errors.base import LakewrightError

__all__ = [
    "CommitConflict",
    "CommitTooLate",
    "DatabaseUnavailable",
    "ExecutorLost",
    "LeaseLost",
    "RetryableError",
    "SliceUnsettled",
    "StorageUnavailable",
    "StoreBusy",
    "StoreUnavailable",
]


class RetryableError(LakewrightError):
    """The attempt failed for a temporary reason. A retry may succeed."""

    code = "retryable"
    is_retryable = True


class CommitConflict(RetryableError):
    """Another writer committed to the table first."""

    code = "commit_conflict"


class CommitTooLate(CommitConflict):
    """The table has later commits, and its log no longer shows whether this slice's commit landed."""

    code = "commit_too_late"


class ExecutorLost(RetryableError):
    """A cluster lost an executor, and with it rows that were kept there for the rest of the work."""

    code = "executor_lost"
    default_remedy = "Run again; if it happens often, look into the executors' logs for the cause."


class StoreUnavailable(RetryableError):
    """The manifest's back end does not answer, or cannot be written to. No work was started."""

    code = "store_unavailable"


class StoreBusy(StoreUnavailable):
    """Other processes kept the manifest's back end to themselves for too long."""

    code = "store_busy"


class SliceUnsettled(RetryableError):
    """An object store lists other files of a slice than when the slice was discovered, even after a wait."""

    code = "slice_unsettled"
    default_remedy = "Run again: the next run takes the slice as it is now."


class StorageUnavailable(RetryableError):
    """Files can't be read or written because of access rights, a disk or a network, not of their content."""

    code = "storage_unavailable"
    default_remedy = "Restore the access or the storage, and run again."


class DatabaseUnavailable(RetryableError):
    """A database of the project cannot be reached, or it aborted a transaction."""

    code = "database_unavailable"


class LeaseLost(RetryableError):
    """The lease expired or was taken over, so the work stopped before its commit."""

    code = "lease_lost"
