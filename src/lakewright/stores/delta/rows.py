"""Conversion between the manifest's values and the rows of a Delta table.

A row holds the state that one version of the table gave an item or document. The newest row is current; one
without a value means that the item or document was deleted. A record has one row, and a second one by which
its id is found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from arro3.core import Array, DataType, Field, RecordBatch, Schema

from lakewright.manifest.batch import Batch
from lakewright.manifest.item import Item
from lakewright.manifest.record import Record
from lakewright.manifest.replay import stored_item, stored_record
from lakewright.manifest.standing import standing_of
from lakewright.manifest.store import Damage, Document, DocumentKey


class Line(NamedTuple):
    """One row.

    Attributes:
        sort: `item`, `document`, `record`, `id` or `schema`.
        under: The kind of a document; otherwise empty.
        name: The id of an item or of a record's item, the key of a document, the record id of an `id` row.
        number: The sequence of a record or item, the version of a document or of the layout.
        at: The version of the table that wrote the row.
        verdicts: The standing of an item as text, and after a tab the time of its arrival.
        value: JSON; None in a row that deletes.
    """

    sort: str
    under: str
    name: str
    number: int
    at: int
    verdicts: str | None
    value: str | None


_TEXT, _NUMBER = DataType.string(), DataType.int64()

SCHEMA = Schema(
    [
        Field("sort", _TEXT, nullable=False),
        Field("under", _TEXT, nullable=False),
        Field("name", _TEXT, nullable=False),
        Field("number", _NUMBER, nullable=False),
        Field("at", _NUMBER, nullable=False),
        Field("verdicts", _TEXT, nullable=True),
        Field("value", _TEXT, nullable=True),
    ]
)


def to_arrow(lines: Sequence[Line]) -> RecordBatch:
    """Return lines as an Arrow batch."""
    columns = zip(*lines, strict=True) if lines else ([] for _ in Line._fields)
    types = [_NUMBER if name in {"number", "at"} else _TEXT for name in Line._fields]
    arrays = [Array(list(column), type_) for column, type_ in zip(columns, types, strict=True)]
    return RecordBatch.from_arrays(arrays, schema=SCHEMA)


def lines_of(batches: Iterable[RecordBatch]) -> Iterator[Line]:
    """Yield the lines in the result of a query."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in Line._fields)
        yield from map(Line._make, zip(*columns, strict=True))


def batch_lines(batch: Batch, at: int) -> list[Line]:
    """Return the changes of a batch as lines of the table's version `at`."""
    lines = [item_line(item, at) for item in batch.items.values()]
    for record in batch.records:
        value = json.dumps(record.as_json())
        lines += [
            Line("record", "", record.item_id, record.sequence, at, None, value),
            Line("id", "", record.record_id, record.sequence, at, None, record.item_id),
        ]
    return lines + [_document_line(key, document, at) for key, document in batch.documents.items()]


def item_line(item: Item, at: int) -> Line:
    """Return the line of an item."""
    listed = f"{standing_of(item).text}\t{item.arrival}"
    return Line("item", "", item.item_id, item.sequence, at, listed, json.dumps(item.as_json()))


def _document_line(key: DocumentKey, document: Document | None, at: int) -> Line:
    kind, name = key
    if document is None:
        return Line("document", kind, name, 0, at, None, None)
    return Line("document", kind, name, document.version, at, None, json.dumps(dict(document.value)))


def item_of(line: Line) -> Item:
    """Return the item of a line; see `stored_item`."""
    return stored_item(line.name, lambda: _value(line))


def record_of(line: Line) -> Record | Damage:
    """Return the record of a line; see `stored_record`."""
    return stored_record(line.name, line.number, lambda: _value(line))


def document_of(line: Line) -> Document:
    """Return the document of a line."""
    return Document(line.under, line.name, _value(line), line.number)


def _value(line: Line) -> Mapping[str, Any]:
    value: Mapping[str, Any] = json.loads(line.value or "")
    return value
