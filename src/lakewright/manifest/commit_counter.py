"""Counters that number the data commits of a table; the numbers are the tokens of claims.

A number belongs to one item, application and revision; slices that are folded into one commit share it. The
commit carries it, so the table itself shows whether that commit landed.
"""

from __future__ import annotations

from lakewright.errors import SequenceConflict
from lakewright.manifest.item import Item
from lakewright.manifest.lease import MOST_RACES
from lakewright.manifest.record import Application
from lakewright.manifest.store import Document, Put, Store, Write

COUNTER = "counter"
"""The kind of the documents that hold the last number given to a data commit of a table."""


def choose_token(
    item: Item,
    application: Application,
    key: str,
    counter: Document | None,
    *,
    floor: int,
    refused: int | None,
    shared: int | None = None,
) -> tuple[int, Put | None]:
    """Return the number of the item's data commit, and the put that raises the counter if the number is new.

    Args:
        item: The item to claim.
        application: The application on whose behalf the item is claimed.
        key: The key of the counter.
        counter: The counter's document, None if there is none.
        floor: The number that the table already holds; a new number is greater.
        refused: A number that the table can never accept; an item that has it gets a new one.
        shared: The number of a commit of several items, which an item without a number gets.
    """
    given = item.tokens.get(application.key)
    if given is not None and given != refused:
        return given, None
    if shared is not None:
        return shared, None
    token = max(counter.value["last"] if counter else 0, floor) + 1
    return token, Put(COUNTER, key, {"last": token}, counter.version if counter else 0)


def raise_counter(store: Store, counter: str, last: int) -> None:
    """Raise a counter to at least `last`, so that it gives only greater numbers.

    Raises:
        SequenceConflict: Another process changed the counter during each of `MOST_RACES` attempts.
    """
    for _ in range(MOST_RACES):
        present = store.document(COUNTER, counter)
        if present is not None and present.value["last"] >= last:
            return
        version = 0 if present is None else present.version
        try:
            store.write(Write(puts=(Put(COUNTER, counter, {"last": last}, version),)))
        except SequenceConflict:
            continue
        return
    raise SequenceConflict(f"too many processes change the counter {counter} at once")
