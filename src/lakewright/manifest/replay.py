"""Folding an item's records as a store holds them, even if they were edited by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from lakewright.errors import IllegalTransition
from lakewright.manifest.item import Item
from lakewright.manifest.record import Record
from lakewright.manifest.store import Damage


def replay(item_id: str, entries: Iterable[Record | Damage]) -> tuple[Item, tuple[Damage, ...]]:
    """Return the item that its records, in order of sequence, fold to, and the damage among them.

    An illegal or unreadable record makes the item invalid. The records after it cannot be judged, so only the
    first damage of a series is returned.

    Example:
        >>> item, damages = replay("file:///bronze/x", [])
        >>> item.sequence, damages
        (0, ())
    """
    item, damages = Item(item_id), []
    for entry in entries:
        after = _after_unreadable(item, entry) if isinstance(entry, Damage) else _after(item, entry)
        if after.problem is not None and item.problem is None:
            damages.append(Damage(item_id, entry.record_id, after.problem, entry.sequence))
        item = after
    return item, tuple(damages)


def folded(entries: Iterable[Record | Damage]) -> Iterator[Item]:
    """Yield the items that records, in order of item and sequence, fold to."""
    for item_id, of_item in groupby(entries, key=lambda entry: entry.item_id):
        yield replay(item_id, of_item)[0]


def _after(item: Item, record: Record) -> Item:
    try:
        return item.after(record)
    except IllegalTransition as illegal:
        return item.damaged(record, str(illegal.details["problem"]))


def _after_unreadable(item: Item, damage: Damage) -> Item:
    return replace(
        item,
        sequence=item.sequence + 1 if damage.sequence is None else damage.sequence,
        revision=max(item.revision, 1),
        problem=item.problem or damage.problem,
    )
