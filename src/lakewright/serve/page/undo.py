"""The page of an undo: what undoing a slice would do, read from the logs without Spark."""

from __future__ import annotations

from typing import Any

from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command
from lakewright.serve.http.faults import HttpFault, unknown
from lakewright.serve.page.views import View
from lakewright.usecases.items import show_item
from lakewright.usecases.rewinds import Undone, preview_undo

__all__ = ["undo_view"]


def undo_view(view: View) -> dict[str, Any]:
    """Return what undoing a slice would do; `requeue` in the query has it processed again."""
    with unknown():
        found = show_item(view.app, view.given("id"))
    row = found.rows[0] if found.rows else None
    if row is None or row.entity is None or row.entity not in view.app.project.entities:
        raise HttpFault(404, "unknown", "the item is no slice of an entity of this project")
    is_requeued = view.given("requeue") == "1"
    undone: Undone | None = None
    refused: LakewrightError | None = None
    try:
        undone = preview_undo(view.app, row.entity, row.slice, is_requeued=is_requeued, with_rows=False)
    except LakewrightError as error:
        refused = error
    return {
        "item": found.item,
        "entity": row.entity,
        "name": row.slice,
        "is_requeued": is_requeued,
        "undone": undone,
        "refused": refused,
        "command": Command("undo", row.entity, row.slice, *(["--requeue"] if is_requeued else [])),
    }
