"""Applied slices in the form in which they are applied again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from lakewright.errors import DataLossError
from lakewright.manifest.item import Item
from lakewright.manifest.record import parse_instant
from lakewright.slices.discover import natural_key, slice_name
from lakewright.slices.replay_slices import KnownSlice
from lakewright.spec.models.entity import Strategy

if TYPE_CHECKING:
    from lakewright.slices.applied import AppliedSlice

__all__ = ["known_slices", "name_of"]


def name_of(applied: AppliedSlice) -> str:
    """Return the name of an applied slice."""
    return slice_name(Item(applied.item_id))


def known_slices(
    slices: Sequence[AppliedSlice],
    *,
    before: Iterable[AppliedSlice] = (),
    strategy: Strategy | None = None,
    new: Collection[str] = (),
) -> tuple[KnownSlice, ...]:
    """Return slices as they are applied again, in their order.

    Args:
        slices: The slices, in the order in which they were applied.
        before: The slices that the table holds already, by which one is late or not.
        strategy: The strategy by which they are applied; by default each by its own.
        new: Ids of those that were not processed with the content that they have now.

    Raises:
        DataLossError: It is not known at what time a slice was processed.
    """
    names = [natural_key(name_of(each)) for each in before]
    last = max(names, default=())
    found = []
    for each in slices:
        name, at = name_of(each), each.content.get("processingTime")
        if at is None:
            raise DataLossError(
                f"the processing time of {name} is not recorded, so it cannot be applied again",
                remedy="Nothing was written.",
                details={"item_id": each.item_id},
            )
        key = natural_key(name)
        found.append(
            KnownSlice(
                item_id=each.item_id,
                name=name,
                fingerprint=each.fingerprint,
                at=parse_instant(at),
                strategy=strategy or Strategy(each.content["strategy"]),
                is_late=key < last,
                is_new=each.item_id in new,
            )
        )
        last = max(last, key)
    return tuple(found)
