"""Targets and entities for which nothing was due: none is looked at again until something has moved.

This is a cache. The document of each has a digest of all from which follows that nothing is due: of a target,
what is declared and the stamps of the places that its builds have read and written; of an entity, the slices
in bronze, the version of its table and what the manifest counts of its items. If the digest is another one
now, the target or entity is looked at. Whatever records a build empties the document of its target.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from lakewright.manifest.store import Put
from lakewright.plan.resource import Resource

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.store import Document


SETTLED_BY = 3
"""The rules by which targets and entities count as settled; another number unsettles all of them."""

MOST_PLACES = 50
"""The largest number of places of a settled target; to look at more takes as long as to look at builds."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A target or an entity for which nothing was due.

    Attributes:
        digest: The digest of all from which this follows.
        reads: The places that the builds of a target have read, as wholes.
        writes: The places that they have written, as wholes.
        vanished: The processed slices of an entity that are no longer in bronze.
        aside: The numbers of bad rows of its slices that lie in quarantine, by the names of the slices.
    """

    digest: str
    reads: frozenset[Resource] = frozenset()
    writes: frozenset[Resource] = frozenset()
    vanished: tuple[str, ...] = ()
    aside: Mapping[str, int] = field(default_factory=dict)

    @property
    def places(self) -> frozenset[Resource]:
        """All places of its builds."""
        return self.reads | self.writes


@dataclass
class SettledDocuments:
    """What a project has recorded as settled; its documents are read once.

    Attributes:
        kind: The kind of the documents: those of targets, or those of entities.
    """

    app: App
    kind: str

    @cached_property
    def _documents(self) -> Mapping[str, Document]:
        prefix = f"{self.app.project.name}/"
        documents = self.app.store.documents(self.kind, prefix=prefix)
        return {each.key.removeprefix(prefix): each for each in documents}

    @property
    def names(self) -> Collection[str]:
        """The names of all that have a document, whether or not it is empty."""
        return self._documents.keys()

    @cached_property
    def settled(self) -> Mapping[str, Settled]:
        """What was settled last, by name."""
        values = {name: each.value for name, each in self._documents.items() if each.value}
        return {
            name: Settled(
                value["digest"],
                _places(value.get("reads", ())),
                _places(value.get("writes", ())),
                tuple(value.get("vanished", ())),
                value.get("aside", {}),
            )
            for name, value in values.items()
        }

    def put(self, name: str, settled: Settled) -> Put:
        """Return the put that records what is settled, if its document is the one that was read."""
        known = self._documents.get(name)
        value = {
            "digest": settled.digest,
            "reads": _named(settled.reads),
            "writes": _named(settled.writes),
            "vanished": settled.vanished,
            "aside": settled.aside,
        }
        version = 0 if known is None else known.version
        return Put(self.kind, f"{self.app.project.name}/{name}", value, expected=version)


def digest_of(*facts: object) -> str:
    """Return a digest of facts, whose representations tell them apart."""
    return hashlib.sha256(repr((SETTLED_BY, *facts)).encode()).hexdigest()


def _named(places: Collection[Resource]) -> list[list[str]]:
    return sorted([each.category, each.name] for each in places)


def _places(named: Collection[list[str]]) -> frozenset[Resource]:
    return frozenset(Resource(category, name) for category, name in named)
