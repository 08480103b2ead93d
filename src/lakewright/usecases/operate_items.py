"""Operate the manifest's items: resolve, release, skip, unskip, requeue. Each appends a record.

Source: `processing-manifest.md`, "Use cases" (command post).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.manifest.item import Item
from lakewright.manifest.record import ANYONE, Application
from lakewright.usecases.items import (
    Row,
    Rows,
    application_named,
    find_item,
    inventory_of,
    project_applications,
)

__all__ = ["Requeued", "release_item", "requeue_item", "resolve_item", "skip_item", "unskip_item"]

MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Requeued:
    """A requeued item.

    Attributes:
        later: Ids of later items that were already processed: processed again after it, or left in doubt.
    """

    rows: tuple[Row, ...]
    later: tuple[str, ...]


def resolve_item(app: App, text: str, *, author: str, reason: str) -> tuple[Row, ...]:
    """Make a failed item ready again, with the current content of its slice; return its new verdicts.

    Raises:
        UsageError: The manifest has no such item, or it has not failed.
    """
    item = find_item(app, text)
    now = inventory_of(app).fingerprint_now(item)
    return _rows(app, app.ledger_of(app.store, author).resolve(item.item_id, reason, fingerprint=now))


def release_item(
    app: App, text: str, *, is_forced: bool = False, author: str, reason: str
) -> tuple[Row, ...]:
    """Remove the stale lock of an item, or with `is_forced` any lock; return its new verdicts.

    Raises:
        UsageError: The manifest has no such item, or it is not locked.
        ItemLocked: The holder of the lock is alive.
    """
    item = find_item(app, text)
    ledger = app.ledger_of(app.store, author)
    return _rows(app, ledger.release(item.item_id, reason, is_forced=is_forced))


def skip_item(
    app: App, text: str, *, application: str | None = None, author: str, reason: str
) -> tuple[Row, ...]:
    """Skip an item for one application, or for all, so that later items continue; return its new verdicts.

    Raises:
        UsageError: The manifest has no such item, or there is no such application.
    """
    item = find_item(app, text)
    whom = _application(app, item, application)
    return _rows(app, app.ledger_of(app.store, author).skip(item.item_id, reason, application=whom))


def unskip_item(
    app: App, text: str, *, application: str | None = None, author: str, reason: str
) -> tuple[Row, ...]:
    """Undo a skip: the item is ready again, as a new revision. Return its new verdicts.

    Raises:
        UsageError: The manifest has no such item, or there is no such application.
    """
    item = find_item(app, text)
    whom = _application(app, item, application)
    return _rows(app, app.ledger_of(app.store, author).unskip(item.item_id, reason, application=whom))


def requeue_item(
    app: App, text: str, *, cascade: bool = False, late: bool = False, author: str, reason: str
) -> Requeued:
    """Requeue an item, so that it is processed again with the current content of its slice.

    Args:
        app: The project.
        text: Id of the item, or its path.
        cascade: Later items that were already processed are processed again after it.
        late: It is processed even though later items were already processed.
        author: Who requeues it.
        reason: Why.

    Raises:
        UsageError: Both `cascade` and `late` are given, the manifest has no such item, or later items were
            already processed and neither is given.
    """
    if cascade and late:
        raise UsageError(
            "--cascade processes later slices again after this one, --late leaves them as they are",
            remedy="Give one of the two.",
        )
    item = find_item(app, text)
    inventory = inventory_of(app)
    entity, later = inventory.later_items(item)
    if later and not cascade and not late and entity is not None and entity.settings.late_slices == "refuse":
        named = ", ".join(later[:MOST_NAMED])
        raise UsageError(
            f"later slices of {entity.name} are processed, {len(later)} in all: {named}",
            remedy="Give --cascade to process them again as well, or --late to apply this one after them.",
        )
    requeued = app.ledger_of(app.store, author).requeue(
        item.item_id,
        reason,
        names=inventory.names(item),
        fingerprint=inventory.fingerprint_now(item),
        allow_late=late,
        cascade=later if cascade else (),
    )
    return Requeued(_rows(app, requeued), later)


def _rows(app: App, item: Item) -> tuple[Row, ...]:
    return tuple(Rows(app).of(item))


def _application(app: App, item: Item, text: str | None) -> Application:
    """Return the application that a skip is for: any, or one of the project or of the item."""
    if text is None:
        return ANYONE
    return application_named(text, chain(project_applications(app), item.concerned))
