"""The plan of a rewind: the version to which a table goes back, and the slices that are applied to it again.

An undo and a rebuild are planned by the same rules. Slices count as bronze and the manifest have them now:
one whose present content an operator has accepted is applied as it is now, if it has the size and the number
of files with which it was processed. Otherwise other rows would be applied than are in the table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from lakewright.errors import DataLossError, SliceError
from lakewright.errors.phrase import Command, Option, Phrase
from lakewright.lake.observation import missing_files
from lakewright.manifest.item import Item, Verdict, has_same_amounts, is_changed
from lakewright.manifest.lock import command
from lakewright.manifest.watermark import Watermark
from lakewright.slices.discover import called_name, find_slice, natural_key, slice_name
from lakewright.slices.replay_slices import KnownSlice
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted, first_of
from lakewright.strategies.outdated import rebuild_command

if TYPE_CHECKING:
    from lakewright.lake.commit import Commit
    from lakewright.lake.delta_log import TableState
    from lakewright.manifest.rewind import RewoundSlice
    from lakewright.slices.chain import AppliedSlice
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = [
    "RewindPlan",
    "as_in_manifest",
    "check_bronze",
    "check_foreign",
    "check_version",
    "greatest_marks",
    "known_slices",
    "plan_digest",
    "requeue_advice",
    "watermarks_after",
    "watermarks_of",
]

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """A version of a table to go back to, and the slices that are applied again from there on.

    Attributes:
        state: The table as it was observed.
        base: The version whose rows the new table starts with; None for none.
        kept: The slices that the table holds in that version, in order.
        slices: The slices that are applied again, in order.
        app: The application id of the commits beside it, the same for rewinds that can continue each other.
        has_past: Whether the entity's past versions stand before the first of the slices.
        foreign: Commits of other writers, of repairs and of an adoption that are lost.
        skipped: The items of slices that are left out, because they were skipped since they were processed.
    """

    operation: ClassVar[str] = "rewind"

    state: TableState
    base: int | None
    kept: tuple[AppliedSlice, ...] = ()
    slices: tuple[KnownSlice, ...] = ()
    app: str = ""
    has_past: bool = False
    foreign: tuple[Commit, ...] = ()
    skipped: tuple[Item, ...] = ()

    @property
    def skipped_names(self) -> list[str]:
        """Names of the slices that are left out."""
        return [slice_name(item) for item in self.skipped]

    @property
    def changes_table(self) -> bool:
        """Whether the rewind makes a commit."""
        return True

    @property
    def rewound_ids(self) -> frozenset[str]:
        """The items whose slices the table does not hold afterwards, or holds by other commits."""
        return frozenset((*(each.item_id for each in self.slices), *(item.item_id for item in self.skipped)))

    def taken_back(self, context: ProcessingContext, entity: Entity) -> tuple[RewoundSlice, ...]:
        """Return the slices that the table does not hold any more; the manifest has skipped ones already."""
        return ()


def plan_digest(plan: Mapping[str, Any]) -> str:
    """Return a text that is the same for equal plans."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True, default=str).encode()).hexdigest()[:16]


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
    last = max((natural_key(each.name) for each in before), default=())
    found = []
    for each in slices:
        at, key = each.at, natural_key(each.name)
        if at is None:
            raise DataLossError(
                f"the processing time of {each.name} is not recorded, so it cannot be applied again",
                remedy="Nothing was written.",
                details={"item_id": each.item_id},
            )
        found.append(
            KnownSlice(
                item_id=each.item_id,
                name=each.name,
                fingerprint=each.fingerprint,
                at=at,
                strategy=strategy or Strategy(each.content["strategy"]),
                is_late=key < last,
                is_new=each.item_id in new,
            )
        )
        last = max(last, key)
    return tuple(found)


def check_version(context: ProcessingContext, entity: Entity, base: int | None) -> None:
    """Raise an error if files of the version that a table goes back to were removed.

    Raises:
        DataLossError: They were; nothing was written.
    """
    silver = entity.places(context.lake.settings).silver
    gone = [] if base is None else missing_files(context.lake, silver, base)
    if gone:
        raise DataLossError(
            f"version {base} of {silver} is not whole any more: {counted(len(gone), 'file')} of it "
            f"{'was' if len(gone) == 1 else 'were'} removed, such as {gone[0]}",
            remedy=Phrase(
                "VACUUM removes files of old versions. Build the table again from its slices with ",
                rebuild_command(entity),
                ". Nothing was written.",
            ),
            details={"version": base, "files": len(gone)},
        )


def check_foreign(entity: Entity, lost: tuple[Commit, ...], *, is_allowed: bool) -> tuple[Commit, ...]:
    """Return the commits that no slice made and that a rewind takes out, if they may be lost.

    Raises:
        DataLossError: There are some, and they may not; nothing was written.
    """
    if not lost or is_allowed:
        return lost
    versions = ", ".join(f"{each.version} ({each.operation})" for each in lost[:MOST_NAMED])
    raise DataLossError(
        f"{counted(len(lost), 'commit')} to {entity.called} that no slice made would be lost: "
        f"version {versions}",
        remedy=Phrase("Give ", Option("--over-foreign"), " if they may be lost. Nothing was written."),
        details={"versions": [each.version for each in lost]},
    )


def watermarks_of(slices: Iterable[AppliedSlice]) -> dict[str, Watermark]:
    """Return the greatest watermark of each column among slices."""
    return {column: Watermark.from_json(mark) for column, mark in greatest_marks(slices).items()}


def watermarks_after(
    context: ProcessingContext, gone: frozenset[str], left: Iterable[AppliedSlice]
) -> dict[str, Any]:
    """Return the watermarks that change: those that came from rewound slices, by the slices that are left.

    A watermark that an operator set, or that came from another slice, stays.

    Args:
        context: The context of the processing.
        gone: Ids of the items that the table does not hold any more, or holds by other commits.
        left: The slices that it holds.
    """
    present = context.ledger.watermarks.all(prefix=f"{context.application}/")
    lost = {each.column for each in present if each.item_id in gone}
    greatest = greatest_marks(left)
    return {column: greatest.get(column) for column in sorted(lost)}


def greatest_marks(slices: Iterable[AppliedSlice]) -> dict[str, dict[str, Any]]:
    """Return the greatest watermark of each column among slices, as JSON with the item that it came from."""
    found: dict[str, dict[str, Any]] = {}
    for each in slices:
        marks: Mapping[str, Any] = each.content.get("watermarks") or {}
        for column, mark in marks.items():
            before = found.get(column)
            if before is None or Watermark.from_json(mark).is_after(Watermark.from_json(before)):
                found[column] = {**mark, "item": each.item_id}
    return found


def as_in_manifest(
    context: ProcessingContext,
    entity: Entity,
    slices: Sequence[AppliedSlice],
    *,
    takes_requeued: bool = False,
) -> tuple[tuple[AppliedSlice, ...], frozenset[str]]:
    """Return slices with the fingerprints that an operator has accepted since they were processed.

    Warnings name the slices that have another one now.

    Args:
        context: The context of the processing.
        entity: The entity.
        slices: The slices as the table has them.
        takes_requeued: Whether those that wait, since an operator has requeued them, get the fingerprints
            with which they wait.

    Returns:
        The slices, and the ids of those that wait and have another fingerprint now.
    """
    items = context.ledger.store.read([each.item_id for each in slices])
    accepted: list[str] = []
    requeued: dict[str, str] = {}
    found: list[AppliedSlice] = []
    for each in slices:
        item = items.get(each.item_id, Item(each.item_id))
        now = dict(item.fingerprint or {})
        is_other = is_changed(each.fingerprint, now)
        if is_other and _is_accepted(context, each, item):
            accepted.append(each.name)
        elif is_other and takes_requeued and item.verdict(context.application) is Verdict.READY:
            requeued[each.item_id] = each.name
        else:
            is_other = False
        found.append(replace(each, content={**each.content, "fingerprint": now}) if is_other else each)
    if accepted:
        have = "has" if len(accepted) == 1 else "have"
        context.warn(
            f"{entity.called}: {first_of(accepted, MOST_NAMED)} {have} other files than when processed, and "
            "these were accepted: they are applied as they are now"
        )
    if requeued:
        were = "was" if len(requeued) == 1 else "were"
        context.warn(
            f"{entity.called}: {first_of(list(requeued.values()), MOST_NAMED)} changed since the last "
            f"processing, and {were} requeued: what is there now is applied in its place"
        )
    return tuple(found), frozenset(requeued)


def _is_accepted(context: ProcessingContext, applied: AppliedSlice, item: Item) -> bool:
    """Return whether an operator has accepted the files that a slice has now as what was processed."""
    is_of_item = item.tokens.get(context.application.key) == applied.number
    is_same_size = has_same_amounts(applied.fingerprint, item.fingerprint or {})
    return item.is_processed_by(context.application) and is_of_item and is_same_size


def check_bronze(
    context: ProcessingContext,
    entity: Entity,
    slices: Sequence[AppliedSlice],
    advice: Callable[[Sequence[AppliedSlice], Sequence[AppliedSlice]], str],
    *,
    requeued: Collection[str] = (),
) -> None:
    """Raise an error unless bronze holds slices as they were when they were applied.

    Args:
        context: The context of the processing.
        entity: The entity.
        slices: The slices.
        advice: Returns what the remedy says, after a comma, given the slices at fault, and those of them that
            have changed.
        requeued: Ids of those of them that the next run processes as they are then: they may have changed,
            which a warning says.

    Raises:
        SliceError: Some are gone or have changed; the error names each.
    """
    bronze = entity.places(context.lake.settings).bronze
    faulty, changed, same, ready = [], [], [], []
    for each in slices:
        found = find_slice(bronze, each.name, context.lake)
        if found is None:
            faulty.append(each)
        elif is_changed(each.fingerprint, found.fingerprint) and each.item_id in requeued:
            ready.append(each.name)
        elif is_changed(each.fingerprint, found.fingerprint):
            faulty.append(each)
            changed.append(each)
            if has_same_amounts(each.fingerprint, found.fingerprint):
                same.append(called_name(entity.called, each.name))
    if faulty:
        faults = [
            f"{each.name} {'has changed since it was processed' if each in changed else 'is gone'}"
            for each in faulty
        ]
        raise SliceError(
            f"slices of {entity.called} cannot be applied again from {bronze}: {'; '.join(faults)}",
            remedy=Phrase(
                _accepting(same),
                "Bring them back as they were",
                advice(faulty, changed),
                ". Nothing was written.",
            ),
            details={"slices": faults},
        )
    if ready:
        verb = "has" if len(ready) == 1 else "have"
        context.warn(
            f"{entity.called}: {first_of(ready, MOST_NAMED)} {verb} changed since the last processing: the "
            "next run processes what is there now"
        )


def requeue_advice(entity: Entity, changed: Sequence[AppliedSlice], rebuild: Command | None = None) -> str:
    """Return what a remedy says, after a comma, of slices that have changed; empty if none has.

    Args:
        entity: The entity.
        changed: The slices.
        rebuild: The command that applies all slices again, if it is typed.
    """
    if not changed:
        return ""
    typed = command("requeue", *(called_name(entity.called, each.name) for each in changed))
    if rebuild is not None:
        return Phrase(", or apply what is there now in its place: ", typed.plus("--late"), ", then ", rebuild)
    return Phrase(", or process what is there now: ", typed.plus("--cascade"), ", then a run")


def _accepting(same: Sequence[str]) -> str:
    """Return the sentence of a remedy for slices that have changed at the same size; empty if none has."""
    if not same:
        return ""
    return Phrase(
        f"If the rows of {first_of(same, MOST_NAMED)} are the same, type ", command("accept", *same), ". "
    )
