"""Ctrl-C and SIGTERM."""

from __future__ import annotations

import os
import signal

import pytest

from lakewright.cli.progress import listening


def test_the_first_signal_is_remembered_and_announced() -> None:
    said: list[str] = []
    with listening(said.append) as stopper:
        assert stopper.signal is None
        os.kill(os.getpid(), signal.SIGTERM)
    assert stopper.signal == signal.SIGTERM
    assert "after the current commit" in said[0]


def test_a_second_signal_stops_at_once() -> None:
    said: list[str] = []
    with listening(said.append):
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt) as stop:
            os.kill(os.getpid(), signal.SIGINT)
    assert stop.value.args == (signal.SIGINT,)


def test_a_jvm_that_a_signal_ended_too_is_an_interruption() -> None:
    """E11: SIGTERM to the whole group of processes ends with 143, as SIGTERM to the process alone."""

    def work(*, is_signalled: bool) -> None:
        with listening(lambda _: None):
            if is_signalled:
                os.kill(os.getpid(), signal.SIGTERM)
            raise ConnectionRefusedError("the JVM doesn't answer")

    with pytest.raises(KeyboardInterrupt) as stop:
        work(is_signalled=True)
    assert stop.value.args == (signal.SIGTERM,)
    with pytest.raises(ConnectionRefusedError):
        work(is_signalled=False)


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with listening(print):
        pass
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_signal_while_spark_starts_stops_at_once() -> None:
    """B8: there is no commit to wait for."""
    said: list[str] = []
    with (
        listening(said.append, is_starting=lambda: True) as stopper,
        pytest.raises(KeyboardInterrupt) as stop,
    ):
        os.kill(os.getpid(), signal.SIGINT)
    assert (stop.value.args, stopper.signal) == ((signal.SIGINT,), signal.SIGINT)
    assert said == ["Stopping at once: Spark is starting, and nothing has run."]
