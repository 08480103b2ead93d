"""Column lineage of OpenLineage's events: from the plan of a mapping back to the columns of relations."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.projects import make_workspace
from tests.sessions import same

from lakewright.plan.phase import Phase
from lakewright.run.lineage.events import DatasetName, inputs_of, outputs_of
from lakewright.targets.target import Target

SECTIONS = """
relations:
  orders:
    kind: delta
    location: $project.basedir/orders
    schema: {kind: inline, fields: [{name: id, type: int}, {name: price, type: int}]}
  totals: {kind: delta, location: $project.basedir/totals}
mappings:
  orders: {kind: relation, relation: orders}
  priced: {kind: sql, sql: "SELECT id, price * 2 AS doubled, 1 AS one FROM orders"}
  summed: {kind: sql, sql: "SELECT id, sum(doubled) AS total, max(one) AS most FROM priced GROUP BY id"}
targets:
  totals: {kind: relation, mapping: summed, relation: totals}
"""


def test_columns_are_traced_through_mappings_to_those_of_relations(
    tmp_path: Path, spark: SparkSession
) -> None:
    workspace = make_workspace(tmp_path, SECTIONS, sessions=same(spark))
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/orders` (id INT, price INT) USING delta")
    assert workspace.spark is not None  # as it is once a target has run
    target, orders = Target.named(workspace, "totals"), DatasetName("file", f"{tmp_path}/orders")
    (read,) = inputs_of(target, workspace, Phase.BUILD)
    assert (read.name, read.columns) == (orders, (("id", "int"), ("price", "int")))
    (written,) = outputs_of(target, workspace, Phase.BUILD)
    assert written.name.name == f"{tmp_path}/totals"
    assert dict(written.lineage) == {"id": ((orders, "id"),), "total": ((orders, "price"),)}
