"""Errors that another run or an operator ends."""

from __future__ import annotations

from lakewright.errors.base import LakewrightError

__all__ = [
    "ItemFailed",
    "ItemLocked",
    "ItemWaits",
    "LakeMoved",
    "LeaseHeld",
    "OperatorError",
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
