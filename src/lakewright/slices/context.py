"""The context in which an entity's slices are processed, and the caller's options."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from lakewright.errors import UsageError
from lakewright.manifest.ledger import Takeover
from lakewright.plan.permissions import NO_PERMISSIONS, Permissions
from lakewright.slices.chain import SliceChain
from lakewright.slices.discovery import natural_key
from lakewright.slices.processing_time import ProcessingTimes
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.entity import Strategy
from lakewright.spec.suggestions import suggestion

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.lease import Holder
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Application
    from lakewright.slices.result import SliceReport
    from lakewright.spec.models.entity import Entity


def _ignore(_: object) -> None:
    """Ignore a warning or a report."""


@dataclass(frozen=True, slots=True)
class SliceSelection:
    """The slices that a target takes; with both conditions, those that meet both.

    Attributes:
        pattern: Pattern over whole names, with `*`, `?` and `[…]`; None for all.
        until: The last name, in natural order; names that begin with it are included. None for no end.

    Example:
        >>> day = SliceSelection(until="2024-05-02")
        >>> [day.takes(name) for name in ("2024-05-01.json", "2024-05-02-late.json", "2024-05-03.json")]
        [True, True, False]
    """

    pattern: str | None = None
    until: str | None = None

    def __str__(self) -> str:
        """Return the conditions as they are declared."""
        conditions = (("slices", self.pattern), ("until", self.until))
        return ", ".join(f"{key}: {value}" for key, value in conditions if value is not None)

    @property
    def is_limited(self) -> bool:
        """Whether some slices may be left to others."""
        return self.pattern is not None or self.until is not None

    def takes(self, name: str) -> bool:
        """Return whether a slice of this name is taken."""
        if self.pattern is not None and not fnmatchcase(name, self.pattern):
            return False
        return self.until is None or _is_until(name, self.until)


ALL_SLICES = SliceSelection()
"""Takes every slice."""


def _is_until(name: str, last: str) -> bool:
    # Keys end with the name itself, which only orders names that are otherwise equal.
    end = natural_key(last)[:-1]
    start = natural_key(name)[: len(end)]
    text = end[-1][2]
    return start <= end or (text != "" and start[:-1] == end[:-1] and start[-1][2].startswith(text))


@dataclass(frozen=True, slots=True)
class ProcessingOptions:
    """The caller's options for the processing of slices.

    Attributes:
        strategy: The strategy to use instead of the entity's own.
        processing_time: ISO 8601 text for one slice, or an expression over the slice.
        scope: Names that the expression may use.
        is_time_lenient: Whether a text that is no time is only warned of.
        permissions: The permissions of the run.
        wait: Whether to wait for a slice that another run is processing.
        selection: The slices to take; those not taken are left to others.
        settle: How long a slice without `_SUCCESS` must have stayed unchanged; others are left for later.
    """

    strategy: Strategy | None = None
    processing_time: str | None = None
    scope: Scope | None = None
    is_time_lenient: bool = False
    permissions: Permissions = NO_PERMISSIONS
    wait: bool = False
    selection: SliceSelection = ALL_SLICES
    settle: timedelta = timedelta()


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
        show: Receives warnings that the result of a slice has as well.
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
    show: Callable[[str], None] = _ignore
    report: Callable[[SliceReport], None] = _ignore
    sleep: Callable[[float], None] = time.sleep
    options: ProcessingOptions = field(default_factory=ProcessingOptions)

    def chain(self, entity: Entity) -> SliceChain:
        """Return the slices of an entity, whose table's log is not read yet."""
        return SliceChain(self.lake, self.ledger, entity, self.application)

    def times(self, entity: Entity) -> ProcessingTimes:
        """Return the processing times that the options give an entity's slices."""
        given = self.options
        return ProcessingTimes.of(
            entity,
            given.processing_time,
            self.lake.settings.zone,
            given.scope or Scope(),
            is_lenient=given.is_time_lenient,
            warn=self.warn,
        )

    def strategy_for(self, entity: Entity) -> Strategy:
        """Return the strategy by which the entity's slices are processed."""
        return self.options.strategy or entity.strategy
