"""Differences between bronze, silver and the manifest: new, changed and missing slices, unrecorded commits.

Source: `processing-manifest.md`, "Use cases" (command post).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright.errors import StorageUnavailable, TargetError
from lakewright.lake.observation import last_commit_number
from lakewright.manifest.item import Verdict, has_same_amounts, is_changed
from lakewright.manifest.store import Query
from lakewright.slices.bronze import Slice
from lakewright.slices.discover import (
    discovered,
    find_slice,
    item_id,
    list_slices,
    natural_key,
    slice_name,
)
from lakewright.slices.moved_lake import continued_in, moved_lake_error
from lakewright.slices.recover_from_log import (
    as_if_recovered,
    has_landed,
    last_given_number,
    unrecorded_commits,
)
from lakewright.slices.rewind.unrecorded import UnrecordedRewind, unrecorded_items, unrecorded_rewinds

if TYPE_CHECKING:
    from lakewright.errors import LakeMoved, LakewrightError
    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Application
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Places

__all__ = ["Differences", "Inventory"]


_CLOSED = (Verdict.PROCESSED, Verdict.SKIPPED)


@dataclass(slots=True)
class Differences:
    """The differences that an inventory found; each entry names item, entity and slice.

    Attributes:
        new: Slices that the manifest did not know and has recorded as NEW; `recovered` is how the next run
            records those that the table's log tells of, without processing them.
        changed: Items whose slice has changed since it was recorded.
        missing: Items whose slice is no longer in bronze.
        unrecorded: Commits to a silver table that the manifest does not know to have landed.
        unreadable: What commands call the entities whose bronze folder or silver table can't be read, with
            the error. What was found before it is listed.
    """

    new: list[dict[str, Any]] = field(default_factory=list)
    changed: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    unrecorded: list[dict[str, Any]] = field(default_factory=list)
    unreadable: list[tuple[str, LakewrightError]] = field(default_factory=list)

    def as_json(self) -> dict[str, list[dict[str, Any]]]:
        """Return the document that `manifest discover -o json` prints."""
        return {
            "new": self.new,
            "changed": self.changed,
            "missing": self.missing,
            "unrecorded": self.unrecorded,
            "unreadable": [{"entity": name, **error.as_fault().as_json()} for name, error in self.unreadable],
        }


@dataclass(frozen=True, slots=True)
class Inventory:
    """The slices of a project's entities in bronze, silver and the manifest.

    Attributes:
        entities: The project's entities by name.
        places_of: Returns where an entity's slices and rows are.
        application_of: Returns the application that processes an entity's slices.
    """

    lake: Lake
    ledger: Ledger
    entities: Mapping[str, Entity]
    places_of: Callable[[Entity], Places]
    application_of: Callable[[Entity], Application]

    def differences(self, entities: Iterable[Entity]) -> Differences:
        """Record new slices; return them and all other differences.

        An entity whose bronze folder or silver table can't be read does not keep the others from it.
        """
        differences = Differences()
        for entity in entities:
            try:
                self._compare(entity, differences)
            except (TargetError, StorageUnavailable) as error:
                differences.unreadable.append((entity.called, error))
        return differences

    def _compare(self, entity: Entity, differences: Differences) -> None:
        slices = list_slices(self.places_of(entity).bronze, self.lake)
        found = self.ledger.discover(discovered(slices, self.application_of(entity), entity.called))
        differences.new += self._new_entries(entity, found.new)
        present = {item_id(slice_.path): slice_ for slice_ in slices}
        known = self._items(entity)
        gone = (item for item in self._standing(entity, known) if item.item_id not in present)
        differences.changed += map(self._changed_entry(entity, present), _changed(known, present))
        differences.missing += map(self._missing_entry(entity), gone)
        differences.unrecorded += self._unrecorded(entity, known)

    def record(self, ids: Collection[str], entities: Iterable[Entity]) -> Item | None:
        """Record a slice of these entities that has one of these item ids; return its item, or None."""
        for entity in entities:
            bronze = self.places_of(entity).bronze
            below = item_id(bronze).rstrip("/") + "/"
            if not any(each.startswith(below) for each in ids):
                continue
            slices = [each for each in list_slices(bronze, self.lake) if item_id(each.path) in ids]
            found = self.ledger.discover(discovered(slices, self.application_of(entity), entity.called))
            if (item := next(iter((*found.new, *found.known)), None)) is not None:
                return item
        return None

    def _new_entries(self, entity: Entity, items: Collection[Item]) -> list[dict[str, Any]]:
        """Return entries of new items, each with the verdict that the next run takes from the table's log."""
        application, silver = self.application_of(entity), self.places_of(entity).silver
        recovered: Mapping[str, Item] = {}
        # The look for what is not recorded tells that the table can't be read.
        with suppress(TargetError, StorageUnavailable):
            if items:
                recovered = as_if_recovered(self.lake, self.ledger, silver, items, application)
        verdicts = {name: item.verdict(application).value for name, item in recovered.items()}
        return [{**_entry(item), "recovered": verdicts.get(item.item_id)} for item in items]

    def _known_entry(self, entity: Entity) -> Callable[[Item], dict[str, Any]]:
        application = self.application_of(entity)
        return lambda item: {**_entry(item), "verdict": item.verdict(application).value}

    def _changed_entry(
        self, entity: Entity, present: Mapping[str, Slice]
    ) -> Callable[[Item], dict[str, Any]]:
        """Return an entry with whether the slice has the size and number of files that were recorded."""
        known = self._known_entry(entity)
        return lambda item: {
            **known(item),
            "is_same_size": has_same_amounts(item.fingerprint or {}, present[item.item_id].fingerprint),
        }

    def _missing_entry(self, entity: Entity) -> Callable[[Item], dict[str, Any]]:
        """Return an entry with whether the item is of another place than the entity's bronze folder."""
        known, here = self._known_entry(entity), item_id(self.places_of(entity).bronze).rstrip("/") + "/"
        return lambda item: {**known(item), "is_elsewhere": not item.item_id.startswith(here)}

    def _items(self, entity: Entity) -> list[Item]:
        return list(self.ledger.store.select(Query(application=self.application_of(entity))))

    def _standing(self, entity: Entity, items: Sequence[Item]) -> list[Item]:
        """Return an entity's items without closed ones that `manifest move` has continued in its bronze."""
        application = self.application_of(entity)
        ids = [item.item_id for item in items if item.verdict(application) in _CLOSED]
        continued = continued_in(self.ledger.store, ids, self.places_of(entity).bronze)
        return [item for item in items if item.item_id not in continued]

    def _unrecorded(self, entity: Entity, known: Sequence[Item]) -> Iterator[dict[str, Any]]:
        """Yield commits of slices that the manifest never began to process.

        If there are none, yield the last commit if its slice is not recorded as processed.
        """
        application, last = self.application_of(entity), self.last_commit_number(entity)
        if last is None:
            return
        given = self.last_given_number(entity)
        if last > given:
            silver = self.places_of(entity).silver
            lost = list(unrecorded_commits(self.lake, silver, known, application))
            yield from ({**_entry(item), "number": commit.content["number"]} for item, commit in lost)
            if lost:
                return
        numbered = [item for item in known if item.tokens.get(application.key) == last]
        # If no item has the number any more, it belongs to a revision that was requeued since.
        if not numbered and last > given:
            yield {"item_id": None, "entity": entity.called, "slice": None, "number": last}
        for item in numbered:
            if not item.is_processed_by(application) and self.has_landed(entity, item):
                yield {**_entry(item), "number": last}

    def last_given_number(self, entity: Entity) -> int:
        """Return the last number that the manifest gave to a commit to an entity's table; 0 for none."""
        return last_given_number(self.ledger, self.places_of(entity).silver)

    def last_commit_number(self, entity: Entity) -> int | None:
        """Return the number of the last commit to an entity's silver table, or None."""
        address = self.places_of(entity).silver
        return last_commit_number(self.lake, address, str(self.application_of(entity)))

    def unrecorded_items(self, entity: Entity) -> tuple[Item, ...]:
        """Return the items of an entity that its next run records from the table's log, as they are then."""
        application, places = self.application_of(entity), self.places_of(entity)
        return unrecorded_items(self.lake, self.ledger, places, application, entity.called)

    def unrecorded_rewinds(self, entity: Entity) -> tuple[UnrecordedRewind, ...]:
        """Return the rewinds of an entity's table that its next run records, oldest first."""
        silver, application = self.places_of(entity).silver, self.application_of(entity)
        return unrecorded_rewinds(self.lake, self.ledger, silver, application)

    def moved(self, entity: Entity) -> LakeMoved | None:
        """Return the error of slices that were processed in another folder than the entity's, or None."""
        place = self.places_of(entity).bronze
        names = {slice_.name for slice_ in list_slices(place, self.lake)}
        return moved_lake_error(self.ledger.store, self.application_of(entity), item_id(place), names)

    def has_landed(self, entity: Entity, item: Item) -> bool:
        """Return whether the last commit to an entity's silver table is of an item."""
        application = self.application_of(entity)
        if item.tokens.get(application.key) != self.last_commit_number(entity):
            return False
        return has_landed(self.lake, self.places_of(entity).silver, item, application)

    def fingerprint_now(self, item: Item) -> dict[str, Any] | None:
        """Return the present fingerprint of an item's slice, or None if no entity has it in bronze."""
        entity, name = self._place(item)
        if entity is None or name is None:
            return None
        found = find_slice(self.places_of(entity).bronze, name, self.lake)
        return None if found is None else found.fingerprint

    def changed(self, entities: Iterable[Entity]) -> Iterator[Item]:
        """Yield items whose slices no longer have the recorded fingerprint; nothing is recorded."""
        for entity in entities:
            slices = list_slices(self.places_of(entity).bronze, self.lake)
            present = {item_id(slice_.path): slice_ for slice_ in slices}
            known = self.ledger.store.read(list(present))
            yield from _changed((known[each] for each in present if each in known), present)

    def names(self, item: Item) -> dict[str, str]:
        """Return the `entity` and `slice` for a NEW record of an item, or nothing if they are not known."""
        entity, name = self._place(item)
        return {} if entity is None or name is None else {"entity": entity.called, "slice": name}

    def later_items(self, item: Item) -> tuple[Entity | None, tuple[str, ...]]:
        """Return an item's entity, and the ids of its later items that are processed, in order."""
        entity, name = self._place(item)
        if entity is None or name is None:
            return None, ()
        application = self.application_of(entity)
        standing = self._standing(entity, self._items(entity))
        processed = (other for other in standing if other.is_processed_by(application))
        named = sorted((natural_key(slice_name(other)), other.item_id) for other in processed)
        return entity, tuple(each for key, each in named if key > natural_key(name))

    def _place(self, item: Item) -> tuple[Entity | None, str | None]:
        note = item.new.note if item.new is not None else {}
        if "entity" not in note or "slice" not in note:
            return self._found(item)
        return self.entities.get(str(note["entity"])), str(note["slice"])

    def _found(self, item: Item) -> tuple[Entity | None, str | None]:
        """Return the entity that has an item's slice in bronze, preferably one that used it, and its name."""
        used = {application.key for application in item.applications}
        for entity in sorted(
            self.entities.values(), key=lambda each: self.application_of(each).key not in used
        ):
            bronze = self.places_of(entity).bronze
            slices = list_slices(bronze, self.lake) if item.item_id.startswith(item_id(bronze)) else ()
            for slice_ in slices:
                if item_id(slice_.path) == item.item_id:
                    return entity, slice_.name
        return None, None


def _changed(known: Iterable[Item], present: Mapping[str, Slice]) -> Iterator[Item]:
    for item in known:
        slice_ = present.get(item.item_id)
        recorded = item.fingerprint
        if slice_ is not None and recorded is not None and is_changed(recorded, slice_.fingerprint):
            yield item


def _entry(item: Item) -> dict[str, Any]:
    note = item.new.note if item.new is not None else {}
    return {"item_id": item.item_id, "entity": note.get("entity"), "slice": note.get("slice")}
