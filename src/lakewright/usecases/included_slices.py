"""Slices that wait, and that a rebuild puts in the place that their processing times give them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import Verdict, is_changed
from lakewright.manifest.lock import command
from lakewright.slices.application import application_of
from lakewright.slices.chain import AppliedSlice
from lakewright.slices.discover import natural_key, slice_name
from lakewright.slices.processing_time import APART
from lakewright.slices.time_check import ALL_DECLARED
from lakewright.spec.models.entity import Strategy
from lakewright.usecases.items import find_or_record_item, inventory_of
from lakewright.usecases.slice_times.declared_times import declared_slice_time, placement_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.slices.time_check import Placement, SlicePlace
    from lakewright.spec.models.entity import Entity

__all__ = ["included_slices"]


def included_slices(app: App, entity: Entity, names: Sequence[str]) -> tuple[AppliedSlice, ...]:
    """Return slices that wait as a rebuild applies them.

    Each has the processing time that the target of a job declares for it, or else the one that it had when it
    was processed. One that no run has seen yet is recorded first.

    Args:
        app: The project.
        entity: The entity.
        names: Names of the slices.

    Raises:
        UsageError: A slice is not in bronze, does not wait, has no processing time of its own, or one of its
            own that puts it before older slices.
    """
    taken: set[datetime] = set()
    return tuple(_included(app, entity, name, taken) for name in sorted(set(names), key=natural_key))


def _included(app: App, entity: Entity, name: str, taken: set[datetime]) -> AppliedSlice:
    item = find_or_record_item(app, f"{entity.called}/{name}")
    _check_waits(app, entity, item)
    _check_unchanged(app, entity, item)
    declared = declared_slice_time(app, entity.called, slice_name(item))
    placement = placement_of(app, entity)
    place = placement.place_of(slice_name(item), declared)
    if place is None:
        raise UsageError(
            f"{name} has no place among the slices of {entity.name}: it was never processed, and no job "
            "declares a processing time for it",
            remedy=Phrase(
                command("requeue", f"{entity.called}/{name}").plus("--late"), " applies it after the others."
            ),
        )
    _check_place(entity, item, place)
    if entity.strategy is Strategy.HISTORIC and place.at != declared:
        _check_room(entity, item, place.at, placement)
    at = place.at
    while entity.strategy is Strategy.HISTORIC and at in taken:
        at += APART
    taken.add(at)
    content = {
        "processingTime": at.isoformat(),
        "strategy": entity.strategy.value,
        "fingerprint": dict(item.fingerprint or {}),
    }
    return AppliedSlice(item.item_id, 0, content)


def _check_waits(app: App, entity: Entity, item: Item) -> None:
    verdict = item.verdict(application_of(app.project.name, entity))
    if verdict is Verdict.READY:
        return
    typed = f"{entity.called}/{slice_name(item)}"
    remedies = {
        Verdict.PROCESSED: "Leave it out of --include: a rebuild applies all slices that were processed.",
        Verdict.FAILED: Phrase(command("resolve", typed), " first."),
        Verdict.SKIPPED: Phrase(command("unskip", typed), " first."),
    }
    raise UsageError(
        f"{typed} does not wait to be processed: it is {verdict.value}",
        remedy=remedies.get(verdict, Phrase(Command("manifest", "show", typed), " tells what it waits for.")),
    )


def _check_place(entity: Entity, item: Item, place: SlicePlace) -> None:
    """Raise an error if a slice would be applied before older ones, whose rows would then be the newer."""
    name, at, older = slice_name(item), place.at, place.older
    if older is None:
        return
    typed = Command("process", entity.called, name)
    raise UsageError(
        f"{name} has the processing time {at.isoformat()}, at which it is not in its place: {older.words}",
        remedy=Phrase(
            "Give it a later time: ",
            typed.plus("--processing-time", _second_after(older.at)),
            ". ",
            ALL_DECLARED,
        ),
    )


def _check_room(entity: Entity, item: Item, at: datetime, placement: Placement) -> None:
    """Raise an error if a slice that is put apart from the one before it would not be before the next one."""
    if placement.has_place(slice_name(item), at):
        return
    name = slice_name(item)
    raise UsageError(
        f"{name} has no place between those before and after it: its time would be {at.isoformat()}",
        remedy=Phrase(
            "Undo those after it that have the same day with ",
            Command("undo", entity.called, "SLICE", "--requeue"),
            ", then include all of them.",
        ),
    )


def _check_unchanged(app: App, entity: Entity, item: Item) -> None:
    now = inventory_of(app).fingerprint_now(item)
    if now is None or item.fingerprint is None or not is_changed(item.fingerprint, now):
        return
    called = f"{entity.called}/{slice_name(item)}"
    raise UsageError(
        f"{called} has changed since it was recorded",
        remedy=Phrase(
            "If its present content is right, record it with ",
            command("requeue", called).plus("--late"),
            ", and begin again.",
        ),
    )


def _second_after(at: datetime) -> str:
    return (at.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)).isoformat()
