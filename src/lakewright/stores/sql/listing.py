"""Listing rows page by page; an index finds each page from the end of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Column, Row, Select, select, tuple_

from lakewright.manifest.readiness import Queue, Reading
from lakewright.manifest.standing import Standing
from lakewright.manifest.store import Query
from lakewright.stores.sql.schema import items, standings

PAGE = 500
"""Rows of one page."""

LAST = "\U0010ffff"
"""A character that sorts after all others, to bound the texts with a prefix."""

Ask = Callable[[Select[Any]], Sequence[Row[Any]]]
"""A function that returns the rows a query selects."""


def paged(
    ask: Ask, query: Select[Any], column: Column[str], prefix: str, *, is_descending: bool = False
) -> Iterator[Row[Any]]:
    """Yield the rows whose `column`, unique among them, starts with `prefix`, in its order."""
    order = column.desc() if is_descending else column.asc()
    beyond = column <= prefix + LAST if is_descending else column >= prefix
    while True:
        page = ask(query.where(beyond).order_by(order).limit(PAGE))
        for row in page:
            if not row._mapping[column].startswith(prefix):
                return
            yield row
        if len(page) < PAGE:
            return
        last = page[-1]._mapping[column]
        beyond = column < last if is_descending else column > last


def candidates(query: Query, ask: Ask) -> Iterator[str]:
    """Yield item ids, sorted and distinct, that include every item the query asks for.

    They come from the narrowest index: by standing, otherwise by state, otherwise all items.
    """
    if query.application is not None or query.verdicts:
        selections = [_of_standing(key) for key in _admitted(query, ask)]
    elif query.states:
        selections = [select(items.c.item_id).where(items.c.state == state.value) for state in query.states]
    else:
        selections = [select(items.c.item_id)]
    sources = [paged(ask, selected, items.c.item_id, query.prefix) for selected in selections]
    ids = ((row.item_id for row in source) for source in sources)
    return (item_id for item_id, _ in groupby(merge(*ids)))


def queued(queue: Queue, ask: Ask, reading: Reading) -> Iterator[str]:
    """Yield the ids of the queue's items that are to be read, by arrival."""
    lists = (_by_arrival(ask, key, reading) for key in _admitted(queue, ask))
    places = merge(*lists, reverse=reading.is_newest_first)
    return islice((item_id for _, item_id in places if item_id.startswith(queue.prefix)), reading.limit)


def first_and_last() -> Select[Any]:
    """Return the query of the first and the last place in each standing; an index finds each."""

    def ends(is_last: bool) -> Iterator[Any]:
        columns = (items.c.arrival, items.c.item_id)
        order = [column.desc() if is_last else column.asc() for column in columns]
        for column in columns:
            found = select(column).where(items.c.standing == standings.c.standing)
            yield found.order_by(*order).limit(1).scalar_subquery()

    return select(standings.c.described, *ends(False), *ends(True)).where(standings.c.number > 0)


def _by_arrival(ask: Ask, key: str, reading: Reading) -> Iterator[tuple[str, str]]:
    columns = (items.c.arrival, items.c.item_id)
    place = tuple_(*columns)
    order = [column.desc() if reading.is_newest_first else column.asc() for column in columns]
    selected = select(*columns).where(items.c.standing == key).order_by(*order)
    size = PAGE if reading.limit is None else min(PAGE, reading.limit)
    beyond = reading.beyond
    while True:
        rest = selected
        if beyond is not None:
            rest = selected.where(place < beyond if reading.is_newest_first else place > beyond)
        page = ask(rest.limit(size))
        yield from ((row.arrival, row.item_id) for row in page)
        if len(page) < size:
            return
        beyond = (page[-1].arrival, page[-1].item_id)


def _of_standing(key: str) -> Select[tuple[str]]:
    return select(items.c.item_id).where(items.c.standing == key)


def _admitted(chosen: Query | Queue, ask: Ask) -> list[str]:
    """Return the keys of the standings whose items may be chosen."""
    present = ask(select(standings.c.standing, standings.c.described).where(standings.c.number > 0))
    return [row.standing for row in present if chosen.admits(Standing.parse(row.described))]
