"""Every error that Lakewright raises on purpose, branched by who must act.

```
LakewrightError
├── SpecError                     the project's author: one or more faults, each with file and line
├── UsageError                    the caller: wrong arguments on the command line or in Python
├── OperatorError                 the operator: something is held until a person, or another run, lets go
│   ├── ItemLocked                another run processes the item
│   ├── ItemFailed                an attempt failed and waits for `resolve`
│   ├── LeaseHeld                 another run writes the same thing
│   └── LakeMoved                 slices stand in another place than when they were processed
├── TargetError                   what a target or a slice met; it fails that target and nothing else
│   ├── SliceError                the slice can't be read, has changed or vanished
│   ├── SchemaDriftError          the slice's schema doesn't fit
│   ├── DuplicateBusinesskeyException
│   ├── NullKeyError
│   ├── DeleteBrakeError          delete inference would remove more than allowed
│   ├── LateSliceError            the slice is older than one already processed
│   ├── BackdatedError            the processing time isn't after what the table holds
│   ├── DataLossError             the step would lose rows or columns without leave
│   ├── MigrationError            the present table can't become the declared one
│   ├── VerificationError         what a target promises doesn't hold
│   ├── TargetTimeout             the target took longer than its `timeout`
│   └── MetricError               a metric identity is broken
├── RetryableError                nobody: trying again may succeed
│   ├── CommitConflict            another writer committed first
│   │   └── CommitTooLate         the table has gone on, and doesn't tell whether this commit landed
│   ├── StoreUnavailable          the manifest's back end doesn't answer
│   ├── DatabaseUnavailable       a database that the project connects to doesn't answer
│   └── LeaseLost                 the holder could not keep its lease and must not commit
├── ManifestCorrupt               nobody yet: records contradict each other
│   └── IllegalTransition         an append that the item's records don't allow
├── SequenceConflict              the item isn't as last seen; nothing was written
├── NotInstalled                  the installation lacks a part; the remedy names it
└── SparkUnavailable              the settings, or this machine: Spark can't be started or reached
```
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

__all__ = [
    "BackdatedError",
    "CommitConflict",
    "CommitTooLate",
    "DataLossError",
    "DatabaseUnavailable",
    "DeleteBrakeError",
    "DuplicateBusinesskeyException",
    "Fault",
    "IllegalTransition",
    "ItemFailed",
    "ItemLocked",
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
    "SchemaDriftError",
    "SequenceConflict",
    "SliceError",
    "SparkUnavailable",
    "SpecError",
    "StoreUnavailable",
    "TargetError",
    "TargetTimeout",
    "UsageError",
    "VerificationError",
]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a project's files; lines and columns count from 1."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line) if part is not None)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong in what was declared or typed: what, where, and what to do.

    Attributes:
        details: Values behind the message, which two faults need not share to be the same.
    """

    message: str
    location: Location | None = None
    remedy: str | None = None
    code: str = "spec"
    details: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        advice = f" ({self.remedy})" if self.remedy else ""
        return f"{where}{self.message}{advice}"

    def as_json(self) -> dict[str, Any]:
        """Return the `error` object of `-o json`: code, message, remedy, location."""
        return {
            "code": self.code,
            "message": self.message,
            "remedy": self.remedy,
            "location": str(self.location) if self.location else None,
        }


class LakewrightError(Exception):
    """Something that Lakewright refuses or could not do.

    Attributes:
        code: Stable, for machines; one per class.
        message: What happened and where, for a person.
        remedy: What to do next, one line, or None.
        location: Where in the project's files, where that is known.
        details: Values behind the message, JSON-able.
    """

    code: ClassVar[str] = "error"
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
        """Return this error as a value that can be kept, printed or sent."""
        return Fault(
            self.message,
            location=self.location,
            remedy=self.remedy,
            code=self.code,
            details=self.details,
        )


class SpecError(LakewrightError):
    """What the project declares is wrong; all faults of one load come together.

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
        """Return an error with a single fault."""
        return cls([Fault(message, location=location, remedy=remedy)])

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


class UsageError(LakewrightError):
    """What was typed or passed can't be meant: unknown names, parameters or combinations."""

    code = "usage"


class OperatorError(LakewrightError):
    """Something is held until another run ends or an operator lets go."""

    code = "held"


class ItemLocked(OperatorError):
    """Another run holds the item; `details` has holder, run_id, since and whether it is stale."""

    code = "item_locked"


class ItemFailed(OperatorError):
    """An attempt at the item failed and nobody has resolved it."""

    code = "item_failed"


class LeaseHeld(OperatorError):
    """Another run writes the same thing; `details` has key, holder, run_id and since."""

    code = "lease_held"


class LakeMoved(OperatorError):
    """Slices that were processed in one place are in another, as if new; `details` has `old` and `new`."""

    code = "lake_moved"


class TargetError(LakewrightError):
    """A target, or a slice of an entity, could not be done."""

    code = "target"
    is_retryable: ClassVar[bool] = False


class SliceError(TargetError):
    """The slice can't be read: corrupt, truncated, changed since it was seen, or gone."""

    code = "slice"


class SchemaDriftError(TargetError):
    """The slice's columns don't fit the table, or their values their types."""

    code = "schema_drift"


class DuplicateBusinesskeyException(TargetError):
    """Several records of one slice have the same business key."""

    code = "duplicate_business_key"


class NullKeyError(TargetError):
    """A record has no value in a column of its business key."""

    code = "null_key"
    default_remedy = "Correct the slice, or set null_keys: allow if null is a value of this key."


class DeleteBrakeError(TargetError):
    """Delete inference would flag more rows than `max_delete_ratio` allows."""

    code = "delete_brake"


class LateSliceError(TargetError):
    """The slice is older than one already processed."""

    code = "late_slice"


class BackdatedError(TargetError):
    """The processing time isn't later than what the table already holds."""

    code = "backdated"
    default_remedy = "Give a later processing time, or --allow-backdated."


class DataLossError(TargetError):
    """The step would lose rows or columns that hold values."""

    code = "data_loss"
    default_remedy = "Look at what would be lost, then run again with --allow-data-loss."


class MigrationError(TargetError):
    """The present table can't be made into the declared one."""

    code = "migration"


class VerificationError(TargetError):
    """What the target promises doesn't hold."""

    code = "verification"


class TargetTimeout(TargetError):
    """The target took longer than it is allowed to; its Spark jobs were cancelled."""

    code = "timeout"
    default_remedy = "Give it a longer `timeout`, or find out what it waits for."


class MetricError(TargetError):
    """The counted records don't add up to the records of the slice; nothing was committed."""

    code = "metrics"
    default_remedy = "This is a defect in Lakewright, not in the slice: please report it with the numbers."


class RetryableError(LakewrightError):
    """The attempt met something that passes by itself."""

    code = "retryable"
    is_retryable: ClassVar[bool] = True


class CommitConflict(RetryableError):
    """Another writer committed to the table first."""

    code = "commit_conflict"


class CommitTooLate(CommitConflict):
    """The table has a later commit, and its log no longer tells whether the slice's own landed."""

    code = "commit_too_late"


class StoreUnavailable(RetryableError):
    """The manifest's back end doesn't answer or can't be written; nothing was started."""

    code = "store_unavailable"


class DatabaseUnavailable(RetryableError):
    """A database that the project connects to can't be reached, or gave up a transaction."""

    code = "database_unavailable"


class LeaseLost(RetryableError):
    """The lease could not be kept, so the work stopped before its commit."""

    code = "lease_lost"


class ManifestCorrupt(LakewrightError):
    """Records of the manifest contradict each other, or its storage is damaged."""

    code = "manifest_corrupt"
    default_remedy = "Run `lakewright manifest fsck` to see what is damaged."


class IllegalTransition(ManifestCorrupt):
    """A record may not follow the item's present ones; nothing was written."""

    code = "illegal_transition"
    default_remedy = "Look at the item's records with `lakewright manifest show`."


class SequenceConflict(LakewrightError):
    """The item has changed since it was read; nothing was written.

    Attributes:
        details: `expected` and `actual` sequence numbers.
    """

    code = "sequence_conflict"


class NotInstalled(LakewrightError):
    """A part that this step needs is missing on the machine; the remedy names the command."""

    code = "not_installed"


class SparkUnavailable(LakewrightError):
    """Spark could not be started with these settings, or be reached; nothing was begun."""

    code = "spark_unavailable"
    default_remedy = "See `config:` in the project, and what `lakewright doctor` says of this machine."
