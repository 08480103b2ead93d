"""Deviations of bronze from the manifest that an entity's pending slices do not show.

A processed slice has other files than when it was discovered, slices can't be read, or the folder is gone.
They are found with the listing that discovery makes anyway; the differences that need more reading are those
of `inventory.py`. Changed slices are requeued if the entity asks for it.

Source: `processing-manifest.md`, "Use cases" (command post). `changed_slices` is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault, SliceError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import Item, Verdict, is_changed
from lakewright.manifest.lock import command
from lakewright.manifest.record import Author, Draft, State
from lakewright.manifest.store import Query
from lakewright.slices.bronze import BRONZE_UNREADABLE
from lakewright.slices.choices import changed_remedy
from lakewright.slices.discover import item_id, natural_key, slice_name
from lakewright.slices.processed import continued_in, place_of
from lakewright.spec.words import counted, first_of

if TYPE_CHECKING:
    from lakewright.manifest.discovery import DiscoveredSlice
    from lakewright.manifest.record import Application
    from lakewright.slices.bronze import Slice
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.discover import Listing
    from lakewright.spec.models.entity import Entity

__all__ = [
    "SLICES_CHANGED",
    "Deviations",
    "changed_items",
    "count_vanished",
    "find_deviations",
    "is_folder_missed",
    "items_in_bronze",
    "later_processed",
    "new_item",
]

SLICES_CHANGED = "slices_changed"
"""The code of the fault, and the alert, that processed slices have changed."""

SLICES_GONE = "slices_gone"
"""The alert that slices which must be processed again are gone."""

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Deviations:
    """How an entity's bronze folder deviates from what the manifest has recorded.

    Attributes:
        bronze: The folder.
        listing: What the folder holds.
        changed: Processed items whose slice has changed, in order.
        requeued: Names of changed slices that are processed again in this run, and of those after them.
        left: Names of such slices that the run leaves to others.
        gone: Names of slices that are to be processed again after TRUNCATE or DESTROY, but are not there.
        corrected: Names of skipped slices that have other files than when they were recorded, in order, as
            after an undo and a correction.
        skipped: Number of skipped slices in bronze, of those that the run takes.
        vanished: Number of processed slices that are no longer in bronze.
        is_lost: Whether the folder does not exist although slices from it were processed.
    """

    entity: Entity
    bronze: str
    listing: Listing
    changed: tuple[Item, ...] = ()
    requeued: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    corrected: tuple[str, ...] = ()
    skipped: int = 0
    vanished: int = 0
    is_lost: bool = False

    @property
    def fault(self) -> Fault | None:
        """What an operator should look at; None if there is nothing."""
        return self.fault_beside()

    def fault_beside(self, *said: Mapping[str, Any]) -> Fault | None:
        """Return the fault without what errors with these details say already; None if nothing is left."""
        found = [each for each in self._faults() if each.details not in said]
        return reduce(Fault.and_also, found) if found else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user may want to know: slices that are being written, processed again, or were removed."""
        notes = []
        if self.requeued:
            notes.append(f"processed again because of changed files: {_named(self.requeued)}")
        if self.left:
            notes.append(f"changed, and left to other runs to be processed again: {_named(self.left)}")
        notes += self.corrected_notes
        if self.vanished and not self.is_lost:
            notes.append(
                Phrase(
                    f"{self.vanished} processed {'slice is' if self.vanished == 1 else 'slices are'} "
                    "no longer in bronze; ",
                    Command("manifest", "discover"),
                    " lists them",
                )
            )
        if self.listing.incomplete:
            notes.append(f"not complete yet: {_named(self.listing.incomplete)}")
        return tuple(notes)

    @property
    def corrected_notes(self) -> tuple[str, ...]:
        """That skipped slices have changed; empty if none has."""
        if not self.corrected:
            return ()
        number = counted(len(self.corrected), "skipped slice")
        told = f"{number} changed since {_was(self.corrected)} recorded: {_named(self.corrected)}. "
        return (Phrase(told, changed_remedy(self.entity, self.corrected, is_skipped=True)),)

    def idle_reason(self, takes: Callable[[str], bool], limits: str) -> str | None:
        """Return why a target has no slice to process; None if it has processed every slice that it takes.

        Args:
            takes: Whether the target takes a slice of that name.
            limits: What it takes, as it is declared.
        """
        number = sum(takes(each.name) for each in self.listing.slices)
        if self.listing.slices and not number:
            return f"bronze has no slice that it takes ({limits})"
        that = "" if number == len(self.listing.slices) else " that it takes"
        if self.skipped and self.skipped == number:
            return (
                f"the only slice{that} is skipped"
                if number == 1
                else f"all {number} slices{that} are skipped"
            )
        if self.skipped:
            are = "one that is" if self.skipped == 1 else f"{self.skipped} that are"
            return f"every slice{that} has been processed, except {are} skipped"
        if self.listing.slices or self.is_lost:
            return None
        if not self.listing.exists:
            return f"no slice has arrived: there is no folder {self.bronze}"
        return f"no slice has arrived in {self.bronze}"

    def changed_error(self) -> SliceError | None:
        """Return the error for changed slices, or None if none has changed."""
        fault = next(self._changed(), None)
        if fault is None:
            return None
        return SliceError(fault.message, remedy=fault.remedy, details=fault.details)

    def _faults(self) -> Iterator[Fault]:
        yield from self._changed()
        called = self.entity.called
        if self.is_lost:
            yield _fault(
                BRONZE_UNREADABLE,
                f"the bronze folder {self.bronze} of {called} is gone; slices from it are recorded",
                "Mount it, or correct bronze_path.",
            )
        if self.listing.unreadable:
            found = self.listing.unreadable
            each = "; ".join(f"{name} ({why})" for name, why in islice(found.items(), MOST_NAMED))
            yield _fault(
                BRONZE_UNREADABLE,
                f"{counted(len(found), 'slice')} of {called} can't be read and {_are(found)} left out: "
                f"{each}",
                "Make them readable, or remove them.",
                found,
            )
        if self.gone:
            yield _fault(
                SLICES_GONE,
                f"{counted(len(self.gone), 'slice')} of {called} {_are(self.gone)} to be processed "
                f"again, but {_are(self.gone)} gone from {self.bronze}: {_named(self.gone)}",
                Phrase(
                    "Bring them back, or skip them with ",
                    command("skip", *(f"{called}/{name}" for name in self.gone)),
                    ".",
                ),
                self.gone,
            )

    def _changed(self) -> Iterator[Fault]:
        called, names = self.entity.called, tuple(map(slice_name, self.changed))
        if names:
            yield _fault(
                SLICES_CHANGED,
                f"{counted(len(names), 'slice')} of {called} changed since {_was(names)} processed: "
                f"{_named(names)}",
                changed_remedy(self.entity, names),
                names,
            )


def _fault(code: str, message: str, remedy: str, slices: Iterable[str] = ()) -> Fault:
    return Fault(message, remedy=remedy, code=code, details={"alerts": [code], "slices": list(slices)})


def _was(names: Sized) -> str:
    return "it was" if len(names) == 1 else "they were"


def find_deviations(
    chain: SliceChain, listing: Listing, items: Mapping[str, Item], takes: Callable[[str], bool]
) -> Deviations:
    """Return how bronze deviates from the recorded items of the slices that it holds.

    Args:
        chain: The slices of an entity.
        listing: What its folder holds.
        items: The items of the slices there, by id.
        takes: Whether the run takes a slice of that name.
    """
    entity = chain.entity
    verdicts = [(item, item.verdict(chain.application)) for item in items.values()]
    skipped = [item for item, verdict in verdicts if verdict is Verdict.SKIPPED]
    found = Deviations(
        entity,
        chain.bronze,
        listing,
        skipped=sum(takes(slice_name(item)) for item in skipped),
        vanished=count_vanished(chain, items),
        is_lost=not listing.exists and is_folder_missed(chain),
    )
    if entity.settings.changed_slices == "ignore":
        return found
    processed = (item for item, verdict in verdicts if verdict is Verdict.PROCESSED)
    changed = sorted(changed_items(processed, listing.slices), key=place_of)
    corrected = sorted(changed_items(skipped, listing.slices), key=place_of)
    return replace(found, changed=tuple(changed), corrected=tuple(map(slice_name, corrected)))


def changed_items(items: Iterable[Item], slices: Iterable[Slice]) -> Iterator[Item]:
    """Yield the items whose slice has another fingerprint now than the one that is recorded."""
    present = {item_id(slice_.path): slice_ for slice_ in slices}
    for item in items:
        slice_, recorded = present.get(item.item_id), item.fingerprint
        if slice_ is not None and recorded is not None and is_changed(recorded, slice_.fingerprint):
            yield item


def later_processed(first: Item, items: Iterable[Item], application: Application) -> tuple[Item, ...]:
    """Return the processed items whose slices come after that of `first`, in order."""
    after = natural_key(slice_name(first))
    found = {natural_key(slice_name(item)): item for item in items if item.is_processed_by(application)}
    return tuple(found[key] for key in sorted(found) if key > after)


def is_folder_missed(chain: SliceChain) -> bool:
    """Return whether slices of a bronze folder are recorded, so that it has been there.

    A slice that another application has only announced does not count.
    """
    verdicts = frozenset({Verdict.PROCESSED, Verdict.READY, Verdict.FAILED})
    query = Query(application=chain.application, verdicts=verdicts, prefix=chain.prefix)
    return any(item.fingerprint is not None for item in chain.store.select(query))


def count_vanished(chain: SliceChain, present: Mapping[str, Item]) -> int:
    """Return how many slices an application processed that are not among the items in bronze, by id.

    Items of a place that the lake was moved from don't count if their slices have items in bronze.
    """
    store, application = chain.store, chain.application
    there = sum(1 for item in present.values() if item.verdict(application) is Verdict.PROCESSED)
    recorded = store.counts().get((application, Verdict.PROCESSED), 0)
    if recorded > there:  # the items may be as they are once a run has recorded what the table's log tells
        now = store.read(list(present)).values()
        there = max(there, sum(1 for item in now if item.verdict(application) is Verdict.PROCESSED))
    if recorded <= there:
        return 0
    query = Query(application=application, verdicts=frozenset({Verdict.PROCESSED}))
    elsewhere = [each for each in store.candidates(query) if not each.startswith(chain.prefix)]
    processed = (i for i in store.read(elsewhere).values() if i.verdict(application) is Verdict.PROCESSED)
    return recorded - there - len(continued_in(store, (item.item_id for item in processed), chain.bronze))


def items_in_bronze(chain: SliceChain, slices: Iterable[Slice]) -> dict[str, Item]:
    """Return the items of slices by id; those that the manifest does not know are as if just recorded."""
    new = {each.item_id: new_item(each) for each in chain.discovered(slices)}
    return {**new, **chain.store.read(list(new))}


def new_item(found: DiscoveredSlice) -> Item:
    """Return the item of a slice as if it had just been recorded."""
    content = {"entity": found.entity, "slice": found.slice, "fingerprint": dict(found.fingerprint)}
    draft = Draft(
        record_id="",
        item_id=found.item_id,
        state=State.NEW,
        application=found.application,
        author=Author.named("lakewright"),
        payload={"schema": "lakewright/new/1", "data": content},
    )
    return Item(found.item_id).after(draft.recorded(sequence=1, now=datetime.min.replace(tzinfo=UTC)))


def _named(names: Iterable[str]) -> str:
    return first_of(list(names), MOST_NAMED)


def _are(things: Sized) -> str:
    return "is" if len(things) == 1 else "are"
