"""Looks into object stores that are waited for only for some seconds, all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import TypeVar

__all__ = ["SECONDS", "look_within"]

SECONDS = 5.0
"""Seconds for all tables in object stores: a store that does not answer must not hold a status up."""

AT_ONCE = 8
"""Tables in object stores that are read at the same time: reading one is waiting, a few requests long."""

T = TypeVar("T")


def look_within(looks: Mapping[str, Callable[[], T | str]], seconds: float) -> dict[str, T | str]:
    """Return what each look has found in time, or why it has not.

    Threads that still wait for a store are left behind; they end by themselves, or with the process.
    """
    waiting: SimpleQueue[tuple[str, Callable[[], T | str]]] = SimpleQueue()
    answers: SimpleQueue[tuple[str, T | str]] = SimpleQueue()
    for pair in looks.items():
        waiting.put(pair)

    def work() -> None:
        while True:
            try:
                name, look = waiting.get_nowait()
            except Empty:
                return
            try:
                answers.put((name, look()))
            except Exception as error:  # of a library of the store: told like any other reason
                answers.put((name, f"its table can't be read: {error}"))

    for _ in range(min(AT_ONCE, len(looks))):
        Thread(target=work, name="looks into object stores", daemon=True).start()
    found: dict[str, T | str] = dict.fromkeys(
        looks, f"reading the tables in object stores takes longer than {seconds:g} s"
    )
    end = monotonic() + seconds
    for _ in looks:
        try:
            name, seen = answers.get(timeout=max(0.0, end - monotonic()))
        except Empty:
            break
        found[name] = seen
    return found
