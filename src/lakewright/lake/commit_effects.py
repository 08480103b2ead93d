"""What later commits leave of an earlier one: a RESTORE reverts it, an overwrite removes its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import Commit, LandedCommit, commits_from
from lakewright.lake.observation import last_commit_number

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.spec.models.places import Address

__all__ = [
    "EMPTIED",
    "EffectiveCommit",
    "empties",
    "empties_partition",
    "find_effective",
    "has_changed_rows",
    "is_effective",
    "replaces_all",
    "restored_version",
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
    content = log[0].content if log else {}
    is_found = (content.get("app"), content.get("number")) == (app_id, number)
    version = log[0].version if is_found else None
    if not is_effective(-1 if version is None else version, log, partition):
        return EffectiveCommit(number, None)
    return EffectiveCommit(number, LandedCommit(version, content if is_found else {}))


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
