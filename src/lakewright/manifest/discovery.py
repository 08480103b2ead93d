"""Recording slices found in the lake as NEW items.

Source: `processing-manifest.md`, "State" (New).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakewright.errors import LakewrightError, SequenceConflict
from lakewright.manifest.item import Item
from lakewright.manifest.record import Application, Draft
from lakewright.manifest.store import Append, Store, Write, batched


@dataclass(frozen=True, slots=True)
class DiscoveredSlice:
    """A slice as found in the lake.

    Attributes:
        item_id: Its canonical URI.
        application: The entity target for which it was found.
        entity: The entity's name.
        slice: The slice's name below the entity's bronze place.
        fingerprint: `{"size", "modified" or "etag", "files"}`.
    """

    item_id: str
    application: Application
    entity: str
    slice: str
    fingerprint: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Discovery:
    """Items that were found: those recorded by this call, and those already known."""

    new: tuple[Item, ...]
    known: tuple[Item, ...]


def record_unknown(store: Store, item_ids: Iterable[str], draft: Callable[[str], Draft]) -> Discovery:
    """Record items that the manifest does not know, each with its draft; known ones are left unchanged."""
    new: list[Item] = []
    known: list[Item] = []
    for batch in batched(dict.fromkeys(item_ids)):
        present = store.read(batch)
        known += present.values()
        drafts = [draft(item_id) for item_id in batch if item_id not in present]
        for one, item in zip(drafts, _record(store, drafts), strict=True):
            if item is not None:
                new.append(item)
            else:
                known.append(store.read([one.item_id]).get(one.item_id) or Item(one.item_id))
    return Discovery(tuple(new), tuple(known))


def _record(store: Store, drafts: Sequence[Draft]) -> Iterator[Item | None]:
    """Yield the item of each NEW record, or None if another process recorded the item first."""
    writes = (Write((Append(draft.item_id, (draft,), 0),)) for draft in drafts)
    for outcome in store.write_many(writes):
        if isinstance(outcome, SequenceConflict):
            yield None
        elif isinstance(outcome, LakewrightError):
            raise outcome
        else:
            yield outcome.items[0]
