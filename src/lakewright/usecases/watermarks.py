"""Watermarks of entities: list them, set or reset one, list who changed them."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.watermarks import StoredWatermark, Watermark, WatermarkChange, Watermarks
from lakewright.spec.models.entity import Entity
from lakewright.usecases.items import entity_application

WATERMARK_TYPES = ("long", "double", "decimal", "date", "timestamp", "string")


def list_watermarks(app: App) -> Iterator[StoredWatermark]:
    """Yield the last watermark of each entity and column."""
    return Watermarks(app.store).all()


def list_watermark_changes(app: App, entity: str | None = None) -> list[WatermarkChange]:
    """Return who set or reset watermarks, newest first; of one entity, or of all.

    Raises:
        SpecError: There is no such entity.
    """
    only = None if entity is None else entity_application(app, entity)
    return [each for each in Watermarks(app.store).changes() if only is None or each.application == only]


def set_watermark(
    app: App, entity: str, column: str, value: str, *, kind: str | None = None, author: str, reason: str
) -> WatermarkChange:
    """Set the last watermark of an entity's column, even to a lower value.

    Args:
        app: The project.
        entity: Name or id of the entity.
        column: A column that the entity declares as a watermark.
        value: The value as text.
        kind: The type of the value; needed if there is no watermark yet.
        author: Who sets it.
        reason: Why.

    Raises:
        SpecError: There is no such entity.
        UsageError: The entity declares no such watermark, or the type or the value is wrong.
    """
    application = entity_application(app, entity)
    _check_declared(app.project.entity(entity), column)
    present = Watermarks(app.store).last(application).get(column)
    made = Watermark.of(Watermark(_type(entity, column, present, kind), value).python)
    return app.ledger_of(app.store, author).set_watermark(application, column, made, reason)


def reset_watermark(app: App, entity: str, column: str, *, author: str, reason: str) -> WatermarkChange:
    """Remove the watermark of an entity's column, as if no slice had set one.

    Raises:
        SpecError: There is no such entity.
        UsageError: There is no such watermark.
    """
    application = entity_application(app, entity)
    known = Watermarks(app.store).last(application)
    if column not in known:
        there = ", ".join(known) or "none"
        raise UsageError(f"{entity} has no watermark of {column}", remedy=f"It has: {there}.")
    return app.ledger_of(app.store, author).set_watermark(application, column, None, reason)


def _type(entity: str, column: str, present: Watermark | None, wanted: str | None) -> str:
    """Return the type of a new last value: that of the present watermark, or without one `wanted`."""
    if wanted is not None and present is not None and wanted != present.type:
        reset = Phrase(Command("watermark", "reset", entity, column))
        raise UsageError(
            f"the watermark {column!r} of {entity} is a {present.type}, not a {wanted}",
            remedy=Phrase("Omit --type. If the column's type has changed, ", reset, " first."),
        )
    found = wanted if present is None else present.type
    if found is None:
        raise UsageError(
            f"{entity} has no watermark of {column} yet, so its type is not known",
            remedy=f"Give --type: {', '.join(WATERMARK_TYPES)}.",
        )
    return found


def _check_declared(entity: Entity, column: str) -> None:
    """Raise `UsageError` unless the entity declares this watermark; any other would never be read."""
    declared = [mark.column_name for mark in entity.watermarks]
    if column in declared:
        return
    meant = [name for name in declared if column.lower() in (name.lower(), entity.silver_name(name).lower())]
    if meant:
        remedy = f"It declares that one as {meant[0]!r}: give that name."
    elif declared:
        remedy = f"It declares {', '.join(declared)}."
    else:
        remedy = "It declares none: add it to the entity's `watermark` first."
    raise UsageError(f"{entity.name} has no watermark {column!r}", remedy=remedy)
