"""The strategies compared with a model in plain Python, on slices that nobody chose."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.spark.strategies.machine import APPLIED, StrategyMachine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A machine takes about seven slices to three entities; `make fuzz` runs many more of them.
MACHINES = int(os.environ.get("LAKEWRIGHT_MACHINES", "5"))
LEAST = 15 * MACHINES


@pytest.mark.timeout(2400)
def test_tables_metrics_and_watermarks_are_those_of_the_model(spark: SparkSession) -> None:
    """`processing-strategies.md`, "Full Strategy", "Merge Strategy", "Historic Strategy", "Schema Drift"."""

    class Machine(StrategyMachine):
        session = spark

    before = len(APPLIED)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=MACHINES,
            stateful_step_count=8,
            deadline=None,
            # The same machines each time; `make fuzz` is what looks for new ones.
            derandomize=True,
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert len(APPLIED) - before >= LEAST
