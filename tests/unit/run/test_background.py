"""Calls in the background: the end of a run waits for them only so long, and none of them fails it."""

from __future__ import annotations

import time
from threading import Event
from time import monotonic

import pytest

from lakewright.run.background import CallQueue


class Slow:
    """A call that ends when it is told to."""

    def __init__(self) -> None:
        self.ends = Event()
        self.made = 0

    def __call__(self) -> None:
        self.ends.wait(10)
        self.made += 1


def test_one_call_that_is_dropped_is_counted_as_one(caplog: pytest.LogCaptureFixture) -> None:
    messenger, slow = CallQueue("hooks", seconds=0.1, max_waiting=1), Slow()
    messenger.send("hook 1", slow, "slow")
    time.sleep(0.05)  # its thread takes the first call
    messenger.send("hook 1", slow, "slow")
    messenger.close()
    slow.ends.set()
    assert "1 call of hooks was dropped, because" in caplog.text


def test_a_run_waits_for_hooks_only_so_long(caplog: pytest.LogCaptureFixture) -> None:
    messenger, slow = CallQueue("hooks", seconds=0.1, max_waiting=3), Slow()
    begin = monotonic()
    for _ in range(8):
        messenger.send("hook 1", slow, "slow")
    assert monotonic() - begin < 0.05

    messenger.close()

    assert monotonic() - begin < 5
    assert "calls of hooks were dropped" in caplog.text
    slow.ends.set()


def test_a_call_whose_error_has_no_text_does_not_end_the_calls_after_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise ConnectionError("the JVM is gone")

    class Broken(Slow):
        def __call__(self) -> None:
            raise Unspeakable

    messenger, last = CallQueue("hooks", seconds=10), Slow()
    last.ends.set()
    messenger.send("hook 1", Broken(), "slow")
    messenger.send("hook 2", last, "last")
    messenger.close()
    assert (last.made, "hook 1: slow: Unspeakable" in caplog.text) == (1, True)
