"""A build that replaces rows of another target says so, unless the run builds these again after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.usecases.staleness.test_downstream import built

from lakewright.app import App
from lakewright.plan.phase import Phase
from lakewright.run.added_before import ADDED_BEFORE
from lakewright.run.losses import REPLACED_ROWS
from lakewright.run.lost_rows import lost_taints
from lakewright.run.request import JobRequest
from lakewright.usecases.plan_job import plan_job

MODEL = """
relations:
  log: {kind: file, format: json, location: gold/log, partitions: [{name: day, type: date}]}
  again: {kind: file, format: json, location: ./gold/log, partitions: [{name: day, type: date}]}
mappings:
  one: {kind: values, records: [{n: 1}], columns: {n: long}}
targets:
  o: {kind: relation, mapping: one, relation: log, partition: {day: $day}}
  b: {kind: relation, mapping: one, relation: log, partition: {day: $day}, mode: APPEND, after: o}
  c: {kind: relation, mapping: one, relation: again, partition: {day: $day}, mode: APPEND, after: o}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [o, b, c]}
"""
DAY = "2022-01-01"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\n")
    (tmp_path / "m.yml").write_text(MODEL)
    rows = tmp_path / f"gold/log/day={DAY}/part-0.json"
    rows.parent.mkdir(parents=True)
    rows.write_text('{"n": 1}')
    with closing(App.open(tmp_path)) as found:
        found.make_store()
        built(found, "daily", ("o", "b", "c"), hours_ago=1, day=DAY)
        yield found


def warnings(app: App, *targets: str, day: str = DAY) -> dict[str, str]:
    request = JobRequest("daily", Phase.BUILD, (f"day={day}",), targets=targets, force=True)
    steps = plan_job(app, request).steps()
    return {each.target: each.warning.code for each in steps if each.warning and each.phase is Phase.BUILD}


def test_who_replaces_rows_of_others_is_told_of_those_that_the_run_does_not_build_again(app: App) -> None:
    assert warnings(app, "o", "b") == {"o": REPLACED_ROWS}, "c is left out"
    assert warnings(app, "o", "b", "c") == {}
    assert warnings(app, "o", day="2022-01-02") == {}, "nothing is there"
    assert warnings(app, "b") == {"b": ADDED_BEFORE}

    request = JobRequest("daily", Phase.BUILD, (f"day={DAY}",), targets=("o",), force=True)
    (step,) = (each for each in plan_job(app, request).steps() if each.phase is Phase.BUILD)
    assert step.warning is not None
    assert "BUILD replaces the whole of" in step.warning.message
    assert "b, c had built day=2022-01-01 into it" in step.warning.message
    assert "Build these again: `lakewright job daily build -t b -t c day=2022-01-01`." in str(
        step.warning.remedy
    )
    places = [put.value["place"]["target"] for put in lost_taints("shop", "r", step) if put.value]
    assert sorted(places) == ["b", "c"]
