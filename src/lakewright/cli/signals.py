"""Ctrl-C and SIGTERM: the first one stops a run after its current commit, the second immediately."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakewright.cli.call import Call

__all__ = ["HANG_UP", "Stopper", "listening", "listening_to_run"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


HANG_UP = (signal.SIGHUP,)

AT_ONCE = "Stopping at once: Spark is starting, and nothing has run."

AFTER_COMMIT = "Stopping after the current commit; a second signal stops at once."


class Stopper:
    """Remembers the signal that asked a run to stop.

    Attributes:
        signal: The number of the signal, or None.
    """

    def __init__(
        self,
        announce: Callable[[str], None],
        message: str = AFTER_COMMIT,
        is_starting: Callable[[], bool] = lambda: False,
    ) -> None:
        self.signal: int | None = None
        self._is_starting = is_starting
        self._announce = announce
        self._message = message

    def receive(self, number: int, frame: FrameType | None = None) -> None:
        """Handle a signal: remember the first one, stop immediately on the second or while Spark starts.

        Raises:
            KeyboardInterrupt: The command stops at once; its argument is the number of the first signal.
        """
        if self.signal is not None:
            raise KeyboardInterrupt(self.signal)
        self.signal = number
        if self._is_starting():
            self._announce(AT_ONCE)
            raise KeyboardInterrupt(number)
        self._announce(self._message)


def _has_lost_jvm(error: BaseException) -> bool:
    from lakewright.spark.jvm import is_jvm_failure

    return isinstance(error, (ConnectionError, EOFError)) or is_jvm_failure(error)


@contextmanager
def listening(
    announce: Callable[[str], None],
    *,
    extra: Sequence[signal.Signals] = (),
    message: str = AFTER_COMMIT,
    is_starting: Callable[[], bool] = lambda: False,
) -> Iterator[Stopper]:
    """Yield a stopper that receives signals in the `with` block; earlier handlers are restored after it.

    Args:
        announce: Receives the message when the first signal comes.
        extra: Signals to receive besides Ctrl-C and SIGTERM.
        message: What is announced.
        is_starting: Whether Spark is starting, so that there is no commit to wait for.
    """
    stopper = Stopper(announce, message, is_starting)
    if threading.current_thread() is not threading.main_thread():
        yield stopper
        return
    before = {number: signal.signal(number, stopper.receive) for number in (*SIGNALS, *extra)}
    try:
        yield stopper
    except Exception as error:
        if stopper.signal is None or not _has_lost_jvm(error):
            raise
        # The signal went to the whole group of processes, and the JVM ended before this one.
        raise KeyboardInterrupt(stopper.signal) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def listening_to_run(call: Call) -> AbstractContextManager[Stopper]:
    """Return a `with` block for a command that may start Spark; see `listening`."""
    return listening(call.output.note, is_starting=lambda: call.app.lake.is_starting)
