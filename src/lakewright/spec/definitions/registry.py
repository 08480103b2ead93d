"""Which kinds there are, and the class of each, imported when it is first needed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from lakewright.errors import Fault, Location, SpecError
from lakewright.spec.models.base import Named
from lakewright.spec.suggestions import suggestion

__all__ = ["Registry"]


class Registry:
    """Kinds by category, `{"relation": {"file": "lakewright.relations.file:FileRelation"}}`.

    `absent` names kinds that are known but not offered, with what to do instead: the error says so in place
    of "unknown kind".
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
        """Return the kinds of a category that are offered, sorted."""
        return tuple(sorted(self._kinds.get(category, {})))

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories that have kinds, sorted."""
        return tuple(sorted(self._kinds))

    def find(self, category: str, kind: str, location: Location | None = None) -> type[Named]:
        """Return the class of a kind.

        Raises:
            SpecError: There is no such kind, or it isn't offered.
        """
        found = self.find_or_none(category, kind)
        if found is None:
            raise SpecError([self.fault(category, kind, location)])
        return found

    def find_or_none(self, category: str, kind: str) -> type[Named] | None:
        """Return the class of a kind, or None if it isn't offered."""
        entry = self._kinds.get(category, {}).get(kind)
        if not isinstance(entry, str):
            return entry
        module, _, name = entry.partition(":")
        found: type[Named] = getattr(import_module(module), name)
        self._kinds[category][kind] = found
        return found

    def fault(self, category: str, kind: str, location: Location | None = None) -> Fault:
        """Return the fault for a kind that isn't offered."""
        return Fault(self.message(category, kind), location=location, remedy=self.remedy(category, kind))

    def message(self, category: str, kind: str) -> str:
        """Return what is wrong with a kind that isn't offered."""
        if kind in self._absent.get(category, {}):
            return f"kind {kind!r} of {category} is known but not offered"
        return f"unknown kind {kind!r} of {category}"

    def remedy(self, category: str, kind: str) -> str | None:
        """Return what to do about a kind that isn't offered."""
        absent = self._absent.get(category, {})
        return absent.get(kind) or suggestion(kind, self.kinds(category), shown=40)
