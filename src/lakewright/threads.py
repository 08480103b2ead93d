"""Properties whose value threads share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import Any, Self, TypeVar, overload

T = TypeVar("T")


class shared_property(cached_property[T]):  # noqa: N801 - a decorator, as `cached_property` is
    """A `cached_property` that is computed once although several threads ask for it at first.

    Since Python 3.12, each of these threads computes a `cached_property` and keeps what it found. A lock, a
    heartbeat or a pool of connections must be one for all of them.
    """

    def __init__(self, func: Callable[[Any], T]) -> None:
        super().__init__(func)
        self._computing = RLock()

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | T:
        """Return the value, which other threads wait for."""
        if instance is None:
            return self
        with self._computing:
            return super().__get__(instance, owner)
