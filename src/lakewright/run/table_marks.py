"""Which state of a Delta table a build has left, by which a later look knows whether the build is in it.

Only tables in folders of this machine are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault, LakewrightError
from lakewright.errors.phrase import Phrase
from lakewright.lake.commit import commits_since, foreign_changes, is_effective
from lakewright.lake.delta_log import LocalLog, read_log
from lakewright.lake.paths import local_path
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from lakewright.lake.commit import Foreign
    from lakewright.lake.lake import Lake
    from lakewright.plan.resource import Resource

__all__ = [
    "CHANGED_ROWS",
    "TABLE",
    "TableLook",
    "TableMark",
    "changed_fault",
    "look_at",
    "mark_of",
    "recorded_mark",
]

CHANGED_ROWS = "changed_rows"
"""The code of the warning that other programs have changed rows."""

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

    def is_kept(self, lake: Lake, folder: str, partition: Mapping[str, str]) -> bool:
        """Return whether no later commit of the table has reverted this state, or removed all its rows.

        Args:
            lake: The lake.
            folder: The folder of the table.
            partition: The partition that counts; empty for the whole table.
        """
        since = commits_since(lake, Address(location=folder), lambda each: each.version <= self.version)
        return is_effective(self.version, () if since is None else since.commits, partition)


@dataclass(frozen=True, slots=True)
class TableLook:
    """A table as it is now.

    Attributes:
        place: Its folder.
        mark: The last state that runs have left of it and that its rows build on.
        version: Its version.
        foreign: What other programs have done to its rows since; None if nothing.
        is_other: Whether none of the builds that the history has was made into this table.
    """

    place: str
    mark: TableMark
    version: int
    foreign: Foreign | None = None
    is_other: bool = False

    @property
    def is_unknown(self) -> bool:
        """Whether nothing tells which rows it holds: it is another table, or others wrote all of its rows."""
        return self.is_other or (self.foreign is not None and self.foreign.version < 0)

    @property
    def changes(self) -> Foreign | None:
        """What other programs have done to rows, if all builds are in it still; None if nothing."""
        return None if self.foreign is None or self.foreign.is_reverted else self.foreign

    @property
    def told(self) -> str:
        """Why the table lacks what was built into it."""
        if self.foreign is not None:
            return f"{self.place} was replaced by another program since the last build: {self.foreign.words}"
        return (
            f"{self.place} is at version {self.version}, and runs have written others: it was replaced by an "
            "older copy of the table, or by another table"
        )

    @property
    def advice(self) -> str:
        """What to do about that, before the commands that build again."""
        if self.foreign is None:
            return (
                "If the newer table is to be brought back, do so before a run builds into this one. "
                "Otherwise build these again"
            )
        return (
            "If that is to be taken back, do so before the next build: RESTORE goes back to an earlier "
            "version. Otherwise build these again"
        )


def changed_fault(target: str, look: TableLook, again: str | None = None) -> Fault:
    """Return that other programs have changed rows of the table that a target writes.

    Args:
        target: The target.
        look: The table.
        again: The command that writes all rows of the table again; None if none does.
    """
    told, version = ("", look.version) if look.foreign is None else (look.foreign.words, look.foreign.version)
    return Fault(
        f"target {target!r}: rows of {look.place} were changed by another program since the last build: "
        f"{told}",
        remedy=(
            "Builds go on with the rows as they are now. If the change is unwanted, this takes it back, in "
            f"SQL, with all builds since: RESTORE TABLE delta.`{look.place}` TO VERSION AS OF {version}."
            if again is None
            else Phrase("The next build writes all rows again. If the change is unwanted, type ", again, ".")
        ),
        code=CHANGED_ROWS,
        details={"subject": target},
    )


def look_at(
    lake: Lake, places: Collection[Resource], built: Callable[[], Iterable[TableMark]]
) -> TableLook | None:
    """Return the table that a target writes as it is now; None if there is none on this machine.

    Args:
        lake: The lake.
        places: What the target writes.
        built: Returns the marks of builds that the history has; not called without a table.
    """
    mark = mark_of(places)
    if mark is None:
        return None
    folder = next(each.name for each in places if each.category == "file")
    ids: dict[str, int] = {}
    for each in built():
        ids[each.id] = max(each.version, ids.get(each.id, -1))
    known = ids.get(mark.id, -1)
    try:
        foreign = foreign_changes(lake, Address(location=folder), known)
    except LakewrightError:  # who looks at the table tells it
        foreign = None
    kept = mark if foreign is None else replace(mark, version=foreign.version)
    return TableLook(folder, kept, mark.version, foreign, is_other=bool(ids) and mark.id not in ids)


def mark_of(places: Collection[Resource]) -> TableMark | None:
    """Return the mark of the table that a target writes; None if there is none on this machine."""
    folders = {local_path(each.name) for each in places if each.category == "file"}
    folder = folders.pop() if len(folders) == 1 else None
    if folder is None or not (folder / "_delta_log").is_dir():
        return None
    try:
        table = read_log(LocalLog(folder)).table
    except LakewrightError:  # who looks at the table tells it
        return None
    return None if table is None else TableMark(str(table.metadata().id), table.version())


def recorded_mark(places: Collection[Resource]) -> dict[str, Any] | None:
    """Return the mark of the table that a target has written, as the history records it."""
    mark = mark_of(places)
    return None if mark is None else asdict(mark)
