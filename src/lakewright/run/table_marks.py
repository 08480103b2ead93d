"""Which state of a Delta table a build has left, by which a later look knows whether the build is in it.

Only tables in folders of this machine are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError
from lakewright.lake.commit import latest_commits
from lakewright.lake.commit_effects import is_effective
from lakewright.lake.delta_log import LocalLog, read_log
from lakewright.lake.paths import local_path
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.plan.resource import Resource

__all__ = ["TABLE", "TableMark", "mark_of", "recorded_mark"]

TABLE = "table"
"""The entry of a build in the history with the mark of its table."""


@dataclass(frozen=True, slots=True)
class TableMark:
    """A state of a table.

    Attributes:
        id: The identity of the table; another table in its place has another one.
        version: The version of the table.
    """

    id: str
    version: int

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> TableMark | None:
        """Return the mark that a build has left in the history; None if it has none."""
        found = entry.get(TABLE)
        return cls(**found) if isinstance(found, Mapping) else None

    def comes_after(self, earlier: TableMark) -> bool:
        """Return whether this is the same state of the same table, or a later one."""
        return self.id == earlier.id and self.version >= earlier.version

    def is_kept(self, lake: Lake, folder: str) -> bool:
        """Return whether no later commit of the table has reverted this state, or removed all its rows."""
        since = latest_commits(lake, Address(location=folder), lambda each: each.version <= self.version)
        return is_effective(self.version, tuple(reversed(since)))


def mark_of(places: Collection[Resource]) -> TableMark | None:
    """Return the mark of the table that a target writes; None if there is none on this machine."""
    folders = {local_path(each.name) for each in places if each.category == "file"}
    folder = folders.pop() if len(folders) == 1 else None
    if folder is None or not (folder / "_delta_log").is_dir():
        return None
    try:
        _, table = read_log(LocalLog(folder))
    except LakewrightError:  # who looks at the table tells it
        return None
    return None if table is None else TableMark(str(table.metadata().id), table.version())


def recorded_mark(places: Collection[Resource]) -> dict[str, Any] | None:
    """Return the mark of the table that a target has written, as the history records it."""
    mark = mark_of(places)
    return None if mark is None else asdict(mark)
