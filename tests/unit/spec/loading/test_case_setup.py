"""What a test of a project runs on."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from tests.unit.spec.kinds import FileRelation, RelationTarget, SqlAssertion, load

from lakewright.errors import SpecError
from lakewright.spec.loading.case_setup import set_up_case

TESTS = """
    environment: [year=2000, base=/data]
    relations:
      raw: {kind: file, location: $base/$year}
      out: {kind: file, location: $base/out}
    mappings:
      m: {kind: sql, sql: x}
      n: {kind: values, records: [project]}
    templates:
      rows: {kind: mapping, parameters: {name: row}, template: {kind: values, records: [$row]}}
    targets:
      build: {kind: relation, relation: out, mapping: m}
    tests:
      common:
        environment: [year=2012]
        overrideMappings:
          m: {kind: values, records: [common]}
          n: {kind: template/rows, row: $year}
      one:
        description: the test
        extends: common
        environment: [year=2013]
        targets: build
        fixtures:
          prepare: {kind: relation, relation: raw}
        overrideMappings:
          m: {kind: values, records: [$year]}
        overrideRelations:
          raw: {kind: file, location: mocked, limit: $year}
        assertions:
          right: {kind: sql, query: SELECT 1, expected: [[$year, null]]}
    """


def test_a_test_runs_on_the_project_with_its_own_parts_in_place(tmp_path: Path) -> None:
    project = load(tmp_path, TESTS)
    setup = set_up_case(project, "one")
    prepared, scope = setup.project, setup.project.scope
    assert (setup.targets, setup.fixtures, setup.description) == (("build",), ("prepare",), "the test")
    assert prepared.mappings["m"].resolve(scope).model_dump()["records"] == ("2013",)
    assert prepared.mappings["n"].resolve(scope).model_dump()["records"] == ("2013",)
    raw = cast("FileRelation", prepared.relations["raw"].resolve(scope))
    assert (raw.location, raw.limit) == ("mocked", 2013)
    assert cast("FileRelation", prepared.relations["out"].resolve(scope)).location == "/data/out"
    assert cast("RelationTarget", prepared.targets["prepare"].resolve(scope)).relation == "raw"
    assertion = cast("SqlAssertion", setup.assertions["right"].resolve(scope))
    assert assertion.expected == [["2013", None]]
    assert project.mappings["n"].resolve(project.scope).model_dump()["records"] == ("project",)


def test_an_unknown_test_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"there is no test 'on' \(did you mean 'one'"):
        set_up_case(load(tmp_path, TESTS), "on")


OVERRIDES = """
    relations:
      raw: {kind: file, location: raw}
    mappings:
      m: {kind: sql, sql: x}
    tests:
      of_mapping: {description: replaces mm, overrideMappings: {mm: {kind: values, records: [x]}}}
      base: {overrideMappings: {helper: {kind: values, records: [x]}}}
      extending:
        extends: base
        assertions: {right: {kind: sql, query: SELECT * FROM helper, expected: [x]}}
      of_relation: {overrideRelations: {raww: {kind: file, location: x}}}
      own:
        overrideMappings: {fresh: {kind: values, records: [x]}}
        assertions: {right: {kind: sql, query: SELECT * FROM fresh, expected: [x]}}
    """


@pytest.mark.parametrize(
    ("test", "told"), [("of_mapping", "mapping 'mm'"), ("of_relation", "relation 'raww'")]
)
def test_an_override_of_nothing_is_an_error(tmp_path: Path, test: str, told: str) -> None:
    """The test would read what it should replace."""
    with pytest.raises(SpecError, match=f"the project has no {told} to override"):
        set_up_case(load(tmp_path, OVERRIDES), test)


def test_an_override_that_the_test_itself_reads_may_be_new(tmp_path: Path) -> None:
    project = load(tmp_path, OVERRIDES)
    assert "fresh" in set_up_case(project, "own").project.mappings
    assert "helper" in set_up_case(project, "extending").project.mappings
