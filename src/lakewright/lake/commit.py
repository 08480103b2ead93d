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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakewright.errors import CommitTooLate, TargetError
from lakewright.lake.delta_log import read_history
from lakewright.lake.delta_sql import table_history
from lakewright.lake.observation import last_commit_number, observe_table, open_log, read_table
from lakewright.lake.spark_errors import spark_errors
from lakewright.lake.tracing import span
from lakewright.spark.causes import causes_of, first_line
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake


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
    # One look at the log shows both: in S3, a second one is a request more.
    log = _Log(lake, address)
    last = last_commit_number(lake, address, app_id, opened=log.opened)
    if last is None or last < number:
        return None
    commits, is_found = log.newest(lambda each: each.is_numbered(app_id, number))
    found = LandedCommit(commits[-1].version, commits[-1].content) if is_found else None
    own = found if found is None or item_id is None else _of_item(found, item_id)
    if own is not None:
        return own
    if last == number and found is None:
        return LandedCommit(None, {})
    raise CommitTooLate(
        f"{address.shown} already holds commit {last} of {app_id}, so that {number} is too late, and the "
        "table's log doesn't rule out that it holds the slice",
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


class _Log:
    """The log of a table, whose newest commits are read as far as they are asked for."""

    def __init__(self, lake: Lake, address: Address) -> None:
        self.opened = open_log(lake, address)
        self._lake, self._address = lake, address

    def read(self, limit: int | None = None) -> list[Commit]:
        """Return the newest commits, or all, the newest first; Spark is asked if nothing else reads them."""
        log, _, table = self.opened
        if table is not None and (commits := read_history(log, table, limit)) is not None:
            return list(map(_commit, commits))
        history = table_history(self._lake.spark, self._address, limit)
        columns = ("version", "timestamp", "operation", "operationParameters", "userMetadata")
        return [_commit(row.asDict()) for row in history.select(*columns).collect()]

    def newest(
        self, is_wanted: Callable[[Commit], bool], most: int | None = None
    ) -> tuple[list[Commit], bool]:
        """Return the newest commits down to the first that is wanted, and whether there is one.

        Args:
            is_wanted: The condition.
            most: How many of them are looked at; None for all.
        """
        commits: list[Commit] = []
        # The newest commit is nearly always the one; in S3, each other one costs a request.
        for limit in (1, FEW, most):
            commits = self.read(limit)
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
    return tuple(sorted(_Log(lake, address).read(), key=lambda commit: commit.version))


def commit_text(commit: Commit) -> str:
    """Return a commit as text: its version, time in UTC, operation, and slices."""
    at = "" if commit.at is None else f" of {commit.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    names = [str(content["item"]).rpartition("/")[2] for content in commit.items]
    whose = f", slice {names[0]}" if names else ""
    if len(names) > 1:
        whose = f", slices {names[0]} to {names[-1]}"
    return f"version {commit.version}{at} ({commit.operation}{whose})"


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
    log = _Log(lake, address)
    _, is_read, table = log.opened
    if table is None and (is_read or not observe_table(lake, address).exists):
        return None
    commits, is_found = log.newest(is_last, most)
    return Since(commits[-1], tuple(reversed(commits[:-1]))) if is_found else None


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


def has_changed_rows(commit: Commit) -> bool:
    """Return whether a commit is of an operation that changes rows."""
    return commit.operation in ROW_OPERATIONS


def restored_version(restore: Commit, log: Sequence[Commit]) -> int | None:
    """Return the version that a RESTORE went back to, given by number or by time."""
    given = restore.parameters.get("version")
    if given not in (None, ""):
        return int(str(given).strip('"'))
    at = time_of_restore(restore)
    earlier = [each.version for each in log if at is not None and each.at is not None and each.at <= at]
    return max(earlier, default=None)


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


def going_back(commits: Sequence[Commit], log: Sequence[Commit]) -> Iterator[tuple[Commit, int | None]]:
    """Yield the commits on which the last one builds, each with the version on which it builds itself.

    Args:
        commits: The commits, oldest first.
        log: The commits of the table, with all that a RESTORE may go back to.
    """
    by_version = {commit.version: commit for commit in commits}
    commit = commits[-1] if commits else None
    while commit is not None:
        before = restored_version(commit, log) if commit.operation == "RESTORE" else commit.version - 1
        yield commit, before
        commit = by_version.get(before) if before is not None and before < commit.version else None


def time_of_restore(restore: Commit) -> datetime | None:
    """Return the time that a RESTORE went back to; None if it names none."""
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

_MOST_COMMITS = 100
"""Number of a table's last commits among which Lakewright's last one is looked for."""


def sign_commits(session: SparkSession, emptied: Mapping[str, str] | None = None) -> None:
    """Make the commits of a session carry the signature, unless the user has chosen what they carry.

    Args:
        session: The session.
        emptied: The partition whose rows they remove, if that is what they are for.
    """
    if session.conf.get(METADATA, None) is None:
        session.conf.set(METADATA, _SIGNATURE if emptied is None else signature(emptied))


def signature(emptied: Mapping[str, str] | None = None) -> str:
    """Return the signature of a commit of this thread, with the build that it is of.

    Args:
        emptied: The partition whose rows the commit removes, or replaces. Without it, the log would not show
            whether the rows of an earlier commit are there.
    """
    note = {} if emptied is None else {EMPTIED: dict(emptied)}
    return json.dumps({_BY: _NAME, **note, **content_of_build()})


OF_BUILD = "build"
"""Key of a commit's content under which the build is that has made it, as the manifest records it."""

_building: ContextVar[Mapping[str, Any] | None] = ContextVar("building", default=None)


@contextmanager
def carrying_build(build: Mapping[str, Any] | None) -> Iterator[None]:
    """Have the commits of rows that this thread writes inside the block carry the build that they are of."""
    token = _building.set(build)
    try:
        yield
    finally:
        _building.reset(token)


def content_of_build() -> dict[str, Any]:
    """Return what a commit says of the build that it is of; nothing outside of one."""
    build = _building.get()
    return {} if build is None else {OF_BUILD: dict(build)}


def is_signing(session: SparkSession) -> bool:
    """Return whether the commits of a session carry the signature, and nothing that the user has chosen."""
    return bool(session.conf.get(METADATA, None) == _SIGNATURE)


def standing_changes(lake: Lake, address: Address, found: Since) -> tuple[Commit, ...]:
    """Return the commits with which others have changed rows since Lakewright's last one, oldest first.

    Args:
        lake: The lake.
        address: The table.
        found: Lakewright's last commit, and the later ones.
    """
    if not any(map(_changes_rows, found.commits)):
        return ()
    is_restored = any(each.operation == "RESTORE" for each in found.commits)
    log = read_commits(lake, address) if is_restored else (found.start, *found.commits)
    return changes_of_others(found, log)


def changes_of_others(found: Since, log: Sequence[Commit]) -> tuple[Commit, ...]:
    """Return the later commits than Lakewright's last one on whose changes of rows the table builds.

    A change that was taken back by a RESTORE is none; a RESTORE of what was before that commit is one.

    Args:
        found: Lakewright's last commit, and the later ones.
        log: The commits of the table, with all that a RESTORE may go back to.
    """
    start, standing = found.start.version, list[Commit]()
    for commit, built_on in going_back(found.commits, log):
        is_restore = commit.operation == "RESTORE"
        if built_on is None or built_on >= commit.version:  # nobody knows what is left of the changes
            return commit, *standing
        is_last = built_on < start or (replaces_all(commit) and not is_restore)
        if is_last or (_changes_rows(commit) and not is_restore):
            standing.insert(0, commit)
        if is_last:
            break
    return tuple(standing)


def _changes_rows(commit: Commit) -> bool:
    return has_changed_rows(commit) or replaces_all(commit)


def is_own(commit: Commit) -> bool:
    """Return whether a commit carries the signature or a token."""
    return "app" in commit.content or commit.content.get(_BY) == _NAME


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


_GONE = (
    *("DELTA_NO_RECREATABLE_HISTORY_FOUND", "DELTA_VERSIONS_NOT_CONTIGUOUS", "DELTA_VERSION_NOT_FOUND"),
    *("FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND"),
)


def is_gone(error: Exception) -> bool:
    """Return whether an error says that a version, or a file of it, is gone."""
    return any(each.has(*_GONE) or "FileNotFound" in each.kind for each in causes_of(error))


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
