"""Tables in object stores whose logs were read, kept until the logs change.

The `deltalake` package gets each commit since the last checkpoint twice when it opens a table. A run observes
a table several times, and most of the time nothing has changed: then one listing says so.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltalake import DeltaTable as DeltaFile

    from lakewright.lake.bucket import Bucket, StoredObject

__all__ = ["StoredTables"]

MOST_TABLES = 64
"""Tables that are kept; the names and statistics of a table's files take a kilobyte a file."""

_COMMIT = re.compile(r"\d{20}\.json")


@dataclass(frozen=True, slots=True)
class _Kept:
    """A table that was opened, and the object of its newest commit at that time."""

    table: DeltaFile
    commit: StoredObject


class StoredTables:
    """The tables of an object store that were opened last. Several threads may use it.

    Those who get a table must not change it, for example by loading another version: others get the same one.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = Lock()

    def open(self, bucket: Bucket, key: str, load: Callable[[], DeltaFile]) -> DeltaFile:
        """Return the table at a key as it is now.

        A table that was kept is returned if its newest commit is the same object still, and none follows. So
        a table that was removed and made again is another one, even if it has the same version.

        Args:
            bucket: The bucket of the table.
            key: The table's folder.
            load: Opens the table.
        """
        place = f"{bucket.name}/{key}"
        with self._lock:
            kept = self._kept.get(place)
        listed = None if kept is None else _commits_from(bucket, kept.commit)
        if kept is not None and listed is not None and len(listed) == 1:
            return kept.table
        with self._lock:
            self._kept.pop(place, None)
        table = load()
        wanted = f"{key}/_delta_log/{table.version():020}.json"
        # The listing that told of the change has told of this commit too, unless one came in between.
        commit = next((each for each in listed or () if each.key == wanted), None) or bucket.find(wanted)
        if commit is not None and commit.tag:
            with self._lock:
                self._kept[place] = _Kept(table, commit)
                while len(self._kept) > MOST_TABLES:
                    self._kept.popitem(last=False)
        return table


def _commits_from(bucket: Bucket, commit: StoredObject) -> list[StoredObject] | None:
    """Return the objects of a commit and of those that follow it; None if it is not the same object still."""
    folder, _, _ = commit.key.rpartition("/")
    # `00….crc` and `00….checkpoint.parquet` come before `00….json`.
    found = bucket.under(folder, after=commit.key.removesuffix("son"))
    commits = [each for each in found if _COMMIT.fullmatch(each.key.rpartition("/")[2])]
    # Listings tell the time of an object to the millisecond, answers about one object to the second.
    same = commits and (commits[0].key, commits[0].size, commits[0].tag) == (
        commit.key,
        commit.size,
        commit.tag,
    )
    return commits if same else None
