"""The interface of the manifest's back ends.

A back end keeps two things: *records*, append-only, by item; and *documents*, small JSON values by kind and
key, for what changes in place (leases, counters, taints, the history of runs). One `Write` puts any of both
down together or not at all, and only if everything is as the writer last saw it. All else (locks, leases,
recovery, history) is logic over these few methods and the same for every back end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from lakewright.errors import LakewrightError
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.record import Application, Draft, Record, State

__all__ = ["Append", "Damage", "Document", "DocumentKey", "Put", "Query", "Seen", "Store", "Write", "Written"]

DocumentKey = tuple[str, str]
"""Kind and key of a document."""


@dataclass(frozen=True, slots=True)
class Append:
    """Records to add to one item, if its last sequence is `expected` (0: the item has no record)."""

    item_id: str
    drafts: tuple[Draft, ...]
    expected: int


@dataclass(frozen=True, slots=True)
class Document:
    """A small value that changes in place.

    Attributes:
        version: Grows with every write, and is never given twice, also not after the document was removed
            and written anew: an expected version can't be met by another's document.
    """

    kind: str
    key: str
    value: Mapping[str, Any]
    version: int


@dataclass(frozen=True, slots=True)
class Put:
    """A document to write, or with a value of None to remove.

    Attributes:
        expected: The version it must have now, 0 for none; None writes whatever is there.
    """

    kind: str
    key: str
    value: Mapping[str, Any] | None
    expected: int | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """Appends and puts that happen together or not at all."""

    appends: tuple[Append, ...] = ()
    puts: tuple[Put, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """What a `Write` left: the items it appended to, and the documents it put (removed ones left out)."""

    items: tuple[Item, ...]
    documents: tuple[Document, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """Items and documents as a store has them; what isn't there is left out."""

    items: Mapping[str, Item]
    documents: Mapping[DocumentKey, Document]


@dataclass(frozen=True, slots=True)
class Query:
    """Which items to list; what isn't given doesn't restrict.

    Attributes:
        application: Only items that concern this application; without an instance, any of its instances.
        verdicts: Only items on which that application, or else any, has one of these.
        states: Only items whose last record has one of these.
        prefix: Only item ids that start with this text.
    """

    application: Application | None = None
    verdicts: frozenset[Verdict] = frozenset()
    states: frozenset[State] = frozenset()
    prefix: str = ""

    def matches(self, item: Item) -> bool:
        """Return whether the query asks for `item`."""
        if not item.item_id.startswith(self.prefix) or (self.states and item.state not in self.states):
            return False
        asked = self._asked(item)
        return bool(asked) and (not self.verdicts or any(item.verdict(a) in self.verdicts for a in asked))

    def concerns(self, application: Application, verdict: Verdict) -> bool:
        """Return whether items that the query asks for may be listed under that application and verdict."""
        wanted = self.application
        if wanted is not None and wanted.name != application.name:
            return False
        if wanted is not None and wanted.instance_id is not None:
            if application.instance_id is None:
                return True  # what holds for every instance together needn't hold for the wanted one
            if application.instance_id != wanted.instance_id:
                return False
        return not self.verdicts or verdict in self.verdicts

    def _asked(self, item: Item) -> Sequence[Application]:
        """The applications whose verdicts count; what has no instance concerns every instance."""
        wanted = self.application
        if wanted is None:
            return tuple(item.verdicts())
        if wanted.instance_id is None:
            return [known for known in item.concerned if known.name == wanted.name]
        names = {(wanted.name, None), wanted.key}
        return [wanted] if any(known.key in names for known in item.concerned) else []


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in a store that contradicts the rules.

    Attributes:
        record_id: The record that is to blame, where one is.
        sequence: Of that record, where it can't be read.
    """

    item_id: str
    record_id: str | None
    problem: str
    sequence: int | None = None


class Store(Protocol):
    """One back end. Every method may raise `StoreUnavailable`; nothing is then half done."""

    def now(self) -> datetime:
        """Return the time by the store's own clock, in UTC."""
        ...

    def write(self, write: Write) -> Written:
        """Put down one write, durably.

        A write whose records are there already, because its acknowledgement was lost, counts as done.

        Raises:
            SequenceConflict: An item or document isn't as expected; nothing was written.
            IllegalTransition: A record may not follow; nothing was written.
            UsageError: An id is too long, or something in it isn't text or JSON; nothing was written.
        """
        ...

    def write_many(self, writes: Iterable[Write]) -> Iterator[Written | LakewrightError]:
        """Put down many independent writes in few round trips, each by itself as `write` would.

        Yields one outcome for each, in order: what it left, or the error that it alone met.
        """
        ...

    def read(self, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return the folds of these items; an item without records is left out."""
        ...

    def look_up(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen:
        """Return some items and documents in one round trip: what a `Write` is to be based on.

        Each is as it is right now, but they needn't be of the same moment.
        """
        ...

    def records(self, item_id: str) -> tuple[Record, ...]:
        """Return the records of an item, in order of sequence; none for an unknown item."""
        ...

    def select(self, query: Query) -> Iterator[Item]:
        """Yield the items that the query asks for, by item id, without holding all of them in memory."""
        ...

    def counts(self) -> Mapping[tuple[Application, Verdict], int]:
        """Return how many items each application has in each verdict."""
        ...

    def document(self, kind: str, key: str) -> Document | None:
        """Return one document, or None."""
        ...

    def documents(
        self, kind: str, *, prefix: str = "", is_newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Document]:
        """Yield documents of a kind whose key starts with `prefix`, by key or from the last key backwards."""
        ...

    def scan(self) -> Iterator[Record | Damage]:
        """Yield every record, by item id and sequence, flat in memory; damage in place of unreadable ones."""
        ...

    def rebuild(self) -> None:
        """Make what `read`, `select` and `counts` answer from follow from the records alone again."""
        ...

    def close(self) -> None:
        """Let go of connections and files; a closed store isn't used again."""
        ...
