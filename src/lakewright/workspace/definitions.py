"""The definitions of a project, resolved for one instance."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakewright.errors import SpecError
from lakewright.spec.models.base import Named
from lakewright.spec.suggestions import suggestion

if TYPE_CHECKING:
    from lakewright.spec.definitions.definition import Definition
    from lakewright.spec.expressions.scope import Scope
    from lakewright.spec.project import Project

__all__ = ["Definitions"]


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

    def resolve(self, category: str, name: str) -> Named:
        """Return the definition of a name in a category, such as `relation`.

        Raises:
            SpecError: No definition has that name, or its declaration is invalid for this instance.
        """
        return self._resolve(category, name, self._project.definitions(category))

    def resolve_original(self, category: str, name: str) -> Named:
        """Return the project's own definition, even if a test of the project overrides it.

        Raises:
            SpecError: No definition has that name, or its declaration is invalid for this instance.
        """
        overridden = self._project.overridden.get(category, {})
        return self._resolve(category, name, {**self._project.definitions(category), **overridden})

    def _resolve(self, category: str, name: str, definitions: Mapping[str, Definition]) -> Named:
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
