"""The warning that a target reads the silver table of an entity that has none, and that no step makes.

Its build would fail, which the plan would not show otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lakewright.errors import Fault, LakewrightError, SpecError
from lakewright.lake.observation import observe_table
from lakewright.plan.phase import Phase
from lakewright.targets.lease import table_resource

if TYPE_CHECKING:
    from lakewright.plan.resource import Resource
    from lakewright.spec.models.places import Address
    from lakewright.spec.project import Project
    from lakewright.targets.target import Target
    from lakewright.workspace.workspace import Workspace

__all__ = ["MISSING_INPUT", "missing_input"]

MISSING_INPUT = "missing_input"
"""The code of the warning."""


def missing_input(target: Target, workspace: Workspace, is_made: Callable[[Resource], bool]) -> Fault | None:
    """Return the warning for a target that is to be built; None if its inputs of silver exist or are made.

    Args:
        target: The target.
        workspace: The workspace of its instance.
        is_made: Tells whether a step of the plan makes a table.
    """
    required = target.requires(workspace, Phase.BUILD)
    if not required:
        return None
    for project, entity, silver in _silver_tables(workspace):
        table = table_resource(silver)
        is_known = table not in required or is_made(table)
        if is_known or silver.location is None or not _is_missing(workspace, silver):
            continue  # only Spark knows the tables of a catalog
        whose, where = "", ""
        if project is not workspace.project:
            whose, where = f" of project {project.name}", f" in {project.basedir}"
        return Fault(
            f"target {target.name!r} reads entity {entity!r}{whose}, which has no silver table, and no step "
            "of this plan makes it",
            remedy=f"Process a slice of the entity first, by a job{where} with its target. Otherwise the "
            "build fails.",
            code=MISSING_INPUT,
        )
    return None


def _silver_tables(workspace: Workspace) -> Iterator[tuple[Project, str, Address]]:
    """Yield the silver tables of the project and of those that it imports, with the entities' names."""
    own = workspace.project
    for project in (own, *own.imports.values()):
        layout = workspace.layout if project is own else project.lake
        for name in project.entities:
            try:
                yield project, name, project.entities[name].places(layout).silver
            except SpecError:
                continue  # it is told where the entity is used


def _is_missing(workspace: Workspace, silver: Address) -> bool:
    try:
        return observe_table(workspace.lake, silver).exists is False
    except LakewrightError:
        return False
