"""Targets that read in a cycle what they write: `lifecycles-and-phases.md`, "Jobs & Lifecycles"."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import InProcess
from tests.projects import make_project

from lakewright.usecases.declared_nodes import offline_lake
from lakewright.usecases.validate_project import find_cycles, find_notification_faults
from lakewright.usecases.validation.definitions import evaluate_project

MODEL = """
relations:
  a: {kind: delta, location: lake/$day/a, schema: {kind: inline, fields: [{name: k, type: integer}]}}
  b: {kind: file, format: csv, location: lake/$day/b, schema: {kind: relation, relation: a}}
mappings:
  read_a: {kind: relation, relation: a}
  read_b: {kind: relation, relation: b}
  rows: {kind: sql, sql: "SELECT 1 AS k"}
targets:
  to_a: {kind: relation, mapping: SOURCE, relation: a}
  to_b: {kind: relation, mapping: read_a, relation: b}
  wrong: {kind: relation, mapping: rows, relation: a, partition: {day: "$LocalDate.parse('x')"}}
jobs:
  daily:
    parameters: [{name: day, type: date}, {name: number, type: integer}, {name: word, default: x}]
    targets: [to_a, to_b, wrong]
  other: {parameters: [{name: day, type: date, default: $nobody}], targets: [to_a]}
"""


@pytest.mark.parametrize(("source", "cycle"), [("read_b", "to_a -> to_b -> to_a"), ("rows", None)])
def test_a_cycle_that_only_resources_make_is_found_without_planning(
    tmp_path: Path, source: str, cycle: str | None
) -> None:
    project = make_project(tmp_path, MODEL.replace("SOURCE", source))

    faults = list(find_cycles(project, offline_lake(project)))

    assert len(faults) == (cycle is not None)
    for fault in faults:
        assert "in BUILD, targets read what they write in a cycle" in fault.message
        assert fault.location is not None
        assert fault.location.file == "module.yml"
        assert {"to_a", "to_b"} <= set(fault.message.partition("cycle: ")[2].split(" -> "))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["module.yml", "project.yml"]


@pytest.mark.parametrize(("targets", "left_out"), [("to_a, to_b, wrong", []), ("to_a, wrong", ["to_b"])])
def test_a_target_that_no_job_has_is_warned_of(tmp_path: Path, targets: str, left_out: list[str]) -> None:
    text = MODEL.replace("SOURCE", "rows").replace("to_a, to_b, wrong", targets)
    project = make_project(tmp_path, text)

    found = evaluate_project(project, offline_lake(project)).warnings

    places = [project.located("target", name) for name in left_out]
    assert [each.location for each in found if "no job has it" in each.message] == places


TOLD = """
relations: {out: {kind: file, format: json, location: out}}
mappings: {rows: {kind: sql, sql: "SELECT 1 AS k, '$force' AS forced"}}
targets:
  out: {kind: relation, relation: out, mapping: rows}
  counts: {kind: measure, measures: {n: {kind: sql, query: SELECT 1 AS n}}}
jobs:
  daily:
    parameters: [{name: day, type: date}]
    targets: TARGETS
    hooks:
      - kind: web
        jobSuccess: http://a/success&job=$URL.encode($job)&day=$day&force=$force&dry=$dryRun&in=$namespace
      - {kind: rest, method: POST, url: "http://a/$phase", headers: {X: "$status"}, body: "BODY"}
      - {kind: command, command: [notify, "$job.name", "${project.version}"]}
    metrics:
      labels: {job: "${job.name}", space: "${namespace}", forced: "$force", of: "$project.name"}
      metrics: [{name: rows, labels: {what: "$category/$kind/$name/${phase}/$status", other: "LABEL"}}]
"""


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"BODY": "$forse"}, ["job 'daily': hook 2 (rest): unknown name 'forse'"]),
        ({"LABEL": "$country"}, ["job 'daily': label 'other' of its metrics: unknown name 'country'"]),
        ({"LABEL": "$country", "TARGETS": "[out, counts]"}, []),
        ({"LABEL": "${LocalDate.parse('x')}", "TARGETS": "[out, counts]"}, ["'x' is not a date"]),
    ],
)
def test_what_a_hook_or_board_cannot_evaluate_is_found(
    tmp_path: Path, changes: dict[str, str], found: list[str]
) -> None:
    """E7: Flowman's documented hooks and boards use $force, $dryRun, $job.name and $namespace."""
    model = TOLD
    for old, new in {"BODY": "$day", "LABEL": "x", "TARGETS": "[out]", **changes}.items():
        model = model.replace(old, new)
    faults = list(find_notification_faults(make_project(tmp_path, model)))
    assert len(faults) == len(found)
    assert all(text in fault.message for text, fault in zip(found, faults, strict=True))


def test_a_board_may_be_about_what_extending_jobs_measure(tmp_path: Path) -> None:
    model = TOLD.replace("LABEL", "$country").replace("TARGETS", "[out]")
    of_counts = "  counted: {extends: middle, targets: [counts]}\n  middle: {extends: daily}\n"
    assert list(find_notification_faults(make_project(tmp_path, model + of_counts))) == []


def test_a_run_provides_names_that_a_project_may_override(tmp_path: Path) -> None:
    """E7: what the project itself declares wins."""
    project = make_project(tmp_path, TOLD.replace("TARGETS", "[out]"))
    job = project.job("daily")
    names = "$force $dryRun $job $job.name $namespace $namespace.name $project"
    assert project.job_scope(job, is_forced=True).render(names) == (
        "true false daily daily default default tests"
    )
    assert project.job_scope(job, {"force": "mine"}).render("$force") == "mine"
    own = make_project(tmp_path, "environment: [namespace=mine, job=other]\njobs: {daily: {}}")
    assert own.job_scope(own.job("daily")).render("$namespace $job") == "mine other"


def test_a_kind_that_yaml_reads_as_none_is_told_to_be_quoted(tmp_path: Path) -> None:
    """Issue 11: `kind: null` was told to be missing."""
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (tmp_path / "m.yml").write_text(
        "relations:\n  a: {kind: null}\nmappings:\n  b: {kind: schema, input: c, schema: {kind: }}\n"
        '  c: {kind: "null", columns: {id: long}}\n'
    )
    told = InProcess(tmp_path).run("validate").err
    none = "'kind' has no value: without quotes, YAML reads null and ~ as none"
    assert f"error: relation 'a': {none}\n  where: m.yml:2\n" in told
    assert 'do: Write kind: "null" with quotes, or another kind: const, delta' in told
    assert f"error: mapping 'b': schema: {none}\n" in told
    assert "2 errors" in told


def test_tests_are_checked_as_far_as_they_are_without_spark(tmp_path: Path) -> None:
    """`lakewright test` would end with these errors before it starts Spark."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "project.yml").write_text("name: other\nmodules: [m.yml]\n")
    (tmp_path / "other" / "m.yml").write_text("")
    (tmp_path / "project.yml").write_text(
        "name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n"
        "imports: [{project: other, location: other}]\n"
    )
    (tmp_path / "m.yml").write_text(
        """
mappings: {rows: {kind: values, columns: {k: int}, records: [[1]]}}
tests:
  base: {overrideMappings: {rowz: {kind: values, columns: {k: int}, records: []}}}
  one: {extends: base, assertions: {a: {kind: sql, query: SELECT k FROM rows, expected: []}}}
  two: {extends: base, assertions: {a: {kind: sql, query: SELECT k FROM rows, expected: []}}}
  far:
    overrideRelations: {other/r: {kind: mock}}
    assertions: {a: {kind: sql, query: SELECT k FROM `other/r`, expected: []}}
  fine:
    overrideMappings: {rows: {kind: mock}}
    assertions: {a: {kind: sql, query: SELECT k FROM rows, expected: []}}
"""
    )
    told = InProcess(tmp_path).run("validate").err
    assert told.count("error: the project has no mapping 'rowz' to override\n  where: m.yml:4\n") == 1
    assert "error: the project other has no relation 'r' to override\n  where: m.yml:8\n" in told
    assert "2 errors" in told
