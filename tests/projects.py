"""Projects and workspaces made from a text, for tests."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.sessions import no_session

from lakewright.lake.lake import Lake
from lakewright.run.kinds import registry
from lakewright.spark.conf import SessionSettings
from lakewright.spark.session import Sessions
from lakewright.spec.loading.loader import load_project
from lakewright.spec.loading.settings import LoadOptions
from lakewright.spec.project import Project
from lakewright.workspace.workspace import Workspace

KINDS = registry()


def make_project(folder: Path, sections: str, project: str = "") -> Project:
    """Return a project in `folder` whose one module holds these sections; `project` adds to `project.yml`."""
    (folder / "project.yml").write_text(
        f"name: tests\nmodules: [module.yml]\nlake: {{root_folder: lake}}\n{project}"
    )
    (folder / "module.yml").write_text(textwrap.dedent(sections))
    return load_project(folder, LoadOptions(kinds=KINDS, environ={}))


def make_workspace(
    folder: Path,
    sections: str,
    *,
    project: str = "",
    sessions: Sessions = no_session,
    **arguments: object,
) -> Workspace:
    """Return a workspace of such a project; Spark may not be started unless `sessions` says how."""
    made = make_project(folder, sections, project)
    lake = Lake(made.lake, SessionSettings(folder / "state"), sessions=sessions)
    return Workspace(made, made.scope.child(arguments), lake)
