"""What later commits leave of an earlier one: a RESTORE reverts it, an overwrite removes its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import (
    METADATA,
    Commit,
    LandedCommit,
    Since,
    commit_text,
    commits_from,
    commits_since,
    read_commits,
)
from lakewright.lake.observation import last_commit_number
from lakewright.spec.words import first_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.places import Address

__all__ = [
    "EMPTIED",
    "EffectiveCommit",
    "Foreign",
    "changes_of_others",
    "empties",
    "empties_partition",
    "emptying_signature",
    "find_effective",
    "foreign_changes",
    "has_changed_rows",
    "is_effective",
    "is_own",
    "is_signing",
    "replaces_all",
    "restored_version",
    "sign_commits",
    "standing_changes",
]


EMPTIED = "emptied"
"""Key of a commit's content under which the partition is whose rows it has removed; without values, all."""

ROW_OPERATIONS = frozenset(
    (
        *("WRITE", "MERGE", "UPDATE", "DELETE", "TRUNCATE", "RESTORE", "CLONE", "STREAMING UPDATE"),
        *("REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT", "CREATE TABLE AS SELECT"),
    )
)
"""Operations that change the rows of a table."""


@dataclass(frozen=True, slots=True)
class EffectiveCommit:
    """The last commit of an application.

    Attributes:
        number: Its number; 0 if there is none. Delta skips a commit with a number that is not greater.
        commit: The commit, unless a later one has reverted it or removed its rows as a whole.
    """

    number: int
    commit: LandedCommit | None


def has_changed_rows(commit: Commit) -> bool:
    """Return whether a commit is of an operation that changes rows."""
    return commit.operation in ROW_OPERATIONS


def restored_version(restore: Commit, log: Sequence[Commit]) -> int | None:
    """Return the version that a RESTORE went back to, given by number or by time."""
    given = restore.parameters.get("version")
    if given not in (None, ""):
        return int(str(given).strip('"'))
    at = _time_of(restore)
    earlier = [each.version for each in log if at is not None and each.at is not None and each.at <= at]
    return max(earlier, default=None)


def empties_partition(commit: Commit, partition: Mapping[str, str]) -> bool:
    """Return whether a commit of Lakewright removed all rows of a partition, as its signature says.

    Names of columns are compared as Delta does, whatever their case.
    """
    emptied = commit.content.get(EMPTIED)
    if not partition or not isinstance(emptied, Mapping):
        return False
    held = {name.lower(): value for name, value in partition.items()}
    return all(held.get(str(name).lower()) == value for name, value in emptied.items())


def empties(commit: Commit) -> bool:
    """Return whether a commit removed all rows and wrote none."""
    if commit.operation == "DELETE":
        return commit.parameters.get("predicate") in (None, "", "[]", json.dumps(["true"]))
    return commit.operation == "TRUNCATE"


def replaces_all(commit: Commit) -> bool:
    """Return whether a commit removed all rows that were there before."""
    parameters: Mapping[str, Any] = commit.parameters
    is_part = parameters.get("predicate") or parameters.get("isDynamicPartitionOverwrite")
    is_overwritten = parameters.get("mode") == "Overwrite" and not is_part
    is_made_anew = commit.operation == "CLONE" or "REPLACE TABLE" in commit.operation
    return empties(commit) or is_overwritten or is_made_anew


def is_effective(version: int, log: Sequence[Commit], partition: Mapping[str, str] | None = None) -> bool:
    """Return whether the table's last version builds on a commit, whose rows no later one removed as a whole.

    Args:
        version: The version of the commit; -1 if the log does not have it any more.
        log: The commits of the table from it on, oldest first.
        partition: The partition in which the rows are, if they are in one.
    """
    by_version = {commit.version: commit for commit in log}
    commit = log[-1] if log else None
    while commit is not None and commit.version > version:
        if replaces_all(commit) or empties_partition(commit, partition or {}):
            return False
        before = restored_version(commit, log) if commit.operation == "RESTORE" else commit.version - 1
        if before is None:  # to a time before the log, or to what nobody knows
            return _time_of(commit) is None
        if before <= version:
            return before == version
        commit = by_version.get(before) if before < commit.version else None
    return True


def find_effective(
    lake: Lake, address: Address, app_id: str, partition: Mapping[str, str] | None = None
) -> EffectiveCommit:
    """Return the last commit of an application, and whether the table's last version builds on it.

    A single DELETE of some rows leaves the commit as it is: whoever deletes rows means it.

    Args:
        lake: The lake.
        address: The table.
        app_id: The application.
        partition: The partition into which it has written, if it is one.
    """
    number = last_commit_number(lake, address, app_id)
    if number is None:
        return EffectiveCommit(0, None)
    log = commits_from(lake, address, app_id, number)
    first = log[0] if log and log[0].is_numbered(app_id, number) else None
    if not is_effective(-1 if first is None else first.version, log, partition):
        return EffectiveCommit(number, None)
    found = LandedCommit(None, {}) if first is None else LandedCommit(first.version, first.content)
    return EffectiveCommit(number, found)


def _time_of(restore: Commit) -> datetime | None:
    millis = str(restore.parameters.get("datetime") or "")  # as the `deltalake` package writes it
    if millis.isdigit():
        return datetime.fromtimestamp(int(millis) / 1000, UTC)
    text = str(restore.parameters.get("timestamp") or "")
    try:
        # Spark writes the time of its machine's zone, without an offset.
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None


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
