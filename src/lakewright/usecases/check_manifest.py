"""Check the manifest's records and the state derived from them, and repair damage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakewright.app import App
from lakewright.manifest.store import Damage
from lakewright.slices.audit import Repair, audit, repairs
from lakewright.usecases.items import inventory_of

__all__ = ["ManifestCheck", "check_manifest"]


@dataclass(frozen=True, slots=True)
class ManifestCheck:
    """The result of a check.

    Attributes:
        found: Damage that the check found.
        repairs: The repairs of it, planned or made.
        left: Damage that remains after the repairs, if any were made.
        is_repaired: Whether the repairs were made.
    """

    found: Sequence[Damage]
    repairs: Sequence[Repair]
    left: Sequence[Damage]
    is_repaired: bool


def check_manifest(app: App, *, repairs_it: bool, author: str) -> ManifestCheck:
    """Check the manifest of the project.

    Nothing else should write to it during the check. Records are never changed: an item with an illegal
    record gets a new revision.

    Args:
        app: The project.
        repairs_it: Make the repairs, then check again.
        author: The author of the repairs.
    """
    found = tuple(audit(app.store))
    planned = tuple(repairs(inventory_of(app, author), found)) if found else ()
    if not (repairs_it and planned):
        return ManifestCheck(found, planned, found, is_repaired=False)
    for repair in planned:
        repair.apply()
    return ManifestCheck(found, planned, tuple(audit(app.store)), is_repaired=True)
