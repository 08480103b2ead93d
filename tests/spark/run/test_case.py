"""Tests of a project build, look and take away, and leave the project's own places alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from tests.contexts import make_context
from tests.projects import make_project
from tests.sessions import same

from lakewright.lake.lake import Lake
from lakewright.manifest.journal import Journal
from lakewright.manifest.lease import Holder
from lakewright.plan.status import Status
from lakewright.run.case import CaseResult, CaseRun, redirected_lake, redirects_of
from lakewright.spark.conf import SessionSettings
from lakewright.spec.loading.case_setup import set_up_case
from lakewright.testing import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOP = """
connections:
  web: {settings: {bronze_path: "${destination}", silver_path: "${destination}", bronze_format: csv}}
entities:
  people:
    id: 1
    connection: web
    processtype: merge
    columns: [{name: id, datatype: long, fieldroles: [businesskey]}]
relations:
  raw:
    kind: file
    format: csv
    location: raw
    schema: {fields: [{name: id, type: integer}, {name: price, type: double}]}
  prices: {kind: delta, location: lake/gold/prices}
  table:
    kind: table
    table: prices_of_a_test
    schema: {fields: [{name: id, type: integer}, {name: price, type: double}]}
  slice: {kind: file, format: csv, location: lake/bronze/people/1.csv, options: {header: "true"}}
  people: {kind: entity, entity: people}
mappings:
  raw: {kind: relation, relation: raw}
  prices: {kind: sql, sql: "SELECT id, price * $factor AS price FROM raw WHERE price > 0"}
  read: {kind: relation, relation: prices}
  tabled: {kind: relation, relation: table}
  people: {kind: relation, relation: people}
targets:
  prices: {kind: relation, mapping: prices, relation: prices}
  table: {kind: relation, mapping: prices, relation: table}
  people: {kind: entity, entity: people}
tests:
  common:
    environment: [factor=2]
    overrideMappings:
      raw: {kind: mock, records: [[1, 2.5], [2, -1], {id: 3, price: 1}]}
  doubled:
    extends: common
    targets: [prices, table]
    assertions:
      all: {kind: sql, query: "SELECT * FROM read", expected: [[1, 5], [3, 2]]}
      tabled: {kind: sql, query: "SELECT count(*) FROM tabled", expected: 2}
  wrong:
    extends: common
    targets: [prices]
    assertions:
      first: {kind: sql, query: "SELECT * FROM read", expected: [[1, 5], [3, 3]]}
      small: {kind: expression, mapping: read, expected: price < 3}
      broken: {kind: sql, query: "SELECT nothing FROM read", expected: 1}
      last: {kind: columns, mapping: read, expected: id IS PRESENT}
  people:
    fixtures:
      slice: {kind: relation, relation: slice, mapping: rows}
    targets: [people]
    overrideMappings:
      rows: {kind: values, columns: {id: string, name: string}, records: [[1, ann], [2, bob]]}
    assertions:
      two: {kind: sql, query: "SELECT id, name FROM people", expected: [[1, ann], [2, bob]]}
  mocked_table:
    overrideMappings:
      people: {kind: mock, records: [{id: 1}]}
    assertions:
      mapped: {kind: sql, query: "SELECT id FROM people", expected: 1}
  schema_of_a_mock:
    overrideRelations:
      people:
        kind: mock
        schema: {fields: [{name: number, type: integer}]}
        records: [[1, x], {number: 2, other: 3}]
    assertions:
      related: {kind: sql, query: "SELECT number FROM people", expected: [[1], [2]]}
  misspelt_mock:
    extends: common
    overrideMappings:
      raw: {kind: mock, records: [{id: 1, prize: 2.5}]}
    assertions:
      none: {kind: sql, query: "SELECT id FROM raw", expected: 1}
  unbuilt:
    environment: [factor=no_such_column]
    overrideMappings:
      raw: {kind: values, columns: {id: string, price: double}, records: [[1, 2]]}
      prices: {kind: sql, sql: "SELECT id, CAST(raise_error('no') AS double) AS price FROM raw"}
    targets: [prices]
    assertions:
      fine: {kind: sql, query: "SELECT id FROM raw", expected: 1}
"""


class Nobody(SimpleNamespace):
    signal: int | None = None

    def step_started(self, *_: object) -> None: ...

    def step_finished(self, *_: object) -> None: ...


def run(folder: Path, spark: SparkSession, name: str, *, keep_going: bool = False) -> CaseResult:
    project = make_project(folder, SHOP)
    shared = Lake(project.lake, SessionSettings(folder / "state"), sessions=same(spark))
    stage = set_up_case(project, name)
    store = MemoryStore()
    case = CaseRun(
        stage=stage,
        lake=redirected_lake(shared, redirects_of(stage, shared, folder / "away")),
        journal=Journal(store),
        context=lambda workspace: make_context(workspace, store=store),
        clock=lambda: datetime.now(UTC),
        keep_going=keep_going,
    )
    return case.run(Holder("here", 1, "then", "r"), Nobody(), Nobody())


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["doubled", "people"])
def test_what_a_test_builds_can_be_read_and_is_gone_afterwards(
    tmp_path: Path, spark: SparkSession, name: str
) -> None:
    result = run(tmp_path, spark, name)

    assert result.error is None
    assert {target.status for target in result.targets()} <= {Status.SUCCESS, Status.SKIPPED}
    assert [(each.name, each.failures, each.error) for each in result.assertions] == [
        (each.name, (), None) for each in result.assertions
    ]
    assert result.status is Status.SUCCESS
    assert set(files_of(tmp_path)) == {"project.yml", "module.yml"}
    assert not spark.catalog.tableExists("prices_of_a_test")


def test_a_mock_of_a_table_that_the_test_does_not_have_needs_columns(
    tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    (refused,) = run(tmp_path, spark, "mocked_table").assertions
    assert refused.error is not None
    assert refused.error.message == (
        "mapping 'people': the columns of what it mocks are only known from data: entity "
        "'people' has no silver table yet"
    )
    (found,) = run(tmp_path, spark, "schema_of_a_mock").assertions
    assert (found.error, found.failures) == (None, ())
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "assertion 'related': relation 'people': values after the first 1, its columns, are left out",
        "assertion 'related': relation 'people': there is no column 'other', so its values are left out",
    ]
    (misspelt,) = run(tmp_path, spark, "misspelt_mock").assertions
    assert misspelt.error is not None
    assert misspelt.error.message == "mapping 'raw': record 1: there is no column 'prize'"
    assert misspelt.error.remedy == "did you mean 'price'?"


@pytest.mark.parametrize(
    ("keep_going", "last"),
    [(False, Status.SKIPPED), pytest.param(True, Status.SUCCESS, marks=pytest.mark.nightly)],
)
def test_a_failed_assertion_shows_rows_and_one_that_breaks_off_ends_the_rest(
    tmp_path: Path, spark: SparkSession, keep_going: bool, last: Status
) -> None:
    result = run(tmp_path, spark, "wrong", keep_going=keep_going)

    first, small, broken, left = result.assertions
    assert first.failures == ("SELECT * FROM read: unexpected (3, 2); missing (3, 3)",)
    assert small.failures == ("1 row fails price < 3: id=1, price=5.0",)
    assert broken.error is not None
    assert "`nothing` cannot be resolved" in broken.error.message
    assert str(broken.error.location).startswith("module.yml:")
    assert left.status is last
    assert result.status is Status.FAILED


@pytest.mark.parametrize(
    ("keep_going", "checked"),
    [(True, Status.SUCCESS), pytest.param(False, Status.SKIPPED, marks=pytest.mark.nightly)],
)
def test_a_failed_build_ends_in_destroy_and_leaves_out_assertions_unless_told_to_keep_going(
    tmp_path: Path, spark: SparkSession, keep_going: bool, checked: Status
) -> None:
    result = run(tmp_path, spark, "unbuilt", keep_going=keep_going)

    assert [each.status for each in result.assertions] == [checked]
    assert [each.phase.value for each in result.runs] == ["VERIFY", "DESTROY"]
    assert result.status is Status.FAILED
    assert "lake" not in {path.name for path in tmp_path.iterdir()}
