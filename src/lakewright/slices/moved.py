"""Noticing that a lake was moved or copied: its slices have other names, and would all be processed again.

Source: `processing-manifest.md`, "Item" (named by a URI).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING

from lakewright.errors import LakeMoved
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.store import Query
from lakewright.slices.pending import slice_name

if TYPE_CHECKING:
    from lakewright.slices.bench import Bench

__all__ = ["refuse_moved"]


def refuse_moved(bench: Bench, place: str, names: Set[str]) -> None:
    """Return unless slices of these names were processed elsewhere, and none of the entity's where they are.

    Args:
        bench: Of the entity.
        place: The URI below which its slices are now.
        names: Of the slices there.

    Raises:
        LakeMoved: It looks as if the lake was moved.
    """
    if not names or next(_processed(bench, f"{place}/"), None) is not None:
        return
    before = next((item for item in _processed(bench) if slice_name(item) in names), None)
    if before is None:
        return
    old = before.item_id.rpartition("/")[0]
    raise LakeMoved(
        f"slices of {bench.application} were processed in {old}, and are in {place} now",
        remedy="If the lake was moved or copied, have the manifest follow with "
        f"`lakewright manifest move {shlex.quote(old)} {shlex.quote(place)}`. "
        "If these are others, run DESTROY first, to start over.",
        details={"old": old, "new": place},
    )


def _processed(bench: Bench, prefix: str = "") -> Iterator[Item]:
    query = Query(application=bench.application, verdicts=frozenset({Verdict.PROCESSED}), prefix=prefix)
    return iter(bench.ledger.store.select(query))
