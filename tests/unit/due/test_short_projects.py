"""What a plan says of entities in the short form whose files are not as declared."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import write_deltalake

from lakewright.app import App
from lakewright.due.plan import Action, Code, Plan, State
from lakewright.due.words import plan_document
from lakewright.manifest.store import Write
from lakewright.run.builds import BuildState, RecordedBuild, recording
from lakewright.usecases.due.take import plan_of_project
from lakewright.usecases.process_slices import declared_slice_time


def test_a_place_without_files_is_noticed(tmp_path: Path) -> None:
    declared = "entities:\n  a: {from: nowhere/*.csv, key: id, strategy: historic}\n"
    (tmp_path / "project.yml").write_text(f"name: x\n{declared}")
    (found,) = plan_of_project(App.open(tmp_path, environ={})).findings
    assert (found.reason.code, found.reason.params) == (Code.NO_FILES, {"place": f"{tmp_path}/nowhere/*.csv"})


def planned(folder: Path, names: Sequence[str], *declared: str, above: str = "") -> Plan:
    (folder / "in").mkdir()
    for name in names:
        (folder / "in" / name).write_text("id\n1\n")
    entity = ", ".join(("from: in/*.csv", "key: id", *declared))
    (folder / "project.yml").write_text(f"name: x\n{above}entities:\n  a: {{{entity}}}\n")
    return plan_of_project(App.open(folder, environ={}))


@pytest.mark.parametrize(
    ("names", "undated"),
    [
        (("a.csv", "b.csv"), ["a.csv", "b.csv"]),
        (("a.csv",), []),
        (("2024-05-01.csv", "20240502T0630.csv"), []),
    ],
)
def test_slices_of_which_history_would_be_that_of_loading_are_noticed(
    tmp_path: Path, names: Sequence[str], undated: Sequence[str]
) -> None:
    plan = planned(tmp_path, names, "strategy: historic")
    noticed = [each.reason.params["slices"] for each in plan.findings if each.reason.code is Code.UNDATED]
    assert noticed == ([undated] if undated else [])
    assert [each.name for step in plan.ready for each in step.slices] == list(names)


DAY, OTHER_DAY = "2024-05-01T00:00:00+02:00", "2024-05-02T06:30:00+02:00"


@pytest.mark.parametrize(
    ("names", "declared", "times"),
    [
        (
            ("2024-05-01.csv", "20240502T0630.csv"),
            "strategy: historic",
            [("name", "", DAY), ("name", "", OTHER_DAY)],
        ),
        (("2024-05-01.csv",), "strategy: full", [("name", "", DAY)]),
        (
            ("2024-05-01.csv", "x.csv"),
            "strategy: merge",
            [("name", "", DAY), ("undated", "", None)],
        ),
        (("x.csv",), "time: now", [("clock", "", None)]),
        (("2024-05-01.csv",), "time: {from: seen}", [("column", "seen", None)]),
        (("01.05.2024.csv",), "time: dd.MM.yyyy", [("form", "dd.MM.yyyy", DAY)]),
        (
            ("20240502.csv",),
            "time: '${slice.date}T06:30:00'",
            [("expression", "${slice.date}T06:30:00", OTHER_DAY)],
        ),
    ],
)
def test_a_plan_has_the_time_of_each_slice_or_what_gives_it(
    tmp_path: Path, names: Sequence[str], declared: str, times: Sequence[tuple[str, str, str | None]]
) -> None:
    plan = planned(tmp_path, names, declared, above="lake: {timezone: Europe/Berlin}\n")
    (step,) = plan_document(plan)["steps"]
    found = [(each["slice"], each["source"], each["declared"], each["time"]) for each in step["times"]]
    assert found == [(name, *time) for name, time in zip(names, times, strict=True)]


def test_the_time_that_the_job_of_a_slice_declares_counts(tmp_path: Path) -> None:
    job = """targets: {a: {kind: entity, entity: a, slices: '${day}*', processingTime: '${day}T01:00:00Z'}}
jobs: {daily: {parameters: [{name: day, type: date}], targets: [a]}}
"""
    (step,) = planned(tmp_path, ["2024-05-01.csv", "2024-05-02.csv"], above=job).steps
    found = [(name, each.at and each.at.isoformat()) for name, each in step.times.items()]
    assert found == [(f"2024-05-0{day}.csv", f"2024-05-0{day}T01:00:00+00:00") for day in (1, 2)]


@pytest.mark.parametrize(
    ("targets", "hours"),
    [
        ("", (0, 0)),
        ("slices: '*01.csv', processingTime: '${slice.date}T03:00:00Z'", (3, 4)),
        ("processingTime: '${slice.date}T03:00:00Z'", (3, 3)),
    ],
)
def test_a_plan_and_a_replay_give_a_slice_the_time_of_the_run_that_takes_it(
    tmp_path: Path, targets: str, hours: tuple[int, int]
) -> None:
    """Rules of apply, "Laws": what a plan says is what is done. Another job's time does not count."""
    job = f"""targets:
  first: {{kind: entity, entity: a, {targets}}}
  second: {{kind: entity, entity: a, processingTime: "${{slice.date}}T04:00:00Z"}}
jobs: {{daily: {{targets: [first, second]}}, other: {{targets: [second]}}}}
"""
    names = ["2024-05-01.csv", "2024-05-02.csv"]
    (step,) = planned(tmp_path, names, above=job).steps
    assert tuple(time.at and time.at.hour for time in step.times.values()) == hours
    app = App.open(tmp_path, environ={})
    times = [declared_slice_time(app, app.project.entity("a"), name) for name in names]
    assert tuple(at and at.hour for at in times) == hours


@pytest.mark.parametrize(
    "target",
    [
        "processingTime: '${day}T03:00:00Z'",
        "slices: '2024*', processingTime: '${slice.date}T${hour}:00:00Z'",
    ],
)
def test_the_defaults_of_a_jobs_parameters_count(tmp_path: Path, target: str) -> None:
    """Rules of lifecycles, "Parameters and ranges": a run without a value takes the default."""
    job = f"""targets: {{t: {{kind: entity, entity: a, {target}}}}}
jobs:
  daily:
    parameters: [{{name: day, type: date, default: 2024-05-01}}, {{name: hour, type: string, default: '03'}}]
    targets: [t]
"""
    (step,) = planned(tmp_path, ["2024-05-01.csv"], above=job).steps
    assert (step.action, step.state) == (Action.FORWARD, State.READY)
    (time,) = step.times.values()
    assert time.at is not None
    assert time.at.isoformat() == "2024-05-01T03:00:00+00:00"


def test_a_slice_with_a_wrong_time_holds_up_only_what_follows_it(tmp_path: Path) -> None:
    """Rules of apply, "Silver: the slice chain": what needs nobody is done up to what does."""
    job = """targets:
  t: {kind: entity, entity: a, processingTime: '${slice.date}T03:00:00Z', slices: '2024*'}
jobs: {daily: {targets: [t]}}
"""
    names = ["2024-05-01.csv", "2024-05-02.csv", "notes.csv", "x-2024-05-04.csv"]
    steps = planned(tmp_path, names, above=job).steps
    found = [(each.action, each.state, [one.name for one in each.slices]) for each in steps]
    assert found == [
        (Action.FORWARD, State.READY, names[:2]),
        (Action.HOLD, State.BLOCKED, names[2:]),
    ]


def test_slices_that_one_run_takes_are_refused_together(tmp_path: Path) -> None:
    job = """targets:
  t: {kind: entity, entity: a, processingTime: '2024-05-01', slices: '*x*'}
  u: {kind: entity, entity: a, processingTime: '2024-05-02', slices: '*y*'}
jobs: {daily: {targets: [t, u]}}
"""
    (step,) = planned(tmp_path, ["1x.csv", "2y.csv", "3x.csv"], "strategy: historic", above=job).steps
    assert (step.action, step.state, len(step.slices)) == (Action.HOLD, State.BLOCKED, 3)


def test_a_build_that_was_wanted_and_has_not_begun_follows_the_steps_of_what_it_reads(tmp_path: Path) -> None:
    above = "tables:\n  t: {sql: SELECT id FROM a}\n"
    (first,) = (each for each in planned(tmp_path, ["1.csv"], above=above).ready if each.subject.name == "t")
    app = App.open(tmp_path, environ={})
    app.make_store()
    wanted = RecordedBuild("x", "all", "t", {}, "", BuildState.WANTED)
    app.store.write(Write(puts=recording([wanted])))
    (then,) = (each for each in plan_of_project(app).ready if each.subject.name == "t")
    assert (first.after, then.after) == (("forward a",), ("forward a",))


def test_what_a_slice_takes_over_is_noticed(tmp_path: Path) -> None:
    """The columns of another tool's table that adoption renames, and the versions of `history_from`."""
    silver = tmp_path / "lake/silver/a"
    write_deltalake(str(silver), pa.table({"id": ["1"], "begin": ["2024-01-01"]}))
    plan = planned(tmp_path, ["2024-05-01.csv"], "strategy: historic", "adopt: {valid_from: begin}")
    (found,) = (each.reason for each in plan.findings)
    assert (found.code, [step.action for step in plan.steps]) == (Code.TAKEN_OVER, [Action.FORWARD])
    assert "rename column begin to dlf_ValidFrom" in found.params["what"]

    shutil.rmtree(silver)
    model = (tmp_path / "project.yml").read_text()
    past = model.replace("adopt: {valid_from: begin}", "history_from: {folder: past, valid_from: day}")
    (tmp_path / "project.yml").write_text(past)
    (found,) = (each.reason for each in plan_of_project(App.open(tmp_path, environ={})).findings)
    assert (found.code, "past" in found.params["what"]) == (Code.TAKEN_OVER, True)
