"""Whether this user may write a manifest on this machine, as the rights to its file and folder show it.

Nothing is written to find that out. Of a database or an object store, only a write would show it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.errors import Fault

if TYPE_CHECKING:
    from lakewright.stores.backend import Backend


def may_write(*places: Path) -> bool:
    """Return whether this user may write all of some files and folders that exist."""
    as_effective = os.access in os.supports_effective_ids
    return all(os.access(place, os.W_OK, effective_ids=as_effective) for place in places)


def write_fault(backend: Backend) -> Fault | None:
    """Return why a run would fail at a manifest that can be read; None if nothing shows that it would.

    Args:
        backend: The manifest's back end; it can be read, or does not exist yet.
    """
    place = backend.local_place
    if place is None:
        return None
    if place.exists():
        if backend.is_writable is not False:
            return None
        return Fault(
            f"the manifest {place} can be read, but this user may not write to it: a run would fail",
            remedy=f"Give the user who runs Lakewright the right to write {_parts(place)}. "
            "What only reads works without.",
            code="store_unavailable",
        )
    folder = next(above for above in place.absolute().parents if above.exists())
    if not folder.is_dir() or may_write(folder):
        return None
    return Fault(
        f"the manifest {place} does not exist, and this user may not create it in {folder}: a run would fail",
        remedy=f"Give the user who runs Lakewright the right to write {folder}, or set `manifest:` to "
        "another place.",
        code="store_unavailable",
    )


def _parts(place: Path) -> str:
    if place.is_dir():
        return "this folder and what is in it"
    beside = [f"{name}" for end in ("-wal", "-shm") if (name := Path(f"{place}{end}")).exists()]
    also = "".join(f", {name}" for name in beside)
    return f"this file{also} and its folder {place.parent}"
