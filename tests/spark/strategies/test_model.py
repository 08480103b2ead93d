"""The strategies compared with a model in plain Python, on slices that nobody chose."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.spark.strategies.bench import pa
from tests.spark.strategies.machine import APPLIED, KEYS, Sent, Shape, StrategyMachine
from tests.spark.strategies.rewinding import UNDONE, RewindMachine
from tests.spark.strategies.searching import search

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = 200
"""Small tables of up to eight keys in the table of one test."""

LEAST = 9
"""Slices that each machine applies at least: five go to each of three entities, some are refused."""


def test_tables_metrics_and_watermarks_are_those_of_the_model(spark: SparkSession) -> None:
    """`processing-strategies.md`, "Full Strategy", "Merge Strategy", "Historic Strategy", "Schema Drift"."""

    class Machine(StrategyMachine):
        session = spark

    before = len(APPLIED)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=1,
            stateful_step_count=5,
            deadline=None,
            # The same machine each time; `make fuzz` is what looks for new ones.
            derandomize=True,
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert len(APPLIED) - before >= LEAST


@pytest.mark.nightly
@pytest.mark.timeout(2400)
def test_many_tables_are_those_of_the_model(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """The same headings: the slices of twenty longer machines, or of as many as time allows."""

    class Machine(StrategyMachine):
        session = spark

    before = len(APPLIED)
    took = search(Machine, lambda: len(APPLIED) - before >= 33 * LEAST, steps=8)
    with capsys.disabled():
        print(f"\n{len(APPLIED) - before} slices applied, {took}")
    assert len(APPLIED) - before >= LEAST


@pytest.mark.nightly  # test_rewind has both with rows that are written down
@pytest.mark.timeout(2400)
def test_an_undo_and_a_rebuild_leave_the_tables_of_the_model(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 15: undo of one slice equals all others; a rebuild has what the model has.

    Two hundred examples lie beside each other in one table: a record's history depends on its own rows and on
    which slices came, and on no other record.
    """
    monkeypatch.setitem(KEYS, "many", ((("id", pa.int64()),), [(number,) for number in range(8 * EXAMPLES)]))

    class Machine(RewindMachine):
        session = spark

    machine, chosen = Machine(), Random(15)
    try:
        machine.begin(
            key="many",
            scope="closed",
            last_seen="column",
            policy="evolve",
            is_partitioned=False,
            way="marked",
            duplicates=None,
            quarantines=False,
            first=drawn(chosen),
        )
        machine.send(slice_=drawn(chosen), shape=Shape())
        undone = len(UNDONE)
        machine.rebuild_merge_as_historic()
        machine.undo_one(which=0, strategy="historic")
        assert UNDONE[undone:] == ["merge as historic", "historic"]
    finally:
        machine.teardown()


def drawn(chosen: Random) -> list[Sent]:
    """Return records of each example, of which half are those that were sent before under the same key.

    One key of eight is missing, and may be deleted for it: fewer than the brake on deletes lets pass.
    """
    return [
        Sent(
            key=8 * example + key,
            text=chosen.randrange(6),
            number=chosen.randrange(6),
            nested=chosen.randrange(8),
            word=chosen.randrange(4),
            loose=chosen.randrange(3),
            is_big=False,
            mark=chosen.randrange(10),
            part=None,
            deleted=chosen.random() < 0.2,
            is_as_before=chosen.random() < 0.5,
        )
        for example in range(EXAMPLES)
        for key in chosen.sample(range(8), 7)
    ]


@pytest.mark.nightly
@pytest.mark.timeout(2400)
def test_tables_are_those_of_the_model_after_undo_and_rebuild(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same on slices that nobody chose: two hundred undos, requeues and rebuilds, or as time allows."""

    class Machine(RewindMachine):
        session = spark

    before = len(UNDONE)
    took = search(Machine, lambda: len(UNDONE) - before >= 200, steps=10)
    with capsys.disabled():
        print(f"\n{len(UNDONE) - before} rewinds, {took}")
    assert len(UNDONE) > before
