"""The definitions of a project, resolved for one instance, and the views among its relations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lakewright.errors import SpecError
from lakewright.plan.resource import Resource
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.models.base import Named
from lakewright.spec.suggestions import suggestion

if TYPE_CHECKING:
    from lakewright.spec.expressions.scope import Scope
    from lakewright.spec.project import Project


class Definitions:
    """The definitions of a project, each resolved once with the names of one instance."""

    def __init__(self, project: Project, scope: Scope, lock: threading.RLock) -> None:
        """Create the definitions of one instance.

        Args:
            project: The loaded project.
            scope: The names and values of the instance.
            lock: Held while a definition is resolved.
        """
        self._project = project
        self._scope = scope
        self._lock = lock
        self._resolved: dict[int, Named] = {}

    def resolve(self, category: str, name: str, *, is_original: bool = False) -> Named:
        """Return the definition of a name in a category, such as `relation`.

        Args:
            category: The category.
            name: The name.
            is_original: Whether it is the project's own, even if a test of the project overrides it.

        Raises:
            SpecError: No definition has that name, or its declaration is invalid for this instance.
        """
        definitions = self._project.definitions(category)
        if is_original:
            definitions = {**definitions, **self._project.overridden.get(category, {})}
        definition = definitions.get(name)
        if definition is None:
            if (faulty := self._project.faulty_error(category, name)) is not None:
                raise faulty
            raise SpecError.of(f"there is no {category} {name!r}", remedy=suggestion(name, definitions))
        with self._lock:
            found = self._resolved.get(id(definition))
            if found is None:
                found = self._resolved[id(definition)] = definition.resolve(self._scope)
            return found


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


_OF_PROJECT = " of project "


def qualified(name: str, inner: str, parts: dict[str, str]) -> dict[str, str]:
    """Return parts of a mapping by names that no part of this project has, if an imported one declares it.

    Args:
        name: The mapping's name in this project, such as `crm/orders`.
        inner: Its name in its own project.
        parts: The parts by their names there.

    Example:
        >>> qualified("crm/orders", "orders", {"mapping orders": "…"})
        {'mapping orders of project crm': '…'}
    """
    if inner == name:
        return parts
    project = name.removesuffix(f"/{inner}")
    return {f"{part}{_OF_PROJECT}{project}": text for part, text in parts.items()}
