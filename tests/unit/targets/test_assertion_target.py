"""Targets that check assertions: `lifecycles-and-phases.md`, "Execution Phases" (VALIDATE, VERIFY)."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from pyspark.errors import AnalysisException
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.errors import SpecError
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.targets.target import Target

PROJECT = """
targets:
  before: {kind: validate}
  after: {kind: verify, assertions: {}}
"""
REJECTED = """
relations:
  rows: {kind: values, records: [{id: 1}], columns: {id: long}}
mappings:
  rows: {kind: relation, relation: rows}
targets:
  named:
    kind: verify
    assertions:
      whole: {kind: sql, query: SELECT idd FROM rows}
  listed:
    kind: verify
    assertions:
    - {kind: sql, query: SELECT 1 FROM rows, expected: [1]}
    - {kind: expression, mapping: rows, expected: idd > 0}
  measured:
    kind: measure
    measures:
      one: {kind: sql, query: SELECT 1 AS n FROM rows}
      many: {kind: sql, query: SELECT idd FROM rows}
"""


@pytest.mark.parametrize(("name", "phase"), [("before", Phase.VALIDATE), ("after", Phase.VERIFY)])
def test_a_target_without_assertions_succeeds(tmp_path: Path, name: str, phase: Phase) -> None:
    workspace = make_workspace(tmp_path, PROJECT)
    target = Target.named(workspace, name)
    assert target.phases() == {phase}
    assert target.execute(make_context(workspace), phase).status is Status.SUCCESS


@pytest.mark.parametrize(
    ("name", "method", "subject", "line"),
    [
        ("named", "checks.sql.SqlAssertion.check", "whole", 10),
        ("listed", "checks.conditions.ExpressionAssertion.check", "assertion 2", 15),
        ("measured", "targets.verification.SqlMeasure.take", "measure 'many'", 20),
    ],
)
def test_a_query_that_spark_rejects_is_told_with_its_place_and_no_traceback(
    tmp_path: Path, name: str, method: str, subject: str, line: int
) -> None:
    """Issue 11: a misspelt column in an assertion or a measure printed a traceback of Spark."""
    workspace = make_workspace(tmp_path, REJECTED)
    target = Target.named(workspace, name)
    said = AnalysisException("no column `idd`. SQLSTATE: 42703; line 1 pos 7;")
    results = [mock.DEFAULT] if name == "measured" else []
    module = f"lakewright.{method}"
    with (
        mock.patch("lakewright.checks.sql._failure", return_value=None),
        mock.patch(module, side_effect=[*results, said], return_value=()),
        pytest.raises(SpecError) as raised,
    ):
        target.execute(make_context(workspace), Phase.VERIFY)
    (fault,) = raised.value.faults
    assert fault.message == (
        f"target {name!r}: {subject}: Spark rejects it: no column `idd` (line 1, column 8 of the text)"
    )
    assert fault.location is not None
    assert (Path(fault.location.file).suffix, fault.location.line) == (".yml", line)
    assert fault.remedy == "Correct it, or what it reads."
