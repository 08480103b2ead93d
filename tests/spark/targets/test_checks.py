"""Measures and assertions, over values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.sessions import same

from lakewright.checks.conditions import ExpressionAssertion
from lakewright.checks.keys import UniqueKeyAssertion
from lakewright.checks.run import AssertionRun
from lakewright.errors import TargetError, VerificationError
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = """
mappings:
  sales:
    kind: values
    columns: {id: int, team: string, price: "decimal(9,2)"}
    records: [[1, red, 2.50], [2, red, 4], [3, blue, 1]]
targets:
  measured:
    kind: measure
    measures:
      all:
        kind: sql
        query: SELECT count(*) AS sales, sum(price) AS revenue, max(id) > 9 AS big FROM sales
      nulls: {kind: sql, query: "SELECT * FROM VALUES (CAST(NULL AS string), 1), ('', 2) AS t(label, found)"}
      teams: {kind: sql, query: "SELECT team, count(*) AS of_team FROM sales GROUP BY team ORDER BY team"}
  doubled: {kind: measure, measures: {n: {kind: sql, query: "SELECT 1 AS n, 2 AS n"}}}
  holds:
    kind: verify
    assertions:
      - kind: sql
        query: SELECT team, sum(price) FROM sales GROUP BY team
        expected: [[blue, 1.0], [red, "6.50"]]
      - kind: sql
        tests:
          - {query: SELECT count(*) FROM sales, expected: 3}
          - {query: SELECT id FROM sales WHERE id > 9, expected: []}
          - {query: SELECT id FROM sales, expected: [3, 2, 1]}
      - {kind: expression, mapping: sales, expected: [id > 0, "team IN ('red', 'blue')"]}
      - {kind: uniqueKey, mapping: sales, key: id}
      - kind: columns
        mapping: sales
        expected: [ID IS PRESENT, nothing IS ABSENT, "price IS OF TYPE (double, DECIMAL(9,2))"]
      - {kind: schema, mapping: sales, columns: {id: int, team: text, price: "decimal(9,2)"}}
      - {kind: schema, mapping: sales, ignoreTypes: true, ignoreOrder: true, ignoreCase: true,
         columns: {PRICE: int, id: int, team: int}}
  fails:
    kind: verify
    assertions:
      rows: {kind: sql, description: Three sales, query: SELECT count(*) FROM sales, expected: [4]}
      positive: {kind: expression, mapping: sales, expected: [id > 1, "nullif(team, 'red') <> 'x'"]}
      key: {kind: uniqueKey, mapping: sales, key: [team]}
      columns: {kind: columns, mapping: sales, expected: [id IS ABSENT, x IS PRESENT, team IS OF TYPE int]}
      schema: {kind: schema, mapping: sales, columns: {id: bigint, other: int}}
  first:
    kind: validate
    assertions:
      one: {kind: uniqueKey, mapping: sales, key: team}
      two: {kind: sql, query: SELECT no_column FROM sales}
  never:
    kind: verify
    mode: failNever
    assertions: {one: {kind: uniqueKey, mapping: sales, key: team}}
  broken:
    kind: verify
    mode: failNever
    assertions: {one: {kind: sql, query: SELECT no_column FROM sales}}
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Workspace:
    folder: Path = tmp_path_factory.mktemp("checks")
    return make_workspace(folder, PROJECT, sessions=same(spark))


def run(workspace: Workspace, name: str) -> Outcome:
    target = Target.named(workspace, name)
    (phase,) = target.phases()
    assert target.dirtiness(
        phase, target.observe(make_context(workspace)), make_context(workspace).defaults
    ).is_to_run
    return target.execute(make_context(workspace), phase)


def test_numbers_are_metrics_and_texts_their_labels(workspace: Workspace) -> None:
    assert Target.named(workspace, "measured").phases() == {Phase.VERIFY}
    assert run(workspace, "measured").metrics == {
        "sales": 3,
        "revenue": 7.5,
        "big": 0,
        "of_team": [
            {"value": 1, "labels": {"measure": "teams", "team": "blue"}},
            {"value": 2, "labels": {"measure": "teams", "team": "red"}},
        ],
        "found": [
            {"value": 1, "labels": {"measure": "nulls", "label": "null"}},
            {"value": 2, "labels": {"measure": "nulls", "label": ""}},
        ],
    }


def test_a_measure_has_columns_of_different_names(workspace: Workspace) -> None:
    with pytest.raises(TargetError, match="the query has several columns n"):
        run(workspace, "doubled")


def test_assertions_that_hold(workspace: Workspace) -> None:
    outcome = run(workspace, "holds")
    assert outcome.status is Status.SUCCESS
    assert outcome.metrics == {"assertions": 7, "assertions_failed": 0}


def test_assertions_that_fail_say_what_is_wrong(workspace: Workspace) -> None:
    with pytest.raises(VerificationError, match="5 of 5 assertions failed") as caught:
        run(workspace, "fails")
    assert caught.value.details["failures"] == {
        "rows (Three sales)": ("SELECT count(*) FROM sales: unexpected (3); missing (4)",),
        "positive": (
            "1 row fails id > 1: id=1, team=red, price=2.50",
            "2 rows fail nullif(team, 'red') <> 'x': id=1, team=red, price=2.50; id=2, team=red, price=4.00",
        ),
        "key": ("team=red occurs 2 times",),
        "columns": ("column id exists", "column x does not exist", "column team is of type string, not int"),
        "schema": (
            "column other is missing",
            "column team is not expected",
            "column price is not expected",
            "column id is of type int, not bigint",
        ),
    }


def test_the_mode_says_what_follows(workspace: Workspace) -> None:
    with pytest.raises(VerificationError, match="1 of 2 assertions failed"):
        run(workspace, "first")
    never = run(workspace, "never")
    assert never.status is Status.SUCCESS_WITH_ERRORS
    assert never.error is not None
    assert never.error.message.endswith("1 of 1 assertion failed: one: team=red occurs 2 times")
    with pytest.raises(Exception, match="no_column"):
        run(workspace, "broken")


def test_assertions_about_one_mapping_are_counted_in_one_pass(
    workspace: Workspace, spark: SparkSession
) -> None:
    expressions = [
        ExpressionAssertion(name=f"a{n}", mapping="sales", expected=(f"id > {n}",)) for n in (0, 1)
    ]
    key = UniqueKeyAssertion(name="key", mapping="sales", key=("id",))
    run = AssertionRun(workspace, [*expressions, key])
    assert run.failures(expressions[0]) == ()
    spark.sparkContext.setJobGroup("counted", "")
    assert run.failures(key) == ()
    assert run.failures(expressions[1]) == ("1 row fails id > 1: id=1, team=red, price=2.50",)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("counted")
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")
    assert not jobs


def test_an_assertion_with_an_error_does_not_hide_the_result_of_another(workspace: Workspace) -> None:
    good = ExpressionAssertion(name="good", mapping="sales", expected=("id > 1",))
    bad = ExpressionAssertion(name="bad", mapping="sales", expected=("no_column > 1",))
    run = AssertionRun(workspace, [good, bad])
    assert len(run.failures(good)) == 1
    with pytest.raises(Exception, match="no_column"):
        run.failures(bad)
