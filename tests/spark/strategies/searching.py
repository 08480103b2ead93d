"""Searches of `make nightly`: one seed after the other, until there are enough examples or time is up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

MINUTES = float(os.environ.get("LAKEWRIGHT_SEARCH_MINUTES", "8"))
"""How long one search goes on. `make fuzz` goes on from seeds that nobody has tried."""

AT_ONCE = 3
"""Machines of one seed; the first of them is the simplest that there is."""


def search(
    machine: type[RuleBasedStateMachine], enough: Callable[[], bool], *, steps: int, minutes: float = MINUTES
) -> str:
    """Run machines of one seed after the other; return which seeds, and whether time was up."""
    end = time.monotonic() + 60 * minutes
    for number in count(1):
        run_seed(machine, number, examples=AT_ONCE, steps=steps)
        if enough():
            return f"seeds 1 to {number}"
        if time.monotonic() > end:
            return f"seeds 1 to {number}, stopped after {minutes:g} minutes"
    raise AssertionError("numbers do not end")


def run_seed(machine: type[RuleBasedStateMachine], number: int, *, examples: int, steps: int) -> None:
    """Run the machines that come from one seed; the first that finds something raises it."""
    run_state_machine_as_test(
        seed(number)(type(machine.__name__, (machine,), {})),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
