"""Kinds of Flowman's targets and relations that need an engine, in one small project (E14)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.sessions import same
from tests.spark.relations.relations import rows, stored

from lakewright.errors import DataLossError
from lakewright.lake.files import HadoopFiles
from lakewright.plan.observation import Answer
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.relations.relation import OutputMode
from lakewright.targets.context import RunOptions
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """
relations:
  delta: {kind: delta, location: delta}
  merged: {kind: delta, location: merged}
  query: {kind: hiveQuery, sql: "SELECT id FROM flowman_targets.u_1 WHERE id > 1"}
  union:
    kind: hiveUnionTable
    viewDatabase: flowman_targets
    view: u
    tableDatabase: flowman_targets
    tablePrefix: u
    locationPrefix: tables/u
    partitions: {name: day, type: string}
    schema: {fields: [FIELDS]}
mappings:
  rows: {kind: values, columns: {id: int, name: string}, records: [[1, 'it, "was"'], [2, null]]}
  watched: {kind: observe, input: rows, measures: {top: max(id)}}
  in_csv: {kind: observe, input: rows, measures: {top: max(id)}}
  in_copied: {kind: observe, input: rows, measures: {top: max(id)}}
  in_merged: {kind: observe, input: rows, measures: {top: max(id)}}
  typed:
    kind: observe
    input: rows
    measures:
      moment: "max(struct(date'2024-05-01' AS day, X'6162' AS bytes, array(1.5BD) AS list, null AS none))"
targets:
  hole: {kind: blackhole, mapping: watched}
  csv: {kind: local, mapping: in_csv, filename: out/rows.csv, delimiter: ";", columns: [name, id]}
  copied: {kind: copy, source: {kind: mapping, mapping: in_copied}, target: {kind: file, location: o}}
  merged: {kind: merge, mapping: in_merged, relation: merged, mergeKey: id, clauses: [{action: insert}]}
  typed: {kind: blackhole, mapping: typed}
  database: {kind: hiveDatabase, database: flowman_targets, location: db, description: Of tests}
  vacuum: {kind: deltaVacuum, relation: delta, compaction: true, maxFiles: 1}
"""


def test_targets_of_flowman_do_their_work(tmp_path: Path, spark: SparkSession) -> None:
    """E14: blackhole, local, hiveDatabase and deltaVacuum; files by Hadoop's file systems."""
    workspace = make_workspace(
        tmp_path, MODEL.replace("FIELDS", "{name: id, type: int}"), sessions=same(spark)
    )
    context = make_context(workspace)

    def run(name: str, phase: Phase = Phase.BUILD) -> dict[str, object]:
        return dict(Target.named(workspace, name).execute(context, phase).metrics)

    labels = {"category": "mapping", "kind": "observe", "name": "watched"}
    assert run("hole") == {"top": [{"value": 2, "labels": labels}]}
    run("merged", Phase.CREATE)
    for name in ("csv", "copied", "merged"):
        found = run(name)
        assert found["target_records"] == 2
        assert found["top"] == [{"value": 2, "labels": {**labels, "name": f"in_{name}"}}]
    found = run("typed")
    moment = {"day": "2024-05-01", "bytes": "6162", "list": [1.5], "none": None}
    assert found["moment"] == [{"value": moment, "labels": {**labels, "name": "typed"}}]
    assert (tmp_path / "out" / "rows.csv").read_text() == 'name;id\nit, \\"was\\";1\n;2\n'

    run("database", Phase.CREATE)
    run("database", Phase.VERIFY)
    spark.sql("CREATE TABLE flowman_targets.t (id int) USING parquet")
    assert (tmp_path / "db").is_dir()
    with pytest.raises(DataLossError, match="holds 1 tables: t"):
        run("database", Phase.DESTROY)
    allowed = make_context(workspace, options=RunOptions(permissions=Permissions(allow_data_loss=True)))
    Target.named(workspace, "database").execute(allowed, Phase.DESTROY)
    assert Target.named(workspace, "database").observe(context).exists is Answer.NO

    delta = stored(workspace, "delta")
    for _ in range(2):
        delta.write(workspace, workspace.frame("rows"), partition={}, mode=OutputMode.APPEND)
    assert run("vacuum")["compactions"] == 1
    assert delta.read(workspace).count() == 4

    file = str(tmp_path / "out" / "rows.csv")
    HadoopFiles(workspace.lake).copy(file, str(tmp_path / "copied.csv"))
    HadoopFiles(workspace.lake).copy(file, str(tmp_path / "copied.csv"))
    HadoopFiles(workspace.lake).concatenate([file, file], str(tmp_path / "twice"), b"-\n")
    text = Path(file).read_text()
    assert (tmp_path / "copied.csv").read_text() == text
    assert (tmp_path / "twice").read_text() == f"{text}-\n{text}"


def tables_of(spark: SparkSession) -> list[str]:
    return sorted(row.tableName for row in spark.sql("SHOW TABLES IN flowman_targets").collect())


@pytest.mark.nightly
def test_a_union_of_tables_takes_any_change_of_its_columns(tmp_path: Path, spark: SparkSession) -> None:
    """E14: hiveUnionTable adds columns to its last table, and begins another one for an incompatible type."""

    def union(number: int, fields: str) -> tuple[object, list[tuple[object, ...]]]:
        workspace = make_workspace(tmp_path, MODEL.replace("FIELDS", fields), sessions=same(spark))
        workspace.lake.new_session()  # a session that has not started would be asked for no table
        relation = stored(workspace, "union")
        if relation.observe(workspace).exists is Answer.NO:
            relation.create(workspace)
        found = [change.description for change in relation.observe(workspace).changes]
        relation.migrate(workspace, allow_data_loss=False)
        assert relation.observe(workspace).changes == ()
        frame = spark.sql(f"SELECT {number} AS id")
        day = {"day": f"d{number}"}
        relation.write(workspace, frame, partition=day, mode=OutputMode.OVERWRITE)
        return found, sorted(rows(relation.read(workspace)), key=str)

    whole, named, text = "{name: id, type: int}", "{name: name, type: string}", "{name: id, type: string}"
    try:
        assert union(1, whole) == ([], [("1", "d1")])
        found, second = union(2, f"{whole}, {named}")
        assert (found, len(second)) == (["add column name string"], 2)
        found, third = union(3, f"{text}, {named}")
        assert found == ["begin another table: change column id from int to string"]
        assert [row[0] for row in third] == ["1", "2", "3"]
        assert tables_of(spark) == ["u", "u_1", "u_2"]
        workspace = make_workspace(tmp_path, MODEL.replace("FIELDS", text), sessions=same(spark))
        assert rows(workspace.relation("query").read(workspace)) == [("2",)]
        resources = workspace.relation("query").resources(workspace)
        assert {str(each) for each in resources} == {"table:flowman_targets.u_1"}
        relation = stored(workspace, "union")
        relation.truncate(workspace, {"day": "d1"})
        assert len(rows(relation.read(workspace))) == 2
        relation.destroy(workspace)
        assert tables_of(spark) == []
    finally:
        spark.sql("DROP DATABASE IF EXISTS flowman_targets CASCADE")
