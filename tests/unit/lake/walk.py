"""A walk through a log, which tells what `TableHistory.holds` must tell of one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakewright.lake.commit import EMPTIED, Commit, going_back, replaces_all, time_of_restore


def is_effective(version: int, log: Sequence[Commit], partition: Mapping[str, str] | None = None) -> bool:
    """Return whether the table's last version builds on a commit, whose rows no later one removed as a whole.

    Args:
        version: The version of the commit; -1 if the log does not have it any more.
        log: The commits of the table from it on, oldest first.
        partition: The partition in which the rows are, if they are in one.
    """
    for commit, before in going_back(log, log):
        if commit.version <= version:
            break
        if replaces_all(commit) or empties_partition(commit, partition or {}):
            return False
        if before is None:  # to a time before the log, or to what nobody knows
            return time_of_restore(commit) is None
        if before <= version:
            return before == version
    return True


def empties_partition(commit: Commit, partition: Mapping[str, str]) -> bool:
    """Return whether a commit of Lakewright removed all rows of a partition, as its signature says.

    Names of columns are compared as Delta does, whatever their case.
    """
    emptied = commit.content.get(EMPTIED)
    if not partition or not isinstance(emptied, Mapping):
        return False
    held = {name.lower(): value for name, value in partition.items()}
    return all(held.get(str(name).lower()) == value for name, value in emptied.items())
