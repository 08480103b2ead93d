"""The slices that an application has processed, as the manifest says, and the places of others among them.

A slice is late if it comes before a processed one, in the natural order of their names. A slice counts as
processed also if it is no longer in bronze, which others may clean up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from lakewright.manifest.item import Verdict
from lakewright.manifest.record import State, parse_instant
from lakewright.manifest.store import Query
from lakewright.slices.discover import item_id, natural_key, slice_name, slice_of_id

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from lakewright.manifest.item import Item
    from lakewright.manifest.record import Application
    from lakewright.manifest.store import Store

__all__ = [
    "APART",
    "OlderSlice",
    "Place",
    "Placement",
    "SlicePlace",
    "first_processed",
    "is_late",
    "last_processed",
    "place_of",
    "processed_items",
]


def processed_items(store: Store, application: Application, prefix: str = "") -> Iterator[Item]:
    """Return the items that an application has processed, below a prefix of their ids."""
    query = Query(application=application, verdicts=frozenset({Verdict.PROCESSED}), prefix=prefix)
    return iter(store.select(query))


def first_processed(store: Store, application: Application, prefix: str = "") -> Item | None:
    """Return one of these items, or None if there is none."""
    return next(processed_items(store, application, prefix), None)


Place: TypeAlias = tuple[tuple[int, int, str], ...]
"""The place of a slice in the order of names."""


def place_of(item: Item) -> Place:
    """Return the place of an item's slice."""
    return natural_key(slice_name(item))


def is_late(item: Item, last: Place | None) -> bool:
    """Return whether an item's slice comes before the last processed one."""
    return last is not None and place_of(item) < last


def last_processed(
    store: Store, application: Application, bronze: str, present: Mapping[str, Item] | None = None
) -> Place | None:
    """Return the place of the last slice of a bronze folder that an application has processed, or None.

    Args:
        store: The manifest.
        application: The application.
        bronze: The folder.
        present: The items of all slices in the folder, if they are known. Unless more slices are recorded as
            processed, no others are looked at: their number grows with time.
    """
    there = present or {}
    done: list[Place | None] = [
        place_of(item) for item in there.values() if item.verdict(application) is Verdict.PROCESSED
    ]
    if present is None or store.counts().get((application, Verdict.PROCESSED), 0) > len(done):
        done.append(_last_of_others(store, application, item_id(bronze) + "/", there))
    return max(filter(None, done), default=None)


def _last_of_others(
    store: Store, application: Application, prefix: str, known: Container[str]
) -> Place | None:
    """Return the last place of processed slices that are not known, of which only the last is read."""
    query = Query(application=application, verdicts=frozenset({Verdict.PROCESSED}), prefix=prefix)
    places = {natural_key(slice_of_id(each)): each for each in store.candidates(query) if each not in known}
    while places:
        last = max(places)
        item = store.read([places.pop(last)])
        if any(each.verdict(application) is Verdict.PROCESSED for each in item.values()):
            return last
    return None


APART = timedelta(seconds=1)
"""The time between slices that declare the same processing time."""

_SAME = timedelta(minutes=1)
"""A slice whose time is less than this after that of the one before was put apart from it."""


@dataclass(frozen=True, slots=True)
class OlderSlice:
    """A slice that comes before another one by name, and has a later processing time."""

    name: str
    at: datetime

    @property
    def words(self) -> str:
        """What is known of it, as the end of a sentence."""
        return f"slices before it by name have later times, such as {self.name} with {self.at.isoformat()}"


@dataclass(frozen=True, slots=True)
class SlicePlace:
    """The processing time with which a rebuild applies a slice that waits.

    Attributes:
        at: The time.
        older: A slice before it by name that has a later time, so that this is not its place; None for none.
    """

    at: datetime
    older: OlderSlice | None


@dataclass(frozen=True, slots=True)
class Placement:
    """The processed slices of an entity, by which the place of another one is judged.

    Attributes:
        store: The manifest.
        application: The application of the entity.
        bronze: Its bronze folder.
        is_historic: Whether versions begin at the times of slices, so that no two slices may have the same.
    """

    store: Store
    application: Application
    bronze: str
    is_historic: bool = False

    def place_of(self, name: str, declared: datetime | None) -> SlicePlace | None:
        """Return the place of a slice that waits by its processing time; None if it has no time.

        The declared time counts, as if it had never been processed. An operator may have given it another one
        before it was undone or requeued. The time that it was last processed with counts if no time is
        declared, or if only that one puts it after the slices before it by name. Of slices that declare the
        same time, such as that of their day, each is put a second after the one before, if versions begin at
        these times.

        Args:
            name: The slice.
            declared: The processing time that is declared for it.
        """
        recorded = processing_time_of(self.store, self.application, item_id(f"{self.bronze}/{name}"))
        times = dict.fromkeys(at for at in (declared, recorded) if at is not None)
        places = [self._place_at(name, at) for at in times]
        return next((each for each in places if each.older is None), next(iter(places), None))

    def has_place(self, name: str, declared: datetime | None) -> bool:
        """Return whether a rebuild applies a slice after those before it by name, and before those after it.

        Of those after it, the first and the last one count whose times are known.

        Args:
            name: The slice.
            declared: The processing time that is declared for it.
        """
        place = self.place_of(name, declared)
        if place is None or place.older is not None:
            return False
        after = sorted(
            filter(lambda item: place_of(item) > natural_key(name), self._processed()), key=place_of
        )
        ends = {each.item_id for each in (*after[:1], *after[-1:])}
        times = (processing_time_of(self.store, self.application, each) for each in ends)
        return all(at is None or place.at < at for at in times)

    def newest(self) -> str | None:
        """Return the last processed slice by name; None if there is none."""
        last = max(self._processed(), key=place_of, default=None)
        return None if last is None else slice_name(last)

    def _processed(self) -> Iterable[Item]:
        query = Query(
            application=self.application,
            verdicts=frozenset({Verdict.PROCESSED}),
            prefix=f"{item_id(self.bronze)}/",
        )
        return self.store.select(query)

    def _place_at(self, name: str, at: datetime) -> SlicePlace:
        """Return the place of a slice at a time: it has none if the last slice before it has a later one.

        Slices that were late themselves do not count.
        """
        before = next(self._timely_before(name), None)
        found = None if before is None else processing_time_of(self.store, self.application, before.item_id)
        if before is None or found is None or found < at or (found == at and not self.is_historic):
            return SlicePlace(at, None)
        if self.is_historic and found - at < _SAME:
            return SlicePlace(self._free_from(name, found + APART), None)
        return SlicePlace(at, OlderSlice(slice_name(before), found))

    def _free_from(self, name: str, at: datetime) -> datetime:
        """Return the first time from one on that no slice before another one by name has, late ones too."""
        before = (item for item in self._processed() if place_of(item) < natural_key(name))
        for item in sorted(before, key=place_of, reverse=True):
            found = processing_time_of(self.store, self.application, item.item_id)
            if found is None or at - found > _SAME:
                break
            at = max(at, found + APART) if found - at < _SAME else at
        return at

    def _timely_before(self, name: str) -> Iterator[Item]:
        """Yield the processed slices before a name, the last one first, without those that were late."""
        end, earliest = natural_key(name), None
        for item in sorted(self._processed(), key=place_of, reverse=True):
            at = _recorded(item, self.application)
            if place_of(item) < end and (earliest is None or at is None or at <= earliest):
                yield item
            earliest = min(filter(None, (earliest, at)), default=None)


def processing_time_of(store: Store, application: Application, item: str) -> datetime | None:
    """Return the processing time with which a slice was last processed; None if it never was."""
    found = [
        each.content.get("processing_time")
        for each in store.records(item)
        if each.state is State.PROCESSED and each.application.key == application.key
    ]
    return parse_instant(found[-1]) if found and found[-1] is not None else None


def _recorded(item: Item, application: Application) -> datetime | None:
    times: Iterable[datetime] = (
        mark.since for mark in item.processed if mark.application.covers(application)
    )
    return max(times, default=None)
