"""Applied slices in the form in which a rewind applies them again, as bronze and the manifest have them now.

A slice whose present content an operator has accepted counts as it is now. Its size and its number of files
must be those with which it was processed: otherwise other rows would be applied than are in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakewright.errors import DataLossError, SliceError
from lakewright.lake.observation import missing_files
from lakewright.manifest.item import Verdict, has_same_amounts, is_changed
from lakewright.manifest.lock import command
from lakewright.manifest.record import parse_instant
from lakewright.manifest.watermark import Watermark
from lakewright.slices.discover import called_name, find_slice, natural_key
from lakewright.slices.replay_slices import KnownSlice
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted, first_of
from lakewright.strategies.outdated import rebuild_command

if TYPE_CHECKING:
    from lakewright.lake.commit import Commit
    from lakewright.lake.table_state import TableState
    from lakewright.manifest.item import Item
    from lakewright.slices.chain import AppliedSlice
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = [
    "Replay",
    "as_accepted",
    "as_requeued",
    "check_bronze",
    "check_foreign",
    "check_version",
    "greatest_marks",
    "known_slices",
    "watermarks_after",
    "watermarks_of",
]


@dataclass(frozen=True, slots=True)
class Replay:
    """Slices that a rewind applies again beside a table, from one of its versions on.

    Attributes:
        state: The table as it was observed.
        base: The version whose rows the new table starts with; None for none.
        slices: The slices that are applied again, in order.
        kept: The slices that the table holds in that version.
        app: The application id of the commits beside it, the same for rewinds that can continue each other.
        has_past: Whether the entity's past versions stand before the first of the slices.
    """

    state: TableState
    base: int | None
    slices: tuple[KnownSlice, ...]
    kept: tuple[AppliedSlice, ...]
    app: str
    has_past: bool


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
    names = [natural_key(each.name) for each in before]
    last = max(names, default=())
    found = []
    for each in slices:
        name, at = each.name, each.content.get("processingTime")
        if at is None:
            raise DataLossError(
                f"the processing time of {name} is not recorded, so it cannot be applied again",
                remedy="Nothing was written.",
                details={"item_id": each.item_id},
            )
        key = natural_key(name)
        found.append(
            KnownSlice(
                item_id=each.item_id,
                name=name,
                fingerprint=each.fingerprint,
                at=parse_instant(at),
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
            remedy="VACUUM removes files of old versions. Build the table again from its slices with "
            f"`{rebuild_command(entity)}`. Nothing was written.",
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
        remedy="Give --over-foreign if they may be lost. Nothing was written.",
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


MOST_NAMED = 5


def as_accepted(
    context: ProcessingContext, entity: Entity, slices: Sequence[AppliedSlice]
) -> tuple[AppliedSlice, ...]:
    """Return slices with the fingerprints that an operator has accepted since they were processed.

    A warning names the slices that have another one now.
    """

    def is_accepted(applied: AppliedSlice, item: Item) -> bool:
        is_of_item = item.tokens.get(context.application.key) == applied.number
        is_same_size = has_same_amounts(applied.fingerprint, item.fingerprint or {})
        return item.is_processed_by(context.application) and is_of_item and is_same_size

    told = "other files than when processed, and these were accepted: they are applied as they are now"
    return _as_in_manifest(context, entity, slices, is_accepted, (f"has {told}", f"have {told}"))


def as_requeued(
    context: ProcessingContext, entity: Entity, slices: Sequence[AppliedSlice]
) -> tuple[AppliedSlice, ...]:
    """Return slices with the fingerprints with which an operator has requeued them, if they wait.

    A warning names the slices that have another one now.
    """

    def is_requeued(_: AppliedSlice, item: Item) -> bool:
        return item.verdict(context.application) is Verdict.READY

    told = "changed since the last processing, and {} requeued: what is there now is applied in its place"
    return _as_in_manifest(context, entity, slices, is_requeued, (told.format("was"), told.format("were")))


def _as_in_manifest(
    context: ProcessingContext,
    entity: Entity,
    slices: Sequence[AppliedSlice],
    counts: Callable[[AppliedSlice, Item], bool],
    told: tuple[str, str],
) -> tuple[AppliedSlice, ...]:
    """Return slices with the fingerprints of their items where these count, and warn of those that differ."""
    items = context.ledger.store.read([each.item_id for each in slices])
    found = [
        replace(each, content={**each.content, "fingerprint": dict(item.fingerprint or {})})
        if (item := items.get(each.item_id)) is not None
        and is_changed(each.fingerprint, item.fingerprint or {})
        and counts(each, item)
        else each
        for each in slices
    ]
    if names := [now.name for now, then in zip(found, slices, strict=True) if now is not then]:
        context.warn(f"{entity.called}: {first_of(names, MOST_NAMED)} {told[len(names) > 1]}")
    return tuple(found)


def check_bronze(
    context: ProcessingContext,
    entity: Entity,
    slices: Sequence[AppliedSlice],
    *,
    requeued: Collection[str] = (),
    without: Callable[[AppliedSlice], str] = lambda _: "",
    instead: Callable[[Collection[str]], str | None] | None = None,
    rebuild: str | None = None,
) -> None:
    """Raise an error unless bronze holds slices as they were when they were applied.

    Args:
        context: The context of the processing.
        entity: The entity.
        slices: The slices.
        requeued: Ids of those of them that the next run processes as they are then: they may have changed,
            which a warning says.
        without: Returns what the remedy says, after a comma, of how to do without the slices up to the last
            one that is at fault.
        instead: Returns what the remedy says, after a comma, if slices have changed, whose ids it gets; None
            if that does not help. Not called if slices are gone.
        rebuild: The command that applies all slices again except for those that are skipped, if it is typed.

    Raises:
        SliceError: Some are gone or have changed; the error names each.
    """
    bronze = entity.places(context.lake.settings).bronze
    faults, changed, same, ready = [], [], [], []
    last = None
    for each in slices:
        name = each.name
        found = find_slice(bronze, name, context.lake)
        if found is not None and not is_changed(each.fingerprint, found.fingerprint):
            continue
        if found is not None and each.item_id in requeued:
            ready.append(name)
            continue
        last = each
        if found is None:
            faults.append(f"{name} is gone")
        else:
            faults.append(f"{name} has changed since it was processed")
            changed.append(each)
            if has_same_amounts(each.fingerprint, found.fingerprint):
                same.append(called_name(entity.called, name))
    if last is not None:
        is_whole = instead is not None and len(changed) == len(faults)
        told = instead({each.item_id for each in changed}) if instead is not None and is_whole else None
        raise SliceError(
            f"slices of {entity.called} cannot be applied again from {bronze}: {'; '.join(faults)}",
            remedy=f"{_accepting(same)}Bring them back as they were"
            f"{told or _requeuing(entity, changed, rebuild)}{without(last)}. Nothing was written.",
            details={"slices": faults},
        )
    if ready:
        verb = "has" if len(ready) == 1 else "have"
        context.warn(
            f"{entity.called}: {first_of(ready, MOST_NAMED)} {verb} changed since the last processing: the "
            "next run processes what is there now"
        )


def _requeuing(entity: Entity, changed: Sequence[AppliedSlice], rebuild: str | None) -> str:
    """Return what a remedy says, after a comma, of slices that have changed; empty if none has."""
    if not changed:
        return ""
    typed = command("requeue", *(called_name(entity.called, each.name) for each in changed))
    if rebuild is not None:
        return f", or apply what is there now in its place: `{typed} --late`, then `{rebuild}`"
    return f", or process what is there now: `{typed} --cascade`, then a run"


def _accepting(same: Sequence[str]) -> str:
    """Return the sentence of a remedy for slices that have changed at the same size; empty if none has."""
    if not same:
        return ""
    return f"If the rows of {first_of(same, MOST_NAMED)} are the same, type `{command('accept', *same)}`. "
