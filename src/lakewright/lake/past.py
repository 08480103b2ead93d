"""The rows of a Delta table at an earlier time, as far as its log and its files reach back."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.errors import TargetError
from lakewright.lake.commit import read_commits
from lakewright.lake.observation import read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.places import Address

__all__ = ["read_table_at", "timestamp_sql", "version_at"]


def read_table_at(lake: Lake, session: SparkSession, address: Address, at: datetime) -> DataFrame:
    """Return the rows that a table had at a time.

    Raises:
        TargetError: The table did not exist then, or its log doesn't reach back so far.
    """
    return read_table(session, address, version_at(lake, address, at))


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
