"""Columns of relations and mappings, traced without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import write_deltalake

from lakewright.app import App
from lakewright.documentation.document import Ref
from lakewright.usecases.data_flow import read_column_flow

MODEL = """
connections: {web: {settings: {silver_path: "${destination}"}}}
entities: {orders: {id: 1, connection: web, processtype: full, destination: orders}}
relations:
  orders: {kind: entity, entity: orders}
  customers: {kind: delta, location: $project.basedir/customers}
  hidden: {kind: delta, location: $project.basedir/hidden}
  revenue: {kind: delta, location: $project.basedir/revenue}
mappings:
  orders: {kind: relation, relation: orders}
  customers: {kind: relation, relation: customers}
  hidden: {kind: relation, relation: hidden}
  large: {kind: filter, input: orders, condition: amount > 10}
  priced: {kind: select, input: large, columns: {id: id, customer: customer, gross: "amount * 1.21"}}
  revenue:
    kind: sql
    sql: >
      WITH p AS (SELECT * FROM priced)
      SELECT c.city, sum(p.gross) AS revenue, count(*) AS orders, coalesce(c.name, p.ID) AS who
      FROM p JOIN customers c ON c.id = p.customer GROUP BY 1, 4
  unseen: {kind: sql, sql: "SELECT * FROM hidden"}
  spread: {kind: explode, input: orders, array: items}
targets: {revenue: {kind: relation, mapping: revenue, relation: revenue}}
jobs: {daily: {targets: revenue}}
"""


@pytest.fixture
def app(tmp_path: Path) -> App:
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    (tmp_path / "m.yml").write_text(MODEL)
    found = App.open(tmp_path, environ={})
    silver = found.project.entity("orders").places(found.project.lake).silver.location
    write_deltalake(str(silver), pa.table({"id": [1], "customer": [2], "amount": [3.0]}))
    write_deltalake(tmp_path / "customers", pa.table({"id": [1], "name": ["Ann"], "city": ["Delft"]}))
    return found


def traced(app: App, category: str, name: str) -> dict[str, list[str]]:
    found = read_column_flow(app, Ref(category, name))
    assert found.note is None, found.note
    return {
        column: [f"{each.item.category} {each.item.name}.{each.column}" for each in sources]
        for column, sources in found.columns.items()
    }


def test_columns_are_traced_through_mappings_to_those_of_relations(app: App) -> None:
    expected = {
        "city": ["relation customers.city"],
        "revenue": ["relation orders.amount"],
        "orders": [],
        "who": ["relation customers.name", "relation orders.id"],
    }
    assert {name: sorted(sources) for name, sources in traced(app, "mapping", "revenue").items()} == expected
    # The relation that a target writes has the columns of its mapping.
    assert {name: sorted(sources) for name, sources in traced(app, "relation", "revenue").items()} == expected
    assert traced(app, "mapping", "priced")["gross"] == ["relation orders.amount"]


def test_a_relation_of_an_entity_has_the_columns_of_its_table(app: App) -> None:
    assert traced(app, "relation", "orders") == {
        name: [f"entity orders.{name}"] for name in ("id", "customer", "amount")
    }
    assert traced(app, "relation", "customers") == {"id": [], "name": [], "city": []}


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ("unseen", "The columns of the relation hidden are not known without Spark."),
        ("spread", "Mappings of kind explode such as spread are not traced without Spark."),
    ],
)
def test_what_is_not_known_without_spark_is_said(app: App, mapping: str, why: str) -> None:
    found = read_column_flow(app, Ref("mapping", mapping))
    assert not found.columns
    assert found.note == f"{why} `lakewright docs` shows the columns of every mapping: it asks Spark."
