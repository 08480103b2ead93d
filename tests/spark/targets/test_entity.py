"""An entity target over two slices: built, checked, emptied, built again and removed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.sessions import same

from lakewright.errors import VerificationError
from lakewright.lake.observation import observe_table, read_table
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.spec.models.places import Address
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: historic
    columns: [{name: id, fieldroles: [businesskey]}]
relations:
  orders: {kind: entity, entity: orders}
  current: {kind: entity, entity: orders, current: true}
mappings:
  current: {kind: relation, relation: current}
targets:
  orders: {kind: entity, entity: orders}
"""


@pytest.fixture
def workspace(tmp_path: Path, spark: SparkSession) -> Workspace:
    folder = tmp_path / "lake/bronze/orders"
    folder.mkdir(parents=True)
    pd.DataFrame({"id": [1, 2], "v": ["a", "b"]}).to_parquet(folder / "1")
    pd.DataFrame({"id": [2, 3], "v": ["B", "c"]}).to_parquet(folder / "2")
    return make_workspace(tmp_path, PROJECT, sessions=same(spark))


def test_a_table_goes_through_all_phases(workspace: Workspace) -> None:
    orders, context = Target.named(workspace, "orders"), make_context(workspace)
    silver = Address(location=f"{workspace.lake.settings.root_folder}/silver/orders")
    assert orders.execute(context, Phase.VALIDATE).metrics["slices_ready"] == 2
    built = orders.execute(context, Phase.BUILD)
    assert built.status is Status.SUCCESS
    assert [done["slice"] for done in built.metrics["slices"]] == ["1", "2"]
    assert (built.metrics["inserted"], built.metrics["updated"]) == (3, 1)
    assert orders.execute(context, Phase.BUILD).status is Status.SKIPPED
    assert orders.execute(context, Phase.VERIFY).status is Status.SUCCESS
    current = workspace.frame("current").select("id", "v").collect()
    assert {tuple(row) for row in current} == {(1, "a"), (2, "B"), (3, "c")}
    assert workspace.relation("orders").read(workspace).count() == 4

    third = read_table(workspace.spark, silver).where("id = 3")
    third.write.format("delta").mode("append").save(str(silver.location))
    with pytest.raises(VerificationError, match="1 version is current although a later one has the same key"):
        orders.execute(context, Phase.VERIFY)
    orders.execute(context, Phase.TRUNCATE)
    assert observe_table(workspace.lake, silver).exists
    emptied = orders.observe(context)
    assert emptied.pending == ("1", "2")
    assert not orders.dirtiness(Phase.TRUNCATE, emptied, context.defaults).is_to_run
    orders.execute(context, Phase.DESTROY)
    assert not observe_table(workspace.lake, silver).exists
    assert not orders.dirtiness(Phase.DESTROY, orders.observe(context), context.defaults).is_to_run


ADOPTING = """
connections:
  crm: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  customers:
    id: 1
    connection: crm
    processtype: historic
    columns: [{name: id, fieldroles: [businesskey]}]
    settings:
      adopt: dbt_snapshot
targets:
  customers: {kind: entity, entity: customers}
"""


@pytest.mark.nightly  # BUILD adopts in strategies/test_adopt.py
def test_create_adopts_a_table_that_something_else_made(tmp_path: Path, spark: SparkSession) -> None:
    """Phases, CREATE: what is there is migrated; the slice that says how is only looked at."""
    (tmp_path / "lake/bronze/customers").mkdir(parents=True)
    pd.DataFrame({"id": [1, 2], "v": ["b", "c"]}).to_parquet(tmp_path / "lake/bronze/customers/s1")
    workspace = make_workspace(tmp_path, ADOPTING, sessions=same(spark))
    first, second = "timestamp'2021-01-01'", "timestamp'2021-02-01'"
    rows = f"(1L, 'a', 'x', {first}, {second}), (1L, 'b', 'y', {second}, null)"
    made = spark.sql(f"select * from values {rows} as t(id, v, dbt_scd_id, dbt_valid_from, dbt_valid_to)")
    silver = Address(location=f"{workspace.lake.settings.root_folder}/silver/customers")
    made.write.format("delta").save(str(silver.location))
    customers, context = Target.named(workspace, "customers"), make_context(workspace)
    assert customers.execute(context, Phase.VALIDATE).status is Status.SUCCESS
    planned = customers.observe(context)
    assert planned.changes[0].description.startswith("adopt the table of at most 2 rows")
    assert customers.dirtiness(Phase.CREATE, planned, context.defaults).is_to_run

    adopted = customers.execute(context, Phase.CREATE)

    assert (adopted.status, dict(adopted.metrics)) == (
        Status.SUCCESS,
        {"rows": 2, "current": 1, "deleted": 0},
    )
    found = customers.observe(context)
    assert (found.changes, found.pending) == ((), ("s1",))
    built = customers.execute(context, Phase.BUILD)
    assert (built.metrics["inserted"], built.metrics["unchanged"]) == (1, 1)
    assert customers.execute(context, Phase.VERIFY).status is Status.SUCCESS
    assert observe_table(workspace.lake, silver).version == 2
