"""Whether a slice is still there, and as it was recorded.

Source: rules of entities, "Errors": empty, vanished or changed slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import SliceError
from lakewright.slices.discover import find_slice, refuse_unreadable
from lakewright.slices.pending import slice_name

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item
    from lakewright.slices.discover import Slice

__all__ = ["unchanged_slice"]


def unchanged_slice(lake: Lake, bronze: str, item: Item) -> Slice:
    """Return an item's slice, if it is as it was when it was recorded.

    Raises:
        SliceError: It is gone, has changed, or has not a single byte.
    """
    name = slice_name(item)
    found = find_slice(bronze, name, lake)
    if found is None:
        raise SliceError(
            f"the slice {name} is gone from {bronze}",
            remedy="Bring it back, then resolve the item; else resolve and skip it.",
        )
    recorded = item.fingerprint
    if recorded is not None and dict(recorded) != found.fingerprint:
        raise SliceError(
            f"the slice {name} has changed since it was discovered",
            remedy="If it is right as it is now, resolve the item.",
            details={"recorded": dict(recorded), "found": found.fingerprint},
        )
    refuse_unreadable(found)
    return found
