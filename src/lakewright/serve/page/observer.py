"""A look at the lake for the inbox, made in the background: screens do not wait for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING

from lakewright.usecases.observed_lake import Observed, observe_lake

if TYPE_CHECKING:
    from lakewright.app import App

__all__ = ["BackgroundObserver"]

log = logging.getLogger(__name__)

LEAST_PAUSE = 30.0
"""Seconds from the end of a look to the next one."""

SHARE = 0.01
"""The largest share of a processor's time: a look that took long is repeated later."""


@dataclass(slots=True)
class BackgroundObserver:
    """Keeps what the last look at bronze found, and looks again when somebody asks and it is old.

    Attributes:
        observe: Looks.
        clock: Returns seconds.
    """

    observe: Callable[[App], Observed] = observe_lake
    clock: Callable[[], float] = time.monotonic
    _found: tuple[int, Observed] | None = field(init=False, default=None)
    _tried: int = field(init=False, default=-1)
    _next: float = field(init=False, default=0.0)
    _thread: Thread | None = field(init=False, default=None)
    _lock: Lock = field(init=False, default_factory=Lock)

    def latest(self, app: App, loads: int) -> Observed | None:
        """Return what the last look at this load of the project found; None before the first one.

        Args:
            app: The project.
            loads: How often it has been loaded: what was found for another load is not used.
        """
        with self._lock:
            found = self._found[1] if self._found is not None and self._found[0] == loads else None
            is_idle = self._thread is None or not self._thread.is_alive()
            if is_idle and (self._tried != loads or self.clock() >= self._next):
                self._tried = loads
                self._thread = Thread(target=self._look, args=(app, loads), name="inbox", daemon=True)
                self._thread.start()
            return found

    def wait(self, seconds: float) -> None:
        """Wait for the end of a look that goes on."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _look(self, app: App, loads: int) -> None:
        begun = self.clock()
        try:
            self._found = (loads, self.observe(app))
        except Exception as error:  # the rest of the inbox does not depend on it
            log.warning("the lake could not be looked at for the inbox: %s", error)
        took = self.clock() - begun
        self._next = self.clock() + max(LEAST_PAUSE, took / SHARE)
