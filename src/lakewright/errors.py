"""Every error that Lakewright raises, in one tree, grouped by who must act.

```
LakewrightError
├── SpecError                         project author: one or more faults, each with file and line
├── UsageError                        caller: invalid arguments on the command line or in Python
├── OperatorError                     operator: blocked until another run ends or an operator acts
│   ├── ItemLocked                    another run is processing the item
│   ├── ItemFailed                    an attempt at the item failed and waits for `resolve`
│   ├── ItemWaits                     another application must process the item first
│   ├── LeaseHeld                     another run is writing to the same place
│   └── LakeMoved                     slices were processed under another location
├── TargetError                       a target or a slice failed; other targets are unaffected
│   ├── SliceError                    the slice is unreadable, changed or missing
│   ├── SchemaDriftError              the slice's schema does not fit the table
│   ├── DuplicateBusinesskeyException a business key occurs more than once in the slice
│   ├── NullKeyError                  a business key column is null
│   ├── BadRowsError                  the slice has more bad rows than may be put aside
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
│   ├── SliceUnsettled                a slice in a store has other files than when it was discovered
│   ├── StorageUnavailable            files can't be read or written: access, disk or network
│   ├── DatabaseUnavailable           a database of the project does not answer
│   └── LeaseLost                     the lease expired, so the run must not commit
├── ManifestCorrupt                   operator: the manifest's records contradict each other
│   └── IllegalTransition             the item's state does not allow this record
├── SequenceConflict                  caller: the item has changed since it was read
├── RunFailed                         caller: a run did not succeed; `RunResult.check` raises it
├── NotInstalled                      installation: a required package or program is missing
└── SparkUnavailable                  installation: Spark cannot be started or reached
```

Each class has a unique `code`, which stays the same between versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

__all__ = [
    "BackdatedError",
    "BadRowsError",
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
    "LateSliceError",
    "LeaseHeld",
    "LeaseLost",
    "Location",
    "ManifestCorrupt",
    "MetricError",
    "MigrationError",
    "NotInstalled",
    "NullKeyError",
    "OperatorError",
    "RetryableError",
    "RunFailed",
    "SchemaDriftError",
    "SequenceConflict",
    "SliceError",
    "SliceUnsettled",
    "SparkUnavailable",
    "SpecError",
    "StorageUnavailable",
    "StoreUnavailable",
    "TargetError",
    "TargetTimeout",
    "UsageError",
    "VerificationError",
]


@dataclass(frozen=True, slots=True)
class Location:
    """A position in a project's files. Lines and columns start at 1."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line) if part is not None)


@dataclass(frozen=True, slots=True)
class Fault:
    """One problem in the project or the arguments: what is wrong, where, and what to do.

    Attributes:
        details: Values that the message is made from. Equality of faults ignores them.
        touches: The definitions that are wrong because of it, as category and name, or `("module", file)`;
            empty if it may concern the whole project.
    """

    message: str
    location: Location | None = None
    remedy: str | None = None
    code: str = "spec"
    details: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    touches: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)

    def and_also(self, other: Fault | None) -> Fault:
        """Return this fault with another one of the same target below it."""
        if other is None:
            return self
        alerts = [*self.details.get("alerts", ()), *other.details.get("alerts", ())]
        return replace(
            self,
            message=f"{self.message}\n{other.message}",
            remedy=" ".join(filter(None, (self.remedy, other.remedy))) or None,
            details={**other.details, **self.details, **({"alerts": alerts} if alerts else {})},
        )

    @property
    def located_message(self) -> str:
        """The message after its place, if that is known."""
        return f"{self.location}: {self.message}" if self.location else self.message

    def __str__(self) -> str:
        advice = f" ({self.remedy})" if self.remedy else ""
        return f"{self.located_message}{advice}"

    def as_json(self) -> dict[str, Any]:
        """Return the `error` object that `-o json` prints: code, message, remedy, location."""
        return {
            "code": self.code,
            "message": self.message,
            "remedy": self.remedy,
            "location": str(self.location) if self.location else None,
        }


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


class SpecError(LakewrightError):
    """The project's files are invalid. One error holds all faults found by a load.

    Example:
        >>> str(SpecError.of("unknown key 'tpye'", location=Location("project.yml", 3)))
        "project.yml:3: unknown key 'tpye'"
    """

    code = "spec"

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        first = self.faults[0]
        super().__init__(first.message, remedy=first.remedy, location=first.location)

    @classmethod
    def of(
        cls,
        message: str,
        *,
        location: Location | None = None,
        remedy: str | None = None,
    ) -> SpecError:
        """Return an error with one fault."""
        return cls([Fault(message, location=location, remedy=remedy)])

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


class UsageError(LakewrightError):
    """The arguments are invalid: an unknown name, parameter or combination."""

    code = "usage"


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
    """Slices that were processed under one location now appear as new ones under another.

    Attributes:
        details: The `old` and the `new` location.
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


class DuplicateBusinesskeyException(TargetError):
    """A business key occurs more than once in the slice."""

    code = "duplicate_business_key"


class NullKeyError(TargetError):
    """A record of the slice is null in a column of its business key."""

    code = "null_key"
    default_remedy = "Correct the slice, or set `null_keys: allow` if null is a valid key value."


class BadRowsError(TargetError):
    """The slice has more bad rows than its entity's `max_bad_rows` allows to put aside."""

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
    default_remedy = "Give a later processing time, or pass --allow-backdated."


class DataLossError(TargetError):
    """The step would lose rows, or columns that contain values."""

    code = "data_loss"
    default_remedy = "Check what would be lost. To accept the loss, run again with --allow-data-loss."


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
    """Spark's JVM ended during the work. The same process has no other; the next run starts one.

    Triggers of `lakewright serve` repeat the run after a pause.
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
    default_remedy = "Run `lakewright manifest fsck` to find the damage."


class IllegalTransition(ManifestCorrupt):
    """The item's state does not allow this record. Nothing was written."""

    code = "illegal_transition"
    default_remedy = "See the item's records with `lakewright manifest show`."


class SequenceConflict(LakewrightError):
    """The item has changed since it was read. Nothing was written.

    Attributes:
        details: The `expected` and the `actual` sequence number.
    """

    code = "sequence_conflict"


class RunFailed(LakewrightError):
    """A run of a job did not succeed. Its result, the history and the manifest have every target's error.

    Attributes:
        details: `run_id`, `status`, and the number of `undone` targets.
    """

    code = "run_failed"


class NotInstalled(LakewrightError):
    """A required package or program is missing. The remedy names the command that installs it."""

    code = "not_installed"


class SparkUnavailable(LakewrightError):
    """Spark could not be started with these settings, or could not be reached. No work was started."""

    code = "spark_unavailable"
    default_remedy = "Check `config:` in the project, and run `lakewright doctor` to check this machine."
