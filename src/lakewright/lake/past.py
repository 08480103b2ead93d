"""The rows of a Delta table at an earlier time, as far as its log and its files reach back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.errors import TargetError
from lakewright.lake.commit import read_commits
from lakewright.lake.observation import read_table
from lakewright.lake.spark_errors import first_line, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.places import Address

__all__ = ["check_version", "is_gone", "read_table_at", "readable", "timestamp_sql", "version_at"]


def read_table_at(lake: Lake, session: SparkSession, address: Address, at: datetime) -> DataFrame:
    """Return the rows that a table had at a time.

    Raises:
        TargetError: The table did not exist then, or its log doesn't reach back so far.
    """
    return read_table(session, address, version_at(lake, address, at))


def check_version(lake: Lake, address: Address, version: int) -> None:
    """Check that the log of a table has a version.

    Raises:
        TargetError: It has not, or no longer; the message has the versions and times that it has.
    """
    commits = read_commits(lake, address)
    if any(commit.version == version for commit in commits):
        return
    ends = commits[:1] if len(commits) == 1 else (commits[0], commits[-1])
    known = " to ".join(
        f"{commit.version}" + ("" if commit.at is None else f" ({commit.at.isoformat(timespec='seconds')})")
        for commit in ends
    )
    raise TargetError(
        f"{address} has no version {version}: its log has version{'s' if len(ends) > 1 else ''} {known}",
        remedy="Read one of these versions, or the table at a time.",
        details={"version": version, "first": commits[0].version, "last": commits[-1].version},
    )


def version_at(lake: Lake, address: Address, at: datetime) -> int:
    """Return the last version of a table that was committed until a time.

    Raises:
        TargetError: The table did not exist then, or its log doesn't reach back so far.
    """
    commits = read_commits(lake, address)
    versions = [commit.version for commit in commits if commit.at is not None and commit.at <= at]
    if versions:
        return max(versions)
    first = next((commit.at for commit in commits if commit.at is not None), None)
    since = "" if first is None else f"; it begins at {first.isoformat()}"
    raise TargetError(
        f"the log of {address} knows no version from {at.isoformat()} or before{since}",
        remedy="The table did not exist then, or its log no longer reaches back so far.",
    )


def timestamp_sql(at: datetime) -> str:
    """Return a time as a SQL literal, exact to a microsecond."""
    return f"TIMESTAMP '{at.isoformat()}'"


def is_gone(error: Exception) -> bool:
    """Return whether an error says that a version, or a file of it, is gone."""
    text = str(error)
    return any(sign in text for sign in ("FileNotFound", "does not exist", "DELTA_VERSION", "NO_RECREATABLE"))


@contextmanager
def readable(name: str, version: int) -> Iterator[None]:
    """Raise errors about files of a version that are gone as errors of the table of that name."""
    try:
        yield
    except spark_errors() as error:
        if not is_gone(error):
            raise
        raise TargetError(
            f"version {version} of {name} can't be read: {first_line(error)}",
            remedy="VACUUM removes files of old versions; `undo_window` of the entity keeps them longer.",
        ) from error
