"""Differences between bronze, silver and the manifest: new, changed and missing slices, unrecorded commits.

Source: `processing-manifest.md`, "Use cases" (command post).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright.errors import StorageUnavailable, TargetError
from lakewright.manifest.item import has_same_amounts
from lakewright.manifest.store import Query
from lakewright.manifest.verdict import Verdict
from lakewright.slices.chain import continued_in, without_continued
from lakewright.slices.deviations import changed_items, later_processed
from lakewright.slices.discovery import (
    find_slice,
    list_slices,
)
from lakewright.slices.log_recovery import unrecorded_commits, unrecorded_items

if TYPE_CHECKING:
    from lakewright.errors import LakewrightError
    from lakewright.manifest.item import Item
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Application
    from lakewright.slices.chain import SliceChain
    from lakewright.spec.models.entity import Entity


_CLOSED = (Verdict.PROCESSED, Verdict.SKIPPED)


@dataclass(slots=True)
class Differences:
    """The differences that an inventory found; each entry names item, entity and slice.

    Attributes:
        new: Slices that the manifest did not know and has recorded as NEW; `recovered` is how the next run
            records those that are in the table's log, without processing them.
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
        chain_of: Returns the slices of an entity.
    """

    ledger: Ledger
    entities: Mapping[str, Entity]
    chain_of: Callable[[Entity], SliceChain]

    def differences(self, entities: Iterable[Entity]) -> Differences:
        """Record new slices; return them and all other differences.

        An entity whose bronze folder or silver table can't be read does not keep the others from it.
        """
        differences = Differences()
        for entity in entities:
            try:
                self._compare(self.chain_of(entity), differences)
            except (TargetError, StorageUnavailable) as error:
                differences.unreadable.append((entity.called, error))
        return differences

    def _compare(self, chain: SliceChain, differences: Differences) -> None:
        application = chain.application
        slices = list_slices(chain.folder, chain.lake)
        found = self.ledger.discover(chain.discovered(slices))
        differences.new += _new_entries(chain, found.new)
        present = {slice_.item_id: slice_ for slice_ in slices}
        known = list(chain.store.select(Query(application=application)))
        differences.changed += (
            {
                **_entry(item, application),
                "is_same_size": has_same_amounts(item.fingerprint or {}, present[item.item_id].fingerprint),
            }
            for item in changed_items(known, slices)
        )
        closed = (each.item_id for each in known if each.verdict(application) in _CLOSED)
        continued = continued_in(chain.store, closed, chain.bronze)  # by `manifest move`
        differences.missing += (
            {**_entry(item, application), "is_elsewhere": not item.item_id.startswith(chain.prefix)}
            for item in known
            if item.item_id not in present and item.item_id not in continued
        )
        differences.unrecorded += _unrecorded(chain, known)

    def record(self, ids: Collection[str], entities: Iterable[Entity]) -> Item | None:
        """Record a slice of these entities that has one of these item ids; return its item, or None."""
        for chain in map(self.chain_of, entities):
            if not any(each.startswith(chain.prefix) for each in ids):
                continue
            slices = [each for each in list_slices(chain.folder, chain.lake) if each.item_id in ids]
            found = self.ledger.discover(chain.discovered(slices))
            if (item := next(iter((*found.new, *found.known)), None)) is not None:
                return item
        return None

    def fingerprint_now(self, item: Item) -> dict[str, Any] | None:
        """Return the present fingerprint of an item's slice, or None if no entity has it in bronze."""
        entity, name = self._place(item)
        if entity is None or name is None:
            return None
        chain = self.chain_of(entity)
        found = find_slice(chain.folder, name, chain.lake)
        return None if found is None else found.fingerprint

    def changed(self, entities: Iterable[Entity]) -> Iterator[Item]:
        """Yield items whose slices no longer have the recorded fingerprint; nothing is recorded."""
        for chain in map(self.chain_of, entities):
            slices = list_slices(chain.folder, chain.lake)
            known = chain.store.read([slice_.item_id for slice_ in slices])
            yield from changed_items(known.values(), slices)

    def names(self, item: Item) -> dict[str, str]:
        """Return the `entity` and `slice` for a NEW record of an item, or nothing if they are not known."""
        entity, name = self._place(item)
        return {} if entity is None or name is None else {"entity": entity.called, "slice": name}

    def later_items(self, item: Item) -> tuple[Entity | None, tuple[str, ...]]:
        """Return an item's entity, and the ids of its later items that are processed, in order."""
        entity, name = self._place(item)
        if entity is None or name is None:
            return None, ()
        chain = self.chain_of(entity)
        known = chain.store.select(Query(application=chain.application))
        standing = without_continued(chain.store, known, chain.bronze)
        later = later_processed(name, standing, chain.application)
        return entity, tuple(each.item_id for each in later)

    def _place(self, item: Item) -> tuple[Entity | None, str | None]:
        note = item.new.note if item.new is not None else {}
        noted = self.entities.get(str(note.get("entity")))
        if noted is None or "slice" not in note:  # its entity may have another name now
            return self._found(item)
        return noted, str(note["slice"])

    def _found(self, item: Item) -> tuple[Entity | None, str | None]:
        """Return the entity that has an item's slice in bronze, preferably one that used it, and its name."""
        used = {application.key for application in item.applications}
        chains = map(self.chain_of, self.entities.values())
        for chain in sorted(chains, key=lambda each: each.application.key not in used):
            slices = list_slices(chain.folder, chain.lake) if item.item_id.startswith(chain.prefix) else ()
            for slice_ in slices:
                if slice_.item_id == item.item_id:
                    return chain.entity, slice_.name
        return None, None


def _new_entries(chain: SliceChain, items: Collection[Item]) -> list[dict[str, Any]]:
    """Return entries of new items, each with the verdict that the next run takes from the table's log."""
    recovered: Mapping[str, Item] = {}
    # The search for unrecorded slices reports that the table can't be read.
    with suppress(TargetError, StorageUnavailable):
        recovered = unrecorded_items(chain, items)
    verdicts = {name: item.verdict(chain.application).value for name, item in recovered.items()}
    return [{**_entry(item), "recovered": verdicts.get(item.item_id)} for item in items]


def _unrecorded(chain: SliceChain, known: Sequence[Item]) -> Iterator[dict[str, Any]]:
    """Yield commits of slices that the manifest never began to process.

    If there are none, yield the last commit if its slice is not recorded as processed.
    """
    last, given = chain.last_number, chain.last_given_number
    if last is None:
        return
    if last > given:
        lost = list(unrecorded_commits(chain, known))
        yield from ({**_entry(item), "number": commit.content["number"]} for item, commit in lost)
        if lost:
            return
    numbered = [item for item in known if item.tokens.get(chain.application.key) == last]
    # If no item has the number any more, it belongs to a revision that was requeued since.
    if not numbered and last > given:
        yield {"item_id": None, "entity": chain.entity.called, "slice": None, "number": last}
    for item in numbered:
        if not item.is_processed_by(chain.application) and chain.has_landed(item):
            yield {**_entry(item), "number": last}


def _entry(item: Item, application: Application | None = None) -> dict[str, Any]:
    """Return an entry of an item, with its verdict for an application if one is given."""
    note = item.new.note if item.new is not None else {}
    entry = {"item_id": item.item_id, "entity": note.get("entity"), "slice": note.get("slice")}
    return entry if application is None else {**entry, "verdict": item.verdict(application).value}
