"""Land a frame in bronze as a slice of an entity."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.manifest.item import Verdict
from lakewright.manifest.lock import command, locked_error
from lakewright.slices.application import application_of
from lakewright.slices.discover import item_id
from lakewright.slices.land import LandedSlice, land_slice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.spec.models.entity import Entity

__all__ = ["land"]

log = logging.getLogger(__name__)


def land(app: App, entity: str, frame: DataFrame, name: str, *, replace: bool = False) -> LandedSlice:
    """Write a frame to an entity's bronze folder as the slice of a name, and return it.

    Nothing is recorded: the next run finds the slice, as it finds those that others put there. If a slice is
    replaced that was processed, a warning has the command that lets the new content be processed.

    Raises:
        SpecError: There is no such entity.
        UsageError: The name or the frame is refused, or a slice has the name already.
        ItemLocked: A run is processing the slice that would be replaced.
    """
    if not hasattr(frame, "write"):
        raise UsageError(
            f"a {type(frame).__name__} can't be landed",
            remedy="Give a DataFrame of Spark; project.spark.createDataFrame(…) makes one of rows or of a "
            "pandas frame.",
        )
    found = app.project.entity(entity)
    if replace:
        _check_unlocked(app, found, name)
    landed = land_slice(app.lake, found, frame, name, replace=replace)
    log.info("%s: slice %s landed, %s bytes", found.name, name, landed.size, extra={"item": landed.item_id})
    if landed.is_replaced:
        _warn_if_processed(app, found, landed)
    return landed


def _check_unlocked(app: App, entity: Entity, name: str) -> None:
    place = f"{entity.places(app.project.lake).bronze}/{name}"
    lock = app.ledger.lock(app.ledger.item(item_id(place)))
    if lock is not None and not lock.is_stale:
        raise locked_error(lock)


def _warn_if_processed(app: App, entity: Entity, landed: LandedSlice) -> None:
    item = app.ledger.item(landed.item_id)
    if item.verdict(application_of(app.project.name, entity)) is Verdict.PROCESSED:
        log.warning(
            "%s: slice %s was processed before it was replaced; to process its new content: %s",
            entity.name,
            landed.name,
            command("requeue", landed.item_id),
        )
