"""Errors that fail one target or one slice; other targets are unaffected."""

from __future__ import annotations

from lakewright.errors.base import LakewrightError
from lakewright.errors.phrase import Option, Phrase

__all__ = [
    "BackdatedError",
    "BadRowsError",
    "ColumnMismatch",
    "CommandFailed",
    "DataLossError",
    "DeleteBrakeError",
    "DuplicateBusinesskeyException",
    "JvmEnded",
    "LateSliceError",
    "MetricError",
    "MigrationError",
    "NullKeyError",
    "SchemaDriftError",
    "SliceError",
    "TargetError",
    "TargetTimeout",
    "VerificationError",
]


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
