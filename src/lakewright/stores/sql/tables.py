"""Reading and writing the tables; each function runs within the caller's transaction.

Statements are compiled once and then passed to the driver, past SQLAlchemy. Taking and ending one lock
executes about two dozen of them, so the overhead of each one counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    text,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.sql import ClauseElement

from lakewright.errors import ManifestCorrupt
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import Item
from lakewright.manifest.record import Record
from lakewright.manifest.replay import replay
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.store import Damage, Document, DocumentKey
from lakewright.stores.sql.listing import PAGE, Ask
from lakewright.stores.sql.rows import document_row, item_of, item_row, record_of, record_row
from lakewright.stores.sql.schema import documents, edited, items, records, standings


class Statement:
    """A statement with named parameters.

    Args:
        clause: The statement in SQLAlchemy's form; it must not contain lists of varying length.
    """

    def __init__(self, clause: ClauseElement) -> None:
        self._clause = clause
        self._compiled: dict[str, tuple[str, _Arrange]] = {}

    def rows(self, connection: Connection, **parameters: Any) -> list[Any]:
        """Return the rows that a query finds, as the driver returns them."""
        text, arranged = self._for(connection)
        cursor = connection.connection.cursor()
        try:
            cursor.execute(text, arranged(parameters))
            return list(cursor.fetchall())
        finally:
            cursor.close()

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
        """Execute the statement for each row, and return the driver's count of affected table rows.

        For several rows, some drivers return only the count of the last one.
        """
        if not rows:
            return 0
        text, arranged = self._for(connection)
        cursor = connection.connection.cursor()
        try:
            if len(rows) == 1:
                cursor.execute(text, arranged(rows[0]))
            else:
                cursor.executemany(text, [arranged(row) for row in rows])
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def _for(self, connection: Connection) -> tuple[str, _Arrange]:
        dialect = connection.dialect
        found = self._compiled.get(dialect.name)
        if found is None:
            compiled: Any = self._clause.compile(dialect=dialect)
            found = (str(compiled), _arranged_by(compiled.positiontup if compiled.positional else None))
            self._compiled[dialect.name] = found
        return found


_Arrange = Callable[[Mapping[str, Any]], Any]
"""Returns parameters in the form in which a driver takes them."""


def _arranged_by(order: Sequence[str] | None) -> _Arrange:
    if order is None:
        return lambda row: row
    return itemgetter(*order) if len(order) > 1 else lambda row: tuple(row[name] for name in order)


FEW = 8
"""Up to this many documents are looked up one by one, by compiled statements."""


def load_few(
    connection: Connection, item_ids: Sequence[str], keys: Sequence[DocumentKey]
) -> tuple[bool, dict[str, Item], dict[DocumentKey, Document]] | None:
    """Return what `has_edited`, `load_items` and `load_documents` do, by one statement that locks nothing.

    Returns:
        None if there are too many items and documents for one statement.
    """
    if len(item_ids) > 1 or len(keys) > FEW:
        return None
    statement = _GLANCES[len(keys)]
    names = {f"{part}{at}": name for at, key in enumerate(keys) for part, name in zip(_KEY, key, strict=True)}
    is_edited, found_items, found_documents = False, {}, {}
    rows = statement.rows(connection, of=item_ids[0] if item_ids else None, **names)
    for what, kind, key, version, value in rows:
        if what == _IS_DOCUMENT:
            found_documents[kind, key] = Document(kind, key, json.loads(value), version)
        elif what == _IS_ITEM:
            found_items[key] = _item(key, value)
        else:
            is_edited = key is not None
    return is_edited, found_items, found_documents


def load_items(
    connection: Connection, item_ids: Sequence[str], *, is_locking: bool = False
) -> dict[str, Item]:
    """Return the items that exist; locked ones stay unchanged until the transaction ends."""
    if len(item_ids) == 1:
        statement = _LOCKED_ITEM if is_locking else _ITEM
        rows = statement.rows(connection, of=item_ids[0])
    elif item_ids:
        query = select(items.c.item_id, items.c.fold).where(items.c.item_id.in_(item_ids))
        query = query.order_by(items.c.item_id)
        rows = list(connection.execute(query.with_for_update() if is_locking else query))
    else:
        rows = []
    return {item_id: _item(item_id, fold) for item_id, fold in rows}


def _item(item_id: str, fold: str) -> Item:
    try:
        return item_of(fold)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ManifestCorrupt(
            f"the stored state of {item_id} can't be read: {error}",
            remedy=Phrase(
                "Rebuild it from the records with ", Command("manifest", "fsck", "--repair", "--yes"), "."
            ),
            details={"item_id": item_id},
        ) from error


def load_documents(
    connection: Connection, keys: Sequence[DocumentKey], *, is_locking: bool = False
) -> dict[DocumentKey, Document]:
    """Return the documents that exist; locked ones stay unchanged until the transaction ends."""
    if len(keys) <= FEW:
        # Locked in sorted order, so that transactions cannot deadlock.
        statement = _LOCKED_DOCUMENT if is_locking else _DOCUMENT
        rows = [
            row for kind, key in sorted(keys) for row in statement.rows(connection, of_kind=kind, of_key=key)
        ]
    else:
        # The query seeks every combination of kind and key, of which few exist: for a list of pairs SQLite
        # would read the whole table.
        kinds, names = {kind for kind, _ in keys}, {key for _, key in keys}
        query = select(documents).where(documents.c.kind.in_(kinds), documents.c.key.in_(names))
        query = query.order_by(documents.c.kind, documents.c.key)
        rows = list(connection.execute(query.with_for_update() if is_locking else query))
    wanted = set(keys)
    return {
        (kind, key): Document(kind, key, json.loads(value), version)
        for kind, key, version, value in rows
        if (kind, key) in wanted
    }


def load_records(connection: Connection, item_id: str) -> list[Record | Damage]:
    """Return an item's records by sequence; damage takes the place of an unreadable one."""
    query = select(records).where(records.c.item_id == item_id).order_by(records.c.sequence)
    return [record_of(row) for row in connection.execute(query)]


def find_records(connection: Connection, places: Sequence[tuple[str, int]]) -> list[Record | Damage]:
    """Return the records at pairs of item id and sequence; those that do not exist are left out."""
    # The items are named first: for a list of pairs SQLite would read the whole table.
    of_items = records.c.item_id.in_({item_id for item_id, _ in places})
    wanted = of_items & records.c.sequence.in_({sequence for _, sequence in places})
    return [record_of(row) for row in connection.execute(select(records).where(wanted))]


def all_records(ask: Ask) -> Iterator[Record | Damage]:
    """Yield every record by item id and sequence, page by page."""
    place = tuple_(records.c.item_id, records.c.sequence)
    query = select(records).order_by(records.c.item_id, records.c.sequence).limit(PAGE)
    page = ask(query)
    while page:
        yield from map(record_of, page)
        page = ask(query.where(place > (page[-1].item_id, page[-1].sequence)))


def save_records(connection: Connection, added: Sequence[Record]) -> None:
    """Insert records; their items must be saved already, or the triggers take the records for edits."""
    _INSERT_RECORD.run(connection, [record_row(record) for record in added])


def save_items(connection: Connection, before: Mapping[str, Item], after: Iterable[Item]) -> None:
    """Save items: new ones are inserted, so that concurrent inserts collide, and empty ones are deleted."""
    now = list(after)
    added = [item_row(item) for item in now if item.sequence and item.item_id not in before]
    changed = [item_row(item) for item in now if item.sequence and item.item_id in before]
    gone = [item.item_id for item in now if not item.sequence]
    _INSERT_ITEM.run(connection, added)
    _UPDATE_ITEM.run(connection, [{"of": row.pop("item_id"), **row} for row in changed])
    if gone:
        connection.execute(delete(items).where(items.c.item_id.in_(gone)))


def save_documents(
    connection: Connection,
    before: Mapping[DocumentKey, Document],
    after: Mapping[DocumentKey, Document | None],
) -> None:
    """Save documents; those that are None are deleted."""
    now = [document for document in after.values() if document is not None]
    added = [document_row(d) for d in now if (d.kind, d.key) not in before]
    changed = [document_row(d) for d in now if (d.kind, d.key) in before]
    gone = [key for key, document in after.items() if document is None and key in before]
    _INSERT_DOCUMENT.run(connection, added)
    rows = [{"of_kind": row.pop("kind"), "of_key": row.pop("key"), **row} for row in changed]
    _UPDATE_DOCUMENT.run(connection, rows)
    _DELETE_DOCUMENT.run(connection, [{"of_kind": kind, "of_key": key} for kind, key in gone])


def save_standings(connection: Connection, changes: Iterable[tuple[Item | None, Item]]) -> None:
    """Save the counts of items by standing, last of all and in sorted order: so nothing can deadlock.

    Args:
        connection: In a transaction in which the items are locked.
        changes: Each item before (None if it did not exist) and after.
    """
    counted: dict[Standing, int] = {}
    for before, after in changes:
        old, new = standing_of(before) if before else None, standing_of(after)
        if new is not None:
            counted[new] = counted.get(new, 0) + 1
        if old is not None:
            counted[old] = counted.get(old, 0) - 1
    rows = [
        {"standing": standing.key, "described": standing.text, "number": change}
        for standing, change in counted.items()
        if change
    ]
    _COUNT_STANDING.run(connection, sorted(rows, key=lambda row: str(row["standing"])))


def has_edited(connection: Connection) -> bool:
    """Return whether there are items whose records were edited by hand and that must be folded again."""
    return _FIRST_EDITED.rows(connection)[0][0] is not None


def refold_edited(connection: Connection) -> None:
    """Fold the items again whose records were edited by hand."""
    if not has_edited(connection):
        return
    some = select(edited.c.item_id).order_by(edited.c.item_id).limit(PAGE)
    while ids := connection.scalars(some).all():
        before = load_items(connection, ids, is_locking=True)
        after = [replay(item_id, load_records(connection, item_id))[0] for item_id in ids]
        save_items(connection, before, after)
        save_standings(connection, [(before.get(item.item_id), item) for item in after])
        connection.execute(delete(edited).where(edited.c.item_id.in_(ids)))


def rebuild(connection: Connection) -> None:
    """Recompute everything that is derived from the records."""
    for table in (items, standings, edited):
        connection.execute(delete(table))
    found = all_records(lambda query: connection.execute(query).all())
    folded = (replay(item_id, of_item)[0] for item_id, of_item in groupby(found, key=lambda r: r.item_id))
    while page := list(islice(folded, PAGE)):
        save_items(connection, {}, page)
        save_standings(connection, [(None, item) for item in page])


_ITEM_QUERY = select(items.c.item_id, items.c.fold).where(items.c.item_id == bindparam("of"))

_DOCUMENT_QUERY = select(documents).where(
    documents.c.kind == bindparam("of_kind"), documents.c.key == bindparam("of_key")
)

_ITEM, _LOCKED_ITEM = Statement(_ITEM_QUERY), Statement(_ITEM_QUERY.with_for_update())

_DOCUMENT, _LOCKED_DOCUMENT = Statement(_DOCUMENT_QUERY), Statement(_DOCUMENT_QUERY.with_for_update())

_FIRST_EDITED = Statement(select(func.min(edited.c.item_id)))

_INSERT_RECORD, _INSERT_ITEM, _INSERT_DOCUMENT = (
    Statement(insert(table)) for table in (records, items, documents)
)

_UPDATE_ITEM = Statement(
    update(items)
    .where(items.c.item_id == bindparam("of"))
    .values({column: bindparam(column) for column in ("sequence", "state", "fold", "standing", "arrival")})
)

_UPDATE_DOCUMENT = Statement(
    update(documents)
    .where(documents.c.kind == bindparam("of_kind"), documents.c.key == bindparam("of_key"))
    .values(version=bindparam("version"), value=bindparam("value"))
)

_DELETE_DOCUMENT = Statement(
    delete(documents).where(documents.c.kind == bindparam("of_kind"), documents.c.key == bindparam("of_key"))
)

# SQLAlchemy writes ON CONFLICT for one database at a time; as text it is the same for both.
_COUNT_STANDING = Statement(
    text(
        "INSERT INTO lakewright_standings (standing, described, number)"
        " VALUES (:standing, :described, :number)"
        " ON CONFLICT (standing) DO UPDATE SET number = lakewright_standings.number + excluded.number"
    )
)

_IS_DOCUMENT, _IS_ITEM, _IS_EDITED = range(3)

_KEY = ("kind", "key")


def _glance(number: int) -> Statement:
    """Return the statement for one item and some documents; the first column is the kind of a row."""
    none: ColumnElement[str] = literal_column("''")
    zero: ColumnElement[int] = literal_column("0")
    of_documents = (
        select(
            literal_column(str(_IS_DOCUMENT)),
            documents.c.kind,
            documents.c.key,
            documents.c.version,
            documents.c.value,
        ).where(documents.c.kind == bindparam(f"kind{at}"), documents.c.key == bindparam(f"key{at}"))
        for at in range(number)
    )
    return Statement(
        union_all(
            select(literal_column(str(_IS_EDITED)), none, func.min(edited.c.item_id), zero, none),
            select(literal_column(str(_IS_ITEM)), none, items.c.item_id, zero, items.c.fold).where(
                items.c.item_id == bindparam("of", type_=Text)
            ),
            *of_documents,
        )
    )


_GLANCES = [_glance(number) for number in range(FEW + 1)]
