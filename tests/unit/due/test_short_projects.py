"""What a plan says of entities in the short form whose files are not as declared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lakewright.app import App
from lakewright.due.plan import Code
from lakewright.usecases.due.take import plan_of_project


def test_a_place_without_files_is_noticed(tmp_path: Path) -> None:
    declared = "entities:\n  a: {from: nowhere/*.csv, key: id, strategy: historic}\n"
    (tmp_path / "project.yml").write_text(f"name: x\n{declared}")
    (found,) = plan_of_project(App.open(tmp_path, environ={})).findings
    assert (found.reason.code, found.reason.params) == (Code.NO_FILES, {"place": f"{tmp_path}/nowhere/*.csv"})


@pytest.mark.parametrize(
    ("names", "undated"),
    [
        (("a.csv", "b.csv"), ["a.csv", "b.csv"]),
        (("a.csv",), []),
        (("2024-05-01.csv", "20240502T0630.csv"), []),
    ],
)
def test_slices_of_which_history_would_be_that_of_loading_are_noticed(
    tmp_path: Path, names: Sequence[str], undated: Sequence[str]
) -> None:
    (tmp_path / "in").mkdir()
    for name in names:
        (tmp_path / "in" / name).write_text("id\n1\n")
    (tmp_path / "project.yml").write_text(
        "name: x\nentities:\n  a: {from: in/*.csv, key: id, strategy: historic}\n"
    )
    plan = plan_of_project(App.open(tmp_path, environ={}))
    noticed = [each.reason.params["slices"] for each in plan.findings if each.reason.code is Code.UNDATED]
    assert noticed == ([undated] if undated else [])
    assert [each.name for step in plan.ready for each in step.slices] == list(names)
