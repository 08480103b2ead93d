"""Spark jobs that end when their target's time is over, or when somebody interrupts for the second time."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sessions import same
from tests.unit.run.bench import Bench, FakeTarget, Listening, ended

from lakewright.lake.lake import Lake
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.targets.context import Context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDLESS = 10**14


@pytest.fixture
def bench(tmp_path: Path, spark: SparkSession) -> Iterator[Bench]:
    """A project whose lake has the tests' session, and whose targets have Spark count for ever."""
    made = Bench(tmp_path, {})
    yield made
    spark.sparkContext.cancelAllJobs()


def use(bench: Bench, spark: SparkSession, **targets: dict[str, Any]) -> None:
    bench.write(
        {name: {"phases": "build", "writes": f"/{name}", **target} for name, target in targets.items()}
    )
    bench.lake = Lake(bench.project.lake, bench.lake.session, sessions=same(spark))
    bench.world.act = act


def act(target: FakeTarget, context: Context, phase: Phase) -> Outcome:
    rows = ENDLESS if "endless" in target.name else 10
    frame = context.workspace.lake.new_session().range(rows).selectExpr("sum(id % 7)")
    return Outcome(metrics={"sum": frame.collect()[0][0]})


def jobs_of(spark: SparkSession) -> set[int]:
    """Return the active jobs of this process: others may use its JVM, under other tags."""
    context: Any = spark.sparkContext
    tracker = context._jsc.sc().statusTracker()
    found = set(tracker.getActiveJobIds())
    for tag in context.getJobTags():
        found &= set(tracker.getJobIdsForTag(tag))
    return found


def has_ended(is_true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return is_true()


@pytest.mark.parametrize("jobs", [1, 2])
def test_only_the_jobs_of_what_takes_too_long_are_cancelled(
    bench: Bench, spark: SparkSession, jobs: int
) -> None:
    use(bench, spark, endless={"timeout": "PT1S"}, after={})
    bench.lake.spark.range(1).count()
    begin = time.monotonic()

    result = bench.run(Phase.BUILD, keep_going=True, jobs=jobs)

    assert ended(result) == {"BUILD endless": Status.FAILED, "BUILD after": Status.SUCCESS}
    first = result.targets()[0]
    assert first.error is not None
    assert first.error.code == "timeout"
    assert time.monotonic() - begin < 30
    assert has_ended(lambda: not jobs_of(spark))


def test_a_session_that_a_target_starts_itself_knows_its_jobs(bench: Bench, spark: SparkSession) -> None:
    use(bench, spark, endless={"timeout": "PT1S"})

    result = bench.run(Phase.BUILD)

    assert ended(result) == {"BUILD endless": Status.FAILED}


@pytest.mark.usefixtures("interruptible")
def test_a_second_interruption_ends_spark_jobs_at_once(bench: Bench, spark: SparkSession) -> None:
    use(bench, spark, endless={}, also_endless={}, after={})
    listening = Listening()

    def interrupt() -> None:
        assert has_ended(lambda: len(jobs_of(spark)) == 2)
        listening.signal = 2
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    result = bench.run(Phase.BUILD, listening=listening, jobs=2)
    thread.join()

    assert ended(result) == {
        "BUILD endless": Status.ABORTED,
        "BUILD also_endless": Status.ABORTED,
        "BUILD after": Status.SKIPPED,
    }
    assert result.exit_code == 130
    assert has_ended(lambda: not jobs_of(spark))
    (run,) = bench.journal.runs()
    assert run.status == "ABORTED"
