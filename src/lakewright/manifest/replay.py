"""Items and records as a store holds them, even if they were edited by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from lakewright.errors import IllegalTransition, ManifestCorrupt
from lakewright.errors.phrase import Command, Phrase
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


def stored_item(item_id: str, read: Callable[[], Mapping[str, Any]]) -> Item:
    """Return an item that a store holds as JSON.

    Args:
        item_id: The item.
        read: Returns the JSON value.

    Raises:
        ManifestCorrupt: It was edited by hand so that it cannot be read.
    """
    try:
        return Item.from_json(read())
    except _UNREADABLE as error:
        raise ManifestCorrupt(
            f"the stored state of {item_id} can't be read: {error}",
            remedy=Phrase(
                "Rebuild it from the records with ", Command("manifest", "fsck", "--repair", "--yes"), "."
            ),
            details={"item_id": item_id},
        ) from error


def stored_record(item_id: str, sequence: int, read: Callable[[], Mapping[str, Any]]) -> Record | Damage:
    """Return a record that a store holds as JSON, or the damage if it was edited so that it can't be read."""
    try:
        record = Record.from_json(read())
        if (record.item_id, record.sequence) != (item_id, sequence):
            raise ValueError(f"it is record {record.sequence} of {record.item_id}")
    except _UNREADABLE as error:
        return Damage(item_id, None, f"record {sequence} can't be read: {error}", sequence)
    return record


_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
"""What reading a JSON value of another form raises."""
