"""The interface of the manifest's back ends.

A back end keeps *records*, append-only, by item, and *documents*, small JSON values by kind and key, for what
changes in place: leases, counters, taints, the history of runs. One `Write` saves any of both together or not
at all, and only if nothing has changed since the writer last read it. Everything else (locks, leases,
recovery, history) is logic over these methods, the same for every back end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from lakewright.errors import LakewrightError, ManifestCorrupt
from lakewright.manifest.item import Item
from lakewright.manifest.readiness import BY_ID, Arrivals, Choice, Group, Reading, belongs
from lakewright.manifest.record import ANYONE, Application, Draft, Record, State
from lakewright.manifest.standing import Standing
from lakewright.manifest.verdict import Verdict

DocumentKey = tuple[str, str]
"""Kind and key of a document."""

PAGE = 500
"""Items, records or documents that are read or written at once."""

T = TypeVar("T")


def batched(values: Iterable[T], size: int = PAGE) -> Iterator[list[T]]:
    """Yield values in lists of at most `size`, in order; no more of them are held in memory at once."""
    remaining = iter(values)
    while page := list(islice(remaining, size)):
        yield page


@dataclass(frozen=True, slots=True)
class Append:
    """Records to append to one item, if its last sequence is `expected` (0 for an item without records)."""

    item_id: str
    drafts: tuple[Draft, ...]
    expected: int


@dataclass(frozen=True, slots=True)
class Document:
    """A small value that changes in place.

    Attributes:
        version: Grows with every write and is never reused, even after the document was deleted and written
            again, so an expected version never matches another document.
    """

    kind: str
    key: str
    value: Mapping[str, Any]
    version: int


@dataclass(frozen=True, slots=True)
class Put:
    """A document to write, or to delete if the value is None.

    Attributes:
        expected: The version that the document must have now; 0 if it must not exist, None for any.
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
    """The items that a `Write` appended to, and the documents it wrote; deleted ones are left out."""

    items: tuple[Item, ...]
    documents: tuple[Document, ...]


Outcome = Written | LakewrightError
"""The result of one of several writes."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Items and documents as a store holds them; those that do not exist are left out."""

    items: Mapping[str, Item]
    documents: Mapping[DocumentKey, Document]


@dataclass(frozen=True, slots=True)
class Query:
    """Which items to list; a field that is not given does not restrict.

    Attributes:
        application: Only items that concern this application; without an instance, any of its instances.
        verdicts: Only items with one of these verdicts for that application, or for any if none is given.
        states: Only items whose last record has one of these states.
        prefix: Only item ids that start with this text.
    """

    application: Application | None = None
    verdicts: frozenset[Verdict] = frozenset()
    states: frozenset[State] = frozenset()
    prefix: str = ""

    def admits(self, standing: Standing) -> bool:
        """Return whether items with this standing match, apart from their id."""
        if self.states and standing.state not in self.states:
            return False
        asked = self._asked(standing.concerned)
        return bool(asked) and (not self.verdicts or any(standing.verdict(a) in self.verdicts for a in asked))

    def _asked(self, concerned: tuple[Application, ...]) -> Sequence[Application]:
        """Return the applications whose verdicts count; one without an instance concerns every instance."""
        wanted = self.application
        if wanted is None:
            return concerned or (ANYONE,)
        if wanted.instance_id is None:
            return [known for known in concerned if known.name == wanted.name]
        names = {(wanted.name, None), wanted.key}
        return [wanted] if any(known.key in names for known in concerned) else []


def chooses_all(choice: Choice) -> bool:
    """Return whether a choice leaves out no standing.

    Its items are then listed by their ids alone, so that none is missed whose standing changes meanwhile.
    """
    return isinstance(choice, Query) and choice == Query(prefix=choice.prefix)


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in a store that contradicts the rules.

    Attributes:
        record_id: The record at fault, if there is one.
        sequence: The sequence of that record, if the record cannot be read.
    """

    item_id: str
    record_id: str | None
    problem: str
    sequence: int | None = None


class Store(ABC):
    """A back end of the manifest.

    Six methods read and write: `look_up`, `write_many`, `candidates`, `standings`, `history` and `documents`.
    Three concern the back end itself: `now`, `rebuild` and `close`. The rest follow from these.

    Every method may raise `StoreUnavailable`; then no write is half done.
    """

    @abstractmethod
    def now(self) -> datetime:
        """Return the time by the store's own clock, in UTC."""

    @abstractmethod
    def look_up(self, item_ids: Sequence[str] = (), keys: Sequence[DocumentKey] = ()) -> Seen:
        """Return some items and documents in one round trip, as the basis of a `Write`.

        An item without records is left out. Each item and document is current, but they need not be of the
        same moment.
        """

    @abstractmethod
    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        """Save independent writes durably, in few round trips; each one succeeds or fails on its own.

        Yields one outcome for each write, in order: its result or its error. See `write`.
        """

    @abstractmethod
    def candidates(self, choice: Choice, reading: Reading = BY_ID) -> Iterator[str]:
        """Yield the ids of all items that are chosen, and of others that may be, in order.

        What it costs grows with the items that are yielded, not with the others. No items are read, which
        takes most of the time of `select`.
        """

    @abstractmethod
    def standings(self) -> Mapping[Standing, int]:
        """Return how many items have each standing."""

    @abstractmethod
    def history(self, item_id: str | None = None) -> Iterator[Record | Damage]:
        """Yield the records of one item, or of all, by item id and sequence.

        Not all of them are held in memory at once. `Damage` takes the place of an unreadable record.
        """

    @abstractmethod
    def documents(
        self, kind: str, *, prefix: str = "", is_newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Document]:
        """Yield documents of a kind whose key starts with `prefix`, by key or from the last key backwards."""

    @abstractmethod
    def rebuild(self) -> None:
        """Recompute all derived data, from which the other methods answer, from the records alone."""

    @abstractmethod
    def close(self) -> None:
        """Release connections and files; a closed store is not used again."""

    def write(self, write: Write) -> Written:
        """Save one write durably.

        A write whose records exist already, because its acknowledgement was lost, counts as done.

        Raises:
            SequenceConflict: An item or document is not as expected; nothing was written.
            IllegalTransition: A record may not follow; nothing was written.
            UsageError: An id is too long, or a value is not text or JSON; nothing was written.
        """
        (outcome,) = self.write_many([write])
        if isinstance(outcome, LakewrightError):
            raise outcome
        return outcome

    def read(self, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return these items by id; an item without records is left out."""
        return self.look_up(item_ids).items

    def select(self, choice: Choice, reading: Reading = BY_ID) -> Iterator[Item]:
        """Yield the items that are chosen, in order, without holding all of them in memory."""
        for page in batched(self.candidates(choice, reading)):
            present = self.read(page)
            yield from (present[i] for i in page if i in present and belongs(present[i], choice))

    def counts(self) -> Mapping[tuple[Application, Verdict], int]:
        """Return how many items each application has in each verdict."""
        counted: Counter[tuple[Application, Verdict]] = Counter()
        for standing, number in self.standings().items():
            for application in standing.concerned or (ANYONE,):
                counted[application, standing.verdict(application)] += number
        return dict(counted)

    def arrivals(self) -> Mapping[Standing, Arrivals]:
        """Return the places of the first and of the last item of each standing in the order of arrival."""
        found = {}
        for standing in self.standings():
            group = Group(frozenset({standing}))
            first, last = (next(self.select(group, Reading(end, limit=1)), None) for end in (False, True))
            if first is not None and last is not None:
                found[standing] = Arrivals((first.arrival, first.item_id), (last.arrival, last.item_id))
        return found

    def find_records(self, places: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Record | Damage]:
        """Return the records at these pairs of item id and sequence; those that do not exist are left out."""
        found = (record for item_id in {item_id for item_id, _ in places} for record in self.history(item_id))
        listed = {(record.item_id, record.sequence or 0): record for record in found}
        return {place: listed[place] for place in places if place in listed}

    def document(self, kind: str, key: str) -> Document | None:
        """Return one document, or None."""
        return self.look_up(keys=[(kind, key)]).documents.get((kind, key))

    def records(self, item_id: str) -> tuple[Record, ...]:
        """Return the records of an item by sequence; none for an unknown item.

        Raises:
            ManifestCorrupt: A record was edited by hand so that it cannot be read.
        """
        found = list(self.history(item_id))
        for entry in found:
            if isinstance(entry, Damage):
                raise ManifestCorrupt(f"{item_id}: {entry.problem}", details={"item_id": item_id})
        return tuple(entry for entry in found if isinstance(entry, Record))
