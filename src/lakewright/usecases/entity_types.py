"""The types of an entity's columns, and where each comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.lake.observation import observe_table
from lakewright.spec.models.entity import Entity
from lakewright.spec.suggestions import suggestion
from lakewright.transform.system_columns import SystemColumns

__all__ = ["entity_types"]


def entity_types(app: App, name: str) -> dict[str, Any]:
    """Return the columns of an entity's table with their types, and what gave them: without Spark.

    `origin` is `declared`, `inferred` for a type that the first slice with the column gave it, and to which
    later slices are held, or `system`. `declared` is the declared type if the table keeps another one.
    Without a table, only declared columns are known.

    Raises:
        UsageError: The project has no such entity.
    """
    entity = app.project.entities.get(name)
    if entity is None:
        raise UsageError(f"there is no entity {name!r}", remedy=suggestion(name, app.project.entities))
    return {"entity": name, "columns": list(_columns(app, entity))}


def _columns(app: App, entity: Entity) -> Iterator[dict[str, Any]]:
    settings = app.lake.settings
    system = SystemColumns(settings.systemfield_prefix, entity.destination).all
    state = observe_table(app.lake, entity.places(settings).silver)
    declared = {each.silver.lower(): each for each in entity.columns if not each.omit}
    for kept in state.columns:
        column = declared.pop(kept.name.lower(), None)
        own = None if column is None else column.type
        origin = "system" if kept.name.lower() in system else "inferred" if own is None else "declared"
        other = None if own is None or own.ddl == kept.type.ddl else own.ddl
        yield {"column": kept.name, "type": kept.type.ddl, "origin": origin, "declared": other}
    for column in declared.values():
        kind = None if column.type is None else column.type.ddl
        yield {
            "column": column.silver,
            "type": kind,
            "origin": None if kind is None else "declared",
            "declared": None,
        }
