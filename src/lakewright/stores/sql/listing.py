"""Listing rows page by page; an index finds each page from the end of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import groupby
from typing import Any

from sqlalchemy import Column, Row, Select, select

from lakewright.manifest.item import Verdict
from lakewright.manifest.store import Query
from lakewright.stores.sql.rows import application_of
from lakewright.stores.sql.schema import items, tallies, verdicts

__all__ = ["PAGE", "Ask", "candidates", "paged"]

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

    They come from the narrowest index: by application and verdict, otherwise by state, otherwise all items.
    """
    if query.application is not None or query.verdicts:
        sources = [
            paged(ask, _with_verdict(application, verdict), verdicts.c.item_id, query.prefix)
            for application, verdict in _pairs(query, ask)
        ]
    elif query.states:
        of_state = (select(items.c.item_id).where(items.c.state == state.value) for state in query.states)
        sources = [paged(ask, selected, items.c.item_id, query.prefix) for selected in of_state]
    else:
        sources = [paged(ask, select(items.c.item_id), items.c.item_id, query.prefix)]
    ids = ((row.item_id for row in source) for source in sources)
    return (item_id for item_id, _ in groupby(merge(*ids)))


def _with_verdict(application: str, verdict: str) -> Select[tuple[str]]:
    of_both = (verdicts.c.application == application, verdicts.c.verdict == verdict)
    return select(verdicts.c.item_id).where(*of_both)


def _pairs(query: Query, ask: Ask) -> list[tuple[str, str]]:
    """Return the pairs of application and verdict, as stored, under which the query's items may be listed."""
    present = ask(select(tallies.c.application, tallies.c.verdict).where(tallies.c.number > 0))
    return [
        (row.application, row.verdict)
        for row in present
        if query.concerns(application_of(row.application), Verdict(row.verdict))
    ]
