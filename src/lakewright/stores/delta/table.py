"""The Delta table: asking it, and adding to it only if nobody else has meanwhile."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from secrets import SystemRandom
from threading import RLock
from typing import Any

from arro3.core import RecordBatchReader
from deltalake import CommitProperties, DeltaTable, QueryBuilder, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from lakewright.errors import LakewrightError, SpecError, StoreUnavailable
from lakewright.stores.delta.rows import SCHEMA, Line, lines_of, to_arrow

__all__ = ["Overtaken", "Table", "among", "is_there", "quoted"]

PATIENCE = 30.0
"""Seconds for which a write that others are quicker than is tried again."""

MOST_FILES = 64
"""Files after which a small table is compacted."""

ROWS_A_FILE = 5_000
"""Rows for which a table may have one file more before it is compacted, so that compacting stays cheap."""

LOOK_EVERY = 8
"""Versions after which the files are counted."""

KEPT_HOURS = 24
"""How long files that compacting has replaced stay, for those who still read them."""

ROW_GROUP = 5_000
"""Rows that are read, or passed over, together."""

CONFIGURATION = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 1 days",
    "delta.dataSkippingStatsColumns": "sort,under,name,number,at",
}

COLUMNS = ", ".join(f'"{name}"' for name in Line._fields)

SAME = "PARTITION BY sort, under, name, CASE WHEN sort = 'record' THEN number ELSE 0 END"
"""What rows that replace each other have in common."""


_ARROW = re.compile(r"\s*(?:\x1b\[\d*m)*↳(?:\x1b\[\d*m)*\s*")


class Overtaken(Exception):
    """Somebody else has written the version that was to be written."""


class Table:
    """A Delta table of lines.

    Args:
        location: A folder, or the URL of a place in object storage; credentials come from the environment.
        first: The lines of its first version, where there is no table yet.

    Raises:
        SpecError: There is another table.
        StoreUnavailable: It can't be read or made.
    """

    def __init__(self, location: str, first: Sequence[Line]) -> None:
        self.where = _called(location)
        self._lock = RLock()
        try:
            self._delta = _open(location, first)
            columns = {field.name for field in self._delta.schema().fields}
        except (DeltaError, OSError, ValueError) as error:
            raise _fault(self.where, error) from error
        if columns != set(Line._fields):
            raise SpecError.of(
                f"{location} is a Delta table, but no manifest",
                remedy="Set `manifest: {location: …}` to another place.",
            )

    @property
    def next_version(self) -> int:
        """The version that the next write makes."""
        return self._delta.version() + 1

    def refresh(self) -> int:
        """Look at the table's newest version from now on, and return which one a write would make."""
        try:
            with self._lock:
                self._delta.update_incremental()
                return self.next_version
        except (DeltaError, OSError) as error:
            raise _fault(self.where, error) from error

    def newest(
        self, where: str, *, having: str = "true", order: str = "name", limit: int | None = None
    ) -> Iterator[Line]:
        """Yield the rows that count, of those for which `where` holds; of one name the newest, if it stands.

        Args:
            where: A condition that holds for all rows of a name, or for none.
            having: A further condition, of the newest row.
            order: Columns to sort by.
            limit: How many at most.
        """
        return lines_of(self._run(_newest(where, having, order, limit)))

    def rows(self, columns: str, where: str, *, group: str) -> Iterator[tuple[Any, ...]]:
        """Yield what `columns` come to for each `group` of the rows that count."""
        sql = f"SELECT {columns} FROM ({_newest(where, 'true', 'name', None)}) GROUP BY {group}"  # noqa: S608 - texts are quoted by those who ask
        for batch in self._run(sql):
            yield from zip(*(batch.column(n).to_pylist() for n in batch.column_names), strict=True)

    def _run(self, sql: str) -> Any:
        try:
            with self._lock:
                return QueryBuilder().register("manifest", self._delta).execute(sql)
        except (DeltaError, OSError, ValueError) as error:
            raise _fault(self.where, error) from error

    def append(self, lines: Sequence[Line], at: int) -> None:
        """Add lines as the version `at`, which was the next one when what they follow from was read.

        Raises:
            Overtaken: Somebody else has written it; nothing was added.
        """
        with self._lock:
            self._write(to_arrow(lines), "append", at)
            if self._delta.version() % LOOK_EVERY == 0:
                self._compact_if_due()

    def replace(self, lines: Iterable[Line], at: int) -> None:
        """Write the version `at`, as above, with these lines only.

        Raises:
            Overtaken: Somebody else has written it; nothing was replaced.
        """
        waiting = iter(lines)
        pages = iter(lambda: list(islice(waiting, ROW_GROUP)), [])
        with self._lock:
            self._write(RecordBatchReader.from_batches(SCHEMA, map(to_arrow, pages)), "overwrite", at)
            self._clear_up()

    def _write(self, rows: Any, mode: Any, at: int) -> None:
        if self.next_version != at:
            raise Overtaken
        try:
            # Without retries the commit is made as the version after the one seen, or not at all.
            write_deltalake(
                self._delta,
                rows,
                mode=mode,
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
        """Sort the rows that count into few files, if there are many files."""
        files = len(self._delta.file_uris())
        if files <= MOST_FILES:
            return
        if files <= MOST_FILES + self._delta.count() // ROWS_A_FILE:
            return
        try:
            rows = self._run(_newest("true", "true", "sort, under, name, number", None))
            self._write(rows, "overwrite", self.next_version)
        except Overtaken:
            return  # another time, or by the other
        self._clear_up()

    def _clear_up(self) -> None:
        self._delta.vacuum(KEPT_HOURS, enforce_retention_duration=False, dry_run=False)

    def attempts(self) -> Iterator[None]:
        """Return as often as a write may be tried, with growing pauses of random length between.

        Raises:
            StoreUnavailable: Others were quicker for too long.
        """
        deadline, longest = time.monotonic() + PATIENCE, 0.02
        while True:
            yield
            time.sleep(SystemRandom().uniform(0, longest))
            longest = min(2 * longest, 2.0)
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"{self.where} is kept busy by others",
                    remedy="Run again once they have ended; for many writers choose another back end.",
                )


def is_there(location: str) -> bool:
    """Return whether there is a table.

    Raises:
        StoreUnavailable: That can't be seen.
    """
    try:
        return DeltaTable.is_deltatable(location)
    except (DeltaError, OSError, ValueError) as error:
        raise _fault(_called(location), error) from error


def _called(location: str) -> str:
    return f"the manifest in Delta at {location}"


def _fault(where: str, error: Exception) -> LakewrightError:
    """Return one of our errors for one of deltalake's, which draws arrows to its causes."""
    said = _ARROW.sub(": ", str(error)).partition("\n")[0]
    return StoreUnavailable(
        f"{where} can't be used: {said}",
        remedy="See that `manifest: {location: …}` can be reached, read and written.",
    )


def _open(location: str, first: Sequence[Line]) -> DeltaTable:
    try:
        return DeltaTable(location)
    except TableNotFoundError:
        pass
    try:
        write_deltalake(location, to_arrow(first), mode="error", configuration=CONFIGURATION)
    except DeltaError:
        return DeltaTable(location)  # another process was quicker; else this says what is wrong
    return DeltaTable(location)


def _newest(where: str, having: str, order: str, limit: int | None) -> str:
    ranked = f"SELECT *, row_number() OVER ({SAME} ORDER BY at DESC) AS age FROM manifest WHERE {where}"  # noqa: S608 - texts are quoted by those who ask
    end = "" if limit is None else f" LIMIT {limit}"
    return (
        f"SELECT {COLUMNS} FROM ({ranked}) "  # noqa: S608 - as above
        f"WHERE age = 1 AND value IS NOT NULL AND ({having}) ORDER BY {order}{end}"
    )


def quoted(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def among(column: str, texts: Iterable[str]) -> str:
    """Return the condition that a column has one of some texts."""
    listed = ", ".join(map(quoted, texts))
    return f"{column} IN ({listed})" if listed else "false"
