"""An `apply` beside runs of a person and of a trigger: each slice is processed once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tests.small_gold import ages
from tests.small_project import SmallProject

from lakewright.errors import LakewrightError
from lakewright.manifest.record import Record
from lakewright.slices.discovery import item_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def records(project: SmallProject, name: str) -> list[Record]:
    app = project.app()
    place = app.project.entity("people").places(app.project.lake).bronze
    return list(app.store.records(item_id(f"{place}/{name}")))


def test_an_apply_beside_two_runs_of_the_job_processes_each_slice_once(
    tmp_path: Path, spark: SparkSession
) -> None:
    project = SmallProject(tmp_path / "project", spark, gold=ages())
    project.put("01", {1: 10, 2: 20})
    project.put("02", {1: 11, 3: 20})

    def run_job() -> None:
        project.job("daily")

    with ThreadPoolExecutor(3) as pool:
        started: list[Future[object]] = [pool.submit(each) for each in (project.apply, run_job, run_job)]
    for each in started:
        error = each.exception()
        assert error is None or isinstance(error, LakewrightError | AssertionError), error
    project.apply()
    assert project.plan().steps == ()
    assert project.rows() == {1: 11, 2: 20, 3: 20}
    assert {row[0]: row[1] for row in project.built("ages")} == Counter((11, 20, 20))
    done = [each.state.value for name in ("01.csv", "02.csv") for each in records(project, name)]
    assert done.count("PROCESSED") == 2
