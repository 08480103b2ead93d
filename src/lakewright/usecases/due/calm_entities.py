"""Entities whose slices were all in their tables: their items are not read again until something has moved.

This is a cache. The document of an entity has a digest of the slices in bronze, of the version of its table,
and of what the manifest counts of its items. If the digest is another one now, all its items are looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lakewright.manifest.journal import CALM
from lakewright.manifest.store import Put
from lakewright.usecases.due.settled import documents_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.record import Application
    from lakewright.manifest.store import Document
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.discover import Listing

__all__ = ["CalmEntities"]


@dataclass
class CalmEntities:
    """Knows which entities were calm, and how."""

    app: App

    @cached_property
    def _documents(self) -> Mapping[str, Document]:
        return documents_of(self.app, CALM)

    @cached_property
    def _counts(self) -> Mapping[Application, list[tuple[str, int]]]:
        """How many items of each application have each standing."""
        counts: dict[Application, list[tuple[str, int]]] = {}
        for standing, number in self.app.store.standings().items():
            for application in standing.concerned:
                counts.setdefault(application, []).append((standing.text, number))
        return counts

    @cached_property
    def _rewinding(self) -> frozenset[str]:
        return frozenset(self.app.ledger.rewinds())

    def digest(self, chain: SliceChain, listing: Listing, table: str, counter: str) -> str | None:
        """Return a digest of all from which follows which slices are due; None while its table is rewound.

        Args:
            chain: The slices of the entity.
            listing: Those in bronze.
            table: The identity and version of its table.
            counter: The key of the counter of the commits to the table.
        """
        if counter in self._rewinding:
            return None
        slices = [(each.path, sorted(each.fingerprint.items())) for each in listing.slices]
        counts = sorted(self._counts.get(chain.application, ()))
        told = repr((str(chain.application), chain.bronze, table, chain.last_given_number, counts, slices))
        return hashlib.sha256(told.encode()).hexdigest()

    def is_calm(self, entity: str, digest: str) -> bool:
        """Return whether an entity was calm when it had this digest."""
        known = self._documents.get(entity)
        return known is not None and known.value["digest"] == digest

    def puts(self, calm: Iterable[tuple[str, str]]) -> Iterable[Put]:
        """Yield the puts that record which entities are calm, with their digests."""
        for entity, digest in calm:
            known = self._documents.get(entity)
            version = 0 if known is None else known.version
            yield Put(CALM, f"{self.app.project.name}/{entity}", {"digest": digest}, expected=version)
