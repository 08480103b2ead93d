"""The frame of an undo and a rebuild: what ends it."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from lakewright.errors import LeaseLost
from lakewright.usecases.rewinding import check_of


def test_a_signal_or_a_lost_lease_ends_a_rewind_before_its_next_slice() -> None:
    """Issue 15: Ctrl-C leaves nothing half done; an undo of many slices does not go on after it."""
    lost: list[str] = []

    def check_commit() -> None:
        if lost:
            raise LeaseLost(lost[0])

    app: Any = SimpleNamespace(lake=SimpleNamespace(check_commit=check_commit))
    interruption: Any = SimpleNamespace(signal=None)
    check = check_of(app, interruption)
    check()
    lost.append("another run has it")
    with pytest.raises(LeaseLost):
        check()
    interruption.signal = signal.SIGINT
    with pytest.raises(KeyboardInterrupt):
        check()
    lost.clear()
    check_of(app, None)()
