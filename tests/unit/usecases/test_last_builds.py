"""Builds tell whether a target is built from what is declared and there now; `IF_CHANGED` goes by them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import write_deltalake
from tests.projects import make_project

from lakewright.app import App
from lakewright.due.plan import Code
from lakewright.lake.history import UNSEEN, mark_of
from lakewright.manifest.record import format_instant
from lakewright.manifest.store import Write
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.status import Planned
from lakewright.run.builds import BuildState, RecordedBuild
from lakewright.run.request import JobRequest
from lakewright.usecases.due.job_runs import job_run
from lakewright.usecases.due.observe_outputs import OutputObserver
from lakewright.usecases.due.take import plan_of_project

MODEL = """
relations:
  parts: {kind: delta, location: parts, partitions: [{name: day, type: date}]}
  files: {kind: file, format: text, location: files}
  base: {kind: jdbcTable, connection: {kind: jdbc, url: "jdbc:postgresql://h/d"}, table: t}
  gold: {kind: file, format: text, location: gold}
  whole: {kind: file, format: text, location: whole}
  fixed: {kind: values, columns: {id: int}, records: [[1]]}
mappings:
  today: {kind: relation, relation: parts, partitions: {day: $day}}
  files: {kind: relation, relation: files}
  files_of_day: {kind: filter, input: files, condition: "value = '$day'"}
  base: {kind: relation, relation: base}
  fixed: {kind: relation, relation: fixed}
targets:
  by_day: {kind: file, mapping: today, location: "gold/$day", format: text, buildPolicy: ifChanged}
  whole: {kind: relation, mapping: files, relation: whole, buildPolicy: ifChanged}
  of_day: {kind: relation, mapping: files_of_day, relation: whole, buildPolicy: ifChanged}
  filled: {kind: relation, mapping: files, relation: whole}
  unseen: {kind: relation, mapping: base, relation: whole, buildPolicy: ifChanged}
  fixed: {kind: relation, mapping: fixed, relation: whole, buildPolicy: ifChanged}
  copied:
    kind: copy
    source: {kind: relation, relation: files}
    target: {kind: relation, relation: whole}
    buildPolicy: ifChanged
  local: {kind: local, mapping: files, filename: whole/a.txt, buildPolicy: ifChanged}
jobs:
  daily:
    parameters: [{name: day, type: date}]
    targets: [by_day, whole, of_day, filled, unseen, fixed, copied, local]
"""
CLEAN = ("neither its definition nor its inputs have changed since the last build",)
NONE = ("no successful build is recorded",)
FIRST, SECOND = "2022-01-01", "2022-01-02"


class Builds:
    """A project whose builds are recorded as a run would record them, without Spark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for file in ("files/a.txt", "whole/a.txt", f"gold/{FIRST}/a.txt", f"gold/{SECOND}/a.txt"):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text("1\n")
        self.add(1)
        self.number = 0
        self.load(MODEL)

    def load(self, model: str) -> None:
        self.app = App(make_project(self.folder, model), {"XDG_STATE_HOME": str(self.folder / "state")})
        self.app.make_store()

    def add(self, day: int) -> None:
        """Append rows of a day, as another program does."""
        rows = pa.table({"day": [date(2022, 1, day)], "n": [1]})
        write_deltalake(self.folder / "parts", rows, partition_by="day", mode="append")

    def step(self, target: str, day: str) -> tuple[Planned, tuple[str, ...]]:
        request = JobRequest("daily", Phase.BUILD, (f"day={day}",), is_alone=True, targets=(target,))
        (step,) = job_run(self.app, request, self.app.store).plan().steps()
        return step.status, tuple(map(str, step.reasons))

    def build(self, target: str, day: str, state: BuildState = BuildState.DONE) -> RecordedBuild:
        request = JobRequest(
            "daily", Phase.BUILD, (f"day={day}",), is_alone=True, targets=(target,), force=True
        )
        (step,) = job_run(self.app, request, self.app.store).plan().steps()
        self.number += 1
        build = RecordedBuild(
            "tests",
            "daily",
            target,
            {"day": day},
            step.definition or "",
            state,
            tuple(step.provides),
            {each: mark_of(self.app.lake, each) for each in step.requires},
            {each: mark_of(self.app.lake, each) for each in step.provides},
            order=f"{self.number:04}",
        )
        self.app.store.write(Write(puts=(build.put,)))
        return build


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path)


def test_a_target_is_clean_as_long_as_its_build_has_what_is_there(builds: Builds) -> None:
    assert builds.step("whole", FIRST) == (Planned.WOULD_RUN, NONE)
    builds.build("whole", FIRST)
    assert builds.step("whole", FIRST) == (Planned.CLEAN, CLEAN)
    (builds.folder / "files/b.txt").write_text("2\n")
    status, (reason,) = builds.step("whole", FIRST)
    assert (status, reason.partition(": ")[0]) == (Planned.WOULD_RUN, "what it reads has changed")
    builds.build("whole", FIRST)
    builds.load(MODEL.replace("files: {kind: relation,", "files: {kind: relation, filter: value > 1,"))
    assert builds.step("whole", FIRST) == (Planned.WOULD_RUN, ("its definition has changed",))


@pytest.mark.parametrize("target", ["copied", "local"])
def test_copies_and_files_are_compared_as_well(builds: Builds, target: str) -> None:
    assert builds.step(target, FIRST) == (Planned.WOULD_RUN, NONE)
    builds.build(target, FIRST)
    assert builds.step(target, FIRST) == (Planned.CLEAN, CLEAN)
    (builds.folder / "files/b.txt").write_text("2\n")
    assert builds.step(target, FIRST)[0] is Planned.WOULD_RUN


def test_what_reads_a_partition_of_a_table_depends_on_it_only(builds: Builds) -> None:
    builds.add(2)
    for day in (FIRST, SECOND):
        builds.build("by_day", day)
    builds.add(2)
    assert builds.step("by_day", FIRST) == (Planned.CLEAN, CLEAN)
    assert builds.step("by_day", SECOND)[0] is Planned.WOULD_RUN


def test_instances_of_one_place_share_a_build_unless_their_parameters_differ_in_it(builds: Builds) -> None:
    builds.build("whole", FIRST)
    assert builds.step("whole", SECOND) == (Planned.CLEAN, CLEAN)
    builds.build("of_day", FIRST)
    assert builds.step("of_day", FIRST) == (Planned.CLEAN, CLEAN)
    assert builds.step("of_day", SECOND) == (Planned.WOULD_RUN, NONE)
    builds.build("of_day", SECOND)
    assert builds.step("of_day", FIRST) == (Planned.WOULD_RUN, NONE)


def test_an_input_that_nobody_can_look_at_may_have_changed(builds: Builds) -> None:
    builds.build("unseen", FIRST)
    assert builds.step("unseen", FIRST) == (
        Planned.WOULD_RUN,
        ("its inputs have no versions to compare, so they may have changed",),
    )


def test_rows_that_are_declared_are_a_part_of_the_definition(builds: Builds) -> None:
    builds.build("fixed", FIRST)
    assert builds.step("fixed", FIRST) == (Planned.CLEAN, CLEAN)
    builds.load(MODEL.replace("records: [[1]]", "records: [[2]]"))
    assert builds.step("fixed", FIRST) == (Planned.WOULD_RUN, ("its definition has changed",))


@pytest.mark.parametrize("state", [BuildState.WANTED, BuildState.BEGUN, BuildState.WITHDRAWN])
def test_a_build_that_is_not_done_is_none(builds: Builds, state: BuildState) -> None:
    builds.build("whole", FIRST, state)
    assert builds.step("whole", FIRST)[0] is Planned.WOULD_RUN


def test_with_other_policies_a_filled_target_says_that_its_definition_has_changed(builds: Builds) -> None:
    build = builds.build("filled", FIRST)
    assert builds.step("filled", FIRST) == (Planned.CLEAN, ("is filled",))
    builds.app.store.write(Write(puts=(replace(build, definition="other").put,)))
    told = "its definition has changed since it was built: --force builds it again"
    assert builds.step("filled", FIRST) == (Planned.CLEAN, ("is filled", told))


@pytest.mark.parametrize("is_there", [True, False])
def test_what_is_filled_and_only_built_while_empty_is_left_alone_without_a_build(
    builds: Builds, *, is_there: bool
) -> None:
    if not is_there:
        shutil.rmtree(builds.folder / "whole")
    filled = "filled: {kind: relation, mapping: files, relation: whole"
    once = MODEL.partition("jobs:")[0].replace(filled, f"{filled}, buildPolicy: ifEmpty")
    builds.load(f"{once}jobs: {{once: {{targets: [filled]}}}}")
    plan = plan_of_project(builds.app)
    found = [*(each.reason.code for each in plan.steps), *(each.reason.code for each in plan.findings)]
    assert found == [Code.KEPT_AS_FILLED if is_there else Code.NO_BUILD]


@pytest.mark.parametrize(
    ("refresh", "days_ago", "code"),
    [
        ("", 400, Code.UNSEEN),
        ("never", 400, Code.UNSEEN),
        ("daily", 1, Code.REFRESH),
        ("daily", 0, None),
        ("always", 0, Code.REFRESH),
    ],
)
def test_what_reads_a_database_is_built_by_apply_as_often_as_it_declares(
    builds: Builds, refresh: str, days_ago: int, code: Code | None
) -> None:
    """Rules, "Gold: builds": default never, and the plan says so."""
    declared = "unseen: {kind: relation, mapping: base, relation: whole"
    more = f", refresh: {refresh}" if refresh else ""
    model = MODEL.partition("jobs:")[0].replace(declared, f"{declared}{more}")
    builds.load(f"{model}jobs: {{once: {{targets: [unseen]}}}}")
    (due,) = OutputObserver(builds.app).outputs()
    at = format_instant(builds.app.store.now() - timedelta(days=days_ago))
    place = Resource.file(str(builds.folder / "whole"))
    marks = {place: mark_of(builds.app.lake, place)}
    inputs = {Resource("jdbc", name.partition(":")[2]): UNSEEN for name in due.inputs}
    build = RecordedBuild(
        "tests", "once", "unseen", {}, due.definition, BuildState.DONE, (place,), inputs, marks, order=at
    )
    builds.app.store.write(Write(puts=(build.put,)))
    plan = plan_of_project(builds.app)
    found = [*(each.reason.code for each in plan.steps), *(each.reason.code for each in plan.findings)]
    assert found == ([] if code is None else [code])
