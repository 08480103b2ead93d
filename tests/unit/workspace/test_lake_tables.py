"""Names of tables in `lakewright sql` (A8)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.projects import make_project

from lakewright.errors import UsageError
from lakewright.spec.project import Project
from lakewright.workspace.lake_tables import find_tables, rewritten, shadowed_mappings

PROJECT = """
connections:
  c: {kind: lake, settings: {bronze_path: "${destination}", silver_path: "${destination}"}}
entities:
  customers: {id: 1, connection: c, processtype: full}
  prices: {id: 2, connection: c, processtype: full}
relations:
  customers: {kind: entity, entity: customers, current: true}
  sales: {kind: delta, location: gold/sales}
mappings:
  sales: {kind: values, columns: {n: int}, records: [[1]]}
  totals: {kind: sql, sql: "SELECT count(*) AS n FROM sales"}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path, PROJECT.replace("kind: lake, ", ""))


@pytest.mark.parametrize(
    ("query", "tables", "expected"),
    [
        ("SELECT * FROM prices", ["silver.prices"], None),
        ("SELECT * FROM PRICES", ["silver.prices"], None),
        ("SELECT * FROM totals, sales", ["mapping.totals", "gold.sales"], None),
        (
            "SELECT customers.id FROM silver.customers",
            ["silver.customers"],
            "SELECT customers.id FROM `silver.customers` AS `customers`",
        ),
        (
            "SELECT silver.customers.id FROM Silver.customers WHERE x",
            ["silver.customers"],
            "SELECT `customers`.id FROM `silver.customers` AS `customers` WHERE x",
        ),
        (
            "SELECT c.id, d.id FROM silver.customers c JOIN gold.customers AS d USING (id)",
            ["silver.customers", "gold.customers"],
            "SELECT c.id, d.id FROM `silver.customers` c JOIN `gold.customers` AS d USING (id)",
        ),
        (
            "SELECT silver.customers.id FROM silver.customers JOIN gold.customers USING (id)",
            ["silver.customers", "gold.customers"],
            "SELECT `silver.customers`.id FROM `silver.customers` JOIN `gold.customers` USING (id)",
        ),
        (
            "SELECT customers.id FROM silver.customers UNION SELECT id FROM gold.customers",
            ["silver.customers", "gold.customers"],
            "SELECT customers.id FROM `silver.customers` AS `customers` "
            "UNION SELECT id FROM `gold.customers` AS `customers`",
        ),
        (
            "SELECT * FROM silver.prices TABLESAMPLE (1 ROWS)",
            ["silver.prices"],
            "SELECT * FROM `silver.prices` TABLESAMPLE (1 ROWS)",
        ),
        ("TABLE mapping.totals", ["mapping.totals"], "TABLE `mapping.totals`"),
        ("SELECT * FROM gold.unknown, db.customers, a.b.c", [], None),
        ("SELECT 'silver.prices' FROM prices", ["silver.prices"], None),
    ],
)
def test_a_query_names_definitions_plainly_or_with_their_layer(
    project: Project, query: str, tables: list[str], expected: str | None
) -> None:
    found = find_tables(project, query)
    assert [str(table) for table in found] == tables
    assert rewritten(query, found) == (query if expected is None else expected)


def test_a_plain_name_of_an_entity_and_a_relation_is_refused_with_both(project: Project) -> None:
    with pytest.raises(
        UsageError, match=r"entity silver\.customers and the relation gold\.customers"
    ) as found:
        find_tables(project, "SELECT * FROM customers")
    assert found.value.remedy == "Write silver.customers or gold.customers."


def test_the_relation_of_a_name_comes_before_the_mapping_and_that_is_said(project: Project) -> None:
    assert list(shadowed_mappings(project, "SELECT * FROM sales")) == [
        "sales is the relation gold.sales; the mapping is mapping.sales"
    ]
    assert not list(shadowed_mappings(project, "SELECT * FROM gold.sales, mapping.sales, totals, prices"))


def test_an_entitys_plain_name_means_its_current_rows_and_history_all_of_them(project: Project) -> None:
    query = "SELECT * FROM prices JOIN prices.history USING (id) JOIN silver.prices s USING (id)"
    found = find_tables(project, query)
    assert [(str(each), each.is_current) for each in found] == [
        ("silver.prices", True),
        ("silver.prices", False),
        ("silver.prices", False),
    ]
    assert rewritten(query, found) == (
        "SELECT * FROM prices JOIN `prices.history` USING (id) JOIN `silver.prices` s USING (id)"
    )
