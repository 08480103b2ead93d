"""A process whose wall clock is wrong: to be called before what imports `datetime` by name is imported."""

from __future__ import annotations

import datetime
import sys
import time
from typing import ClassVar, Self

true_time = time.time
_DATETIME = datetime.datetime


class _OfAny(type):
    """Takes every time for one of the class, as what imported `datetime` by name expects."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _DATETIME)


class Skewed(datetime.datetime, metaclass=_OfAny):
    """Takes for now what is some seconds off."""

    offset: ClassVar[float] = 0.0

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Self:
        return cls.fromtimestamp(true_time() + cls.offset, tz)

    @classmethod
    def utcnow(cls) -> Self:
        return cls.now(datetime.UTC).replace(tzinfo=None)


def skew(seconds: float) -> None:
    """Set what this process takes for the time of day off by so many seconds; counters stay as they are."""
    assert "lakewright" not in sys.modules, "something has taken the right clock already"
    Skewed.offset = seconds
    setattr(time, "time", lambda: true_time() + seconds)  # noqa: B010 - mypy: a function isn't assigned to
    setattr(datetime, "datetime", Skewed)  # noqa: B010 - mypy: nor is a type
