"""Listing rows page by page; an index finds each page from the end of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Column, ColumnElement, Row, Select, select, tuple_

from lakewright.manifest.readiness import Choice, Reading
from lakewright.manifest.standing import Standing
from lakewright.manifest.store import PAGE, chooses_all
from lakewright.stores.sql.schema import items, standings

LAST = "\U0010ffff" * 2
"""Characters that sort after all others, to bound the texts with a prefix."""

Ask = Callable[[Select[Any]], Sequence[Row[Any]]]
"""A function that returns the rows a query selects."""


def paged(
    ask: Ask,
    query: Select[Any],
    columns: Sequence[Column[Any]],
    *,
    is_descending: bool = False,
    beyond: Sequence[Any] = (),
    size: int = PAGE,
) -> Iterator[Row[Any]]:
    """Yield the rows of a query in the order of `columns`, unique among them, after the place `beyond`."""
    place = tuple_(*columns)
    order = [column.desc() if is_descending else column.asc() for column in columns]
    while True:
        rest = query.where(place < beyond if is_descending else place > beyond) if beyond else query
        page = ask(rest.order_by(*order).limit(size))
        yield from page
        if len(page) < size:
            return
        beyond = [page[-1]._mapping[column] for column in columns]


def starts_with(column: Column[str], prefix: str) -> ColumnElement[bool]:
    """Return the condition that a column starts with a text, which an index of the column answers."""
    return (column >= prefix) & (column <= prefix + LAST)


def candidates(choice: Choice, ask: Ask, reading: Reading) -> Iterator[str]:
    """Yield the distinct ids of items whose standing is chosen."""
    columns = (items.c.item_id,) if reading.is_by_id else (items.c.arrival, items.c.item_id)
    size = PAGE if reading.limit is None else min(PAGE, reading.limit)
    beyond = () if reading.beyond is None else reading.beyond[-len(columns) :]
    of_prefix = select(*columns).where(starts_with(items.c.item_id, choice.prefix))
    if reading.is_by_id and chooses_all(choice):
        queries = [of_prefix]
    else:
        present = ask(select(standings.c.standing, standings.c.described).where(standings.c.number > 0))
        chosen = (row.standing for row in present if choice.admits(Standing.parse(row.described)))
        queries = [of_prefix.where(items.c.standing == standing) for standing in chosen]
    is_descending = reading.is_newest_first
    lists = (
        paged(ask, query, columns, is_descending=is_descending, beyond=beyond, size=size) for query in queries
    )
    places = merge(*(map(tuple, rows) for rows in lists), reverse=reading.is_newest_first)
    return islice((place[-1] for place, _ in groupby(places)), reading.limit)


def first_and_last() -> Select[Any]:
    """Return the query of the first and the last place in each standing; an index finds each."""

    def ends(is_last: bool) -> Iterator[Any]:
        columns = (items.c.arrival, items.c.item_id)
        order = [column.desc() if is_last else column.asc() for column in columns]
        for column in columns:
            found = select(column).where(items.c.standing == standings.c.standing)
            yield found.order_by(*order).limit(1).scalar_subquery()

    return select(standings.c.described, *ends(False), *ends(True)).where(standings.c.number > 0)
