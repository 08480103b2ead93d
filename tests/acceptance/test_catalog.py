"""Tables and views of the catalog over several commands, each a process of its own.

`lifecycles-and-phases.md`, "Execution Phases" (CREATE, "a relation (table or directory)") and "Dirtiness".
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.lake import SmallLake

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

GOLD = """
relations:
  customers_view: {kind: view, database: shop, view: customers, mapping: all_customers}
  by_name:
    kind: hiveTable
    database: shop
    table: by_name
    format: parquet
    schema: {fields: [{name: name, type: string}, {name: customers, type: long}]}
  by_name_delta: {kind: deltaTable, database: shop, table: by_name_delta}
  names_view: {kind: hiveView, database: shop, view: names, sql: SELECT name FROM shop.by_name}
mappings:
  all_customers: {kind: relation, relation: current_customers}
  by_name_delta: {kind: relation, relation: by_name}
targets:
  customers_view: {kind: relation, relation: customers_view}
  names_view: {kind: relation, relation: names_view}
  by_name: {kind: relation, mapping: names, relation: by_name}
  by_name_delta: {kind: relation, mapping: by_name_delta, relation: by_name_delta}
jobs:
  gold: {targets: [customers_view, names_view, by_name_delta, by_name, customers]}
"""
SQL = """
SELECT count(*) AS n FROM shop.customers JOIN shop.names USING (name) JOIN shop.by_name_delta USING (name)
"""


@pytest.mark.nightly
def test_tables_and_views_of_the_catalog_outlive_their_session(tmp_path: Path) -> None:
    """Each of four processes needs half a minute for its metastore; `make test` starts none."""
    lake = SmallLake.make(tmp_path / "lake")
    (lake.folder / "model" / "gold.yml").write_text(GOLD)
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}

    plan = lake.process.run("plan", "gold", "verify", **state)
    assert "is created in BUILD, when" in plan.out, plan.all
    lake.slice("customers", "1", [{"id": 1, "name": "ada"}, {"id": 2, "name": "bob"}])
    first = lake.process.run("job", "gold", "verify", **state)
    assert first.code == 0, first.all
    again = lake.process.run("job", "gold", "build", **state)
    assert again.code == 0, again.all
    assert "SUCCESS=0 " in again.out, again.all
    rows = lake.process.run("sql", SQL, "-o", "json", **state)
    assert rows.code == 0, rows.all
    assert '"n": 2' in rows.out
    left = {path.name for path in lake.folder.rglob("*")} & {"metastore_db", "derby.log", "spark-warehouse"}
    assert left == set()
