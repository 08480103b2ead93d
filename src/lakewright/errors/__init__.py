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

from lakewright.errors.base import LakewrightError
from lakewright.errors.base import retryable_codes as retryable_codes
from lakewright.errors.caller import LakewrightWarning, NotOffered, RunFailed, SpecError, UsageError
from lakewright.errors.fault import Fault, Location
from lakewright.errors.installation import NotInstalled, ServiceEnded, SparkUnavailable
from lakewright.errors.manifest import IllegalTransition, ManifestCorrupt, SequenceConflict
from lakewright.errors.operator import (
    ItemFailed,
    ItemLocked,
    ItemWaits,
    LakeMoved,
    LeaseHeld,
    OperatorError,
)
from lakewright.errors.retryable import (
    CommitConflict,
    CommitTooLate,
    DatabaseUnavailable,
    ExecutorLost,
    LeaseLost,
    RetryableError,
    SliceUnsettled,
    StorageUnavailable,
    StoreBusy,
    StoreUnavailable,
)
from lakewright.errors.target import (
    BackdatedError,
    BadRowsError,
    ColumnMismatch,
    CommandFailed,
    DataLossError,
    DeleteBrakeError,
    DuplicateBusinesskeyException,
    JvmEnded,
    LateSliceError,
    MetricError,
    MigrationError,
    NullKeyError,
    SchemaDriftError,
    SliceError,
    TargetError,
    TargetTimeout,
    VerificationError,
)

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
