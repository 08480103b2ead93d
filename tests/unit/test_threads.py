"""Properties that threads share are computed once, on every Python."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

from lakewright.threads import shared_property


class Shop:
    def __init__(self) -> None:
        self.computed: list[object] = []
        self.go_on = Event()

    @shared_property
    def value(self) -> object:
        """A value that takes long enough for other threads to come."""
        self.go_on.wait(0.05)
        self.computed.append(found := object())
        return found


def test_threads_that_come_at_once_get_one_value() -> None:
    shop, together = Shop(), Barrier(8)

    def ask(_: int) -> object:
        together.wait()
        return shop.value

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert found == shop.computed * 8
    assert shop.value is found[0]
    assert isinstance(Shop.value, shared_property)
