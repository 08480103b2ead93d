"""Whether the processing times of slices are later than the versions of the table, before anything is locked.

Source: `processing-strategies.md`, "Processing Time Override".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakewright.errors import BackdatedError
from lakewright.errors.phrase import Command, Option, Phrase
from lakewright.lake.observation import latest_instant_since, latest_instant_told, observe_table
from lakewright.manifest.record import State, parse_instant
from lakewright.slices.discover import item_id, natural_key, slice_name
from lakewright.slices.processed import place_of, processed_items
from lakewright.slices.processing_time import APART
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.adoption.columns import is_adoptable
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.processing_time import ProcessingTimes
    from lakewright.spec.models.entity import Entity

__all__ = [
    "ALL_DECLARED",
    "OlderSlice",
    "Placement",
    "SlicePlace",
    "check_processing_times",
    "check_times_known",
    "is_late_allowed",
    "may_be_late",
    "planned_time_error",
    "requeueing_undo",
]

ALL_DECLARED = Phrase(
    "Or give each slice the time that a job declares for it: empty the table with ",
    Command("job", "JOB", "truncate", "-t", "TARGET"),
    ", then run the job for all slices.",
)
"""What makes the times of all slices follow the order of their names."""

_BACKDATED = Phrase(
    Option("--allow-backdated"), " permits the earlier one, unless versions of a record would overlap."
)

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
        chain: The slices of the entity.
        is_historic: Whether versions begin at the times of slices, so that no two slices may have the same.
    """

    chain: SliceChain
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
        recorded = self._time_of(item_id(f"{self.chain.bronze}/{name}"))
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
        times = (self._time_of(each) for each in ends)
        return all(at is None or place.at < at for at in times)

    def _processed(self) -> Iterable[Item]:
        return processed_items(self.chain.store, self.chain.application, self.chain.prefix)

    def _place_at(self, name: str, at: datetime) -> SlicePlace:
        """Return the place of a slice at a time: it has none if the last slice before it has a later one.

        Slices that were late themselves do not count.
        """
        before = next(self._timely_before(name), None)
        found = None if before is None else self._time_of(before.item_id)
        if before is None or found is None or found < at or (found == at and not self.is_historic):
            return SlicePlace(at, None)
        if self.is_historic and found - at < _SAME:
            return SlicePlace(self._free_from(name, found + APART), None)
        return SlicePlace(at, OlderSlice(slice_name(before), found))

    def _free_from(self, name: str, at: datetime) -> datetime:
        """Return the first time from one on that no slice before another one by name has, late ones too."""
        before = (item for item in self._processed() if place_of(item) < natural_key(name))
        for item in sorted(before, key=place_of, reverse=True):
            found = self._time_of(item.item_id)
            if found is None or at - found > _SAME:
                break
            at = max(at, found + APART) if found - at < _SAME else at
        return at

    def _timely_before(self, name: str) -> Iterator[Item]:
        """Yield the processed slices before a name, the last one first, without those that were late."""
        end, earliest = natural_key(name), None
        for item in sorted(self._processed(), key=place_of, reverse=True):
            marks = (mark for mark in item.processed if mark.application.covers(self.chain.application))
            at = max((mark.since for mark in marks), default=None)
            if place_of(item) < end and (earliest is None or at is None or at <= earliest):
                yield item
            earliest = min(filter(None, (earliest, at)), default=None)

    def _time_of(self, item: str) -> datetime | None:
        """Return the processing time with which a slice was last processed; None if it never was."""
        found = [
            each.content.get("processing_time")
            for each in self.chain.store.records(item)
            if each.state is State.PROCESSED and each.application.key == self.chain.application.key
        ]
        return parse_instant(found[-1]) if found and found[-1] is not None else None


def check_processing_times(
    context: ProcessingContext, entity: Entity, chosen: Sequence[Item], late: frozenset[str]
) -> None:
    """Raise an error unless the processing time is later than the beginning and end of every version.

    If the commit of the first slice has landed already, its own versions do not count. A late slice that is
    refused as such needs no time.

    Raises:
        UsageError: One processing time is given for several slices, or times are not in order.
        BackdatedError: The processing time is too early.
    """
    timed, times = check_times_known(context, entity, chosen, late), context.times(entity)
    if not _may_be_refused(context, entity, timed):
        return
    silver = entity.places(context.lake.settings).silver
    if is_adoptable(entity, observe_table(context.lake, silver)):
        return
    at = times.of_item(timed[0]) or context.clock()
    newest = latest_instant_since(context.lake, silver, _version_columns(context.lake, entity), at)
    if newest is not None:
        names = [slice_name(item) for item in timed]
        raise _backdated_error(context.chain(entity), names, times, at=at, newest=newest)


def _may_be_refused(context: ProcessingContext, entity: Entity, timed: Sequence[Item]) -> bool:
    """Return whether versions of the table may refuse the time of the first of some slices."""
    is_checked = context.strategy_for(entity) is Strategy.HISTORIC
    if not timed or not is_checked or context.options.permissions.allow_backdated:
        return False
    return not context.chain(entity).has_landed(timed[0])


def check_times_known(
    context: ProcessingContext, entity: Entity, chosen: Sequence[Item], late: frozenset[str]
) -> list[Item]:
    """Return the items that need a time; a late slice that is refused as such needs none.

    Raises:
        UsageError: A slice has no time, one is given for several slices, or times are not in order.
    """
    timed = _timed(context, entity, chosen, late)
    names = [slice_name(item) for item in timed]
    is_historic = context.strategy_for(entity) is Strategy.HISTORIC
    context.times(entity).check_order(names, entity.called, is_historic=is_historic)
    return timed


def is_late_allowed(context: ProcessingContext, entity: Entity, item: Item) -> bool:
    """Return whether an item may be processed after later ones: by the entity, the run or its requeue."""
    return may_be_late(entity, item) or context.options.permissions.allow_late


def may_be_late(entity: Entity, item: Item) -> bool:
    """Return whether any run may process an item after later ones: by the entity, or by its requeue."""
    is_noted = item.new is not None and item.new.note.get("allow_late") is True
    return is_noted or entity.settings.late_slices == "apply"


def _timed(
    context: ProcessingContext, entity: Entity, chosen: Iterable[Item], late: frozenset[str]
) -> list[Item]:
    """Return the items that are not refused for being late."""
    return [item for item in chosen if item.item_id not in late or is_late_allowed(context, entity, item)]


def _version_columns(lake: Lake, entity: Entity) -> tuple[str, str]:
    system = SystemColumns(lake.settings.systemfield_prefix, entity.destination)
    return system.valid_from, system.valid_to


def requeueing_undo(called: str, name: str) -> Command:
    """Return the command that takes a slice back with those after it, so that the next run processes them."""
    return Command("undo", called, name, "--requeue")


def planned_time_error(
    context: ProcessingContext, entity: Entity, chosen: Sequence[Item], late: frozenset[str]
) -> BackdatedError | None:
    """Return the error with which a run would refuse the declared times, or None if it would not.

    Only the statistics of the table's files are read: a plan does not start Spark for it.
    """
    timed = _timed(context, entity, chosen, late)
    if not _may_be_refused(context, entity, timed):
        return None
    chain, names, times = context.chain(entity), list(map(slice_name, timed)), context.times(entity)
    at = times.at(names[0])
    newest = latest_instant_told(chain.lake, chain.silver, _version_columns(chain.lake, entity))
    if at is None or newest is None or newest < at:
        return None
    return _backdated_error(chain, names, times, at=at, newest=newest)


def _backdated_error(
    chain: SliceChain, names: Sequence[str], times: ProcessingTimes, *, at: datetime, newest: datetime
) -> BackdatedError:
    early = [name for name in names if (times.at(name) or at) <= newest]
    # The caller's strategy is Historic; `process` and `rebuild` take the entity's own.
    is_own = chain.entity.strategy is Strategy.HISTORIC
    by = () if is_own else ("--strategy", Strategy.HISTORIC.value)
    later = (newest.astimezone(UTC).replace(microsecond=0) + APART).isoformat()
    typed = Command("process", chain.entity.called, early[0], "--processing-time", later, *by)
    included = [word for name in early for word in ("--include", name)]
    rebuild = Command("rebuild", chain.entity.called, *included)
    placed = Phrase("In its place among the others, at its own time: ", rebuild, ". ") if is_own else ""
    return BackdatedError(
        f"the processing time {at.isoformat()} is not later than {newest.isoformat()}, "
        f"the time of the newest version in {chain.silver}",
        remedy=Phrase(placed, "After the others, at a later time: ", typed, ". ", _BACKDATED),
        details={"processing_time": at.isoformat(), "newest": newest.isoformat(), "slices": early},
    )
