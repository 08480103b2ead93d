"""Choices of items by their standing, and the order in which they are read.

Source: `processing-manifest.md`, "Use cases" (pipeline bus); rules of the manifest, "The bus".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from lakewright.manifest.item import Item
from lakewright.manifest.record import Application
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.verdict import Verdict

Place = tuple[str, str]
"""The place of an item in an order: its arrival, as `Item.arrival` writes it, and its id."""


class Choice(Protocol):
    """A choice of items by their standing alone."""

    @property
    def prefix(self) -> str:
        """The text that the ids of the items start with."""
        ...

    def admits(self, standing: Standing) -> bool:
        """Return whether items with this standing are chosen."""
        ...


@dataclass(frozen=True, slots=True)
class Readiness:
    """The items that an application has neither processed nor skips, and that nothing keeps from it.

    Attributes:
        after: The applications that must have processed an item first.
        blocked: Items that are blocked in one of these ways are included.
        has_waiting: Whether items are included that an application in `after` has not processed.
    """

    application: Application
    after: tuple[Application, ...] = ()
    blocked: frozenset[Verdict] = frozenset()
    has_waiting: bool = False
    prefix: str = ""

    def admits(self, standing: Standing) -> bool:
        """Return whether items with this standing are chosen."""
        if not standing.is_open_for(self.application):
            return False
        if standing.blocked is not None and standing.blocked not in self.blocked:
            return False
        return self.has_waiting or not self.waits_for(standing)

    def waits_for(self, standing: Standing) -> tuple[Application, ...]:
        """Return the applications in `after` that have not processed items with this standing."""
        return tuple(each for each in self.after if not standing.has_processed(each))


@dataclass(frozen=True, slots=True)
class Done:
    """The items whose present revision an application has processed."""

    application: Application
    prefix: str = ""

    def admits(self, standing: Standing) -> bool:
        """Return whether items with this standing are chosen."""
        return standing.has_processed(self.application)


@dataclass(frozen=True, slots=True)
class Group:
    """The items that have one of some standings.

    Attributes:
        standings: These standings.
    """

    standings: frozenset[Standing] = field(default_factory=frozenset)
    prefix: str = ""

    def admits(self, standing: Standing) -> bool:
        """Return whether items with this standing are chosen."""
        return standing in self.standings


@dataclass(frozen=True, slots=True)
class Reading:
    """In which order to read items, and which part of them.

    Attributes:
        is_newest_first: Whether to begin with the last item.
        limit: The largest number of items; None for all.
        beyond: The place of the item after which to begin; None for all of them.
        is_by_id: Whether they are ordered by id, not by arrival; the first part of each place is empty then.
    """

    is_newest_first: bool = False
    limit: int | None = None
    beyond: Place | None = None
    is_by_id: bool = False

    def place_of(self, item: Item) -> Place:
        """Return the place of an item in this order."""
        return ("" if self.is_by_id else item.arrival, item.item_id)

    def includes(self, place: Place) -> bool:
        """Return whether a place comes after `beyond`."""
        if self.beyond is None:
            return True
        return place < self.beyond if self.is_newest_first else place > self.beyond


BY_ARRIVAL, BY_ID = Reading(), Reading(is_by_id=True)
"""All items, the first one first."""


class Arrivals(NamedTuple):
    """The places of the first and of the last of some items."""

    first: Place
    last: Place


def belongs(item: Item, choice: Choice) -> bool:
    """Return whether an item is chosen."""
    return item.item_id.startswith(choice.prefix) and choice.admits(standing_of(item))
