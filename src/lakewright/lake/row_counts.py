"""How many rows a Delta table had at its latest versions, from its log alone; no Spark.

Going back, a version has the rows of the next one, without what that one added, and with what it removed. A
file's rows are in the statistics of its `add`, less those that its deletion vector marks. Where they are not,
as in a `remove`, they are in the footer of the file. The series ends where a file is gone. How many rows are
marked in all is in the checksum of the newest version, so that no older one is read for it.

Source: Delta's protocol, "Add File and Remove File", "Deletion Vectors" and "Version Checksum File".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lakewright.lake.delta_log import (
    LocalLog,
    actions_of,
    commit_info,
    marked_rows,
    may_have_marks,
    record_counts,
)
from lakewright.lake.observation import open_log
from lakewright.lake.parquet_footer import count_rows

if TYPE_CHECKING:
    from lakewright.lake.delta_log import TableLog
    from lakewright.lake.lake import Lake
    from lakewright.spec.models.places import Address


Action = Mapping[str, Any]

MOST_FOOTERS = 200
"""The largest number of files whose footers are read for one series."""


@dataclass(frozen=True, slots=True)
class RowCount:
    """The number of rows that a table had at one version.

    Attributes:
        at: When the version was committed; None if its commit does not say so.
    """

    version: int
    at: datetime | None
    operation: str
    rows: int


@dataclass(frozen=True, slots=True)
class LogVersion:
    """What one version of a table's log says."""

    version: int
    at: datetime | None = None
    operation: str = ""
    adds: Sequence[Action] = field(default=())
    removes: Sequence[Action] = field(default=())

    @classmethod
    def of(cls, version: int, text: bytes) -> LogVersion:
        """Return the version that a file of the log describes."""
        actions = list(actions_of(text))
        info = commit_info(actions)
        at = info.get("timestamp")
        return cls(
            version,
            datetime.fromtimestamp(at / 1000, UTC) if isinstance(at, int | float) else None,
            str(info.get("operation") or ""),
            [each["add"] for each in actions if each.get("add")],
            [each["remove"] for each in actions if each.get("remove")],
        )


def read_row_counts(lake: Lake, address: Address, limit: int) -> tuple[RowCount, ...]:
    """Return the row counts of the latest versions, the oldest first; none if they are not in the log.

    Raises:
        LakewrightError: The log can't be read.
    """
    if address.location is None:
        return ()
    log, _, table = open_log(lake, address)
    if log is None or table is None:
        return ()
    files = table.get_add_actions(flatten=True)
    paths = files.column("path").to_pylist()
    versions = list(_versions(log, table.version(), limit))
    counts = count_rows_back(
        dict(zip(paths, record_counts(files), strict=True)),
        versions,
        marked=marked_rows(log, table.version()) if may_have_marks(table) else 0,
        look_up=_footers(log),
    )
    return tuple(counts)[::-1]


def _footers(log: TableLog) -> Callable[[str], int | None]:
    """Return what reads the number of rows of a file of a table; of some files, and on this machine only."""
    left = [MOST_FOOTERS]

    def look_up(path: str) -> int | None:
        if not isinstance(log, LocalLog) or left[0] == 0:
            return None
        left[0] -= 1
        try:
            return count_rows(log.path / path)
        except (OSError, ValueError):  # it was removed, or is damaged
            return None

    return look_up


def _versions(log: TableLog, newest: int, limit: int) -> Iterator[LogVersion]:
    """Yield the latest versions, the newest first, as far as the log has their files."""
    for version in range(newest, max(-1, newest - limit), -1):
        text = log.read(f"{version:020d}.json")
        if text is None:
            return
        yield LogVersion.of(version, text)


def count_rows_back(
    present: Mapping[str, int | None],
    newest_first: Sequence[LogVersion],
    *,
    marked: int | None,
    look_up: Callable[[str], int | None] = lambda _: None,
) -> Iterator[RowCount]:
    """Yield the row counts of versions, the newest first, as far as they are known.

    Args:
        present: The rows of each file of the newest version, without regard to deletion vectors.
        newest_first: The versions, without a gap.
        marked: The rows that deletion vectors of the newest version mark; if it is None, they are counted in
            the versions, if these add all files.
        look_up: Returns the rows of a file of which they are not in the log.
    """
    files = {unquote(path): rows for path, rows in present.items()}
    marks: dict[str, int] = {}
    for each in newest_first:
        for add in each.adds:
            path = _path(add)
            if files.get(path) is None:
                files[path] = _counted_rows(add)
            marks.setdefault(path, _marked(add))

    def rows_of(path: str) -> int | None:
        if files.get(path) is None:
            files[path] = look_up(path)
        return files[path]

    def total(parts: Iterable[tuple[str, int]]) -> int | None:
        counts = [None if (rows := rows_of(path)) is None else rows - marked for path, marked in parts]
        return None if None in counts else sum(each or 0 for each in counts)

    paths = [unquote(path) for path in present]
    if marked is None:
        if not marks.keys() >= set(paths):
            return
        marked = sum(marks[path] for path in paths)
    whole = total((path, 0) for path in paths)
    now = None if whole is None else whole - marked
    for each in newest_first:
        if now is None:
            return
        yield RowCount(each.version, each.at, each.operation, now)
        added = total((_path(add), _marked(add)) for add in each.adds)
        removed = total((_path(remove), _marked(remove)) for remove in each.removes)
        now = None if added is None or removed is None else now + removed - added


def _path(action: Action) -> str:
    return unquote(str(action["path"]))


def _counted_rows(add: Action) -> int | None:
    try:
        rows = json.loads(add.get("stats") or "{}").get("numRecords")
    except ValueError:  # the statistics were cut
        return None
    return rows if isinstance(rows, int) else None


def _marked(action: Action) -> int:
    vector = action.get("deletionVector") or {}
    return int(vector.get("cardinality") or 0)
