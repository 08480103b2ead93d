"""Instances side by side: `-j`. Barriers of `executions`, and how many are asked for by whom."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from threading import current_thread
from typing import Any

import pytest
from tests.unit.run.bench import Bench, ends

from lakewright.errors import SpecError
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.spark.launch import import_engine

RANGE = ("day:start=2022-11-01", "day:end=2022-11-09")
PHASES = ["validate", "create", "build", "verify"]


def test_a_phase_of_the_first_instance_is_done_once_and_before_all_others(tmp_path: Path) -> None:
    """`lifecycles-and-phases.md`, "Jobs & Lifecycles": nine days, three at a time."""
    job = {"executions": [{"phase": "validate", "cycle": "first"}, {"phase": "create", "cycle": "never"}]}
    bench = Bench(tmp_path, {"a": {"writes": "/a/$day", "phases": PHASES}}, job)
    bench.world.pause = 0.01

    result = bench.run(Phase.BUILD, *RANGE, jobs=3)

    counted = Counter(phase for _, phase, _ in bench.world.performed)
    assert counted == {Phase.VALIDATE: 1, Phase.BUILD: 9}
    assert bench.world.performed[0] == ("2022-11-01", Phase.VALIDATE, "a")
    assert bench.world.most_at_once == 3
    assert [day for day, step, _ in ends(result) if step == "BUILD a"] == [
        f"2022-11-0{n}" for n in range(1, 10)
    ]


def test_a_phase_of_the_last_instance_comes_after_everything(tmp_path: Path) -> None:
    job = {"executions": [{"phase": "verify", "cycle": "last"}]}
    bench = Bench(tmp_path, {"a": {"writes": "/a/$day"}}, job)
    bench.world.pause = 0.005

    bench.run(Phase.VERIFY, *RANGE, jobs=4)

    assert bench.world.performed[-1] == ("2022-11-09", Phase.VERIFY, "a")
    assert len(bench.world.performed) == 10


def test_no_instance_overtakes_the_making_of_its_table(tmp_path: Path) -> None:
    target = {"table": "/t", "writes": "/t/$day", "phases": ["create", "build"]}
    bench = Bench(tmp_path, {"a": target})
    bench.world.pause = 0.01

    result = bench.run(Phase.BUILD, *RANGE, jobs=4)

    assert bench.world.performed[0] == ("2022-11-01", Phase.CREATE, "a")
    assert Counter(status for _, _, status in ends(result)) == {Status.SUCCESS: 10, Status.SKIPPED: 8}
    assert bench.world.clashes == []
    assert bench.world.most_at_once == 4


@pytest.mark.parametrize(
    ("asked", "job", "config", "most"),
    [
        (None, {}, [], 1),
        (None, {}, ["lakewright.execution.executor.parallelism=3"], 3),
        (None, {"parallelism": 2}, ["lakewright.execution.executor.parallelism=3"], 2),
        (4, {"parallelism": 2}, [], 4),
        (1, {"parallelism": 2}, [], 1),
    ],
)
def test_the_command_line_wins_over_the_job_and_that_over_the_configuration(
    tmp_path: Path, asked: int | None, job: dict[str, Any], config: list[str], most: int
) -> None:
    targets = {f"t{n}": {"writes": f"/t{n}", "phases": "build"} for n in range(8)}
    bench = Bench(tmp_path, targets)
    bench.write(targets, job, config)
    bench.world.pause = 0.02

    bench.run(Phase.BUILD, jobs=asked)

    assert bench.world.most_at_once == most


def test_a_number_of_jobs_that_is_none_is_refused_before_anything_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": {"writes": "/a"}})
    bench.write({"a": {"writes": "/a"}}, {}, ["lakewright.execution.executor.parallelism=many"])

    with pytest.raises(SpecError, match="'many' is not a number"):
        bench.run(Phase.BUILD)
    assert list(bench.journal.runs()) == []


def test_a_failure_lets_what_runs_beside_it_end_and_begins_nothing_more(tmp_path: Path) -> None:
    """What doesn't depend on it goes on with keep_going alone."""
    targets = {
        "bad": {"writes": "/bad", "phases": "build"},
        "beside": {"writes": "/beside", "phases": "build"},
        "later": {"after": "beside", "writes": "/later", "phases": "build"},
    }
    bench = Bench(tmp_path, targets)
    bench.world.broken.add("bad")
    bench.world.pause = 0.02

    found = [status for _, _, status in ends(bench.run(Phase.BUILD, jobs=2))]
    bench.world.versions.clear()
    going_on = [status for _, _, status in ends(bench.run(Phase.BUILD, jobs=2, keep_going=True))]

    assert found[0] is Status.FAILED
    assert found[1] is Status.SUCCESS
    assert going_on == [Status.FAILED, Status.SUCCESS, Status.SUCCESS]


def test_the_engine_is_imported_once_before_several_workers_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E1: two threads that import PySpark at once get a module that is only partly initialized."""
    told: list[str] = []
    monkeypatch.setattr("lakewright.run.job.import_engine", lambda: told.append(current_thread().name))
    bench = Bench(tmp_path, {"a": {"writes": "/a/$day"}})

    def act(*_: Any) -> None:
        told.append("work")

    bench.world.act = act
    bench.run(Phase.BUILD, *RANGE, jobs=3)
    assert told == [current_thread().name, *["work"] * 9]
    told.clear()
    bench.run(Phase.BUILD, *RANGE, jobs=3)
    assert told == [], "a run that finds nothing to do needs no engine"


def test_the_engines_modules_are_imported_and_missing_ones_are_left_to_their_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """E1: what isn't installed fails where it is used."""
    asked: list[str] = []

    def find(name: str) -> None:
        asked.append(name)
        raise ImportError(name)

    monkeypatch.setattr("lakewright.spark.launch.import_module", find)
    import_engine()
    assert {"pyspark.sql", "deltalake"} <= set(asked)
