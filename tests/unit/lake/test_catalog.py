"""Which projects need a catalog that outlives the session, and when it is known to be empty."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.projects import make_project
from tests.sessions import no_session

from lakewright.lake.delta_sql import described
from lakewright.lake.lake import Lake
from lakewright.lake.table import find_entry, needs_catalog
from lakewright.spark.conf import CATALOG, SessionSettings

ENTITY = """
connections: {web: {}}
entities:
  a:
    id: 1
    connection: web
    processtype: full
    settings: {%s}
    columns: [{name: id, fieldroles: [businesskey]}]
"""


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ("relations: {a: {kind: hiveTable, table: t}}", True),
        ("relations: {a: {kind: view, view: v, sql: SELECT 1}}", True),
        ("relations: {a: {kind: deltaTable, table: t}}", True),
        ("relations: {a: {kind: delta, location: t}}", False),
        ("relations: {a: {kind: hiveTable, table: t}}\nconfig: [flowman.spark.enableHive=false]", False),
        (ENTITY % "output_method: catalog", True),
        (ENTITY % "silver_table: s.t", True),
        (ENTITY % "", False),
    ],
)
def test_tables_and_views_need_a_catalog_that_stays(tmp_path: Path, sections: str, expected: bool) -> None:
    assert needs_catalog(make_project(tmp_path, sections)) is expected


def test_spark_is_not_started_to_look_into_an_empty_catalog(tmp_path: Path) -> None:
    project = make_project(tmp_path, "")
    for conf, is_empty in (
        ({}, True),
        ({CATALOG: "hive"}, True),
        ({CATALOG: "hive", "spark.hadoop.hive.metastore.uris": "thrift://host"}, False),
        ({"spark.sql.catalog.other": "x"}, False),
    ):
        lake = Lake(project.lake, SessionSettings(tmp_path / "state", conf=conf), sessions=no_session)
        assert lake.has_empty_catalog is is_empty
        if is_empty:
            assert find_entry(lake, "a.b") is None
    (tmp_path / "state" / "metastore_db").mkdir(parents=True)
    lake = Lake(
        project.lake, SessionSettings(tmp_path / "state", conf={CATALOG: "hive"}), sessions=no_session
    )
    assert not lake.has_empty_catalog


def test_a_column_with_the_name_of_a_property_does_not_stand_for_it() -> None:
    rows = [("id", "int"), ("Provider", "string"), ("", ""), ("# Detailed Table Information", "")]
    rows += [("Provider", "delta"), ("Location", "file:/lake/t")]
    found = [{"col_name": name, "data_type": kind} for name, kind in rows]
    session: Any = SimpleNamespace(sql=lambda _: SimpleNamespace(collect=lambda: found))
    assert described(session, "`t`") == {"id": "int", "Provider": "delta", "Location": "file:/lake/t"}
