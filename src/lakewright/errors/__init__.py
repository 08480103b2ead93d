"""Every error that Lakewright raises, in one tree, grouped by who must act.

```
LakewrightError
├── SpecError                         project author: one or more faults, each with file and line
├── UsageError                        caller: invalid arguments on the command line or in Python
│   └── NotOffered                    what is decided is not offered, or not any more
├── OperatorError                     operator: blocked until another run ends or an operator acts
│   ├── ItemLocked                    another run is processing the item
│   ├── ItemFailed                    an attempt at the item failed and waits for `resolve`
│   ├── ItemWaits                     another application must process the item first
│   ├── LeaseHeld                     another run is writing to the same place
│   └── LakeMoved                     slices were processed under another location
├── TargetError                       a target or a slice failed; other targets are unaffected
│   ├── SliceError                    the slice is unreadable, changed or missing
│   ├── SchemaDriftError              the slice's schema does not fit the table
│   ├── ColumnMismatch                the input of a `schema` mapping has other columns than allowed
│   ├── DuplicateBusinesskeyException a business key occurs more than once in the slice
│   ├── NullKeyError                  a business key column is null
│   ├── BadRowsError                  the slice has too many bad rows to put aside
│   ├── DeleteBrakeError              delete inference would delete more rows than allowed
│   ├── LateSliceError                the slice is older than one already processed
│   ├── BackdatedError                the processing time is not later than the table's latest
│   ├── DataLossError                 the step would lose rows or columns and may not
│   ├── MigrationError                the existing table cannot become the declared one
│   ├── VerificationError             a check of the target's output failed
│   ├── CommandFailed                 the command of `manifest run` failed
│   ├── TargetTimeout                 the target ran longer than its `timeout`
│   ├── JvmEnded                      Spark's JVM was killed, or ran out of memory
│   └── MetricError                   the counts of a slice do not add up
├── RetryableError                    nobody: a retry may succeed
│   ├── CommitConflict                another writer committed first
│   │   └── CommitTooLate             the table's log no longer shows whether this commit landed
│   ├── ExecutorLost                  a cluster lost an executor with rows that the work needed
│   ├── StoreUnavailable              the manifest's back end does not answer
│   │   └── StoreBusy                 other processes kept it busy for too long
│   ├── SliceUnsettled                a slice in a store has other files than when it was discovered
│   ├── StorageUnavailable            files can't be read or written: access, disk or network
│   ├── DatabaseUnavailable           a database of the project does not answer
│   └── LeaseLost                     the lease expired, so the run must not commit
├── ManifestCorrupt                   operator: the manifest's records contradict each other
│   └── IllegalTransition             the item's state does not allow this record
├── SequenceConflict                  caller: the item has changed since it was read
├── RunFailed                         caller: a run did not succeed; `RunResult.check` raises it
├── NotInstalled                      installation: a required package or program is missing
├── ServiceEnded                      installation: a part of the server has ended by an error
└── SparkUnavailable                  installation: Spark cannot be started or reached
```

Each class has a unique `code`, which stays the same between versions.
"""

from __future__ import annotations

from lakewright.errors.base import (
    LakewrightError,
    LakewrightWarning,
    NotOffered,
    RunFailed,
    SpecError,
    UsageError,
)
from lakewright.errors.base import retryable_codes as retryable_codes
from lakewright.errors.fault import Fault, Location
from lakewright.errors.phrase import Command, Option, Phrase

__all__ = [
    "BackdatedError",
    "BadRowsError",
    "ColumnMismatch",
    "CommandFailed",
    "CommitConflict",
    "CommitTooLate",
    "DataLossError",
    "DatabaseUnavailable",
    "DeleteBrakeError",
    "DuplicateBusinesskeyException",
    "ExecutorLost",
    "Fault",
    "IllegalTransition",
    "ItemFailed",
    "ItemLocked",
    "ItemWaits",
    "JvmEnded",
    "LakeMoved",
    "LakewrightError",
    "LakewrightWarning",
    "LateSliceError",
    "LeaseHeld",
    "LeaseLost",
    "Location",
    "ManifestCorrupt",
    "MetricError",
    "MigrationError",
    "NotInstalled",
    "NotOffered",
    "NullKeyError",
    "OperatorError",
    "RetryableError",
    "RunFailed",
    "SchemaDriftError",
    "SequenceConflict",
    "ServiceEnded",
    "SliceError",
    "SliceUnsettled",
    "SparkUnavailable",
    "SpecError",
    "StorageUnavailable",
    "StoreBusy",
    "StoreUnavailable",
    "TargetError",
    "TargetTimeout",
    "UsageError",
    "VerificationError",
]


class OperatorError(LakewrightError):
    """The work is blocked until another run ends or an operator acts."""

    code = "held"


class ItemLocked(OperatorError):
    """Another run has locked the item.

    Attributes:
        details: `holder`, `run_id`, `since`, and whether the lock is stale.
    """

    code = "item_locked"


class ItemFailed(OperatorError):
    """An attempt at the item failed and no operator has resolved it."""

    code = "item_failed"


class ItemWaits(OperatorError):
    """Another application must process the item first.

    Attributes:
        details: The `item_id`, and in `waits_for` the applications.
    """

    code = "item_waits"


class LeaseHeld(OperatorError):
    """Another run is writing to the same place.

    Attributes:
        details: `key`, `holder`, `run_id` and `since`.
    """

    code = "lease_held"


class LakeMoved(OperatorError):
    """Slices that were processed under one location, or for one name of the project, appear as new ones now.

    Attributes:
        details: The `old` and the `new` location, or application.
    """

    code = "lake_moved"


class TargetError(LakewrightError):
    """A target, or a slice of an entity, failed."""

    code = "target"


class SliceError(TargetError):
    """The slice is corrupt, truncated, missing, or has changed since it was discovered."""

    code = "slice"


class SchemaDriftError(TargetError):
    """The slice's columns do not fit the table, or its values do not fit their types."""

    code = "schema_drift"


class ColumnMismatch(TargetError):
    """The input of a `schema` mapping has other columns or types than its policies allow."""

    code = "column_mismatch"


class DuplicateBusinesskeyException(TargetError):
    """A business key occurs more than once in the slice."""

    code = "duplicate_business_key"


class NullKeyError(TargetError):
    """A record of the slice is null in a column of its business key."""

    code = "null_key"
    default_remedy = "Correct the slice, or set `null_keys: allow` if null is a valid key value."


class BadRowsError(TargetError):
    """The slice has more bad rows than its entity's `max_bad_rows` allows to put aside, or no others."""

    code = "bad_rows"


class DeleteBrakeError(TargetError):
    """Delete inference would delete a larger share of its window than the entity allows."""

    code = "delete_brake"


class LateSliceError(TargetError):
    """The slice is older than one already processed."""

    code = "late_slice"


class BackdatedError(TargetError):
    """The processing time is not later than the latest one in the table."""

    code = "backdated"
    default_remedy = Phrase("Give a later processing time, or pass ", Option("--allow-backdated"), ".")


class DataLossError(TargetError):
    """The step would lose rows, or columns that contain values."""

    code = "data_loss"
    default_remedy = Phrase(
        "Check what would be lost. To accept the loss, run again with ", Option("--allow-data-loss"), "."
    )


class MigrationError(TargetError):
    """The existing table cannot be migrated to the declared one."""

    code = "migration"


class VerificationError(TargetError):
    """A check of the target's output failed."""

    code = "verification"


class CommandFailed(TargetError):
    """The command of `manifest run` failed.

    Attributes:
        details: Its `exit_code`, or the `signal` that ended it.
    """

    code = "command_failed"


class TargetTimeout(TargetError):
    """The target ran longer than its `timeout`. Its Spark jobs were cancelled."""

    code = "timeout"
    default_remedy = "Find out what the target waits for, or give it a longer `timeout`."


class JvmEnded(TargetError):
    """Spark's JVM ended during the work, or its session was stopped; the next run starts one.

    Triggers of `lakewright serve` repeat the run after a pause.

    Attributes:
        details: `memory` is true if it ran out of memory.
    """

    code = "jvm_ended"


class MetricError(TargetError):
    """The counted records do not add up to the records of the slice. Nothing was committed."""

    code = "metrics"
    default_remedy = "This is a bug in Lakewright, not in the slice. Please report it with these numbers."


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


class ManifestCorrupt(LakewrightError):
    """The manifest's records contradict each other, or its storage is damaged."""

    code = "manifest_corrupt"
    default_remedy = Phrase("Run ", Command("manifest", "fsck"), " to find the damage.")


class IllegalTransition(ManifestCorrupt):
    """The item's state does not allow this record. Nothing was written."""

    code = "illegal_transition"
    default_remedy = Phrase("See the item's records with ", Command("manifest", "show"), ".")


class SequenceConflict(LakewrightError):
    """The item has changed since it was read. Nothing was written.

    Attributes:
        details: The `expected` and the `actual` sequence number.
    """

    code = "sequence_conflict"


class NotInstalled(LakewrightError):
    """A required package or program is missing. The remedy names the command that installs it."""

    code = "not_installed"

    @classmethod
    def of(cls, missing: ImportError, what: str, extra: str) -> NotInstalled:
        """Return the error that `what` needs a package of Python which an extra of Lakewright installs."""
        return cls(
            f"{what} needs the Python package {missing.name or missing}",
            remedy=f"Run `pip install 'lakewright[{extra}]'`.",
        )


class ServiceEnded(LakewrightError):
    """A part of the server has ended by an error of its own; the server stops. The log has the traceback."""

    code = "service_ended"


class SparkUnavailable(LakewrightError):
    """Spark could not be started with these settings, or could not be reached. No work was started."""

    code = "spark_unavailable"
    default_remedy = Phrase(
        "Check `config:` in the project, and run ", Command("doctor"), " to check this machine."
    )
