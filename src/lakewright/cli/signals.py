"""Ctrl-C and SIGTERM: the first one stops a run after its current commit, a second one at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stopper", "listening"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopper:
    """Remembers the signal by which somebody asked a run to stop.

    Attributes:
        signal: Its number, or None while nobody asked.
    """

    def __init__(self, announce: Callable[[str], None]) -> None:
        self.signal: int | None = None
        self._announce = announce

    def receive(self, number: int, frame: FrameType | None = None) -> None:  # noqa: ARG002 - signal's signature
        """Take a signal: the first is remembered, a second ends the work at once.

        Raises:
            KeyboardInterrupt: It is the second; its argument is the first one's number.
        """
        if self.signal is not None:
            raise KeyboardInterrupt(self.signal)
        self.signal = number
        self._announce("Stopping after the current commit; once more stops at once.")


@contextmanager
def listening(announce: Callable[[str], None]) -> Iterator[Stopper]:
    """Have signals stop what runs inside in good order; handlers are as before afterwards."""
    stopper = Stopper(announce)
    if threading.current_thread() is not threading.main_thread():
        yield stopper
        return
    before = {number: signal.signal(number, stopper.receive) for number in SIGNALS}
    try:
        yield stopper
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
