"""The context in which an entity's slices are processed, and the caller's options."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lakewright.errors import UsageError
from lakewright.manifest.ledger import Takeover
from lakewright.plan.other_runs import commands_of
from lakewright.plan.permissions import NO_PERMISSIONS, Permissions
from lakewright.slices.selection import ALL_SLICES, SliceSelection
from lakewright.spec.models.entity import Strategy
from lakewright.spec.suggestions import suggestion

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.lease import Holder
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Application
    from lakewright.plan.other_runs import OtherRun
    from lakewright.slices.result import SliceReport
    from lakewright.spec.expressions.scope import Scope
    from lakewright.spec.models.entity import Entity

__all__ = ["ProcessingContext", "ProcessingOptions", "strategy_of"]


def _ignore(_: object) -> None:
    """Ignore a warning or a report."""


@dataclass(frozen=True, slots=True)
class ProcessingOptions:
    """The caller's options for the processing of slices.

    Attributes:
        strategy: The strategy to use instead of the entity's own.
        processing_time: ISO 8601 text for one slice, or an expression over the slice.
        scope: Names that the expression may use.
        is_time_declared: Whether a job declares a processing time, which a rebuild gives new slices.
        declared_time: Returns the processing time that a job declares for a slice; None if it is
            `processing_time`.
        is_time_lenient: Whether a text that is no time is only warned of.
        permissions: The permissions of the run.
        wait: Whether to wait for a slice that another run is processing.
        selection: The slices to take; those not taken are left to others.
        settle: How long a slice without `_SUCCESS` must have stayed unchanged; others are left for later.
        other_runs: Returns runs of jobs that take slices of the entity.
        commands: Returns what to type for such runs.
    """

    strategy: Strategy | None = None
    processing_time: str | None = None
    scope: Scope | None = None
    is_time_declared: bool = True
    declared_time: Callable[[str], datetime | None] | None = None
    is_time_lenient: bool = False
    permissions: Permissions = NO_PERMISSIONS
    wait: bool = False
    selection: SliceSelection = ALL_SLICES
    settle: timedelta = timedelta()
    other_runs: Callable[[Sequence[str]], Sequence[OtherRun]] = lambda _: ()
    commands: Callable[[Sequence[OtherRun]], tuple[str, ...]] = commands_of


def strategy_of(text: str | None) -> Strategy | None:
    """Return the strategy that a caller names to use instead of an entity's own.

    Raises:
        UsageError: There is no such strategy.
    """
    if text is None:
        return None
    if text.lower() not in tuple(Strategy):
        raise UsageError(
            f"{text!r} is not a strategy",
            remedy=suggestion(text, [strategy.value for strategy in Strategy]),
        )
    return Strategy(text.lower())


@dataclass(frozen=True, slots=True)
class ProcessingContext:
    """The context in which an entity's slices are processed.

    Attributes:
        holder: The process and run that hold the locks.
        application: The application on whose behalf slices are processed.
        clock: Returns the current time in UTC.
        lease: How long a lock lasts without a heartbeat.
        takeover: Who may take over a stale lock.
        is_stopping: Returns whether to stop before the next slice.
        is_cut_off: Returns whether the run was interrupted, so that an error is no failure of the slice.
        warn: Receives warnings.
        report: Receives the end of each slice.
        sleep: Waits for a number of seconds.
        options: The caller's options.
    """

    lake: Lake
    ledger: Ledger
    holder: Holder
    application: Application
    clock: Callable[[], datetime]
    lease: timedelta = timedelta(seconds=60)
    takeover: Takeover = Takeover.AUTO
    is_stopping: Callable[[], bool] = lambda: False
    is_cut_off: Callable[[], bool] = lambda: False
    warn: Callable[[str], None] = _ignore
    report: Callable[[SliceReport], None] = _ignore
    sleep: Callable[[float], None] = time.sleep
    options: ProcessingOptions = field(default_factory=ProcessingOptions)

    def strategy_for(self, entity: Entity) -> Strategy:
        """Return the strategy by which the entity's slices are processed."""
        return self.options.strategy or entity.strategy
