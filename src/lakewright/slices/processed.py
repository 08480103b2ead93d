"""The slices that an application has processed, as the manifest says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakewright.manifest.item import Verdict
from lakewright.manifest.store import Query

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.manifest.record import Application
    from lakewright.manifest.store import Store

__all__ = ["first_processed", "processed_items"]


def processed_items(store: Store, application: Application, prefix: str = "") -> Iterator[Item]:
    """Return the items that an application has processed, below a prefix of their ids."""
    query = Query(application=application, verdicts=frozenset({Verdict.PROCESSED}), prefix=prefix)
    return iter(store.select(query))


def first_processed(store: Store, application: Application, prefix: str = "") -> Item | None:
    """Return one of these items, or None if there is none."""
    return next(processed_items(store, application, prefix), None)
