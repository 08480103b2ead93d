"""Deviations of bronze from the manifest that an entity's pending slices do not show.

A processed slice has other files than when it was discovered, slices can't be read, or the folder is gone.
They are found with the listing that discovery makes anyway; the differences that need more reading are those
of `inventory.py`.

Source: `processing-manifest.md`, "Use cases" (command post). `changed_slices` is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from lakewright.errors import Fault, SliceError
from lakewright.errors.fault import PARTS
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import has_same_amounts, is_changed
from lakewright.manifest.lock import command
from lakewright.slices.bronze import BRONZE_UNREADABLE
from lakewright.slices.discover import called_name, item_id, natural_key, slice_name
from lakewright.spec.words import counted, first_of

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.manifest.record import Application
    from lakewright.slices.bronze import Slice
    from lakewright.slices.discover import Listing

__all__ = [
    "SLICES_CHANGED",
    "CorrectedSlices",
    "Deviations",
    "Repetition",
    "changed_items",
    "later_processed",
]

SLICES_CHANGED = "slices_changed"
"""The code of the fault, and the alert, that processed slices have changed."""

SLICES_GONE = "slices_gone"
"""The alert that slices which must be processed again are gone."""

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class CorrectedSlices:
    """Skipped slices that have other files than when they were recorded, as after an undo and a correction.

    Attributes:
        entity: What commands call their entity.
        items: Their items, in order.
        process: What has the first of them processed, and does to the rows of later slices, as a sentence.
        is_older: Whether that makes older rows the current ones.
    """

    entity: str
    items: tuple[Item, ...]
    process: str
    is_older: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(map(slice_name, self.items))

    @property
    def advice(self) -> str:
        """What to type, as sentences."""
        it = "it" if len(self.items) == 1 else "they"
        typed = command("accept", *(called_name(self.entity, item) for item in self.items[:MOST_NAMED]))
        if self.is_older:
            return Phrase(f"If {it} should stay skipped, and the newer rows: ", typed, ". ", self.process)
        return Phrase(self.process, f" If {it} should stay skipped, ", typed, " ends this message.")

    @property
    def note(self) -> str:
        """That they have changed, and what to type."""
        return Phrase(f"{self.words}. ", self.advice)

    @property
    def words(self) -> str:
        """That they have changed, without their entity."""
        one = len(self.names) == 1
        return (
            f"{len(self.names)} skipped {'slice has' if one else 'slices have'} changed since "
            f"{'it was' if one else 'they were'} recorded: {_named(self.names)}"
        )


@dataclass(frozen=True, slots=True)
class Repetition:
    """How changed slices are processed again.

    Attributes:
        commands: The commands, as far as they are known.
        words: What to do, as a clause without a subject.
        note: What it does to other rows, or leaves of them, as sentences that follow others; or empty.
    """

    commands: tuple[Command, ...]
    words: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Deviations:
    """How an entity's bronze folder deviates from what the manifest has recorded.

    Attributes:
        entity: Name of the entity.
        bronze: The folder.
        changed: Processed items whose slice has changed, in order.
        repetition: How they are processed again; None if none has changed.
        requeued: Names of changed slices that are processed again in this run, and of those after them.
        left: Names of such slices that the run leaves to others.
        gone: Names of slices that are to be processed again after TRUNCATE or DESTROY, but are not there.
        listing: What the folder holds.
        corrected: Skipped slices that have changed; None if none has.
        skipped: Number of skipped slices in bronze, of those that the run takes.
        vanished: Number of processed slices that are no longer in bronze.
        is_lost: Whether the folder does not exist although slices from it were processed.
    """

    entity: str
    bronze: str
    listing: Listing
    changed: tuple[Item, ...] = ()
    repetition: Repetition | None = None
    requeued: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    corrected: CorrectedSlices | None = None
    skipped: int = 0
    vanished: int = 0
    is_lost: bool = False

    @property
    def fault(self) -> Fault | None:
        """What an operator should look at, with the commands to type; None if there is nothing."""
        return self.fault_beside()

    def fault_beside(self, *said: str) -> Fault | None:
        """Return the fault without the messages that were said already; None if nothing is left."""
        found = [each for each in self._faults() if each[0] not in said]
        if not found:
            return None
        messages, remedies, alerts = zip(*found, strict=True)
        return Fault(
            "\n".join(messages),
            remedy=Phrase.joined(" ", remedies),
            code=alerts[0],
            details={
                PARTS: list(zip(alerts, messages, strict=True)),
                "alerts": list(alerts),
            },
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user may want to know: slices that are being written, processed again, or were removed."""
        notes = []
        if self.requeued:
            notes.append(f"processed again because of changed files: {_named(self.requeued)}")
        if self.left:
            notes.append(f"changed, and left to other runs to be processed again: {_named(self.left)}")
        if self.corrected is not None:
            notes.append(self.corrected.note)
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

    def idle_reason(self, takes: Callable[[str], bool]) -> str | None:
        """Return why there is no slice to process, if there is none; None if every slice has been processed.

        Args:
            takes: Whether the target takes a slice of that name.
        """
        number = sum(takes(each.name) for each in self.listing.slices)
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
        found = next(self._changed(), None)
        return (
            None if found is None else SliceError(found[0], remedy=found[1], details={"alerts": [found[2]]})
        )

    def _faults(self) -> Iterator[tuple[str, str, str]]:
        """Yield the message, remedy and alert of each deviation."""
        yield from self._changed()
        if self.is_lost:
            yield (
                f"the bronze folder {self.bronze} of {self.entity} is gone; slices from it are recorded",
                "Mount it, or correct bronze_path.",
                BRONZE_UNREADABLE,
            )
        if self.listing.unreadable:
            found = self.listing.unreadable
            each = "; ".join(f"{name} ({why})" for name, why in islice(found.items(), MOST_NAMED))
            yield (
                f"{counted(len(found), 'slice')} of {self.entity} can't be read and {_are(found)} left out: "
                f"{each}",
                "Make them readable, or remove them.",
                BRONZE_UNREADABLE,
            )
        if self.gone:
            yield (
                f"{counted(len(self.gone), 'slice')} of {self.entity} {_are(self.gone)} to be processed "
                f"again, but {_are(self.gone)} gone from {self.bronze}: {_named(self.gone)}",
                Phrase(
                    "Bring them back, or skip them with ",
                    command("skip", *(f"{self.entity}/{name}" for name in self.gone)),
                    ".",
                ),
                SLICES_GONE,
            )

    def _changed(self) -> Iterator[tuple[str, str, str]]:
        if not self.changed:
            return
        names = tuple(map(slice_name, self.changed))
        was = "it was" if len(names) == 1 else "they were"
        yield (
            f"{counted(len(names), 'slice')} of {self.entity} changed since {was} processed: {_named(names)}",
            self._remedy,
            SLICES_CHANGED,
        )

    @property
    def _remedy(self) -> str:
        """What to do about changed slices: first what harms nothing, if their rows may be the same."""
        accept = Phrase(command("accept", *(called_name(self.entity, item) for item in self.changed)))
        again, note = ("", "") if self.repetition is None else (self.repetition.words, self.repetition.note)
        if not self._have_same_amounts:
            return Phrase(
                Phrase(again).capitalized(), ", or keep what was processed with ", accept, ".", note
            )
        size = "Its size is" if len(self.changed) == 1 else "Their sizes are"
        kept = Phrase(f"{size} the same: if the rows are too, keep what was processed with ", accept)
        return Phrase(kept, ". If not, ", again, ".", note)

    @property
    def _have_same_amounts(self) -> bool:
        present = {item_id(slice_.path): slice_ for slice_ in self.listing.slices}
        found = ((item.fingerprint, present.get(item.item_id)) for item in self.changed)
        return all(then and now and has_same_amounts(then, now.fingerprint) for then, now in found)


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


def _named(names: Iterable[str]) -> str:
    return first_of(list(names), MOST_NAMED)


def _are(things: Sized) -> str:
    return "is" if len(things) == 1 else "are"
