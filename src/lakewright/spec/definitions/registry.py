"""The registry of kinds, which imports the class of a kind at its first use."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from lakewright.errors import Fault, Location, SpecError
from lakewright.spec.models.base import Named
from lakewright.spec.suggestions import suggestion


class Registry:
    """Kinds by category: `{"relation": {"file": "lakewright.relations.file:FileRelation"}}`.

    `absent` lists kinds of other tools that Lakewright does not support, each with a remedy. The error for
    such a kind says so, instead of "unknown kind".
    """

    def __init__(
        self,
        kinds: Mapping[str, Mapping[str, str | type[Named]]],
        *,
        absent: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._kinds = {category: dict(of_category) for category, of_category in kinds.items()}
        self._absent = {category: dict(of_category) for category, of_category in (absent or {}).items()}

    def kinds(self, category: str) -> tuple[str, ...]:
        """Return the supported kinds of a category, sorted."""
        return tuple(sorted(self._kinds.get(category, {})))

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories that have kinds, sorted."""
        return tuple(sorted(self._kinds))

    def find(self, category: str, kind: str, location: Location | None = None) -> type[Named]:
        """Return the class of a kind.

        Raises:
            SpecError: The kind is unknown or not supported.
        """
        found = self.find_or_none(category, kind)
        if found is None:
            raise SpecError([self.fault(category, kind, location)])
        return found

    def find_or_none(self, category: str, kind: str) -> type[Named] | None:
        """Return the class of a kind, or None if it is not supported."""
        entry = self._kinds.get(category, {}).get(kind)
        if not isinstance(entry, str):
            return entry
        module, _, name = entry.partition(":")
        found: type[Named] = getattr(import_module(module), name)
        self._kinds[category][kind] = found
        return found

    def fault(self, category: str, kind: str, location: Location | None = None) -> Fault:
        """Return the fault for an unsupported kind."""
        absent = self._absent.get(category, {}).get(kind)
        if absent is not None:
            return Fault(f"kind {kind!r} of {category} is not supported", location, absent)
        remedy = suggestion(kind, self.kinds(category), shown=40)
        return Fault(f"unknown kind {kind!r} of {category}", location, remedy)
