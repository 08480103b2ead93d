"""Copying the records of items to the ids that the items have after a lake was moved.

An item's id is its location. When a lake is moved or copied its items get new ids, which the manifest does
not know.

Source: `processing-manifest.md`, "Item" (named by a URI).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lakewright.errors import Fault, LakewrightError, StoreUnavailable
from lakewright.manifest.item import Item
from lakewright.manifest.record import Draft, Record
from lakewright.manifest.store import Append, Query, Store, Write


@dataclass(frozen=True, slots=True)
class Relocated:
    """The result for one item.

    Attributes:
        old: Its old id, whose records stay.
        new: Its new id.
        fault: Why its records were not copied, or None.
        counters: The counters that gave the numbers of its data commits.
    """

    old: str
    new: str
    fault: Fault | None = None
    counters: frozenset[str] = frozenset()


def relocate(store: Store, old: str, new: str, ids: Callable[[], str]) -> Iterator[Relocated]:
    """Copy the records of each item below `old` to the item of the same name below `new`.

    An item below `new` that has been processed, skipped or claimed itself is left unchanged. Watermarks
    belong to applications, and stay. Numbers of commits belong to tables, whose new places the caller knows.

    Args:
        store: The manifest.
        old: A URI, without a slash at its end.
        new: A URI, without a slash at its end.
        ids: Returns an id that no record has yet.

    Raises:
        StoreUnavailable: The store cannot be written; the items yielded so far are copied.
    """
    moved = [item for item in store.select(Query(prefix=f"{old}/")) if item.sequence]
    for item in moved:
        to = f"{new}/{item.item_id.removeprefix(f'{old}/')}"
        present = store.read([to]).get(to)
        if present is not None and not _is_untouched(present):
            yield Relocated(item.item_id, to, Fault(f"{to} has a history of its own", code="usage"))
            continue
        records = store.records(item.item_id)
        drafts = tuple(_copied(records, to, ids))
        expected = 0 if present is None else present.sequence
        try:
            store.write(Write((Append(to, drafts, expected),)))
        except StoreUnavailable:
            raise
        except LakewrightError as error:
            yield Relocated(item.item_id, to, error.as_fault())
        else:
            yield Relocated(item.item_id, to, counters=_counters(records))


def _is_untouched(item: Item) -> bool:
    """Return whether an item was only discovered."""
    return not (item.processed or item.failed or item.skipped or item.processing) and item.problem is None


def _counters(records: tuple[Record, ...]) -> frozenset[str]:
    named = (record.content.get("counter") for record in records if not record.is_foreign)
    return frozenset(each for each in named if isinstance(each, str))


def _copied(records: tuple[Record, ...], to: str, ids: Callable[[], str]) -> Iterator[Draft]:
    renamed: dict[str, str] = {}
    for record in records:
        renamed[record.record_id] = ids()
        previous = record.previous_record_id
        yield record.copied(
            record_id=renamed[record.record_id],
            item_id=to,
            previous_record_id=None if previous is None else renamed.get(previous, previous),
        )
