"""Reading and writing the tables, each function within a transaction of the caller's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, tuple_, update

from lakewright.errors import ManifestCorrupt
from lakewright.manifest.item import Item
from lakewright.manifest.record import Record
from lakewright.manifest.replay import replay
from lakewright.manifest.store import Damage, Document, DocumentKey
from lakewright.stores.sql.rows import (
    document_of,
    document_row,
    item_of,
    item_row,
    record_of,
    record_row,
    verdict_rows,
)
from lakewright.stores.sql.schema import documents, items, records, suspects, tallies, verdicts
from lakewright.stores.sql.select import PAGE, Ask

__all__ = [
    "all_records",
    "load_documents",
    "load_items",
    "load_records",
    "rebuild",
    "save_documents",
    "save_items",
    "save_records",
    "save_verdicts",
    "settle",
]


def load_items(
    connection: Connection, item_ids: Sequence[str], *, is_locking: bool = False
) -> dict[str, Item]:
    """Return the items that are there; locked ones stay as they are until the transaction ends."""
    if not item_ids:
        return {}
    query = select(items).where(items.c.item_id.in_(item_ids)).order_by(items.c.item_id)
    rows = connection.execute(query.with_for_update() if is_locking else query)
    return {row.item_id: _item(row) for row in rows}


def _item(row: Row[Any]) -> Item:
    try:
        return item_of(row)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ManifestCorrupt(
            f"what is stored of {row.item_id} can't be read: {error}",
            remedy="Make it anew from the records with `lakewright manifest fsck --repair --yes`.",
            details={"item_id": row.item_id},
        ) from error


def load_documents(
    connection: Connection, keys: Sequence[DocumentKey], *, is_locking: bool = False
) -> dict[DocumentKey, Document]:
    """Return the documents that are there; locked ones stay as they are until the transaction ends."""
    if not keys:
        return {}
    # Seeks every kind with every key, of which few are there, instead of a pair at a time: SQLite finds
    # pairs by reading the whole table only.
    among = (documents.c.kind.in_({kind for kind, _ in keys}), documents.c.key.in_({key for _, key in keys}))
    query = select(documents).where(*among).order_by(documents.c.kind, documents.c.key)
    found = (document_of(row) for row in connection.execute(query.with_for_update() if is_locking else query))
    return {(d.kind, d.key): d for d in found if (d.kind, d.key) in set(keys)}


def load_records(connection: Connection, item_id: str) -> list[Record | Damage]:
    """Return the records of an item, in order of sequence; damage in place of unreadable ones."""
    query = select(records).where(records.c.item_id == item_id).order_by(records.c.sequence)
    return [record_of(row) for row in connection.execute(query)]


def all_records(ask: Ask) -> Iterator[Record | Damage]:
    """Yield every record, by item id and sequence, page by page."""
    place = tuple_(records.c.item_id, records.c.sequence)
    query = select(records).order_by(records.c.item_id, records.c.sequence).limit(PAGE)
    page = ask(query)
    while page:
        yield from map(record_of, page)
        page = ask(query.where(place > (page[-1].item_id, page[-1].sequence)))


def save_records(connection: Connection, added: Sequence[Record]) -> None:
    """Insert records; their items are there already, so that no trigger takes them for somebody else's."""
    if added:
        connection.execute(insert(records), [record_row(record) for record in added])


def save_items(connection: Connection, before: Mapping[str, Item], after: Iterable[Item]) -> None:
    """Put down how items are now: inserted where they weren't there, so that two inserts collide."""
    now = list(after)
    added = [item_row(item) for item in now if item.sequence and item.item_id not in before]
    changed = [item_row(item) for item in now if item.sequence and item.item_id in before]
    gone = [item.item_id for item in now if not item.sequence]
    if added:
        connection.execute(insert(items), added)
    if changed:
        connection.execute(_UPDATE_ITEM, [{"of": row.pop("item_id"), **row} for row in changed])
    if gone:
        connection.execute(delete(items).where(items.c.item_id.in_(gone)))


def save_documents(
    connection: Connection,
    before: Mapping[DocumentKey, Document],
    after: Mapping[DocumentKey, Document | None],
) -> None:
    """Put down how documents are now, those that are None by removing them."""
    now = [document for document in after.values() if document is not None]
    added = [document_row(d) for d in now if (d.kind, d.key) not in before]
    changed = [document_row(d) for d in now if (d.kind, d.key) in before]
    gone = [key for key, document in after.items() if document is None and key in before]
    if added:
        connection.execute(insert(documents), added)
    if changed:
        rows = [{"of_kind": row.pop("kind"), "of_key": row.pop("key"), **row} for row in changed]
        connection.execute(_UPDATE_DOCUMENT, rows)
    if gone:
        connection.execute(_DELETE_DOCUMENT, [{"of_kind": kind, "of_key": key} for kind, key in gone])


def save_verdicts(connection: Connection, changes: Iterable[tuple[Item | None, Item]]) -> None:
    """Put down what items' verdicts are now, and how many items have each.

    Args:
        connection: In a transaction in which the items are locked.
        changes: Each item before (None where it wasn't there) and after.
    """
    gone, added = [], []
    for before, after in changes:
        old, new = verdict_rows(before) if before else set(), verdict_rows(after)
        gone += [(*row, after.item_id) for row in old - new]
        added += [(*row, after.item_id) for row in new - old]
    if gone:
        named = [{"of_application": a, "of_verdict": v, "of_item": i} for a, v, i in gone]
        connection.execute(_DELETE_VERDICT, named)
    if added:
        rows = [{"application": a, "verdict": v, "item_id": i} for a, v, i in added]
        connection.execute(insert(verdicts), rows)
    counted = Counter((a, v) for a, v, _ in added)
    counted.subtract((a, v) for a, v, _ in gone)
    _save_tallies(connection, counted)


def _save_tallies(connection: Connection, counted: Mapping[tuple[str, str], int]) -> None:
    """Add to the tallies, last of all and in order: transactions then wait for each other, but in no ring."""
    for (application, verdict), change in sorted(counted.items()):
        if change == 0:
            continue
        of_both = (tallies.c.application == application, tallies.c.verdict == verdict)
        updated = connection.execute(update(tallies).where(*of_both).values(number=tallies.c.number + change))
        if updated.rowcount == 0:
            row = {"application": application, "verdict": verdict, "number": change}
            connection.execute(insert(tallies).values(row))


def settle(connection: Connection) -> None:
    """Fold items again that somebody has edited by hand."""
    some = select(suspects.c.item_id).order_by(suspects.c.item_id).limit(PAGE)
    while edited := connection.scalars(some).all():
        before = load_items(connection, edited, is_locking=True)
        after = [replay(item_id, load_records(connection, item_id))[0] for item_id in edited]
        save_items(connection, before, after)
        save_verdicts(connection, [(before.get(item.item_id), item) for item in after])
        connection.execute(delete(suspects).where(suspects.c.item_id.in_(edited)))


def rebuild(connection: Connection) -> None:
    """Make all that follows from the records anew."""
    for table in (items, verdicts, tallies, suspects):
        connection.execute(delete(table))
    found = all_records(lambda query: connection.execute(query).all())
    folded = (replay(item_id, of_item)[0] for item_id, of_item in groupby(found, key=lambda r: r.item_id))
    while page := list(islice(folded, PAGE)):
        save_items(connection, {}, page)
        save_verdicts(connection, [(None, item) for item in page])


_UPDATE_ITEM = (
    update(items)
    .where(items.c.item_id == bindparam("of"))
    .values({column: bindparam(column) for column in ("sequence", "state", "fold")})
)

_UPDATE_DOCUMENT = (
    update(documents)
    .where(documents.c.kind == bindparam("of_kind"), documents.c.key == bindparam("of_key"))
    .values(version=bindparam("version"), value=bindparam("value"))
)

_DELETE_DOCUMENT = delete(documents).where(
    documents.c.kind == bindparam("of_kind"), documents.c.key == bindparam("of_key")
)

_DELETE_VERDICT = delete(verdicts).where(
    verdicts.c.application == bindparam("of_application"),
    verdicts.c.verdict == bindparam("of_verdict"),
    verdicts.c.item_id == bindparam("of_item"),
)
