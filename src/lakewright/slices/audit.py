"""Audit of the manifest: damage in its records, and possible repairs.

Where the manifest and a table disagree is part of the plan of what is due.


Source: `processing-manifest.md`, "State" (invalid items) and "Use cases" (command post); repairs are
Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from lakewright.errors import ManifestCorrupt
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import Item
from lakewright.manifest.lease import LEASE, Lease
from lakewright.manifest.record import State
from lakewright.manifest.replay import replay
from lakewright.manifest.store import Damage, Put, Query, Store, Write
from lakewright.manifest.watermarks import StoredWatermark, Watermarks
from lakewright.slices.inventory import Inventory
from lakewright.upkeep.fsck import fsck, missing_watermarks

ANSWERS = "*"
"""Takes the place of an item id if the damage concerns many items."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair of damage.

    Attributes:
        does: Description of the records that it appends, or of what else it writes.
        apply: Makes the repair.
    """

    item_id: str
    does: str
    apply: Callable[[], object]


def audit(store: Store) -> Iterator[Damage]:
    """Yield damage in records, answers, leases and watermarks."""
    if (unreadable := _unreadable(store)) is not None:
        yield unreadable
        return
    yield from (damage for damage in fsck(store) if not _is_mended(store, damage))
    for lease in _orphans(store):
        yield Damage(lease.key, None, f"it has a lease of {lease.holder}, but is not locked")
    yield from _watermarks(store)


def _unreadable(store: Store) -> Damage | None:
    """Return the damage that makes queries of the manifest fail, if there is any."""
    try:
        for _ in store.select(Query()):
            pass
    except ManifestCorrupt as error:
        mends = Phrase(
            Command("manifest", "fsck", "--repair", "--yes"),
            " rebuilds verdicts and counts from sound records",
        )
        return Damage(ANSWERS, None, Phrase(f"{error.message}: ", mends, ", or says how to replace the file"))
    return None


def _is_mended(store: Store, damage: Damage) -> bool:
    """Return whether a later revision has replaced an illegal record."""
    item = None if damage.sequence is None else store.read([damage.item_id]).get(damage.item_id)
    return item is not None and item.problem is None


def repairs(inventory: Inventory, damages: Iterable[Damage]) -> Iterator[Repair]:
    """Yield the repairs of damage that the manifest can make; a damaged table is not repaired here.

    An item with an illegal record gets a new revision, whose slice is then processed again.
    """
    ledger = inventory.ledger
    does = "rebuild verdicts and counts from the records"
    refold = Repair(ANSWERS, does, ledger.store.rebuild)
    if _unreadable(ledger.store) is not None:
        yield refold
        return
    if any(damage.sequence is None for damage in fsck(ledger.store)):
        yield refold
    for item in _items(ledger.store, damages):
        if item.problem is not None:
            reason = f"fsck: {item.problem}"
            does = f"append NEW, which starts revision {item.revision + 1}: its slice is processed again"
            yield Repair(item.item_id, does, _requeueing(inventory, item, reason))
    for lease in _orphans(ledger.store):
        yield Repair(lease.key, f"remove the lease of {lease.holder}", _removal(ledger.store, lease))
    for standing in missing_watermarks(ledger.store):
        does = f"restore the watermark {_named(standing)}"
        yield Repair(standing.item_id or ANSWERS, does, _restoring(ledger.store, standing))


def _items(store: Store, damages: Iterable[Damage]) -> list[Item]:
    """Return the damaged items, as their records give them."""
    ids = dict.fromkeys(damage.item_id for damage in damages if damage.item_id != ANSWERS)
    return [replay(item_id, store.history(item_id))[0] for item_id in ids]


def _requeueing(inventory: Inventory, item: Item, reason: str) -> Callable[[], object]:
    fingerprint, names = inventory.fingerprint_now(item), inventory.names(item)
    return lambda: inventory.ledger.requeue(item.item_id, reason, names=names, fingerprint=fingerprint)


def _removal(store: Store, lease: Lease) -> Callable[[], object]:
    put = Put(LEASE, lease.key, None, lease.version)
    return lambda: store.write(Write(puts=(put,)))


def _restoring(store: Store, standing: StoredWatermark) -> Callable[[], object]:
    return lambda: store.write(Write(puts=(standing.put(expected=0),)))


def _orphans(store: Store) -> Iterator[Lease]:
    """Yield leases of items that are not locked; a lease and its PROCESSING record are written together."""
    leases = [Lease.from_document(document) for document in store.documents(LEASE)]
    for lease in leases:
        item = store.read([lease.key]).get(lease.key)
        if item is not None and item.processing is None and item.problem is None:
            yield lease


def _watermarks(store: Store) -> Iterator[Damage]:
    """Yield watermarks that are lost, and those that their item is not known to have set.

    Watermarks set by an operator are kept.
    """
    for standing in missing_watermarks(store):
        setter = "it" if standing.author is None else standing.author
        problem = f"the watermark {_named(standing)} that {setter} set is lost"
        yield Damage(standing.item_id or ANSWERS, None, problem)
    for standing in Watermarks(store).all():
        if standing.item_id is None:
            continue
        try:
            records = store.records(standing.item_id)
        except ManifestCorrupt:
            continue  # the item itself is reported, and its watermarks cannot be known
        done = (record for record in records if record.state is State.PROCESSED)
        brought = [(record.content.get("watermarks") or {}).get(standing.column) for record in done]
        if standing.watermark.as_json() not in brought:
            problem = Phrase(
                f"the watermark {_named(standing)} refers to it, but it did not set that watermark: ",
                Command("watermark", "set", "ENTITY", "COLUMN", "VALUE"),
                " sets the right one",
            )
            yield Damage(standing.item_id, None, problem)


def _named(standing: StoredWatermark) -> str:
    return f"{standing.column}={standing.watermark.value} of {standing.application}"
