"""Adding items that a program announces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lakewright.errors import UsageError
from lakewright.manifest.discovery import Discovery
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import Application
from lakewright.slices.discovery import item_id


def add_items(
    ledger: Ledger,
    items: Iterable[str | Path],
    application: Application,
    payload: Mapping[str, Any] | None,
    *,
    run_id: str,
) -> Discovery:
    """Record items that the manifest doesn't know as NEW; known ones are left unchanged.

    Raises:
        UsageError: An id or the payload can't be recorded; nothing was written for that item and those after.
    """
    ids = dict.fromkeys(map(id_of, items))
    if not all(each.strip() for each in ids):
        raise UsageError(
            "the id of an item is empty", remedy="Name a URI, a path, a table or a span of time."
        )
    return ledger.announce(ids, application, payload, run_id=run_id)


def id_of(item: str | Path) -> str:
    """Return the id of an item: a text as it is, a path as the location of a slice there.

    Example:
        >>> id_of("table orders"), id_of(Path("/lake/a b"))
        ('table orders', 'file:///lake/a%20b')
    """
    return item_id(str(item)) if isinstance(item, Path) else item
