from __future__ import annotations

from pathlib import Path

import pytest
from tests.projects import make_project
from tests.sessions import no_session

from lakewright.errors import Fault, UsageError
from lakewright.lake.lake import Lake
from lakewright.lake.paths import Redirects
from lakewright.plan.status import Status
from lakewright.relations.relation import Relation
from lakewright.run.case import AssertionResult, CaseResult, redirected_lake, redirects_of
from lakewright.spark.conf import SessionSettings, temporary_session_conf
from lakewright.spec.loading.case_setup import set_up_case
from lakewright.workspace.workspace import Workspace

SECTIONS = """
connections:
  web: {settings: {bronze_path: "${destination}", silver_path: "${destination}"}}
entities:
  people: {id: 1, connection: web, processtype: full}
relations:
  raw: {kind: file, location: raw}
  gold: {kind: delta, location: lake/gold/prices}
  rest: {kind: delta, location: lake/gold/rest}
  parts: {kind: file, location: "s3a://bucket/parts", partitions: [{name: year, type: integer}]}
  other: {kind: generic, format: jdbc, options: {url: "jdbc:x://h/db", dbtable: t}}
mappings:
  raw: {kind: relation, relation: raw}
targets:
  gold: {kind: relation, mapping: raw, relation: gold}
  parts: {kind: relation, mapping: raw, relation: parts, partition: {year: 2020}}
  other: {kind: relation, mapping: raw, relation: other}
tests:
  one: {targets: [gold, parts]}
  two: {targets: [other]}
"""


def staged(folder: Path, name: str) -> Workspace:
    project = make_project(folder, SECTIONS)
    shared = Lake(project.lake, SessionSettings(folder / "state"), sessions=no_session)
    stage = set_up_case(project, name)
    lake = redirected_lake(shared, redirects_of(stage, shared, Path("/away")))
    return Workspace(stage.project, stage.project.scope, lake)


def test_what_a_test_writes_is_elsewhere_and_what_it_reads_is_not(tmp_path: Path) -> None:
    workspace = staged(tmp_path, "one")
    places = {
        name: sorted(str(each) for each in Relation.named(workspace, name).resources(workspace))
        for name in ("raw", "gold", "rest", "parts")
    }
    assert places == {
        "raw": [f"file:{tmp_path}/raw"],
        "gold": [f"file:/away{tmp_path}/lake/gold/prices"],
        "rest": [f"file:{tmp_path}/lake/gold/rest"],
        "parts": ["file:/away/s3a/bucket/parts"],
    }


def test_the_layers_of_the_lake_are_always_elsewhere(tmp_path: Path) -> None:
    workspace = staged(tmp_path, "one")
    places = workspace.entity("people").places(workspace.lake.settings)
    assert places.bronze == f"/away{tmp_path}/lake/bronze/people"
    assert places.silver.location == f"/away{tmp_path}/lake/silver/people"
    assert (
        workspace.resolve_location("lake/bronze/people/1.csv") == f"/away{tmp_path}/lake/bronze/people/1.csv"
    )


def test_what_cannot_be_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"target 'other' would write jdbc:x://h/db/t"):
        staged(tmp_path, "two")


@pytest.mark.parametrize(
    "place", ["/lake/../../../etc", "/lake/./gold/..", "s3a://b/../../../../etc", "/lake"]
)
def test_no_place_leaves_the_folder(place: str) -> None:
    moves = Redirects.of(Path("/away"), ["/"])
    assert Path(moves.inside(place)).resolve().is_relative_to("/away")


def test_a_session_of_tests_has_a_catalog_of_its_own() -> None:
    conf = {
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.catalog.prod": "x.Y",
        "spark.sql.catalog.prod.uri": "thrift://prod",
        "spark.hadoop.hive.metastore.uris": "thrift://prod",
        "spark.sql.warehouse.dir": "s3a://prod",
        "spark.master": "yarn",
        "spark.remote": "sc://prod",
        "lakewright.x": "y",
    }
    assert temporary_session_conf(conf) == {"spark.sql.shuffle.partitions": "3"}


@pytest.mark.parametrize(
    ("result", "status"),
    [
        (CaseResult("t"), Status.SUCCESS),
        (CaseResult("t", error=Fault("no")), Status.FAILED),
        (CaseResult("t", assertions=(AssertionResult("a", "sql", Status.FAILED),)), Status.FAILED),
        (CaseResult("t", assertions=(AssertionResult("a", "sql", Status.SUCCESS),)), Status.SUCCESS),
    ],
)
def test_what_a_test_comes_to(result: CaseResult, status: Status) -> None:
    assert result.status is status
    assert result.as_json()["status"] == status.value
