"""Where bronze and the manifest disagree: slices that are new, changed or missing, commits not recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright.cli.items import entity_application, slice_of
from lakewright.lake.table import last_number
from lakewright.manifest.store import Query
from lakewright.slices.discover import Slice, discovered, find_slice, item_id, list_slices, natural_key

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.manifest.record import Application
    from lakewright.spec.entity import Entity

__all__ = ["Differences", "discover", "fingerprint_now", "later_items"]


@dataclass(slots=True)
class Differences:
    """What discovery found; each entry names item, entity and slice.

    Attributes:
        new: Slices that the manifest didn't know and now has as NEW.
        changed: Items whose slice has other content than when it was recorded.
        missing: Items whose slice isn't in bronze any more.
        unrecorded: Commits in a silver table of which the manifest doesn't know that they landed.
    """

    new: list[dict[str, Any]] = field(default_factory=list)
    changed: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    unrecorded: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, list[dict[str, Any]]]:
        """Return the document that `manifest discover -o json` prints."""
        return {
            "new": self.new,
            "changed": self.changed,
            "missing": self.missing,
            "unrecorded": self.unrecorded,
        }


def discover(app: App, entities: Iterable[Entity]) -> Differences:
    """Return what is new and what differs, after recording what is new."""
    differences = Differences()
    for entity in entities:
        application = entity_application(app, entity.name)
        slices = list_slices(entity.places(app.project.lake).bronze, app.lake)
        found = app.ledger.discover(discovered(slices, application, entity.name))
        differences.new += [_entry(item) for item in found.new]
        present = {item_id(slice_.path): slice_ for slice_ in slices}
        known = list(app.store.select(Query(application=application)))
        differences.changed += [_entry(item) for item in _changed(known, present)]
        differences.missing += [_entry(item) for item in known if item.item_id not in present]
        differences.unrecorded += _unrecorded(app, entity, application, known)
    return differences


def _changed(known: Iterable[Item], present: dict[str, Slice]) -> Iterator[Item]:
    for item in known:
        slice_ = present.get(item.item_id)
        if slice_ is not None and item.fingerprint is not None and item.fingerprint != slice_.fingerprint:
            yield item


def _unrecorded(
    app: App, entity: Entity, application: Application, known: Iterable[Item]
) -> Iterator[dict[str, Any]]:
    """Yield the last commit that the silver table numbered, if the manifest doesn't have it as processed."""
    last = last_number(app.lake, entity.places(app.project.lake).silver, str(application))
    if last is None:
        return
    numbered = [item for item in known if item.tokens.get(application.key) == last]
    if not any(item.is_processed_by(application) for item in numbered):
        found = _entry(numbered[0]) if numbered else {"item_id": None, "entity": entity.name, "slice": None}
        yield {**found, "number": last}


def _entry(item: Item) -> dict[str, Any]:
    note = item.new.note if item.new is not None else {}
    return {"item_id": item.item_id, "entity": note.get("entity"), "slice": note.get("slice")}


def fingerprint_now(app: App, item: Item) -> dict[str, Any] | None:
    """Return the fingerprint of an item's slice as it is now, or None where no entity has it there."""
    entity, name = _place(app, item)
    if entity is None or name is None:
        return None
    found = find_slice(entity.places(app.project.lake).bronze, name, app.lake)
    return None if found is None else found.fingerprint


def later_items(app: App, item: Item) -> tuple[Entity | None, tuple[str, ...]]:
    """Return an item's entity, and the ids of later items that it has processed, in their order."""
    entity, name = _place(app, item)
    if entity is None or name is None:
        return None, ()
    application = entity_application(app, entity.name)
    processed = (
        other
        for other in app.store.select(Query(application=application))
        if other.is_processed_by(application)
    )
    named = sorted((natural_key(slice_of(other)), other.item_id) for other in processed)
    return entity, tuple(item_id for key, item_id in named if key > natural_key(name))


def _place(app: App, item: Item) -> tuple[Entity | None, str | None]:
    note = item.new.note if item.new is not None else {}
    entity, name = note.get("entity"), note.get("slice")
    return app.project.entities.get(str(entity)), None if name is None else str(name)
