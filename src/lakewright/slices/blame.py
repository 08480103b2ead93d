"""Whether an error is the fault of a slice, or of the declaration, the environment or the access to it.

Only a slice that is at fault is recorded as FAILED, and waits for an operator. Any other is ready for the
next run, which succeeds once the cause is mended.

Source: `processing-manifest.md`, "State" (Failed); the distinction is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakewright.errors import (
    BackdatedError,
    CommitTooLate,
    DataLossError,
    LakewrightError,
    LateSliceError,
    MigrationError,
    NotInstalled,
    OperatorError,
    RetryableError,
    SparkUnavailable,
    SpecError,
    UsageError,
)
from lakewright.lake.observation import observe_table

if TYPE_CHECKING:
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["is_slice_at_fault"]

_NOT_OF_SLICE = (
    BackdatedError,
    MigrationError,
    NotInstalled,
    OperatorError,
    RetryableError,
    SparkUnavailable,
    SpecError,
    UsageError,
)


def is_slice_at_fault(
    context: ProcessingContext, entity: Entity, error: LakewrightError, *, earlier: Iterable[str] = ()
) -> bool:
    """Return whether a slice of an entity fails because of its content or its order.

    A slice without a column that no slice had before is not at fault: the column is declared wrongly, or too
    early.

    Args:
        context: The context of the processing.
        entity: The entity.
        error: The error with which the slice's processing ended.
        earlier: Columns of slices before it that are not processed yet.
    """
    if isinstance(error, CommitTooLate | LateSliceError):
        return True
    if isinstance(error, _NOT_OF_SLICE):
        return False
    if isinstance(error, DataLossError):
        return bool(error.details.get("of_slice"))
    if error.details.get("lacks"):
        state = observe_table(context.lake, entity.places(context.lake.settings).silver)
        known = {name.lower() for name in (*state.names, *earlier)}
        return any(entity.silver_name(name).lower() in known for name in error.details["lacks"])
    return True
