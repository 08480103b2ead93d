"""Maintain silver tables: compact small files, and rewrite files with many deleted rows."""

from __future__ import annotations

from lakewright.app import App
from lakewright.targets.entity.maintenance import Maintenance, look_at_silver, maintain

__all__ = ["maintain_table"]


def maintain_table(app: App, entity: str, *, is_dry: bool = False) -> Maintenance:
    """Maintain an entity's table if its files call for it; a dry run only reports what would be done.

    Raises:
        SpecError: There is no such entity.
        LeaseHeld: Another run writes the table.
    """
    found = app.project.entity(entity)
    return look_at_silver(app.lake, found) if is_dry else maintain(app.lake, app.leases(), found)
