"""What processing an entity's slices works with, and what the caller asks of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lakewright.manifest.ledger import Takeover
from lakewright.plan.permissions import Permissions

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.lease import Holder
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Application
    from lakewright.spec.models.entity import Strategy

__all__ = ["Bench", "ProcessingOptions"]


def _say_nothing(_text: str) -> None:
    """Leave a warning unsaid."""


@dataclass(frozen=True, slots=True)
class ProcessingOptions:
    """How the caller wants slices to be processed.

    Attributes:
        strategy: The strategy to use instead of the entity's own.
        processing_time: ISO 8601 text; for one slice only.
        permissions: What the run may do that is refused by default.
        wait: Whether to wait for a slice that another run is processing.
    """

    strategy: Strategy | None = None
    processing_time: str | None = None
    permissions: Permissions = field(default_factory=Permissions)
    wait: bool = False


@dataclass(frozen=True, slots=True)
class Bench:
    """What processing works with.

    Attributes:
        application: The entity's target: on whose behalf slices are processed.
        clock: Tells the present instant, in UTC.
        lease: How long a lock lasts without a heartbeat.
        takeover: Who may take over a stale lock.
        is_stopping: Tells whether to stop before the next slice.
        is_cut_off: Tells whether what is being done was made to end, so that it is no failure of the slice.
        warn: Takes a warning.
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
    warn: Callable[[str], None] = _say_nothing
    sleep: Callable[[float], None] = time.sleep
    options: ProcessingOptions = field(default_factory=ProcessingOptions)
