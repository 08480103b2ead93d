"""Views: relations whose rows are computed from other resources whenever they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import SpecError
from lakewright.plan.resource import Resource

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["Views"]

KINDS = frozenset(("view", "hiveView", "jdbcView"))


class Views:
    """The views of a project, found when they are needed first."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._found: list[tuple[frozenset[Resource], frozenset[Resource]]] | None = None

    def expanded(self, resources: frozenset[Resource]) -> frozenset[Resource]:
        """Return the resources, and those that the views among them are computed from, through any chain."""
        if not resources:
            return resources
        found, count = resources, 0
        while count < len(found):
            count = len(found)
            for own, inputs in self._views():
                if any(view.intersects(each) for view in own for each in found):
                    found |= inputs
        return found

    def _views(self) -> list[tuple[frozenset[Resource], frozenset[Resource]]]:
        if self._found is None:
            self._found = []
            for name, definition in self._workspace.project.relations.items():
                if definition.kind in KINDS:
                    self._add(name)
        return self._found

    def _add(self, name: str) -> None:
        workspace = self._workspace
        try:
            view = workspace.relation(name)
            entry = view.resources(workspace), view.computed_from(workspace)
        except SpecError:  # is reported where the view itself is used
            return
        if self._found is not None:
            self._found.append(entry)
