"""Land a frame in bronze as a slice of an entity."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Phrase
from lakewright.lake.frames import (
    SupportsArrow,
    arrow_table,
    check_names,
    check_plain_times,
    created_frame,
    holds_arrow,
    with_offsets,
)
from lakewright.manifest.item import is_changed
from lakewright.manifest.lock import locked_error
from lakewright.manifest.verdict import Verdict
from lakewright.slices.application import application_of
from lakewright.slices.deviations import changed_advice
from lakewright.slices.discovery import called_name, find_slice, item_id
from lakewright.slices.landing import LandedSlice, land_slice
from lakewright.spec.suggestions import suggestion
from lakewright.stores.process import user_name
from lakewright.usecases.items import inventory_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.spec.models.entity import Entity


log = logging.getLogger(__name__)


def land(
    app: App, entity: str, frame: DataFrame | SupportsArrow, name: str, *, replace: bool = False
) -> LandedSlice:
    """Write a frame to an entity's bronze folder as the slice of a name, and return it.

    The frame is one of Spark, or of a library that hands out its rows by Arrow's interface: pandas, Polars.
    Nothing is recorded: the next run finds the slice, as it finds those that others put there. Of a slice
    that waits and is replaced, the new content is recorded. Of one that was processed and is replaced, a
    warning names the decision about the new content.

    Raises:
        SpecError: There is no such entity.
        UsageError: The name or the frame is refused, or a slice has the name already.
        NotInstalled: The frame is not one of Spark, and there is no pyarrow.
        ItemLocked: A run is processing the slice that would be replaced.
    """
    found = app.project.entity(entity)
    of_spark = _of_spark(app, frame)
    check_names(of_spark.columns)
    check_key(found, of_spark.columns)
    if replace:
        _check_unlocked(app, found, name)
    landed = land_slice(app.lake, found, of_spark, name, replace=replace)
    log.info("%s: slice %s landed, %s bytes", found.name, name, landed.size, extra={"item": landed.item_id})
    if landed.is_replaced:
        _adopt_if_waiting(app, found, landed)
        _warn_if_processed(app, found, landed)
    return landed


def check_key(entity: Entity, columns: Sequence[str]) -> None:
    """Check that a frame has the columns of the business key, without which the next run would fail.

    Transformations may make columns, and a key that may be null may be left out.

    Raises:
        UsageError: It lacks one.
    """
    if entity.transformations or entity.settings.null_keys == "allow":
        return
    present = {name.lower() for name in columns}
    for each in entity.columns:
        if each.is_business_key and not each.is_calculated and each.source.lower() not in present:
            raise UsageError(
                f"the frame lacks the column {each.source!r} of the business key of {entity.called}",
                remedy=suggestion(each.source, columns),
            )


def _of_spark(app: App, frame: object) -> DataFrame:
    """Return a frame as one of Spark; times without an offset are in the lake's time zone."""
    if getattr(frame, "isStreaming", False):
        raise UsageError(
            "a streaming frame can't be landed",
            remedy="Land its batches: writeStream.foreachBatch calls a function with the frame of each.",
        )
    if hasattr(frame, "sparkSession"):
        return with_offsets(cast("DataFrame", frame), app.lake.settings.timezone)
    kind = type(frame).__name__
    if not holds_arrow(frame):
        raise UsageError(
            f"a {kind} can't be landed",
            remedy="Give a DataFrame of Spark, pandas or Polars; project.spark.createDataFrame(…) makes one "
            "of rows.",
        )
    table, session = arrow_table(frame), app.lake.new_session()
    check_plain_times(table, app.lake.settings.timezone)
    session.conf.set("spark.sql.session.timeZone", app.lake.settings.timezone)
    from pyspark.errors import PySparkException

    try:
        return created_frame(session, table)
    except (PySparkException, ValueError, NotImplementedError) as error:
        raise UsageError(
            f"the {kind} can't be landed: {str(error).partition(chr(10))[0]}",
            remedy="Convert or drop the column with this type or these values.",
        ) from error


def _check_unlocked(app: App, entity: Entity, name: str) -> None:
    place = entity.places(app.project.lake).slices.place(name)
    lock = app.ledger.lock(app.ledger.item(item_id(place)))
    if lock is not None and not lock.is_stale:
        raise locked_error(lock, called_name(entity.called, name))


def _adopt_if_waiting(app: App, entity: Entity, landed: LandedSlice) -> None:
    """Record the new content of a slice that waits: a run refuses one that changed since its discovery."""
    item = app.ledger.item(landed.item_id)
    found = find_slice(entity.places(app.project.lake).slices, landed.name, app.lake)
    if found is None or item.verdict(application_of(app.project.name, entity)) is not Verdict.READY:
        return
    if item.fingerprint is not None and is_changed(item.fingerprint, found.fingerprint):
        ledger = app.ledger_of(app.store, user_name())
        ledger.accept(landed.item_id, "replaced by landing", fingerprint=found.fingerprint)


def _warn_if_processed(app: App, entity: Entity, landed: LandedSlice) -> None:
    item = app.ledger.item(landed.item_id)
    if item.verdict(application_of(app.project.name, entity)) is not Verdict.PROCESSED:
        return
    now = inventory_of(app).fingerprint_now(item) or {}
    asks = entity.settings.changed_slices != "keep" and is_changed(item.fingerprint or now, now)
    remedy = Phrase(". ", changed_advice(entity, landed.name)) if asks else ""
    log.warning("%s: slice %s was processed before it was replaced%s", entity.called, landed.name, remedy)
