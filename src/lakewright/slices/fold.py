"""The fold: which of the next slices are processed in one commit, each under its own lock.

The commit carries every item with its metrics, and their common number; each item gets its own PROCESSED. If
a slice can't be processed, those before it are folded, and it fails by itself.

Source: `processing-manifest.md`, "State"; the fold is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

from lakewright.errors.phrase import Option, Phrase
from lakewright.lake.commit import is_superseded
from lakewright.lake.observation import observe_table
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted
from lakewright.strategies.adoption import is_adoptable
from lakewright.strategies.table_properties import followed_by

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity


FEWEST = 4
"""Number of slices from which on a fold is made: it costs about as much as two slices one by one."""

MOST = 250
"""Number of slices of one fold: the commit names each of them, in about 600 bytes."""

MOST_BYTES = 128 << 20
"""Bytes of the slices of one fold, as files; chosen, not measured. Spark moves what it can't hold to disk."""


@dataclass(frozen=True, slots=True)
class FoldChoice:
    """The next slices to process.

    Attributes:
        count: How many of them are folded; 1 for a slice that is processed by itself.
        number: The number of the commit that one of them has from an earlier attempt; None for a new one.
    """

    count: int
    number: int | None = None


def one_by_one_reason(context: ProcessingContext, entity: Entity) -> str | None:
    """Return why an entity's slices are always processed one by one; None if they may be folded."""
    settings, strategy = entity.settings, context.strategy_for(entity)
    if not settings.fold:
        return "the entity sets fold: false"
    if strategy is not entity.strategy:
        return f"the strategy {strategy} is not the entity's own"
    if settings.sequence_by is not None:
        return "sequence_by compares each slice with the table before it"
    if strategy is not Strategy.FULL and settings.delete_missing and settings.delete_scope != "full":
        return "the window of delete_missing follows from the slice before"
    if strategy is Strategy.HISTORIC and context.options.permissions.allow_backdated:
        return Phrase(Option("--allow-backdated"), " compares each slice with the table before it")
    state = observe_table(context.lake, entity.places(context.lake.settings).silver)
    followed = followed_by({**state.properties, **settings.table_properties})
    return f"readers follow each slice's changes ({followed})" if followed else None


def one_by_one_text(reason: str) -> str:
    """Return the sentence that slices are not folded.

    Example:
        >>> one_by_one_text("the entity sets fold: false")
        'the slices are processed one by one: the entity sets fold: false'
    """
    return f"the slices are processed one by one: {reason}"


def choose_fold(
    context: ProcessingContext, entity: Entity, items: Sequence[Item], *, late: Collection[str]
) -> FoldChoice:
    """Return how many of the next items are folded, if the entity's slices may be.

    Items in one commit share its number. An item that another attempt numbered is therefore only folded with
    items that have the same number, or none.
    """
    chain, application = context.chain(entity), context.application
    if is_adoptable(entity, observe_table(chain.lake, chain.silver)):
        return FoldChoice(1)
    number: int | None = None
    count = size = 0
    for item in items[:MOST]:
        own = item.tokens.get(application.key)
        if own is not None and is_superseded(chain.lake, chain.silver, chain.app, own, item.item_id):
            own = None
        is_other = own is not None and number is not None and own != number
        size += (own_size := _size(item.fingerprint))
        is_single = not own_size or item.item_id in late or chain.has_landed(item)
        if is_single or is_other or (count and size > MOST_BYTES):
            break
        number = own if number is None else number
        count += 1
    return FoldChoice(count, number) if count >= FEWEST else FoldChoice(1)


def fitting(fingerprints: Iterable[Mapping[str, Any]]) -> int:
    """Return how many slices with these fingerprints, from the first on, fit into one fold."""
    sizes = map(_size, islice(fingerprints, MOST))
    return sum(1 for total in accumulate(sizes) if total <= MOST_BYTES)


def planned_folds(
    context: ProcessingContext, entity: Entity, items: Sequence[Item], *, late: Collection[str]
) -> str | None:
    """Return how many slices would be folded, or why none would be; None if there are too few to fold."""
    if len(items) < FEWEST:
        return None
    reason = one_by_one_reason(context, entity)
    if reason is not None:
        return one_by_one_text(reason)
    rest, folds, folded = list(items), 0, 0
    while rest:
        count = choose_fold(context, entity, rest, late=late).count
        folds, folded = (folds + 1, folded + count) if count > 1 else (folds, folded)
        rest = rest[count:]
    if not folds:
        return None
    return (
        f"{counted(folded, 'slice')} {'is' if folded == 1 else 'are'} folded into {counted(folds, 'commit')}"
    )


def _size(fingerprint: Mapping[str, Any] | None) -> int:
    """Return the bytes of a slice; 0 if they are not known."""
    return int((fingerprint or {}).get("size") or 0)
