"""Entities as items of the documentation: strategy, keys, watermarks and processed slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.documentation.document import Column, Item, Ref
from lakewright.errors import LakewrightError
from lakewright.lake.observation import observe_table
from lakewright.manifest.item import Verdict
from lakewright.manifest.store import Query
from lakewright.manifest.watermarks import Watermarks
from lakewright.slices.application import application_of
from lakewright.spec.models.column import Column as DeclaredColumn
from lakewright.spec.models.entity import Entity
from lakewright.targets.context import Context
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from lakewright.spec.models.fields import Field

__all__ = ["entity_item"]


def entity_item(context: Context, name: str) -> Item:
    """Return an entity with the columns of its silver table; without a table, with its declared columns."""
    entity = context.workspace.entity(name)
    present, note = _silver_columns(context, entity)
    return Item(
        Ref("entity", name),
        entity.strategy.value,
        description=entity.description,
        facts=tuple(_facts(context, entity)),
        code="\n".join(_transformations(entity)) or None,
        note=note,
        columns=tuple(_columns(context, entity, present)),
    )


def _silver_columns(context: Context, entity: Entity) -> tuple[tuple[Field, ...], str | None]:
    lake = context.workspace.lake
    try:
        state = observe_table(lake, entity.places(lake.settings).silver)
    except LakewrightError as error:
        return (), error.message
    return state.columns, None if state.exists else "has no table yet: the first slice creates it"


def _columns(context: Context, entity: Entity, present: Iterable[Field]) -> Iterable[Column]:
    declared = {column.silver.lower(): column for column in entity.columns}
    prefix = context.workspace.lake.settings.systemfield_prefix
    system = {each.lower() for each in SystemColumns(prefix, entity.destination).all}
    found = [
        Column(each.name, each.type.ddl, nullable=each.nullable, description=each.description)
        for each in present
    ]
    if not found:
        found = [
            Column(each.silver, each.type.ddl if each.type else "", description=each.description)
            for each in entity.columns
        ]
    for column in found:
        own = declared.get(column.name.lower())
        if own is not None:
            description = own.description or column.description
            marks = tuple(_marks(entity, own))
            yield replace(column, marks=marks, made=own.expression, description=description)
        else:
            yield replace(column, marks=("system",) if column.name.lower() in system else ())


def _marks(entity: Entity, column: DeclaredColumn) -> Iterable[str]:
    if column.is_business_key:
        yield "business key"
    if column.is_partition:
        yield "partition"
    if column.is_calculated:
        yield "calculated"
    elif column.source != column.silver:
        yield f"from {column.source}"
    if any(mark.column_name in (column.source, column.result) for mark in entity.watermarks):
        yield "watermark"


def _facts(context: Context, entity: Entity) -> Iterable[tuple[str, str]]:
    places = entity.places(context.workspace.lake.settings)
    yield "strategy", entity.strategy.value
    yield "business key", ", ".join(each.silver for each in entity.columns if each.is_business_key) or "none"
    yield "connection", entity.connection
    yield "slices in", places.bronze_table or places.slices.pattern
    yield "table", str(places.silver)
    application = application_of(context.workspace.project.name, entity)
    last = Watermarks(context.ledger.store).last(application)
    for mark in entity.watermarks:
        value = last.get(mark.column_name)
        yield f"watermark {mark.column_name}", "none yet" if value is None else str(value.python)
    if entity.settings.delete_missing:
        yield "missing records", f"are soft-deleted ({entity.settings.delete_scope})"
    items = context.ledger.store.select(Query(application=application))
    counts = Counter(item.verdict(application) for item in items)
    summary = ", ".join(
        f"{counts[verdict]} {verdict.value.lower()}" for verdict in Verdict if counts[verdict]
    )
    yield "slices", summary or "none seen yet"
    if not entity.enabled:
        yield "enabled", "no"


def _transformations(entity: Entity) -> Iterable[str]:
    for step in entity.transformations:
        if step.column:
            yield f"{step.column} = {step.expression}"
        else:
            yield f"SELECT {', '.join(step.select)}"
