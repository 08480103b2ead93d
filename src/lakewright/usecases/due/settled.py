"""Targets whose builds were all found to be current: none is looked at again until something has moved.

This is a cache. The document of a target names the places that its builds have read and written, with a
digest of the marks of these places and of what is declared. Whatever records a build empties the document. If
the digest is another one now, all builds of the target are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.manifest.journal import SETTLED
from lakewright.manifest.store import Put
from lakewright.plan.resource import Resource

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.store import Document

__all__ = ["MOST_PLACES", "SETTLED_BY", "Settled", "documents_of"]

SETTLED_BY = 1
"""The rules by which a target counts as settled; another number unsettles all targets."""

MOST_PLACES = 50
"""The largest number of places of a settled target; to look at more takes as long as to look at builds."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A target whose builds were all current.

    Attributes:
        reads: The places that its builds have read, as wholes.
        writes: The places that they have written, as wholes.
        digest: The digest of what is declared, and of the marks of these places.
    """

    reads: frozenset[Resource]
    writes: frozenset[Resource]
    digest: str

    @property
    def places(self) -> frozenset[Resource]:
        """All places of its builds."""
        return self.reads | self.writes

    def put(self, project: str, target: str, version: int) -> Put:
        """Return the put that records it, if no build was recorded since a version of its document."""
        value = {"reads": _named(self.reads), "writes": _named(self.writes), "digest": self.digest}
        return Put(SETTLED, f"{project}/{target}", value, expected=version)

    @classmethod
    def of(cls, document: Document) -> Settled | None:
        """Return the settled target of a document; None if it is not settled."""
        value: Mapping[str, Any] = document.value
        if not value:
            return None
        return cls(_places(value["reads"]), _places(value["writes"]), value["digest"])


def _named(places: Collection[Resource]) -> list[list[str]]:
    return sorted([each.category, each.name] for each in places)


def _places(named: Collection[list[str]]) -> frozenset[Resource]:
    return frozenset(Resource(category, name) for category, name in named)


def documents_of(app: App, kind: str) -> Mapping[str, Document]:
    """Return the documents that a project has of its targets or entities, by the names of these."""
    prefix = f"{app.project.name}/"
    return {each.key.removeprefix(prefix): each for each in app.store.documents(kind, prefix=prefix)}
