"""A target with mode `APPEND` is told if its rows are there already, as the log of its table tells it."""

from __future__ import annotations

import shutil
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.unit.usecases import left
from tests.unit.usecases.staleness.test_downstream import PROJECT, built

from lakewright.app import App
from lakewright.lake.commit import Token
from lakewright.manifest.journal import TargetPhase
from lakewright.manifest.store import Write
from lakewright.plan.other_runs import run_of
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.run.added_before import ADDED_BEFORE
from lakewright.run.lost_rows import lost_taints
from lakewright.run.request import JobRequest
from lakewright.run.table_marks import recorded_mark
from lakewright.usecases.plan_job import plan_job
from lakewright.usecases.staleness.brought_back import brought_back as back
from lakewright.usecases.staleness.repeated_appends import commands_adding_once

pa: Any = import_module("pyarrow")

MODEL = """
relations:
  days: {kind: delta, location: gold/days, partitions: [{name: day, type: date}]}
  log: {kind: delta, location: gold/log, partitions: [{name: day, type: date}]}
  whole: {kind: delta, location: gold/whole, mergeKey: [id]}
  values: {kind: values, records: [{id: 1}], columns: {id: long}}
mappings:
  values: {kind: relation, relation: values}
targets:
  days: {kind: relation, mapping: values, relation: days, partition: {day: $day}}
  log: {kind: relation, mapping: values, relation: log, partition: {day: $day}, mode: APPEND}
  whole: {kind: relation, mapping: values, relation: whole, mode: UPDATE}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [days, log]}
  again: {parameters: [{name: day, type: date}], targets: [log]}
  whole: {parameters: [{name: day, type: date}], targets: [whole]}
"""
FIRST, SECOND = "2022-01-01", "2022-01-02"


@pytest.fixture
def app(tmp_path: Path) -> Any:
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text(PROJECT)
    (tmp_path / "model/model.yml").write_text(MODEL)
    app = App.open(tmp_path)
    app.make_store()
    yield app
    app.close()


def write(app: App, table: str, day: str, append_id: str | None = None) -> None:
    """Write one row to the partition of a day, with the identity of an append."""
    properties = None
    if append_id is not None:
        token = Token(append_id, 1)
        numbered = Transaction(token.app_id, token.number)
        properties = CommitProperties({"userMetadata": token.text}, app_transactions=[numbered])
    rows = pa.table({"id": [1], "day": [date.fromisoformat(day)]})
    place = Path(app.project.basedir) / "gold" / table
    write_deltalake(place, rows, partition_by=["day"], mode="append", commit_properties=properties)


def append(app: App, day: str, *, rows: int = 1) -> None:
    """Record a run that has added the rows of a day, and add them if there are some."""
    name = f"append of {day}"
    if rows:
        write(app, "log", day, name)
    entry = {"append": name, "metrics": {"target_records": rows}}
    record(app, "log", day, "BUILD", **entry)


def record(app: App, name: str, day: str, phase: str, **more: Any) -> str:
    run = built(app, "daily", (), day=day)
    entry = {"name": name, "phase": phase, "status": "SUCCESS", "instance": {"day": day}, "reasons": []}
    app.journal.record_targets(run, {0: {**entry, **more}})
    return run.run_id


def mark(app: App, name: str) -> dict[str, Any] | None:
    """Return the mark of a table as a run records it."""
    return recorded_mark([Resource.file(str(Path(app.project.basedir) / "gold" / name))])


def warned(app: App, day: str, job: str = "daily") -> str | None:
    request = JobRequest(job, Phase.BUILD, (f"day={day}",), targets=("log",))
    (step,) = (each for each in plan_job(app, request).steps() if each.phase is Phase.BUILD)
    if step.warning is None:
        return None
    assert step.warning.code == ADDED_BEFORE
    return step.warning.message


def test_rows_whose_append_the_log_of_the_table_has_are_there(app: App) -> None:
    append(app, FIRST)
    assert (warned(app, FIRST) or "").startswith(f"target 'log' adds its rows of day={FIRST} once more: run ")
    assert warned(app, SECOND) is None


def test_a_build_that_has_added_no_rows_has_added_none(app: App) -> None:
    append(app, SECOND)
    append(app, FIRST, rows=0)
    assert warned(app, FIRST) is None


def test_rows_that_a_restore_took_out_are_not_there(app: App) -> None:
    append(app, SECOND)
    append(app, FIRST)
    DeltaTable(Path(app.project.basedir) / "gold/log").restore(0)
    assert warned(app, FIRST) is None
    assert warned(app, SECOND) is not None


def test_rows_of_a_table_that_was_removed_and_made_anew_are_not_there(app: App) -> None:
    append(app, FIRST)
    shutil.rmtree(Path(app.project.basedir) / "gold/log")
    append(app, SECOND)
    assert warned(app, FIRST) is None


def test_rows_that_no_recorded_run_has_added_are_told_and_left_out_of_commands(app: App) -> None:
    """After a lost manifest, the history has no build, and each day was added once more without a word."""
    write(app, "log", FIRST)
    assert warned(app, FIRST) == (
        f"target 'log' adds its rows of day={FIRST} to others, which no recorded run has added"
    )
    assert warned(app, SECOND) is None
    assert commands_adding_once(app, [run_of("daily", {"day": FIRST})]) == (
        f"lakewright job daily build -t days day={FIRST}",
    )


def test_rows_that_another_job_has_added_are_told(app: App) -> None:
    append(app, FIRST)
    assert "once more" in (warned(app, FIRST, "again") or "")


def brought_back(app: App) -> None:
    """Build both tables for two days, lose them in a run that makes them anew, and bring them back."""
    gold = Path(app.project.basedir) / "gold"
    for day in (FIRST, SECOND):
        append(app, day)
        write(app, "days", day)
        record(app, "days", day, "BUILD")
    away = gold.rename(gold.with_name("away"))
    write(app, "days", "2022-01-03")
    run_id = record(app, "days", "2022-01-03", "BUILD")
    places = [TargetPhase("shop", name, "BUILD", {"day": FIRST}) for name in ("days", "log")]
    app.store.write(Write(puts=tuple(each.tainted("it was made anew", lost_in=run_id) for each in places)))
    assert [name for name, _ in left.tainted(app)] == ["days", "log"]
    shutil.rmtree(gold)
    away.rename(gold)
    assert len(back(app)) == 2


def test_rows_that_were_brought_back_are_not_to_be_built_again(app: App) -> None:
    """`status` named a command that doubled rows which were all there, or never stopped to name it."""
    brought_back(app)
    assert left.tainted(app) == []
    plan = plan_job(app, JobRequest("daily", Phase.BUILD, (f"day={FIRST}",)))
    reasons = {step.target: step.reasons for step in plan.steps() if step.phase is Phase.BUILD}
    assert not any("made anew" in each for of_target in reasons.values() for each in of_target)


def test_rows_that_are_lost_again_after_they_were_brought_back_are_told(app: App) -> None:
    brought_back(app)
    for name in ("days", "log"):
        DeltaTable(Path(app.project.basedir) / "gold" / name).delete(f"day = '{FIRST}'")
    assert [name for name, _ in left.tainted(app)] == ["days", "log"]


def update(app: App, day: str) -> str:
    """Record a run that has updated the table without partitions, and return its id."""
    write(app, "whole", day)
    run = built(app, "whole", (), day=day)
    entry = {"name": "whole", "phase": "BUILD", "status": "SUCCESS", "instance": {"day": day}, "reasons": []}
    app.journal.record_targets(run, {0: {**entry, "table": mark(app, "whole")}})
    return run.run_id


def test_a_whole_table_that_is_back_is_not_to_be_built_again(app: App) -> None:
    """`status` named the days that were there, and not the one that was missing."""
    gold = Path(app.project.basedir) / "gold"
    for day in (FIRST, SECOND):
        update(app, day)
    away = gold.rename(gold.with_name("away"))
    run_id = update(app, "2022-01-03")
    lost = [TargetPhase("shop", "whole", "BUILD", {"day": day}) for day in (FIRST, SECOND)]
    app.store.write(Write(puts=tuple(each.tainted("it was made anew", lost_in=run_id) for each in lost)))
    assert [len(instances) for _, instances in left.tainted(app)] == [2]
    shutil.rmtree(gold)
    away.rename(gold)
    assert left.tainted(app) == []


def test_a_whole_table_that_was_emptied_and_built_again_in_part_is_not_back(app: App) -> None:
    gold = Path(app.project.basedir) / "gold"
    for day in (FIRST, SECOND):
        update(app, day)
    DeltaTable(gold / "whole").delete()
    emptied = built(app, "whole", (), day=SECOND)
    put = TargetPhase("shop", "whole", "BUILD", {"day": FIRST}).tainted(
        "it was emptied", lost_in=emptied.run_id
    )
    app.store.write(Write(puts=(put,)))
    update(app, SECOND)
    assert left.tainted(app) == [("whole", ({"day": FIRST},))]


def older_copies(app: App) -> None:
    """Build both tables for two days, and replace them by their copies of the first one."""
    gold = Path(app.project.basedir) / "gold"
    for version, day in enumerate((FIRST, SECOND)):
        for name in ("days", "log"):
            write(app, name, day, f"append of {day}")
            record(app, name, day, "BUILD", append=f"append of {day}", table=mark(app, name))
        if version == 0:
            shutil.copytree(gold, gold.with_name("copy"))
    shutil.rmtree(gold)
    gold.with_name("copy").rename(gold)


def test_a_run_that_builds_into_an_older_copy_remembers_what_it_lacks(app: App) -> None:
    """The next commit takes the version of the lost one, after which nobody could tell."""
    older_copies(app)
    plan = plan_job(app, JobRequest("daily", Phase.BUILD, ("day=2022-01-03",)))
    steps = {step.target: step for step in plan.steps() if step.phase is Phase.BUILD}
    for name, step in steps.items():
        assert step.warning is not None
        assert f"gold/{name} is at version 0, and runs have written others" in step.warning.message
        (put,) = lost_taints("shop", "r1", step)
        app.store.write(Write(puts=(put,)))
    assert left.tainted(app) == [(name, ({"day": SECOND},)) for name in ("days", "log")]
    again = plan_job(app, JobRequest("daily", Phase.BUILD, (f"day={SECOND}",)))
    assert all(step.warning is None for step in again.steps() if step.phase is Phase.BUILD)
