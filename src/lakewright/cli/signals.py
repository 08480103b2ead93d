"""Ctrl-C and SIGTERM: the first one stops a run after its current commit, the second immediately."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stopper", "listening"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopper:
    """Remembers the signal that asked a run to stop.

    Attributes:
        signal: The number of the signal, or None.
    """

    def __init__(self, announce: Callable[[str], None]) -> None:
        self.signal: int | None = None
        self._announce = announce

    def receive(self, number: int, frame: FrameType | None = None) -> None:  # noqa: ARG002 - signal's signature
        """Handle a signal: remember the first one, stop immediately on the second.

        Raises:
            KeyboardInterrupt: It is the second signal; its argument is the number of the first.
        """
        if self.signal is not None:
            raise KeyboardInterrupt(self.signal)
        self.signal = number
        self._announce("Stopping after the current commit; a second signal stops at once.")


@contextmanager
def listening(announce: Callable[[str], None]) -> Iterator[Stopper]:
    """Yield a stopper that receives signals in the `with` block; earlier handlers are restored after it."""
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
