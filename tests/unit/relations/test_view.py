"""Views over what isn't there yet."""

from __future__ import annotations

from pathlib import Path

from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.plan.graph import build_graph
from lakewright.plan.observation import Answer
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.relations.view import WaitingView
from lakewright.run.planning import node_of
from lakewright.targets.target import Target

PROJECT = """
relations:
  table: {kind: delta, location: table}
  view: {kind: view, view: v, mapping: table}
  other: {kind: delta, location: other}
mappings: {table: {kind: relation, relation: table}}
targets:
  view: {kind: relation, relation: view}
  other: {kind: relation, relation: other}
"""


def test_a_view_waits_for_what_it_reads_and_is_made_in_build(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, PROJECT)
    context, target = make_context(workspace), Target.named(workspace, "view")
    found = target.observe(context)
    assert isinstance(found, WaitingView)
    assert found.inputs == (str(tmp_path / "table"),)
    create = target.dirtiness(Phase.CREATE, found, context.defaults)
    assert create.reasons == (f"is created in BUILD, when {tmp_path / 'table'} exists",)
    assert target.dirtiness(Phase.BUILD, found, context.defaults).is_to_run
    assert not target.dirtiness(Phase.BUILD, found.after(Phase.CREATE), context.defaults).is_to_run
    assert target.requires(workspace, Phase.BUILD) == workspace.relation("table").resources(workspace)
    assert target.execute(context, Phase.CREATE).status is Status.SKIPPED
    assert target.execute(context, Phase.BUILD).status is Status.SKIPPED

    (tmp_path / "table").mkdir()
    found = target.observe(context)
    assert isinstance(found, WaitingView)
    assert (found.exists, found.inputs) == (Answer.NO, ())
    assert target.dirtiness(Phase.CREATE, found, context.defaults).is_to_run


def test_only_views_take_part_in_build_without_a_mapping(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, PROJECT)
    phases = {name: Target.named(workspace, name).phases_in(workspace) for name in ("view", "other")}
    assert phases["view"] - phases["other"] == {Phase.BUILD}


DATABASE = """
connections: {shop: {kind: jdbc, url: "jdbc:postgresql://db/shop"}}
relations:
  totals:
    kind: jdbcView
    connection: shop
    database: shop
    view: totals
    sql: SELECT day, sum(price) AS total FROM shop."Sales" s JOIN DAYS USING (day) GROUP BY day
  sales:
    kind: jdbcTable
    connection: shop
    database: shop
    table: Sales
    schema: {fields: {name: id, type: int}}
  best: {kind: jdbcQuery, connection: shop, sql: "SELECT 'FROM x' AS t FROM shop.totals WHERE total > 5"}
  out: {kind: file, format: json, location: out}
mappings:
  rows: {kind: values, columns: {id: int}}
  best: {kind: relation, relation: best}
  total: {kind: relation, relation: totals}
targets:
  totals: {kind: relation, relation: totals}
  best: {kind: relation, mapping: best, relation: out}
  sales: {kind: relation, mapping: rows, relation: sales}
"""


def test_targets_follow_the_sql_of_views_and_queries_of_databases(tmp_path: Path) -> None:
    """E6: a view is created after its table, and what reads the view is tainted by the table."""
    workspace = make_workspace(tmp_path, DATABASE)
    nodes = {
        phase: [node_of(Target.named(workspace, name), workspace, phase) for name in names]
        for phase, names in (
            (Phase.CREATE, ("totals", "best", "sales")),
            (Phase.BUILD, ("best", "sales")),
        )
    }
    assert list(build_graph(nodes[Phase.CREATE], Phase.CREATE).order) == ["best", "sales", "totals"]
    assert list(build_graph(nodes[Phase.BUILD], Phase.BUILD).order) == ["sales", "best"]
    sales, totals = "jdbc:postgresql://db/shop/shop.Sales", "jdbc:postgresql://db/shop/shop.totals"
    days = "jdbc:postgresql://db/shop/public.days"
    assert {str(each) for each in workspace.required("best")} == {totals, sales, days}
    assert workspace.required("best") == workspace.required("total")
