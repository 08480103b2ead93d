"""Looking for an entity's slices: what bronze holds, what the manifest says of it, and what may be processed.

Source: `processing-manifest.md`, "Item" and "State".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakewright.errors import UsageError
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.ledger import Takeover
from lakewright.manifest.lock import failed_error, invalid_error, locked_error
from lakewright.manifest.record import Author, Draft, State
from lakewright.manifest.store import Query
from lakewright.slices.discover import discovered, item_id, list_slices
from lakewright.slices.moved import refuse_moved
from lakewright.slices.pending import Pending, slice_name, sort_out
from lakewright.slices.recover_from_log import recall

if TYPE_CHECKING:
    from lakewright.errors import LakewrightError
    from lakewright.manifest.discovery import DiscoveredSlice
    from lakewright.slices.bench import Bench
    from lakewright.slices.discover import Slice
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Places

__all__ = ["choose", "held_error", "look_for_slices"]


def look_for_slices(
    bench: Bench, entity: Entity, *, is_recorded: bool = True
) -> tuple[Pending, tuple[Slice, ...]]:
    """Return what is to be done about an entity's slices, and the slices that bronze holds.

    Args:
        bench: What to work with.
        entity: The entity.
        is_recorded: Whether slices that the manifest doesn't know are recorded there; otherwise they only
            count as if they were.

    Raises:
        LakeMoved: They were processed, in another place.
    """
    places = entity.places(bench.lake.settings)
    slices = list_slices(places.bronze, bench.lake)
    refuse_moved(bench, item_id(places.bronze), {each.name for each in slices})
    if is_recorded:
        found = bench.ledger.discover(
            discovered(slices, bench.application, entity.name), run_id=bench.holder.run_id
        )
        items = {item.item_id: item for item in (*found.new, *found.known)}
        items |= recall(bench, entity, items.values())
    else:
        items = _unrecorded(bench, entity, slices)
    for item in _open_items(bench, places):
        items.setdefault(item.item_id, item)
    return sort_out(items.values(), bench.application, takeable=_takeable(bench, items.values())), slices


def _takeable(bench: Bench, items: Iterable[Item]) -> frozenset[str]:
    """Ids of items whose lock nobody stands behind any more, where runs may take such locks over."""
    if bench.takeover is not Takeover.AUTO:
        return frozenset()
    return frozenset(lock.item_id for lock in bench.ledger.stale_locks(items))


def choose(bench: Bench, entity: Entity, pending: Pending, name: str | None) -> tuple[Item, ...]:
    """Return the items to process: all that are ready, or the named one; none where that must wait.

    Raises:
        UsageError: There is no slice of that name, or it is done.
        OperatorError: It is held.
    """
    if name is None:
        return pending.ready
    named = [item for item in pending.ready if slice_name(item) == name]
    if named:
        earlier = [slice_name(item) for item in pending.ready[: pending.ready.index(named[0])]]
        if earlier:
            bench.warn(f"{name} is processed before {', '.join(earlier)}, which will then be late")
        return tuple(named)
    if any(slice_name(item) == name for item in pending.waiting):
        return ()
    return _refused_slice(bench, name, entity)


def _refused_slice(bench: Bench, name: str, entity: Entity) -> tuple[Item, ...]:
    place = entity.places(bench.lake.settings).bronze
    item = bench.ledger.item(item_id(f"{place}/{name}"))
    verdict = item.verdict(bench.application)
    if verdict is Verdict.UNKNOWN:
        raise UsageError(
            f"there is no slice {name} in {place}", remedy="Slices are listed by `lakewright manifest ls`."
        )
    if verdict in {Verdict.PROCESSED, Verdict.SKIPPED}:
        raise UsageError(
            f"the slice {name} is {verdict} for {bench.application} already",
            remedy=f"To process it again: `lakewright manifest requeue {item.item_id}`.",
        )
    raise held_error(bench, item)


def held_error(bench: Bench, item: Item) -> LakewrightError:
    """Return the error that says who or what holds an item."""
    lock = bench.ledger.lock(item)
    if item.problem is not None:
        return invalid_error(item)
    return locked_error(lock) if lock is not None else failed_error(item)


def _open_items(bench: Bench, places: Places) -> Iterator[Item]:
    """Items of the entity that aren't done, also where their slices are gone.

    One that was forgotten with its rows is done with, until its slice is in bronze again.
    """
    verdicts = frozenset((Verdict.READY, Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID))
    prefix = item_id(places.bronze) + "/"
    for item in bench.ledger.store.select(Query(verdicts=verdicts, prefix=prefix)):
        if item.verdict(bench.application) is not Verdict.READY or item.fingerprint is not None:
            yield item


def _unrecorded(bench: Bench, entity: Entity, slices: Iterable[Slice]) -> dict[str, Item]:
    """Items of the slices in bronze, those that nobody has recorded as if they were new."""
    found = {each.item_id: each for each in discovered(slices, bench.application, entity.name)}
    known = bench.ledger.store.read(list(found))
    return {item_id: known.get(item_id) or _as_new(each) for item_id, each in found.items()}


def _as_new(found: DiscoveredSlice) -> Item:
    """The item that discovery would make of a slice."""
    content = {"entity": found.entity, "slice": found.slice, "fingerprint": dict(found.fingerprint)}
    draft = Draft(
        record_id="",
        item_id=found.item_id,
        state=State.NEW,
        application=found.application,
        author=Author.named("lakewright"),
        payload={"schema": "lakewright/new/1", "data": content},
    )
    return Item(found.item_id).after(draft.recorded(sequence=1, now=datetime.min.replace(tzinfo=UTC)))
