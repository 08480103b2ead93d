"""The tables' rows: reading, writing and conversion; each function runs within the caller's transaction.

Statements are compiled once and then passed to the driver, past SQLAlchemy. Taking and ending one lock
executes about two dozen of them, so the overhead of each one counts.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Text,
    bindparam,
    delete,
    insert,
    null,
    select,
    text,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.sql import ClauseElement

from lakewright.manifest.item import Item
from lakewright.manifest.plain_values import json_text
from lakewright.manifest.record import (
    Agent,
    Application,
    Author,
    Record,
    State,
    format_instant,
    parse_instant,
)
from lakewright.manifest.replay import folded, stored_item
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.store import Damage, Document, DocumentKey, Seen, batched
from lakewright.stores.backend import check_version
from lakewright.stores.sql.listing import Ask, paged
from lakewright.stores.sql.schema import (
    VERSION,
    create_tables,
    documents,
    items,
    records,
    schema,
    standings,
    version_of,
)


def record_row(record: Record) -> dict[str, Any]:
    """Return the row of a record."""
    return {
        "item_id": record.item_id,
        "sequence": record.sequence,
        "record_id": record.record_id,
        "state": record.state.value,
        "application": record.application.name,
        "application_version": record.application.agent.version,
        "instance_id": record.application.instance_id,
        "author": record.author.agent.name,
        "author_version": record.author.agent.version,
        "manifest_version": record.author.manifest_version,
        "run_id": record.run_id,
        "previous_record_id": record.previous_record_id,
        "timestamp": format_instant(record.timestamp),
        "payload": None if record.payload is None else json_text(record.payload),
    }


def record_of(row: Row[Any]) -> Record | Damage:
    """Return the record in a row, or the damage if the row was edited so that it cannot be read."""
    try:
        return Record(
            record_id=row.record_id,
            item_id=row.item_id,
            state=State(row.state),
            application=Application(Agent(row.application, row.application_version), row.instance_id),
            author=Author(Agent(row.author, row.author_version), row.manifest_version),
            run_id=row.run_id,
            previous_record_id=row.previous_record_id,
            payload=_payload(row.payload),
            timestamp=parse_instant(row.timestamp),
            sequence=row.sequence,
        )
    except (TypeError, ValueError) as error:
        return Damage(
            row.item_id, row.record_id, f"record {row.record_id} can't be read: {error}", row.sequence
        )


def _payload(stored: str | None) -> Mapping[str, Any] | None:
    payload = None if stored is None else json.loads(stored)
    if payload is not None and not isinstance(payload, dict):
        raise ValueError("its payload isn't an object")
    return payload


def item_row(item: Item) -> dict[str, Any]:
    """Return the row of an item."""
    fold = json.dumps(item.as_json())
    _remember(fold, item)
    return {
        "item_id": item.item_id,
        "fold": fold,
        "standing": standing_of(item).key,
        "arrival": item.arrival,
    }


def item_of(item_id: str, fold: str) -> Item:
    """Return the item whose fold a row holds; see `stored_item`."""
    item = _FOLDS.get(fold)
    if item is None:
        item = stored_item(item_id, lambda: json.loads(fold))
        _remember(fold, item)
    return item


MOST_FOLDS = 512
"""Items that are kept with their folds: taking and ending a lock reads the same item three times."""

_FOLDS: OrderedDict[str, Item] = OrderedDict()


def _remember(fold: str, item: Item) -> None:
    _FOLDS[fold] = item
    with suppress(KeyError):  # another thread was faster
        while len(_FOLDS) > MOST_FOLDS:
            _FOLDS.popitem(last=False)


def document_row(document: Document) -> dict[str, Any]:
    """Return the row of a document."""
    return {
        "kind": document.kind,
        "key": document.key,
        "version": document.version,
        "value": json_text(document.value),
    }


def document_of(row: Row[Any]) -> Document:
    """Return the document in a row."""
    return Document(row.kind, row.key, json.loads(row.value), row.version)


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
        with closing(connection.connection.cursor()) as cursor:
            cursor.execute(text, arranged(parameters))
            return list(cursor.fetchall())

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute the statement for each row."""
        if not rows:
            return
        text, arranged = self._for(connection)
        with closing(connection.connection.cursor()) as cursor:
            if len(rows) == 1:
                cursor.execute(text, arranged(rows[0]))
            else:
                cursor.executemany(text, [arranged(row) for row in rows])

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


def load(
    connection: Connection,
    item_ids: Sequence[str],
    keys: Sequence[DocumentKey],
    *,
    is_locking: bool = False,
) -> Seen:
    """Return the items and documents that exist; locked ones stay unchanged until the transaction ends."""
    if is_locking or len(item_ids) > 1 or len(keys) > FEW:
        rows = [*_item_rows(connection, item_ids, is_locking), *_document_rows(connection, keys, is_locking)]
    else:
        named: dict[str, str] = {}
        for at, (kind, key) in enumerate(keys):
            named |= {f"kind{at}": kind, f"key{at}": key}
        rows = _GLANCES[len(keys)].rows(connection, of=item_ids[0] if item_ids else None, **named)
    found_items, found_documents, wanted = {}, {}, set(keys)
    for kind, name, version, value in rows:
        if kind is None:
            found_items[name] = item_of(name, value)
        elif (kind, name) in wanted:
            found_documents[kind, name] = Document(kind, name, json.loads(value), version)
    return Seen(found_items, found_documents)


def _item_rows(connection: Connection, item_ids: Sequence[str], is_locking: bool) -> Iterator[Any]:
    for page in batched(item_ids):
        query = _OF_ITEM.where(items.c.item_id.in_(page)).order_by(items.c.item_id)
        yield from connection.execute(query.with_for_update() if is_locking else query)


def _document_rows(connection: Connection, keys: Sequence[DocumentKey], is_locking: bool) -> Iterable[Any]:
    if not keys:
        return ()
    # The query seeks every combination of kind and key, of which few exist: for a list of pairs SQLite
    # would read the whole table. Rows are locked in order, so that transactions cannot deadlock.
    kinds, names = {kind for kind, _ in keys}, {key for _, key in keys}
    query = select(documents).where(documents.c.kind.in_(kinds), documents.c.key.in_(names))
    query = query.order_by(documents.c.kind, documents.c.key)
    if is_locking:  # only what is wanted: others write the other combinations
        query = query.where(tuple_(documents.c.kind, documents.c.key).in_(keys)).with_for_update()
    return connection.execute(query)


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
    return map(record_of, paged(ask, select(records), [records.c.item_id, records.c.sequence]))


def save_records(connection: Connection, added: Sequence[Record]) -> None:
    """Insert records."""
    _INSERT_RECORD.run(connection, [record_row(record) for record in added])


def save_items(connection: Connection, before: Mapping[str, Item], after: Iterable[Item]) -> None:
    """Save items: new ones are inserted, so that concurrent inserts collide."""
    rows = [item_row(item) for item in after]
    _INSERT_ITEM.run(connection, [row for row in rows if row["item_id"] not in before])
    _UPDATE_ITEM.run(connection, [{**row, "of": row["item_id"]} for row in rows if row["item_id"] in before])


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
        for item, number in ((after, 1), (before, -1)):
            if item is not None:
                standing = standing_of(item)
                counted[standing] = counted.get(standing, 0) + number
    rows = [
        {"standing": standing.key, "described": standing.text, "number": change}
        for standing, change in counted.items()
        if change
    ]
    _COUNT_STANDING.run(connection, sorted(rows, key=lambda row: str(row["standing"])))


def rebuild(connection: Connection) -> None:
    """Recompute everything that is derived from the records."""
    for table in (items, standings):
        connection.execute(delete(table))
    found = all_records(lambda query: connection.execute(query).all())
    for page in batched(folded(found)):
        save_items(connection, {}, page)
        save_standings(connection, [(None, item) for item in page])


def migrate(connection: Connection, where: str) -> None:
    """Bring a database to the current schema, within the connection's transaction.

    Raises:
        NotInstalled: A newer version of Lakewright wrote the database.
    """
    present = version_of(connection)
    check_version(where, present, VERSION)
    if present < VERSION:
        create_tables(connection)
        rebuild(connection)
        connection.execute(delete(schema))
        connection.execute(insert(schema).values(version=VERSION))


_OF_ITEM = select(null().label("kind"), items.c.item_id, null().label("version"), items.c.fold)

_INSERT_RECORD, _INSERT_ITEM, _INSERT_DOCUMENT = (
    Statement(insert(table)) for table in (records, items, documents)
)

_UPDATE_ITEM = Statement(
    update(items)
    .where(items.c.item_id == bindparam("of"))
    .values({column: bindparam(column) for column in ("fold", "standing", "arrival")})
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


def _glance(number: int) -> Statement:
    """Return the statement for one item, whose row has no kind, and some documents."""
    of_documents = (
        select(documents).where(
            documents.c.kind == bindparam(f"kind{at}"), documents.c.key == bindparam(f"key{at}")
        )
        for at in range(number)
    )
    of_item = _OF_ITEM.where(items.c.item_id == bindparam("of", type_=Text))
    return Statement(union_all(of_item, *of_documents))


_GLANCES = [_glance(number) for number in range(FEW + 1)]
