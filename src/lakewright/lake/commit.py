"""Commits that carry a token of the item they were made for, so that no slice is applied twice.

Delta keeps the number of the last commit of each application id, and skips a write whose number isn't
greater. The number belongs to an item's revision and is the same for each attempt at it. The commit's user
metadata holds the metrics and the rest of the token. If a run dies before it has recorded them in the
manifest, the next run reads them from there.

Source: Delta's documentation, "Idempotent table writes"; `processing-manifest.md`, "State" (Processed).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from lakewright.errors import CommitTooLate
from lakewright.lake.delta_log import TableLog, read_history, read_log
from lakewright.lake.observation import delta_table, last_commit_number, observe_table, table_log
from lakewright.lake.tracing import span
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from deltalake import DeltaTable as DeltaFile
    from pyspark.sql import SparkSession

    from lakewright.lake.lake import Lake

__all__ = [
    "FOLDED",
    "METADATA",
    "Commit",
    "LandedCommit",
    "Since",
    "Token",
    "carrying_token",
    "commit_text",
    "commits_from",
    "commits_since",
    "find_commit",
    "is_superseded",
    "item_contents",
    "read_commits",
    "slice_key",
    "strict_session",
]

_APP = "spark.databricks.delta.write.txnAppId"
_NUMBER = "spark.databricks.delta.write.txnVersion"
METADATA = "spark.databricks.delta.commitInfo.userMetadata"
"""The setting of a session that its commits carry."""

FOLDED = "items"
"""Key of a commit's content under which the items are whose slices were folded into it."""

FEW = 20
"""Number of latest commits that are searched before the whole history is read."""

STRICT = {
    # Casts and arithmetic fail instead of giving null, and no result depends on where it is computed.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    # Texts like ${env:HOME} in expressions and names are texts.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # Damaged and missing files are errors, even if the user's settings ignore them.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Old dates are read as they were written, not shifted to another calendar.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    # Each level of structs inside each other takes one; there may be more than the 100 of the default.
    "spark.sql.analyzer.maxIterations": "1000",
    "spark.databricks.delta.dynamicPartitionOverwrite.enabled": "true",
    # The source of a merge has just been materialized; Delta would materialize it again.
    "spark.databricks.delta.merge.materializeSource": "none",
    # With it, Delta looks for files without null keys at each join, and planning a filter by a hash of many
    # columns takes minutes.
    "spark.sql.constraintPropagation.enabled": "false",
}

DEPRECATED = frozenset({"spark.sql.parser.escapedStringLiterals"})
"""Settings of which Spark warns on the screen whenever they are set, even to their defaults."""


@dataclass(frozen=True, slots=True)
class Token:
    """The identity of a data commit, and what is stored with it.

    Attributes:
        app_id: The application id, one for each table and entity.
        number: The number of the item's revision.
        content: The JSON that the commit stores: item, revision, run, record, metrics, watermarks.
    """

    app_id: str
    number: int
    content: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The commit's user metadata."""
        return json.dumps({"app": self.app_id, "number": self.number, **self.content}, sort_keys=True)


@dataclass(frozen=True, slots=True)
class LandedCommit:
    """A commit that is in the table; if the log no longer has it, version is None and content is empty."""

    version: int | None
    content: Mapping[str, Any]


def strict_session(lake: Lake) -> SparkSession:
    """Return a new session in which processing gives the same results under any user settings."""
    session = lake.new_session()
    for key, value in STRICT.items():
        if key not in DEPRECATED or session.conf.get(key) != value:
            session.conf.set(key, value)
    return session


@contextmanager
def carrying_token(session: SparkSession, token: Token) -> Iterator[None]:
    """Make each Delta commit of the session carry the token inside the block, and none afterwards."""
    values = {_APP: token.app_id, _NUMBER: str(token.number), METADATA: token.text}
    left = [key for key in values if session.conf.get(key, None) is not None]
    if left:
        raise RuntimeError(f"the session still carries another commit's token: {left}")
    try:
        for key, value in values.items():
            session.conf.set(key, value)
        with span("commit", application=token.app_id, number=token.number):
            yield
    finally:
        for key in values:
            session.conf.unset(key)


def find_commit(
    lake: Lake, address: Address, app_id: str, number: int, item_id: str | None = None
) -> LandedCommit | None:
    """Return the commit with that number, or None if it isn't in the table and may still be made.

    Args:
        lake: The lake.
        address: The table.
        app_id: The application id.
        number: The number of the commit.
        item_id: The item that the commit must be of; its content is returned if slices were folded into it.

    Raises:
        CommitTooLate: The table holds a later number, or a commit with this number that lacks the item; Delta
            would silently skip a commit with this one.
    """
    # One look at the log tells both: in S3, a second one is a request more.
    log = table_log(lake, address)
    opened = read_log(log)
    last = last_commit_number(lake, address, app_id, opened=opened)
    if last is None or last < number:
        return None
    commits, is_found = _newest(
        partial(_history, lake, address, log, opened[1]), lambda each: each.is_numbered(app_id, number)
    )
    found = LandedCommit(commits[-1].version, commits[-1].content) if is_found else None
    own = found if found is None or item_id is None else _of_item(found, item_id)
    if own is not None:
        return own
    if last == number and found is None:
        return LandedCommit(None, {})
    raise CommitTooLate(
        f"{address} already holds commit {last} of {app_id}, so that {number} is too late, and the table's "
        "log doesn't rule out that it holds the slice",
        remedy="Check whether the slice's rows are in the table.",
        details={"address": str(address), "last": last, "number": number},
    )


def is_superseded(lake: Lake, address: Address, app_id: str, number: int, item_id: str) -> bool:
    """Return whether it is certain that no commit with an item's number is in the table or ever will be.

    Delta skips a commit once the table has a later number. An application's numbers grow with the table's
    versions: a log that goes back to a smaller number, or to the table's first version, would show the commit
    if it had been made. A clone has numbers without their commits, so that its first version proves nothing.
    A later commit of the same item means that the number comes from an outdated copy of the manifest.
    Nor can an item be committed whose number a commit of other items has.
    """
    last = last_commit_number(lake, address, app_id)
    if last is None or last < number:
        return False
    log = read_commits(lake, address)
    own = [commit for commit in log if commit.content.get("app") == app_id]
    numbers = {commit.content["number"] for commit in own}
    if any(commit.content["number"] > number and commit.holds(item_id) for commit in own):
        return False
    if number in numbers:
        # Slices that were to be folded share a number, and one of them may have been committed alone.
        same = (commit for commit in own if commit.content["number"] == number)
        return all(commit.items and not commit.holds(item_id) for commit in same)
    if last == number:
        return False
    is_whole = bool(log) and log[0].version == 0 and all(commit.operation != "CLONE" for commit in log)
    return is_whole or min(numbers, default=number) < number


def _newest(
    read: Callable[[int | None], Iterable[Mapping[str, Any]]],
    is_wanted: Callable[[Commit], bool],
    most: int | None = None,
) -> tuple[list[Commit], bool]:
    """Return the newest commits of a log down to the first that is wanted, and whether there is one.

    Args:
        read: Returns some of the newest entries of the log, or all of them.
        is_wanted: The condition.
        most: How many of them are looked at; None for all.
    """
    commits: list[Commit] = []
    # The newest commit is nearly always the one; in S3, each other one costs a request.
    for limit in (1, FEW, most):
        commits = list(map(_commit, read(limit)))
        for number, commit in enumerate(commits, 1):
            if is_wanted(commit):
                return commits[:number], True
        if limit is not None and len(commits) < limit:
            break
    return commits, False


def _of_item(found: LandedCommit, item_id: str) -> LandedCommit | None:
    """Return a commit with what it says of one item; None if it is of other items only."""
    contents = item_contents(found.content)
    if not contents:
        return found
    own = next((each for each in contents if _is_same(each["item"], item_id)), None)
    return None if own is None else LandedCommit(found.version, own)


def _is_same(one: str, other: str) -> bool:
    """Return whether two ids are of the same slice of an entity."""
    return slice_key(one) == slice_key(other)


def slice_key(item_id: str) -> str:
    """Return what is the same in all ids of a slice of an entity; the folder of a moved lake has changed."""
    return item_id.rpartition("/")[2]


def item_contents(content: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return what a commit says of each of its items: one, or all slices that were folded into it.

    Example:
        >>> item_contents({"number": 7, "items": [{"item": "a"}, {"item": "b"}]})
        ({'number': 7, 'item': 'a'}, {'number': 7, 'item': 'b'})
        >>> item_contents({"number": 7, "item": "a"}), item_contents({})
        (({'number': 7, 'item': 'a'},), ())
    """
    if FOLDED in content:
        shared = {key: value for key, value in content.items() if key != FOLDED}
        return tuple({**shared, **each} for each in content[FOLDED])
    return (content,) if "item" in content else ()


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a table's log.

    Attributes:
        at: Its time; None if the log has none.
        operation: Delta's name for it: MERGE, WRITE, RESTORE, …
        parameters: Parameters of the operation.
        content: The content of its token; empty for commits that Lakewright didn't make.
    """

    version: int
    at: datetime | None
    operation: str
    parameters: Mapping[str, Any]
    content: Mapping[str, Any]

    @property
    def items(self) -> tuple[Mapping[str, Any], ...]:
        """What it says of each of its items, in order: several if slices were folded into it."""
        return item_contents(self.content)

    def is_numbered(self, app_id: str, number: int) -> bool:
        """Return whether it is the commit of an application with a number."""
        return (self.content.get("app"), self.content.get("number")) == (app_id, number)

    def holds(self, item_id: str) -> bool:
        """Return whether it is a commit of the item, by itself or with others."""
        return any(_is_same(each["item"], item_id) for each in self.items)


def read_commits(lake: Lake, address: Address) -> tuple[Commit, ...]:
    """Return the commits that the table's log still has, oldest first."""
    log = table_log(lake, address)
    commits = map(_commit, _history(lake, address, log, read_log(log)[1], None))
    return tuple(sorted(commits, key=lambda commit: commit.version))


def commit_text(commit: Commit) -> str:
    """Return a commit as text: its version, time in UTC, and operation."""
    at = "" if commit.at is None else f" of {commit.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"version {commit.version}{at} ({commit.operation})"


@dataclass(frozen=True, slots=True)
class Since:
    """The end of a table's log.

    Attributes:
        start: The last commit that meets a condition.
        commits: The later ones, oldest first.
    """

    start: Commit
    commits: tuple[Commit, ...]


def commits_since(
    lake: Lake, address: Address, is_last: Callable[[Commit], bool], *, most: int | None = None
) -> Since | None:
    """Return the last commit of a table that meets a condition, and the later ones; None if none meets it.

    Of a log in S3, each commit costs a request. Spark is asked only for a log that can't be read without it.

    Args:
        lake: The lake.
        address: The table.
        is_last: The condition.
        most: How many of the last commits are looked at; None for all.
    """
    log = table_log(lake, address)
    is_read, table = read_log(log)
    if table is None and (is_read or not observe_table(lake, address).exists):
        return None

    def read(limit: int | None) -> Iterable[Mapping[str, Any]]:
        if table is None:
            return _history(lake, address, log, table, limit)
        return read_history(log, table, limit) or ()

    commits, is_found = _newest(read, is_last, most)
    return Since(commits[-1], tuple(reversed(commits[:-1]))) if is_found else None


def commits_from(lake: Lake, address: Address, app_id: str, number: int) -> tuple[Commit, ...]:
    """Return the commits of a table from the one with a number on, oldest first.

    If the log does not have it any more, all that it has are returned. Of a log in S3, each commit costs a
    request.
    """
    log = table_log(lake, address)
    read = partial(_history, lake, address, log, read_log(log)[1])
    commits, _ = _newest(read, lambda each: each.is_numbered(app_id, number))
    return tuple(reversed(commits))


def _commit(entry: Mapping[str, Any]) -> Commit:
    at = entry.get("timestamp")
    # Spark gives local times, without an offset.
    time = datetime.fromtimestamp(at / 1000, UTC) if isinstance(at, int) else at and at.astimezone(UTC)
    return Commit(
        version=int(entry["version"]),
        at=time,
        operation=str(entry.get("operation") or ""),
        parameters=entry.get("operationParameters") or {},
        content=_content(entry.get("userMetadata")),
    )


def _history(
    lake: Lake, address: Address, log: TableLog | None, table: DeltaFile | None, limit: int | None
) -> list[dict[str, Any]]:
    if table is not None and (commits := read_history(log, table, limit)) is not None:
        return commits
    found = delta_table(lake.spark, address)
    history = found.history() if limit is None else found.history(limit)
    columns = ("version", "timestamp", "operation", "operationParameters", "userMetadata")
    return [row.asDict() for row in history.select(*columns).collect()]


def _content(text: str | None) -> dict[str, Any]:
    try:
        content = json.loads(text or "{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
