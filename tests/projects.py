"""Projects and workspaces made from a text, for tests."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.sessions import no_session

from lakewright import connections, mappings, relations, schemas, targets
from lakewright.documentation import checks
from lakewright.lake.lake import Lake
from lakewright.run import hooks
from lakewright.spark.session import Sessions, SessionSettings
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.loading.loader import load_project
from lakewright.spec.project import Project
from lakewright.targets import assertions, datasets, measures
from lakewright.workspace.workspace import Workspace

PACKAGES = {
    "connection": connections,
    "relation": relations,
    "mapping": mappings,
    "schema": schemas,
    "target": targets,
    "assertion": assertions,
    "check": checks,
    "measure": measures,
    "dataset": datasets,
    "hook": hooks,
}

KINDS = Registry(
    {category: package.KINDS for category, package in PACKAGES.items()},
    absent={category: package.NOT_OFFERED for category, package in PACKAGES.items()},
)


def make_project(folder: Path, sections: str, project: str = "") -> Project:
    """Return a project in `folder` whose one module holds these sections; `project` adds to `project.yml`."""
    (folder / "project.yml").write_text(
        f"name: tests\nmodules: [module.yml]\nlake: {{root_folder: lake}}\n{project}"
    )
    (folder / "module.yml").write_text(textwrap.dedent(sections))
    return load_project(folder, kinds=KINDS, environ={})


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
