"""Targets that check assertions: `lifecycles-and-phases.md`, "Execution Phases" (VALIDATE, VERIFY)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.targets.target import Target

PROJECT = """
targets:
  before: {kind: validate}
  after: {kind: verify, assertions: {}}
"""


@pytest.mark.parametrize(("name", "phase"), [("before", Phase.VALIDATE), ("after", Phase.VERIFY)])
def test_a_target_without_assertions_succeeds(tmp_path: Path, name: str, phase: Phase) -> None:
    workspace = make_workspace(tmp_path, PROJECT)
    target = Target.named(workspace, name)
    assert target.phases() == {phase}
    assert target.execute(make_context(workspace), phase).status is Status.SUCCESS
