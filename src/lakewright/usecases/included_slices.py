"""Slices that wait, and that a rebuild puts in the place that their processing times give them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.errors import UsageError
from lakewright.manifest.item import Verdict, is_changed
from lakewright.manifest.lock import command
from lakewright.manifest.record import State, parse_instant
from lakewright.slices.application import application_of
from lakewright.slices.applied import AppliedSlice
from lakewright.slices.discover import slice_name
from lakewright.usecases.items import find_or_record_item, inventory_of
from lakewright.usecases.target_times import declared_slice_time

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.spec.models.entity import Entity

__all__ = ["included_slices"]


def included_slices(app: App, entity: Entity, names: Sequence[str]) -> tuple[AppliedSlice, ...]:
    """Return slices that wait as a rebuild applies them.

    Each has the processing time that it had when it was processed, or else the one that the target of a job
    declares for it. One that no run has seen yet is recorded first.

    Args:
        app: The project.
        entity: The entity.
        names: Names of the slices.

    Raises:
        UsageError: A slice is not in bronze, does not wait, or has no processing time of its own.
    """
    return tuple(_included(app, entity, name) for name in dict.fromkeys(names))


def _included(app: App, entity: Entity, name: str) -> AppliedSlice:
    item = find_or_record_item(app, f"{entity.called}/{name}")
    _check_waits(app, entity, item)
    _check_unchanged(app, entity, item)
    at = _former_time(app, entity, item) or declared_slice_time(app, entity.called, slice_name(item))
    if at is None:
        raise UsageError(
            f"{name} has no place among the slices of {entity.name}: it was never processed, and no job "
            "declares a processing time for it",
            remedy=f"`{command('requeue', f'{entity.called}/{name}')} --late` applies it after the others.",
        )
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
        Verdict.FAILED: f"`{command('resolve', typed)}` first.",
        Verdict.SKIPPED: f"`{command('unskip', typed)}` first.",
    }
    raise UsageError(
        f"{typed} does not wait to be processed: it is {verdict.value}",
        remedy=remedies.get(verdict, f"`lakewright manifest show {typed}` tells what it waits for."),
    )


def _check_unchanged(app: App, entity: Entity, item: Item) -> None:
    now = inventory_of(app).fingerprint_now(item)
    if now is None or item.fingerprint is None or not is_changed(item.fingerprint, now):
        return
    called = f"{entity.called}/{slice_name(item)}"
    raise UsageError(
        f"{called} has changed since it was recorded",
        remedy=f"If its present content is right, record it with `{command('requeue', called)} --late`, and "
        "begin again.",
    )


def _former_time(app: App, entity: Entity, item: Item) -> datetime | None:
    """Return the processing time with which a slice was last processed; None if it never was."""
    application = application_of(app.project.name, entity)
    found = [
        each.content.get("processing_time")
        for each in app.store.records(item.item_id)
        if each.state is State.PROCESSED and each.application.key == application.key
    ]
    return parse_instant(found[-1]) if found and found[-1] is not None else None
