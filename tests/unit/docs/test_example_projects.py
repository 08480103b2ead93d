"""The projects of `examples` are valid, as `lakewright validate` says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.docs.pages import ROOT

from lakewright.app import App
from lakewright.usecases.validate_project import validate_project

PROJECTS = sorted(path.parent for path in (ROOT / "examples").glob("*/project.yml"))


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda path: path.name)
def test_an_example_project_is_valid(folder: Path, tmp_path: Path) -> None:
    app = App.open(folder, environ={"XDG_STATE_HOME": str(tmp_path)})
    found = validate_project(app)
    assert (found.errors, found.warnings) == ((), ())
    app.close()
