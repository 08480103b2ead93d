"""The strategies compared with a model in plain Python, on slices that nobody chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.spark.strategies.machine import APPLIED, StrategyMachine
from tests.spark.strategies.rewinding import UNDONE, RewindMachine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST = 15
"""Slices that each machine applies on average: about seven go to each of three entities, some are refused."""


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("machines", [1, pytest.param(20, marks=pytest.mark.nightly)])
def test_tables_metrics_and_watermarks_are_those_of_the_model(spark: SparkSession, machines: int) -> None:
    """`processing-strategies.md`, "Full Strategy", "Merge Strategy", "Historic Strategy", "Schema Drift"."""

    class Machine(StrategyMachine):
        session = spark

    before = len(APPLIED)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=machines,
            stateful_step_count=8,
            deadline=None,
            # The same machines each time; `make fuzz` is what looks for new ones.
            derandomize=True,
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert len(APPLIED) - before >= LEAST * machines


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("machines", [1, pytest.param(70, marks=pytest.mark.nightly)])
def test_tables_are_those_of_the_model_after_undo_and_rebuild(spark: SparkSession, machines: int) -> None:
    """Issue 15: undo of one slice equals all others; undo and requeue, and rebuild, change nothing."""

    class Machine(RewindMachine):
        session = spark

    before = len(UNDONE)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=machines,
            stateful_step_count=9,
            deadline=None,
            derandomize=True,
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert len(UNDONE) - before >= 2 * machines
