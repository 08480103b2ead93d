"""A query whose UNION cuts fractions says so; Spark does it without a word."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.projects import make_workspace
from tests.sessions import same

from lakewright.usecases.validation.definitions import evaluate_project
from lakewright.usecases.validation.outputs import analyse_with_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """
mappings:
  fine: {kind: values, columns: {n: "decimal(38,10)", s: string}, records: [["1.25", a]]}
  whole: {kind: values, columns: {n: "decimal(38,0)", s: string}, records: [["3", b]]}
  united: {kind: sql, sql: "SELECT n FROM fine UNION ALL SELECT n FROM whole"}
  within: {kind: sql, sql: "SELECT s FROM whole WHERE n IN (SELECT n FROM fine UNION SELECT n FROM whole)"}
  named: {kind: sql, sql: "WITH a AS (SELECT * FROM fine EXCEPT TABLE whole) SELECT n + 1 AS m FROM a"}
  cast: {kind: sql, sql: "SELECT CAST(n AS DECIMAL(38,0)) AS n FROM fine UNION ALL SELECT n FROM whole"}
  narrow: {kind: sql, sql: "SELECT CAST(n AS DECIMAL(20,2)) AS n FROM fine UNION ALL SELECT 1"}
  reads: {kind: sql, sql: "SELECT n FROM united UNION ALL SELECT 1.5BD AS n"}
  both: {kind: sql, sql: "SELECT n FROM fine INTERSECT SELECT n FROM whole"}
  nested:
    kind: sql
    sql: >
      SELECT named_struct('s', s, 'n', array(n)) AS t, map('a', n) AS m FROM fine
      UNION ALL SELECT named_struct('s', s, 'n', array(n)), map('b', n) FROM whole
  fits: {kind: sql, sql: "SELECT array(1BD), n FROM fine UNION SELECT array(1.5BD), n FROM fine"}
  again:
    kind: recursiveSql
    sql: SELECT n FROM fine UNION SELECT n FROM whole WHERE n > (SELECT min(n) FROM __this__)
  plain: {kind: sql, sql: "SELECT n FROM united WHERE 'union' <> ''"}
"""
UNION, INTERSECT, EXCEPT = "a UNION", "an INTERSECT", "an EXCEPT"
CUT = "is decimal(38,10) in one input and becomes decimal(38,0)"
TOLD = {
    "united": [(UNION, "n", CUT)],
    "plain": [],  # what it reads has told it
    "reads": [(UNION, "n", "is decimal(2,1) in one input and becomes decimal(38,0)")],
    "within": [(UNION, "n", CUT)],
    "named": [(EXCEPT, "n", CUT)],
    "again": [(UNION, "n", CUT)],
    "both": [(INTERSECT, "n", CUT)],
    "nested": [(UNION, "t.n.element", CUT), (UNION, "m.value", CUT)],
    "fits": [],
    "cast": [],
    "narrow": [],
}


@pytest.mark.jvm
def test_a_set_operation_in_the_query_of_a_mapping_that_cuts_fractions_is_told(
    tmp_path: Path, spark: SparkSession
) -> None:
    workspace = make_workspace(tmp_path, MODEL, sessions=same(spark))
    found = {}
    for name in TOLD:
        workspace.frame(name)
        found[name] = workspace.take_notes(name)
    end = ", as no decimal holds the digits of all inputs. Cast them to a type that does"
    assert found == {
        name: [
            f"mapping {name!r}: {operation} of its query cuts fractions: column {column} {cut}{end}"
            for operation, column, cut in told
        ]
        for name, told in TOLD.items()
    }
    assert [row["n"] for row in workspace.frame("united").collect()] == [1, 3]  # 1.25 was

    outline = make_workspace(tmp_path, MODEL, sessions=same(spark))
    evaluation = evaluate_project(outline.project, outline.lake)
    analysis = analyse_with_spark(outline.project, outline.lake, evaluation)
    assert len(analysis.warnings) == sum(map(len, TOLD.values()))
