"""Slices that a replay applies for the first time, or with other content: each gets a place and a time.

The place is that of its name; the time lies between those of its neighbours, since versions of records begin
and end at these times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright.slices.chain import AppliedSlice
from lakewright.slices.discover import natural_key, slice_of_id
from lakewright.slices.processing_time import APART, TICK
from lakewright.spec.models.entity import Strategy

if TYPE_CHECKING:
    from lakewright.slices.context import ProcessingContext

__all__ = ["Arriving", "in_place", "with_times"]


@dataclass(frozen=True, slots=True)
class Arriving:
    """A slice that is not in the table with the content that it has now.

    Attributes:
        item_id: Its item.
        fingerprint: Its present fingerprint.
        times: The processing times that it may have; the first between those of its neighbours counts.
    """

    item_id: str
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    times: tuple[datetime, ...] = ()

    @property
    def name(self) -> str:
        """The name of the slice."""
        return slice_of_id(self.item_id)


def in_place(applied: Sequence[AppliedSlice], arriving: Iterable[Arriving]) -> list[AppliedSlice | Arriving]:
    """Return slices with others, each before the first whose name comes after its own.

    A slice of which the table has an earlier processing stands once.
    """
    new = sorted(arriving, key=lambda each: natural_key(each.name))
    again = {each.item_id for each in new}
    found: list[AppliedSlice | Arriving] = [each for each in applied if each.item_id not in again]
    for each in new:
        key = natural_key(each.name)
        later = (number for number, one in enumerate(found) if natural_key(one.name) > key)
        found.insert(next(later, len(found)), each)
    return found


def with_times(
    context: ProcessingContext, slices: Sequence[AppliedSlice | Arriving], strategy: Strategy
) -> list[AppliedSlice]:
    """Return slices in their order, each with a processing time.

    A time that is not between those of the neighbours is replaced by one just after that of the slice before;
    a warning says so. A slice after it whose time would not be later any more follows a microsecond later.

    Args:
        context: The context of the processing.
        slices: The slices.
        strategy: The strategy by which those that arrive are applied.
    """
    found: list[AppliedSlice] = []
    for index, each in enumerate(slices):
        if isinstance(each, AppliedSlice):
            found.append(_after(found, each, strategy))
            continue
        before = next((one.at for one in reversed(found) if one.at is not None), None)
        rest = (one.at for one in slices[index + 1 :] if isinstance(one, AppliedSlice))
        after = next(filter(None, rest), None)
        own = each.times or (() if after is not None else (context.clock(),))
        at = next((one for one in own if _is_between(before, one, after, strategy)), None)
        at = at or _between(before, after) or next(iter(own), None) or context.clock()
        if each.times and at not in each.times:
            context.warn(
                f"{each.name}: its processing time {each.times[0].isoformat()} is not between those of the "
                f"slices before and after it: it gets {at.isoformat()}"
            )
        content = {
            "processingTime": at.isoformat(),
            "strategy": strategy.value,
            "fingerprint": dict(each.fingerprint),
        }
        found.append(AppliedSlice(each.item_id, 0, content))
    return found


def _after(before: Sequence[AppliedSlice], each: AppliedSlice, strategy: Strategy) -> AppliedSlice:
    """Return a slice that follows others with a later time, if one of these arrives and is a version."""
    last = before[-1].at if before else None
    if last is None or each.at is None or each.at > last:
        return each
    if strategy is not Strategy.HISTORIC or all(one.number for one in before):
        return each
    return replace(each, content={**each.content, "processingTime": (last + TICK).isoformat()})


def _is_between(before: datetime | None, at: datetime, after: datetime | None, strategy: Strategy) -> bool:
    """Return whether a time is between two others; only versions need times that differ."""
    if strategy is Strategy.HISTORIC:
        return (before is None or before < at) and (after is None or at < after)
    return (before is None or before <= at) and (after is None or at <= after)


def _between(before: datetime | None, after: datetime | None) -> datetime | None:
    """Return a time just after one, and before the other; None without either."""
    if before is None:
        return None if after is None else after - APART
    if after is None or before + APART < after:
        return before + APART
    return before + max((after - before) / 2, TICK)
