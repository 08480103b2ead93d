"""Commits that carry a token of the item they were made for, so that no slice is applied twice.

Delta keeps the number of the last commit of each application id, and skips a write whose number isn't
greater. The number belongs to an item's revision and is the same for each attempt at it. The commit's user
metadata holds the metrics and the rest of the token. If a run dies before it has recorded them in the
manifest, the next run reads them from there.

Later commits may leave nothing of an earlier one: a RESTORE reverts it, an overwrite removes its rows.

Source: Delta's documentation, "Idempotent table writes"; `processing-manifest.md`, "State" (Processed).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from lakewright.spec.words import first_of

if TYPE_CHECKING:
    from deltalake import DeltaTable as DeltaFile
    from pyspark.sql import SparkSession

    from lakewright.lake.lake import Lake

__all__ = [
    "EMPTIED",
    "FOLDED",
    "METADATA",
    "Commit",
    "EffectiveCommit",
    "Foreign",
    "LandedCommit",
    "Since",
    "Token",
    "carrying_token",
    "changes_of_others",
    "commit_text",
    "commits_from",
    "commits_since",
    "empties",
    "empties_partition",
    "emptying_signature",
    "find_commit",
    "find_effective",
    "foreign_changes",
    "has_changed_rows",
    "is_effective",
    "is_own",
    "is_signing",
    "is_superseded",
    "item_contents",
    "read_commits",
    "replaces_all",
    "restored_version",
    "sign_commits",
    "slice_key",
    "standing_changes",
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
