"""The signature in Lakewright's commits, by which those of other programs to tables of targets are known.

Commits of slices and of appends carry a token in its place, see `commit`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.commit import METADATA, Since, commit_text, commits_since, read_commits
from lakewright.lake.commit_effects import EMPTIED, has_changed_rows, replaces_all, restored_version
from lakewright.spec.words import first_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.commit import Commit
    from lakewright.lake.lake import Lake
    from lakewright.spec.models.places import Address

__all__ = [
    "Foreign",
    "changes_of_others",
    "emptying_signature",
    "foreign_changes",
    "is_own",
    "is_signing",
    "sign_commits",
    "standing_changes",
]

_BY, _NAME = "by", "lakewright"
_SIGNATURE = json.dumps({_BY: _NAME})

_MOST_NAMED = 3

_MOST_COMMITS = 100
"""Number of a table's last commits among which Lakewright's last one is looked for."""


def sign_commits(session: SparkSession, emptied: Mapping[str, str] | None = None) -> None:
    """Make the commits of a session carry the signature, unless the user has chosen what they carry.

    Args:
        session: The session.
        emptied: The partition whose rows they remove, if that is what they are for.
    """
    if session.conf.get(METADATA, None) is None:
        session.conf.set(METADATA, _SIGNATURE if emptied is None else emptying_signature(emptied))


def emptying_signature(partition: Mapping[str, str]) -> str:
    """Return the signature of a commit that removes the rows of a partition, or replaces them.

    Without it, the log would not tell whether the rows of an earlier commit are there.
    """
    return json.dumps({_BY: _NAME, EMPTIED: dict(partition)})


def is_signing(session: SparkSession) -> bool:
    """Return whether the commits of a session carry the signature, and nothing that the user has chosen."""
    return bool(session.conf.get(METADATA, None) == _SIGNATURE)


@dataclass(frozen=True, slots=True)
class Foreign:
    """What other programs have done to the rows of a table since Lakewright's last commit.

    Attributes:
        commits: Their commits on which its rows build, oldest first.
        version: The last of Lakewright's versions on which its rows build; -1 if others replaced all rows.
        is_reverted: Whether rows of Lakewright's last commit are gone, by a RESTORE or an overwrite.
    """

    commits: tuple[Commit, ...]
    version: int
    is_reverted: bool = False

    @property
    def words(self) -> str:
        """Their commits as text."""
        return first_of([commit_text(each) for each in self.commits], _MOST_NAMED)


def foreign_changes(lake: Lake, address: Address, known: int = -1) -> Foreign | None:
    """Return what other programs have done to the rows of a table; None if they are as Lakewright left them.

    None is returned, too, if none of the last commits is signed. Usually one commit is read.

    Args:
        lake: The lake.
        address: The table.
        known: The version up to which all commits count as Lakewright's own.
    """
    found = commits_since(
        lake, address, lambda commit: is_own(commit) or commit.version <= known, most=_MOST_COMMITS
    )
    return None if found is None or not is_own(found.start) else standing_changes(lake, address, found)


def standing_changes(lake: Lake, address: Address, found: Since) -> Foreign | None:
    """Return what later commits than Lakewright's last one have done to rows; None if nothing is left of it.

    Args:
        lake: The lake.
        address: The table.
        found: Lakewright's last commit, and the later ones.
    """
    if not any(map(_changes_rows, found.commits)):
        return None
    is_restored = any(each.operation == "RESTORE" for each in found.commits)
    log = read_commits(lake, address) if is_restored else (found.start, *found.commits)
    return changes_of_others(found, log)


def changes_of_others(found: Since, log: Sequence[Commit]) -> Foreign | None:
    """Return what later commits than Lakewright's last one have done to rows; None if nothing is left of it.

    A change that was taken back by a RESTORE is none.

    Args:
        found: Lakewright's last commit, and the later ones.
        log: The commits of the table, with all that a RESTORE may go back to.
    """
    by_version = {commit.version: commit for commit in found.commits}
    standing: list[Commit] = []
    commit = found.commits[-1] if found.commits else None
    while commit is not None:
        before = commit.version - 1
        if commit.operation == "RESTORE":
            restored = restored_version(commit, log)
            if restored is None or restored >= commit.version:  # nobody knows what is left of the changes
                return Foreign((commit, *standing), found.start.version)
            before = restored
        elif replaces_all(commit):
            before = -1
        if before < found.start.version or (_changes_rows(commit) and commit.operation != "RESTORE"):
            standing.insert(0, commit)
        if before < found.start.version:
            return Foreign(tuple(standing), before, is_reverted=True)
        commit = by_version.get(before) if before < commit.version else None
    return Foreign(tuple(standing), found.start.version) if standing else None


def _changes_rows(commit: Commit) -> bool:
    return has_changed_rows(commit) or replaces_all(commit)


def is_own(commit: Commit) -> bool:
    """Return whether a commit carries the signature or a token."""
    return "app" in commit.content or commit.content.get(_BY) == _NAME
