"""Export the manifest as lines of JSON, import such lines, and move items to another location."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lakewright.app import App
from lakewright.errors import Fault, UsageError
from lakewright.manifest import transfer
from lakewright.manifest.relocate import relocate
from lakewright.manifest.transfer import Imported
from lakewright.slices.discover import item_id

__all__ = ["Moved", "export_manifest", "import_manifest", "move_items"]


@dataclass(frozen=True, slots=True)
class Moved:
    """Items that were moved.

    Attributes:
        goal: The location that they are below now.
        items: Their new ids.
        faults: Why the other items could not be moved.
    """

    goal: str
    items: tuple[str, ...]
    faults: tuple[Fault, ...]


def export_manifest(app: App) -> Iterator[str]:
    """Yield every readable record, then watermarks, counters and the history of runs; leases are left out."""
    return transfer.export_manifest(app.store)


def import_manifest(app: App, lines: Iterable[str], *, source: str, keep_going: bool = False) -> Imported:
    """Import lines that `export_manifest` yielded, or Snowplow's records; existing entries are kept.

    If a line is wrong, nothing is imported, unless `keep_going`. Secrets of the project are removed.

    Args:
        app: The project.
        lines: One JSON document each.
        source: Names the lines in the locations of faults.
        keep_going: Whether to import what is right although something is wrong.
    """
    return transfer.import_manifest(
        app.store, lines, source=source, keep_going=keep_going, redactor=app.redactor
    )


def move_items(app: App, old: str, new: str) -> Moved:
    """Copy the records of slices below one location to slices of the same names below another.

    This is for a lake that was moved or copied. The records below the old location are kept.

    Raises:
        UsageError: Both are the same location, or the manifest has no item below the old one.
    """
    source, goal = (item_id(place.rstrip("/")) for place in (old, new))
    if source == goal:
        raise UsageError(f"OLD and NEW are the same place: {source}", remedy="Name two places.")
    found = list(relocate(app.store, source, goal, app.ids))
    if not found:
        raise UsageError(
            f"the manifest has no item below {source}", remedy="`lakewright manifest ls` lists the items."
        )
    return Moved(
        goal,
        items=tuple(each.new for each in found if each.fault is None),
        faults=tuple(each.fault for each in found if each.fault is not None),
    )
