"""Standings: what decides an item's verdict for every application, and the index of all back ends.

Items with the same standing are ready for the same applications, and their last records have the same state.
There are as many standings as there are steps that items go through, however many items there are. A back end
lists each item under its standing, so it finds the items that are ready for an application, or that have a
state, without looking at any other item.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from lakewright.errors import ManifestCorrupt
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import Item, Mark
from lakewright.manifest.record import Application, State
from lakewright.manifest.verdict import Verdict, decide_verdict

ApplicationKey = tuple[str, str | None]
"""The name and instance of an application."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What an item's records say about each application; applications are sorted and have no version.

    Attributes:
        blocked: The verdict that the item has for every application: invalid, locked or failed; else None.
        concerned: The applications that the item concerns.
        processed: The applications that have processed its revision.
        skipped: The applications for which it is skipped; `*` is everyone.
        state: The state of its last record; None if it has no records.
    """

    blocked: Verdict | None = None
    concerned: tuple[Application, ...] = ()
    processed: tuple[Application, ...] = ()
    skipped: tuple[Application, ...] = ()
    state: State | None = None
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        # Standings are keys of large tables, and hashing all their applications takes microseconds.
        compared = (self.blocked, self.concerned, self.processed, self.skipped, self.state)
        object.__setattr__(self, "_hash", hash(compared))

    def __hash__(self) -> int:
        return self._hash

    def verdict(self, application: Application) -> Verdict:
        """Return the verdict of the items with this standing for an application."""
        return decide_verdict(
            application, blocked=self.blocked, skipped=self.skipped, processed=self.processed
        )

    def is_open_for(self, application: Application) -> bool:
        """Return whether an application has neither processed nor skipped the items, even if they block."""
        found = decide_verdict(application, blocked=None, skipped=self.skipped, processed=self.processed)
        return found is Verdict.READY

    def has_processed(self, application: Application) -> bool:
        """Return whether an application has processed the items."""
        return any(each.covers(application) for each in self.processed)

    @property
    def text(self) -> str:
        """The standing as text, from which `parse` makes it again."""
        return _text(self)

    @property
    def key(self) -> str:
        """A short name of the standing, different for different standings."""
        return _key(self)

    @classmethod
    def parse(cls, text: str) -> Standing:
        """Return the standing of a text that `text` returned.

        Raises:
            ManifestCorrupt: The text is of no standing.
        """
        try:
            return _parse(text)
        except (KeyError, TypeError, ValueError) as error:
            raise ManifestCorrupt(
                f"the standing {text!r} can't be read",
                remedy=Phrase(
                    "Compute it anew from the records: ", Command("manifest", "fsck", "--repair"), "."
                ),
            ) from error


def standing_of(item: Item) -> Standing:
    """Return the standing of an item."""
    keys = (_keys(item.concerned), _marked(item.processed), _marked(item.skipped))
    return _standing(item.blocked, item.state, *keys)


def _keys(applications: Iterable[Application]) -> tuple[ApplicationKey, ...]:
    return tuple([application.key for application in applications])


def _marked(marks: Iterable[Mark]) -> tuple[ApplicationKey, ...]:
    return tuple([mark.application.key for mark in marks])


@lru_cache(maxsize=4096)
def _standing(blocked: Verdict | None, state: State | None, *keys: tuple[ApplicationKey, ...]) -> Standing:
    concerned, processed, skipped = (_applications(tuple(dict.fromkeys(each))) for each in keys)
    return Standing(blocked, concerned, processed, skipped, state)


def _applications(keys: tuple[ApplicationKey, ...]) -> tuple[Application, ...]:
    return tuple(Application.named(*key) for key in sorted(keys, key=_order))


def _order(key: ApplicationKey) -> tuple[str, bool, str]:
    name, instance_id = key
    return (name, instance_id is not None, instance_id or "")


@lru_cache(maxsize=4096)
def _text(standing: Standing) -> str:
    lists = (standing.concerned, standing.processed, standing.skipped)
    keys = ([list(each.key) for each in applications] for applications in lists)
    return json.dumps([standing.blocked, *keys, standing.state], separators=(",", ":"))


@lru_cache(maxsize=4096)
def _key(standing: Standing) -> str:
    return hashlib.sha256(_text(standing).encode()).hexdigest()[:24]


@lru_cache(maxsize=4096)
def _parse(text: str) -> Standing:
    blocked, *lists, state = json.loads(text)
    concerned, processed, skipped = (
        tuple(Application.named(name, instance_id) for name, instance_id in keys) for keys in lists
    )
    return Standing(
        Verdict(blocked) if blocked else None, concerned, processed, skipped, State(state) if state else None
    )
