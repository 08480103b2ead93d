"""A look at the lake for the inbox, made in the background: screens do not wait for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock, Thread
from typing import TYPE_CHECKING

from lakewright.serve.http.faults import fault_of, status_of
from lakewright.usecases.due.take import plan_of_project

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.due.plan import Plan
    from lakewright.errors import Fault

__all__ = ["BackgroundObserver", "Look"]

log = logging.getLogger(__name__)

LEAST_PAUSE = 30.0
"""Seconds from the end of a look to the next one."""

SHARE = 0.01
"""The largest share of a processor's time: a look that took long is repeated later."""

PATIENCE = 2.0
"""Seconds that a screen waits for a look after its viewer has changed something."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at the lake found.

    Attributes:
        at: When it began.
        plan: What is due; None if the look failed.
        fault: Why it failed.
        changes: What was changed through the page before it.
    """

    at: datetime
    plan: Plan | None
    fault: Fault | None
    loads: int
    changes: int


@dataclass(slots=True)
class BackgroundObserver:
    """Keeps the plan that the last look at the lake gave, and looks again when somebody asks and it is old.

    Attributes:
        observe: Looks.
        clock: Returns seconds.
    """

    observe: Callable[[App], Plan] = plan_of_project
    clock: Callable[[], float] = time.monotonic
    _found: Look | None = field(init=False, default=None)
    _tried: tuple[int, int] = field(init=False, default=(-1, 0))
    _next: float = field(init=False, default=0.0)
    _thread: Thread | None = field(init=False, default=None)
    _lock: Lock = field(init=False, default_factory=Lock)

    def latest(self, app: App, loads: int, changes: int = 0) -> Look | None:
        """Return the last look at this load of the project; None before the first one.

        After a change through the page, it waits some seconds for a look that was begun after the change.

        Args:
            app: The project.
            loads: How often it has been loaded: what was found for another load is not used.
            changes: How often something was changed through the page.
        """
        found = self._found
        self._begin(app, loads, changes)
        for _ in range(2 if changes else 0):  # the look that goes on may have begun before the change
            if found is not None and (found.loads, found.changes) == (loads, changes):
                break
            self.wait(PATIENCE)
            self._begin(app, loads, changes)
            found = self._found
        return found if found is not None and found.loads == loads else None

    def wait(self, seconds: float) -> None:
        """Wait for the end of a look that goes on."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _begin(self, app: App, loads: int, changes: int) -> None:
        """Begin a look if none goes on, and there is none since the last change or the last one is old."""
        with self._lock:
            is_idle = self._thread is None or not self._thread.is_alive()
            if is_idle and (self._tried != (loads, changes) or self.clock() >= self._next):
                self._tried = (loads, changes)
                self._thread = Thread(
                    target=self._look, args=(app, loads, changes), name="inbox", daemon=True
                )
                self._thread.start()

    def _look(self, app: App, loads: int, changes: int) -> None:
        begun, at = self.clock(), app.clock()
        try:
            self._found = Look(at, self.observe(app), None, loads, changes)
        except Exception as error:  # the rest of the inbox does not depend on it
            if status_of(error) == 500:
                log.error("the lake could not be looked at for the inbox", exc_info=error)
            self._found = Look(at, None, fault_of(error), loads, changes)
        took = self.clock() - begun
        self._next = self.clock() + max(LEAST_PAUSE, took / SHARE)
