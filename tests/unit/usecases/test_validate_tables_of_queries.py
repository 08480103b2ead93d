"""`validate` checks the columns of tables of the catalog that the project's relations declare."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.projects import make_project

from lakewright.app import App
from lakewright.usecases.validate_project import validate_project

PROJECT = """
relations:
  sales: {kind: delta, database: shop, table: Sales, schema: {fields: [{name: id, type: int}]},
    partitions: [{name: day, type: date}]}
  plain: {kind: table, table: plain, schema: {fields: [{name: price, type: double}]}}
  folder: {kind: delta, location: gold/folder, schema: {fields: [{name: id, type: int}]}}
  open: {kind: delta, database: shop, table: open}
  of_mapping: {kind: delta, database: shop, table: mapped, schema: {kind: mapping, mapping: plain}}
  query: {kind: hiveQuery, sql: "SELECT * FROM shop.open", schema: {fields: [{name: id, type: int}]}}
  view: {kind: view, database: shop, view: v, sql: "VIEW"}
mappings:
  plain: {kind: values, columns: {other: int}}
  rows: {kind: sql, sql: "MAPPING"}
"""
ROWS = "SELECT other FROM plain"


def warnings_of(folder: Path, *, view: str = "SELECT 1 AS x", mapping: str = ROWS) -> list[str]:
    text = PROJECT.replace("VIEW", view).replace("MAPPING", mapping)
    found = validate_project(App(make_project(folder, text), {"XDG_STATE_HOME": str(folder / "state")}))
    assert found.errors == ()
    return [each.message for each in found.warnings]


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("SELECT id, note FROM shop.sales", "note"),
        ("SELECT s.note FROM `shop`.`Sales` AS s", "s.note"),
        ("SELECT note FROM spark_catalog.shop.sales", "note"),
        ("SELECT note, s.id FROM shop.sales s JOIN shop.sales t ON s.id = t.id", "note"),
        ("SELECT Note, s.id, NOTE FROM shop.sales s WHERE nOTE > 1", "Note"),
        ("SELECT s.Note, S.note FROM shop.sales s", "s.Note"),
        ("SELECT shop.sales.note FROM shop.sales", "sales.note"),
        ("SELECT s.note.x.y.z, x.c FROM shop.sales s LATERAL VIEW explode(array(1)) x AS c", "s.note"),
        ("SELECT c FROM shop.sales s LATERAL VIEW OUTER explode(s.note) AS c", "s.note"),
        ("SELECT e.col, sales.note FROM shop.sales, LATERAL explode(array(sales.id)) e", "sales.note"),
        ("SELECT s.id FROM shop.sales s WHERE exists(array(1), x -> x = s.note)", "s.note"),
        (
            "SELECT s.note FROM shop.sales s WHERE EXISTS (SELECT 1 FROM shop.open o WHERE o.x = s.id)",
            "s.note",
        ),
        ("SELECT 1 FROM shop.open o WHERE EXISTS (SELECT 1 FROM shop.sales s WHERE s.note = o.x)", "s.note"),
        ("WITH a AS (SELECT s.note FROM shop.sales s) SELECT s.note FROM a s", "s.note"),
        ("SELECT s.note FROM shop.sales s JOIN VALUES (1) AS v(id) ON v.id = s.id", "s.note"),
    ],
)
def test_a_column_that_the_relation_of_a_table_does_not_declare_is_a_warning(
    tmp_path: Path, query: str, column: str
) -> None:
    told = f"no table of the query declares the column {column!r}"
    assert warnings_of(tmp_path, view=query) == [f"relation 'view': {told}"]
    assert warnings_of(tmp_path, mapping=query) == [f"mapping 'rows': {told}"]


def test_the_table_of_a_path_has_the_columns_of_its_relation(tmp_path: Path) -> None:
    query = f"SELECT id, note FROM delta.`{tmp_path / 'gold/folder'}`"
    assert len(warnings_of(tmp_path, view=query)) == 1


def test_a_name_of_one_part_in_a_view_is_a_table_and_not_a_mapping(tmp_path: Path) -> None:
    assert warnings_of(tmp_path, view="SELECT price FROM plain") == []
    assert len(warnings_of(tmp_path, view="SELECT other FROM plain")) == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, DAY, count(*) AS n FROM shop.sales GROUP BY id, day HAVING n > 1",
        "SELECT note FROM shop.open",
        "SELECT note FROM shop.mapped",
        "SELECT note FROM elsewhere.sales",
        "SELECT note FROM shop.sales JOIN shop.open USING (id)",
        "SELECT note FROM shop.sales AS s(note, other)",
        "WITH sales AS (SELECT 1 AS note) SELECT note FROM sales",
        "SELECT s.id, c, note FROM shop.sales s LATERAL VIEW explode(array(1)) x AS c, note",
        "SELECT s.note FROM shop.sales s LATERAL VIEW explode(array(named_struct('note', 1))) x AS s",
        "SELECT s.note FROM shop.sales s LATERAL VIEW inline(array(named_struct('s', s.day)))",
        "SELECT s.note FROM shop.sales LATERAL VIEW explode(array(named_struct('note', 1))) s",
        "SELECT col.note FROM shop.sales col LATERAL VIEW explode(array(named_struct('note', 1))) x",
        "SELECT transform(array(named_struct('note', id)), sales -> sales.note) AS n FROM shop.sales",
        "SELECT id.note, day.x.y, shop.sales.id, spark_catalog.shop.sales.id FROM shop.sales",
        "SELECT id.note FROM shop.sales id",
        "SELECT sales.id.x, s.day.note FROM shop.sales s JOIN shop.sales ON s.id = sales.id",
        "SELECT o.sales.note FROM shop.sales JOIN shop.open o ON sales.id = o.id",
        "SELECT 1 FROM shop.open s WHERE EXISTS (SELECT 1 FROM shop.sales s WHERE s.note = 1)",
        "SELECT 1 FROM shop.sales AS a(s) WHERE EXISTS (SELECT 1 FROM shop.open o WHERE o.s = a.s)",
        "SELECT s._metadata.file_path, x.c FROM shop.sales s LATERAL VIEW explode(array(1)) x AS c",
        "SELECT s.note FROM shop.sales PIVOT (count(id) AS note FOR day IN ('2024-05-01' AS d)) s",
        "SELECT named_struct('note', id) AS s, s.note FROM shop.sales s",
    ],
)
def test_tables_whose_columns_are_not_declared_may_have_any(tmp_path: Path, query: str) -> None:
    assert warnings_of(tmp_path, view=query) == []
