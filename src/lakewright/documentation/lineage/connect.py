"""Connecting gathered items: each with its neighbours, each column with the start of its lineage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from lakewright.documentation.document import Column, Item, Ref, Source

__all__ = ["connect_items"]

Columns: TypeAlias = Mapping[Source, Column]


def connect_items(items: Sequence[Item]) -> list[Item]:
    """Return the items with all their neighbours, and their columns with sources, origins and descriptions.

    A gathered target lists the items that it writes in `read_by`.
    """
    items = _with_neighbours(items)
    items = _with_column_sources(items)
    known = {_key(item.ref, column.name): column for item in items for column in item.columns}
    return [
        replace(
            item,
            columns=tuple(
                replace(
                    column,
                    origins=tuple(_origins(Source(item.ref, column.name), known)),
                    description=column.description or _inherited(column, known),
                )
                for column in item.columns
            ),
        )
        for item in items
    ]


def _with_neighbours(items: Sequence[Item]) -> list[Item]:
    """Return the items with `reads` and `read_by` completed, so that each edge is in both of its items."""
    reads = {item.ref: dict.fromkeys(item.reads) for item in items}
    for item in items:
        for written in item.read_by:
            if written in reads:
                reads[written][item.ref] = None
    read_by: dict[Ref, dict[Ref, None]] = {item.ref: dict.fromkeys(item.read_by) for item in items}
    for ref, others in reads.items():
        for other in others:
            read_by.setdefault(other, {})[ref] = None
    return [
        replace(item, reads=tuple(reads[item.ref]), read_by=tuple(r for r in read_by[item.ref] if r in reads))
        for item in items
    ]


def _with_column_sources(items: Sequence[Item]) -> list[Item]:
    """Return the items with sources for the columns of relations and entities, which targets write."""
    by_ref = {item.ref: item for item in items}
    return [
        replace(item, columns=tuple(_with_sources(item, column, by_ref) for column in item.columns))
        if item.ref.category in ("relation", "entity")
        else item
        for item in items
    ]


def _with_sources(item: Item, column: Column, by_ref: Mapping[Ref, Item]) -> Column:
    if column.sources or column.made:
        return column
    return replace(column, sources=tuple(_sources(item, column, by_ref)))


def _sources(item: Item, column: Column, by_ref: Mapping[Ref, Item]) -> Iterator[Source]:
    """Yield the column of the same name, in any case, of each item that the column's rows come from."""
    for ref in item.reads:
        is_target = ref.category == "target" and ref in by_ref
        for origin in by_ref[ref].reads if is_target else (ref,):
            name = _source_name(column) if origin.category == "relation" else column.name
            found = _column_named(by_ref.get(origin), name)
            if found is not None:
                yield Source(origin, found.name)


def _source_name(column: Column) -> str:
    """Return the column's name in bronze, which an entity may have renamed."""
    renamed = next((mark for mark in column.marks if mark.startswith("from ")), None)
    return renamed.removeprefix("from ") if renamed else column.name


def _column_named(item: Item | None, name: str) -> Column | None:
    columns = item.columns if item is not None else ()
    return next((each for each in columns if each.name.lower() == name.lower()), None)


def _key(ref: Ref, column: str) -> Source:
    return Source(ref, column.lower())


def _origins(start: Source, known: Columns) -> Iterable[Source]:
    """Yield the columns at the start of a column's lineage; none if it starts with the column itself."""
    seen: set[Source] = set()
    waiting = [start]
    while waiting:
        source = waiting.pop()
        key = _key(*source)
        if key in seen:
            continue
        seen.add(key)
        column = known.get(key)
        if column is not None and column.sources:
            waiting += reversed(column.sources)
        elif source != start:
            yield source


def _inherited(column: Column, known: Columns) -> str | None:
    """Return the description of the nearest source, as long as each column has one source of its name."""
    seen: set[Source] = set()
    while len(column.sources) == 1:
        (source,) = column.sources
        key = _key(*source)
        found = known.get(key)
        if found is None or key in seen or found.name.lower() != column.name.lower():
            return None
        seen.add(key)
        if found.description:
            return found.description
        column = found
    return None
