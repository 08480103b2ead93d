"""The slices that a table holds, as its log tells: in the order in which they were applied.

Commits that a RESTORE reverted do not count. A commit that holds several slices counts once for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakewright.lake.commit import Commit
from lakewright.lake.commit_effects import empties, has_changed_rows, replaces_all, restored_version
from lakewright.strategies.past_load import past_app

__all__ = [
    "AppliedSlice",
    "each_once",
    "effective_commits",
    "foreign_commits",
    "foreign_since",
    "since_empty",
    "slices_in",
]


@dataclass(frozen=True, slots=True)
class AppliedSlice:
    """One slice in the table.

    Attributes:
        item_id: Its item.
        number: The number of its commit.
        content: What the commit says of it: `fingerprint`, `processingTime`, `strategy`, `watermarks`,
            `metrics`.
    """

    item_id: str
    number: int
    content: Mapping[str, Any]

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """The fingerprint with which it was processed; empty if that is not known."""
        return self.content.get("fingerprint") or {}

    @property
    def is_unwritten(self) -> bool:
        """Whether the manifest says that the slice changed nothing, so that it has no commit."""
        return "delta_version" in self.content and self.content["delta_version"] is None


def slices_in(commit: Commit, app: str) -> tuple[AppliedSlice, ...]:
    """Return the slices that a commit of an application holds, in the order in which they were applied."""
    content = commit.content
    if content.get("app") != app:
        return ()
    several = content.get("items")
    found = [content] if several is None else [{**content, **each} for each in several]
    return tuple(AppliedSlice(each["item"], int(each["number"]), each) for each in found if "item" in each)


def each_once(slices: Iterable[AppliedSlice]) -> tuple[AppliedSlice, ...]:
    """Return each slice once, in the place of its last processing."""
    listed = list(slices)
    last = {each.item_id: each for each in listed}
    return tuple(each for each in listed if last[each.item_id] is each)


def effective_commits(log: Sequence[Commit], app: str) -> Iterator[Commit]:
    """Yield the commits that the table's last version builds on, newest first.

    RESTORE skips some, and so does a commit that puts the table back by replacing its rows.
    """
    by_version = {commit.version: commit for commit in log}
    commit = log[-1] if log else None
    while commit is not None and not _starts_over(commit, app):
        yield commit
        before = _before(commit, log)
        commit = by_version.get(before) if before is not None and before < commit.version else None


def _before(commit: Commit, log: Sequence[Commit]) -> int | None:
    rewind = commit.content.get("rewind")
    if rewind is not None:
        base = rewind.get("base")
        return None if base is None else int(base)
    return restored_version(commit, log) if commit.operation == "RESTORE" else commit.version - 1


def _starts_over(commit: Commit, app: str) -> bool:
    """Return whether a commit of another writer, or of TRUNCATE, removed all rows before it."""
    if commit.content.get("app") in (app, f"{app}/repair", f"{app}/undo", past_app(app)):
        return False
    return replaces_all(commit)


def since_empty(log: Sequence[Commit]) -> tuple[Commit, ...]:
    """Return the commits after the last one that emptied a table, or that built it again from its slices."""
    start = -1
    for commit in log:
        if empties(commit) or _builds_again(commit):
            start = commit.version
    return tuple(commit for commit in log if commit.version > start)


def foreign_commits(log: Sequence[Commit]) -> tuple[Commit, ...]:
    """Return the commits of other writers that changed rows, since Lakewright's first commit.

    Those before a rebuild from all slices are left out: nothing of them is in the table.
    """
    own = [commit for commit in log if "app" in commit.content]
    start = max([*own[:1], *filter(_builds_again, log)], key=lambda commit: commit.version, default=None)
    later = (commit for commit in log if start is not None and commit.version > start.version)
    return tuple(commit for commit in later if "app" not in commit.content and has_changed_rows(commit))


def _builds_again(commit: Commit) -> bool:
    """Return whether a commit built the table again from all its slices."""
    rewind = commit.content.get("rewind")
    return rewind is not None and rewind.get("base") is None


def foreign_since(commits: Sequence[Commit], app: str) -> tuple[Commit, ...]:
    """Return the commits that changed rows and are not of slices, rewinds or past versions, oldest first."""
    own = (app, f"{app}/undo", past_app(app))
    found = [c for c in commits if has_changed_rows(c) and c.content.get("app") not in own]
    return tuple(sorted(found, key=lambda commit: commit.version))
