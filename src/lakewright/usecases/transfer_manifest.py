"""Export the manifest as lines of JSON, import such lines, and move items to another location."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lakewright.app import App
from lakewright.errors import Fault, UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest import transfer
from lakewright.manifest.commit_counter import COUNTER, raise_counter
from lakewright.manifest.relocate import Relocated, relocate
from lakewright.manifest.transfer import Imported
from lakewright.slices.application import application_of
from lakewright.slices.chain import counter_of
from lakewright.slices.discover import item_id
from lakewright.usecases.placed import placed_entities

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

    This is for a lake that was moved or copied. The records below the old location are kept. The numbers of
    commits to the tables of the moved slices continue.

    Raises:
        UsageError: Both are the same location, or the manifest has no item below the old one.
    """
    source, goal = (item_id(place.rstrip("/")) for place in (old, new))
    if source == goal:
        raise UsageError(f"OLD and NEW are the same place: {source}", remedy="Name two places.")
    found = list(relocate(app.store, source, goal, app.ids))
    if not found:
        raise UsageError(
            f"the manifest has no item below {source}",
            remedy=Phrase(Command("manifest", "ls"), " lists the items."),
        )
    moved = [each for each in found if each.fault is None]
    _continue_numbers(app, moved)
    return Moved(
        goal,
        items=tuple(each.new for each in moved),
        faults=tuple(each.fault for each in found if each.fault is not None),
    )


def _continue_numbers(app: App, moved: Sequence[Relocated]) -> None:
    """Raise the counters of the tables of moved slices to the numbers that were given where they were."""
    for entity, places in placed_entities(app):
        here, application = f"{item_id(places.bronze)}/", application_of(app.project.name, entity)
        own = [each for each in moved if each.new.startswith(here)]
        counters = {name for each in own for name in each.counters}
        items = app.store.read([each.new for each in own]).values()
        given = [item.tokens.get(application.key, 0) for item in items]
        seen = app.store.look_up([], [(COUNTER, name) for name in counters]).documents.values()
        last = max((*given, *(document.value["last"] for document in seen)), default=0)
        if last:
            raise_counter(app.store, counter_of(places.silver), last)
