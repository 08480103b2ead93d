"""Views over what isn't there yet."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.errors import SpecError
from lakewright.lake.table import CatalogEntry
from lakewright.plan.graph import build_graph
from lakewright.plan.observation import Answer
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.status import Status
from lakewright.relations import catalog as view_module
from lakewright.relations.catalog import WaitingView
from lakewright.run.planning import node_of
from lakewright.spec.reason import Reason
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
    waits = Reason(Code.MADE_IN_BUILD, {"is_new": True, "inputs": (str(tmp_path / "table"),)})
    assert create.reasons == (waits,)
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


def test_a_view_whose_table_is_gone_waits_until_it_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was made anew in CREATE, which failed, so that no run reached BUILD."""
    workspace = make_workspace(tmp_path, PROJECT)
    context, target = make_context(workspace), Target.named(workspace, "view")
    query = workspace.sql_text("table")
    entry = CatalogEntry((), view_text=query, defect="Path does not exist.")
    monkeypatch.setattr(view_module, "find_entry", lambda *_: entry)

    found = target.observe(context)

    assert isinstance(found, WaitingView)
    create = target.dirtiness(Phase.CREATE, found, context.defaults)
    waits = Reason(Code.MADE_IN_BUILD, {"is_new": False, "inputs": (str(tmp_path / "table"),)})
    assert (create.is_to_run, create.reasons) == (False, (waits,))
    assert target.dirtiness(Phase.BUILD, found, context.defaults).is_to_run
    assert target.execute(context, Phase.BUILD).status is Status.SKIPPED


def test_only_views_take_part_in_build_without_a_mapping(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, PROJECT)
    phases = {name: Target.named(workspace, name).phases_in(workspace) for name in ("view", "other")}
    assert phases["view"] - phases["other"] == {Phase.BUILD}


FILES = """
relations:
  csv: {kind: file, format: csv, location: codes}
  table: {kind: delta, location: table, partitions: [{name: day, type: date}]}
  files: {kind: view, view: f, mapping: named}
  day: {kind: view, view: d, mapping: day}
mappings:
  codes: {kind: relation, relation: csv}
  named: {kind: alias, input: codes}
  day: {kind: relation, relation: table, partitions: {day: "2022-01-01"}}
targets:
  files: {kind: relation, relation: files}
  day: {kind: relation, relation: day}
"""


def test_a_view_that_can_not_name_what_it_reads_says_why_before_a_run(tmp_path: Path) -> None:
    """It said that a mapping of kind 'relation' can't be used, and to use one of kind relation."""
    workspace = make_workspace(tmp_path, FILES)
    (tmp_path / "codes").mkdir()
    (tmp_path / "table").mkdir()
    told = {}
    for name in ("files", "day"):
        target, context = Target.named(workspace, name), make_context(workspace)
        refusal = target.observe(context).refusal
        assert refusal is not None
        with pytest.raises(SpecError) as caught:
            target.execute(context, Phase.CREATE)
        told[name] = refusal.message
        if name == "files":
            assert caught.value.message == refusal.message
            assert "let the view read that one" in str(refusal.remedy)
    assert told["files"] == (
        f"mapping 'codes' of project {workspace.project.name!r} cannot be used in a view: it reads the "
        "relation 'csv' of kind 'file', which is no table that a view could name"
    )
    assert told["day"] == "mapping 'day' cannot be used in a view, because it has `partitions`"


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
