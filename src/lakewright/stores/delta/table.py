"""The Delta table of a manifest: its rows, queries, and writes that fail if another writer was first.

A row holds the state that one version of the table gave an item or document. The newest row is current; one
without a value means that the item or document was deleted. A record has one row, and a second one by which
its id is found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import RLock
from typing import Any, NamedTuple

from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
from deltalake import CommitProperties, DeltaTable, QueryBuilder, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from lakewright.errors import LakewrightError, SpecError, StoreBusy, StoreUnavailable
from lakewright.manifest.batch import Batch
from lakewright.manifest.item import Item
from lakewright.manifest.record import Record
from lakewright.manifest.replay import stored_item, stored_record
from lakewright.manifest.standing import standing_of
from lakewright.manifest.store import Damage, Document, DocumentKey, batched
from lakewright.stores.backend import attempts


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


PATIENCE = 30.0
"""Seconds during which a write is retried while other writers overtake it."""

MOST_FILES = 12
"""A small table with more files than this is compacted.

Each reading opens most files, as names and times are mixed in all of them: with 64 files, a claim of a slice
in an object store cost 950 requests.
"""

ROWS_A_FILE = 4_000
"""A table may have one file more per this many rows, so that compaction stays cheap compared with writing."""

COUNT_FILES_EVERY = 4
"""The files are counted once in this many versions."""

KEPT_HOURS = 24
"""Hours that files replaced by compaction are kept, for processes that still read them."""

ROW_GROUP = 5_000
"""Rows that are read or skipped together."""

# Each write is a version. Frequent checkpoints keep opening the table cheap; no process reads versions older
# than a day; statistics are kept only for the columns that queries filter by.
CONFIGURATION = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 1 days",
    "delta.dataSkippingStatsColumns": "sort,under,name,number,at",
}

COLUMNS = ", ".join(f'"{name}"' for name in Line._fields)

SAME = "PARTITION BY sort, under, name, CASE WHEN sort = 'record' THEN number ELSE 0 END"
"""The columns that rows which replace each other have in common."""

_ARROW = re.compile(r"\s*(?:\x1b\[\d*m)*↳(?:\x1b\[\d*m)*\s*")


class Overtaken(Exception):
    """Another writer has written the version that was to be written."""


class Table:
    """A Delta table of lines.

    Args:
        location: A folder, or the URL of a place in object storage.
        first: The lines of the first version, if the table does not exist yet.
        storage_options: Settings of the object storage; what is missing comes from the environment.

    Raises:
        SpecError: The location holds another table.
        StoreUnavailable: The table cannot be read or created.
    """

    def __init__(self, location: str, first: Sequence[Line], storage_options: Mapping[str, str]) -> None:
        self.where = _description(location)
        self._lock = RLock()
        try:
            self._delta = _open(location, first, dict(storage_options))
            columns = {field.name for field in self._delta.schema().fields}
        except (DeltaError, OSError, ValueError) as error:
            raise _fault(self.where, error) from error
        if not columns.issuperset(Line._fields):  # earlier versions had more
            raise SpecError.of(
                f"{location} is a Delta table, but not a manifest",
                remedy="Set `manifest: {location: …}` to another place.",
            )

    @property
    def next_version(self) -> int:
        """The version that the next write creates."""
        return self._delta.version() + 1

    def refresh(self) -> int:
        """Load the table's newest version, and return the version that the next write creates."""
        try:
            with self._lock:
                self._delta.update_incremental()
                return self.next_version
        except (DeltaError, OSError) as error:
            raise _fault(self.where, error) from error

    def newest(
        self, where: str, *, having: str = "true", order: str = "name", limit: int | None = None
    ) -> Iterator[Line]:
        """Yield the newest row of each name for which `where` holds, unless that row deletes it.

        Args:
            where: A condition that holds for all rows of a name, or for none.
            having: A further condition on the newest row.
            order: Columns to sort by.
            limit: Maximum number of rows.
        """
        return lines_of(self._run(_newest(where, having, order, limit)))

    def rows(self, columns: str, where: str, *, group: str) -> Iterator[tuple[Any, ...]]:
        """Yield `columns`, which may aggregate, for each `group` of the rows that `newest` yields."""
        sql = f"SELECT {columns} FROM ({_newest(where, 'true', 'name', None)}) GROUP BY {group}"  # noqa: S608 - callers quote all texts
        for batch in self._run(sql):
            yield from zip(*(batch.column(n).to_pylist() for n in batch.column_names), strict=True)

    def _run(self, sql: str) -> Any:
        try:
            with self._lock:
                return QueryBuilder().register("manifest", self._delta).execute(sql)
        except (DeltaError, OSError, ValueError) as error:
            raise _fault(self.where, error) from error

    def append(self, lines: Sequence[Line], at: int) -> None:
        """Append lines as the version `at`, the next one when the data they were computed from was read.

        Raises:
            Overtaken: Another writer has written that version; nothing was appended.
        """
        with self._lock:
            self._write(to_arrow(lines), "append", at)
            if self._delta.version() % COUNT_FILES_EVERY == 0:
                self._compact_if_due()

    def replace(self, lines: Iterable[Line], at: int) -> None:
        """Replace all rows by these lines, as the version `at`.

        Raises:
            Overtaken: Another writer has written that version; nothing was replaced.
        """
        pages = map(to_arrow, batched(lines, ROW_GROUP))
        with self._lock:
            self._write(RecordBatchReader.from_batches(SCHEMA, pages), "overwrite", at)
            self._vacuum()

    def _write(self, rows: Any, mode: Any, at: int) -> None:
        if self.next_version != at:
            raise Overtaken
        try:
            # Without retries the commit becomes the version after the one seen, or fails.
            write_deltalake(
                self._delta,
                rows,
                mode=mode,
                schema_mode="overwrite" if mode == "overwrite" else None,
                commit_properties=CommitProperties(max_commit_retries=0),
                writer_properties=WriterProperties(max_row_group_size=ROW_GROUP, compression="ZSTD"),
            )
        except (DeltaError, OSError, ValueError) as error:
            if isinstance(error, CommitFailedError):
                self.refresh()
                if self.next_version != at:
                    raise Overtaken from error
            raise _fault(self.where, error) from error

    def _compact_if_due(self) -> None:
        """Rewrite the current rows, sorted, into few files if there are many files."""
        files = len(self._delta.file_uris())
        if files <= MOST_FILES:
            return
        if files <= MOST_FILES + self._delta.count() // ROWS_A_FILE:
            return
        try:
            rows = self._run(_newest("true", "true", "sort, under, name, number", None))
            self._write(rows, "overwrite", self.next_version)
        except Overtaken:
            return  # the other writer, or a later write, compacts
        self._vacuum()

    def _vacuum(self) -> None:
        self._delta.vacuum(KEPT_HOURS, enforce_retention_duration=False, dry_run=False)

    def attempts(self) -> Iterator[None]:
        """Yield once per attempt at a write, with pauses between.

        Raises:
            StoreBusy: Other writers overtook every attempt for `PATIENCE` seconds.
        """
        busy = StoreBusy(
            f"{self.where} is kept busy by other writers",
            remedy="Run again once they have ended; for many writers choose another back end.",
        )
        return attempts(PATIENCE, busy)


def table_exists(location: str, storage_options: Mapping[str, str]) -> bool:
    """Return whether the location holds a Delta table.

    Raises:
        StoreUnavailable: The location cannot be read.
    """
    try:
        return DeltaTable.is_deltatable(location, dict(storage_options))
    except (DeltaError, OSError, ValueError) as error:
        raise _fault(_description(location), error) from error


def _description(location: str) -> str:
    return f"the manifest in Delta at {location}"


def _fault(where: str, error: Exception) -> LakewrightError:
    """Convert a deltalake error, whose text lists its causes with arrows, to one of Lakewright's."""
    said = _ARROW.sub(": ", str(error)).partition("\n")[0]
    return StoreUnavailable(
        f"{where} can't be used: {said}",
        remedy="Check that `manifest: {location: …}` can be reached, read and written.",
    )


def _open(location: str, first: Sequence[Line], options: dict[str, str]) -> DeltaTable:
    try:
        return DeltaTable(location, storage_options=options)
    except TableNotFoundError:
        pass
    # If another process creates it first, that one's table is opened; else the reason is raised.
    with suppress(DeltaError):
        rows = to_arrow(first)
        write_deltalake(location, rows, mode="error", configuration=CONFIGURATION, storage_options=options)
    return DeltaTable(location, storage_options=options)


def _newest(where: str, having: str, order: str, limit: int | None) -> str:
    ranked = f"SELECT *, row_number() OVER ({SAME} ORDER BY at DESC) AS age FROM manifest WHERE {where}"  # noqa: S608 - callers quote all texts
    end = "" if limit is None else f" LIMIT {limit}"
    return (
        f"SELECT {COLUMNS} FROM ({ranked}) "  # noqa: S608 - as above
        f"WHERE age = 1 AND value IS NOT NULL AND ({having}) ORDER BY {order}{end}"
    )


def quoted(text: str) -> str:
    """Return a text as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def among(column: str, texts: Iterable[str]) -> str:
    """Return the SQL condition that a column equals one of some texts."""
    listed = ", ".join(map(quoted, texts))
    return f"{column} IN ({listed})" if listed else "false"
