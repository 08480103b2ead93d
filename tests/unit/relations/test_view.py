"""Views over what isn't there yet."""

from __future__ import annotations

from pathlib import Path

from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.plan.observation import Answer
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.relations.view import WaitingView
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
