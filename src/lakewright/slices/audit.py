"""Audit of the manifest: damage in its records, disagreement with the tables, and possible repairs.

Source: `processing-manifest.md`, "State" (invalid items) and "Use cases" (command post); repairs are
Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lakewright.errors import ManifestCorrupt, StorageUnavailable, TargetError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.storage_errors import DAMAGED, known_remedy, moving_command
from lakewright.manifest.fsck import fsck
from lakewright.manifest.item import Item
from lakewright.manifest.lease import LEASE, Lease
from lakewright.manifest.lock import command
from lakewright.manifest.record import State
from lakewright.manifest.store import Damage, Put, Query, Store, Write
from lakewright.manifest.watermark_recovery import missing_watermarks
from lakewright.manifest.watermarks import StoredWatermark, Watermarks
from lakewright.slices.chain import SliceChain
from lakewright.slices.discover import called_name, list_slices, slice_name
from lakewright.slices.inventory import Inventory
from lakewright.slices.lost_table import has_no_commit
from lakewright.slices.moved_lake import moved_lake_error
from lakewright.slices.recover_from_log import UNRECORDED_ADVICE, unrecorded_items, unrecorded_rewinds
from lakewright.spec.models.entity import Entity
from lakewright.spec.words import counted, first_of
from lakewright.strategies.outdated import rebuild_command

__all__ = ["Repair", "audit", "repairs"]

MOST_NAMED = 3

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


def audit(inventory: Inventory, entities: Iterable[Entity]) -> Iterator[Damage]:
    """Yield damage in records, answers, leases and watermarks, and disagreement with the tables.

    Args:
        inventory: The slices of the project.
        entities: The entities whose tables are compared.
    """
    store = inventory.ledger.store
    if (unreadable := _unreadable(store)) is not None:
        yield unreadable
        return
    yield from (damage for damage in fsck(store) if not _is_mended(store, damage))
    for lease in _orphans(store):
        yield Damage(lease.key, None, f"it has a lease of {lease.holder}, but is not locked")
    yield from _watermarks(store)
    for entity in entities:
        try:
            yield from _beside_table(inventory.chain_of(entity))
        except (TargetError, StorageUnavailable) as error:  # the tables after it are checked nevertheless
            yield Damage(ANSWERS, None, _unchecked(entity, error))


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
    ids = dict.fromkeys(damage.item_id for damage in damages if damage.item_id != ANSWERS)
    return list(store.read(list(ids)).values())


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


def _beside_table(chain: SliceChain) -> Iterator[Damage]:
    """Yield commits on which the manifest and an entity's table disagree.

    An item that is locked or ready and whose commit has not landed is no damage: it is being attempted.
    """
    entity, application, last = chain.entity, chain.application, chain.last_number
    for item in chain.store.select(Query(application=application)):
        number = item.tokens.get(application.key)
        if number is None or item.problem is not None:
            continue
        is_done = item.is_processed_by(application)
        if is_done and number > (last or 0) and not has_no_commit(chain.store, item, application):
            yield _lost_commit(item, entity, number, last)
        elif not is_done and number == last and chain.has_landed(item) and not _is_at_work(chain, item):
            told = f"its commit {number} has landed, but is not recorded; "
            yield Damage(item.item_id, None, Phrase(told, Command("apply"), " records it"))
    rewinds = unrecorded_rewinds(chain)
    told_of = {each.item_id for rewind in rewinds for each in rewind.slices}
    if rewinds:
        told = f"the manifest lacks an undo or a rebuild of the table of {entity.called}"
        words = first_of([each.words for each in rewinds], MOST_NAMED)
        yield Damage(ANSWERS, None, Phrase(f"{told}: {words}; ", Command("apply"), " records it"))
    given = chain.last_given_number
    if last is None or last <= given:
        return
    slices = list_slices(chain.bronze, chain.lake)
    moved = moved_lake_error(chain, {each.name for each in slices})
    if moved is not None:
        yield Damage(ANSWERS, None, Phrase(f"{moved.message}. ", moved.remedy or "").without_end())
        return
    unrecorded = [item for item in unrecorded_items(chain, slices) if item.item_id not in told_of]
    if unrecorded or not rewinds:
        names = list(map(slice_name, unrecorded))
        known = f"but the manifest only knows those up to {given}"
        ends = f"the table of {entity.called} ends with commit {last}, {known}"
        yield Damage(ANSWERS, None, Phrase(f"{ends}. ", _recorded_how(names, last)))


def _recorded_how(names: Sequence[str], last: int) -> str:
    """Return what to do about commits of slices with these names, or of no slice that is in bronze."""
    if not names:
        return (
            "No slice in bronze is of the others. If the manifest is an older copy, bring the newer one back "
            f"if there is one. Otherwise the next slice that a run processes gets a number above {last}"
        )
    held = "is" if len(names) == 1 else "are"
    told = f"{counted(len(names), 'slice')} {held} in the table only: {first_of(names, MOST_NAMED)}"
    return Phrase(f"{told}. {UNRECORDED_ADVICE}: ", Command("apply"))


def _unchecked(entity: Entity, error: TargetError | StorageUnavailable) -> str:
    """Return that the table of an entity could not be checked, and what to do."""
    table = error.details.get(DAMAGED)
    commands = (moving_command(str(table)), rebuild_command(entity).plus("--yes"))
    remedy = error.remedy if table is None else known_remedy(commands)
    told = f"the table of {entity.called} is not checked: {error.message}"
    return told if remedy is None else Phrase(f"{told}. ", Phrase(remedy).without_end())


def _lost_commit(item: Item, entity: Entity, number: int, last: int | None) -> Damage:
    if last is None:
        problem = Phrase(
            f"it is processed by commit {number}, but {entity.called} has no table with a commit: "
            "bring it back, or ",
            rebuild_command(entity).plus("--yes"),
            " makes it again from its slices",
        )
        return Damage(item.item_id, None, problem)
    named = called_name(entity.called, item)
    problem = Phrase(
        f"it is processed by commit {number}, but the table of {entity.called} ends with "
        f"{last}: was it restored or removed? ",
        command("requeue", named),
        " applies the slice again",
    )
    return Damage(item.item_id, None, problem)


def _is_at_work(chain: SliceChain, item: Item) -> bool:
    lock = chain.ledger.lock(item)
    return lock is not None and not lock.is_stale
