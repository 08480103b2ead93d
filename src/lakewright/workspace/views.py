"""Views: relations whose rows are computed from other resources whenever they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakewright.errors import SpecError
from lakewright.plan.resource import Resource
from lakewright.spec.definitions.definition import Definition

__all__ = ["Views"]

KINDS = frozenset(("view", "hiveView", "jdbcView"))


View = tuple[frozenset[Resource], frozenset[Resource]]
"""The resources of a view, and those that it is computed from."""


class Views:
    """The views of a project, found when they are needed first."""

    def __init__(self, relations: Mapping[str, Definition], look: Callable[[str], View]) -> None:
        """Create the views among these relations; `look` returns one by name."""
        self._names = [name for name, definition in relations.items() if definition.kind in KINDS]
        self._look = look
        self._found: list[View] | None = None

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

    def _views(self) -> list[View]:
        if self._found is None:
            self._found = []
            for name in self._names:
                try:
                    self._found.append(self._look(name))
                except SpecError:  # is reported where the view itself is used
                    continue
        return self._found
