"""Commits that carry what they were made for, so that no slice is ever applied twice.

Delta keeps, for each application id, the number of its last commit, and leaves out a write whose number isn't
greater. The number belongs to an item's revision and is the same for every attempt at it. Metrics and the
rest travel in the commit's user metadata, from where a later run takes them if the manifest wasn't told.

Source: Delta's documentation, "Idempotent table writes"; `processing-manifest.md`, "State" (Processed).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakewright.errors import CommitTooLate
from lakewright.lake.delta_log import read_log
from lakewright.lake.observation import delta_table, last_commit_number, local_table_path
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.lake import Lake

__all__ = [
    "Commit",
    "LandedCommit",
    "Token",
    "carrying_token",
    "find_commit",
    "is_superseded",
    "read_commits",
    "strict_session",
]

_APP = "spark.databricks.delta.write.txnAppId"
_NUMBER = "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"

FEW = 20
"""Commits in which a recent one is looked for before all are read."""

STRICT = {
    # Casts and arithmetic fail instead of giving null, and no result depends on where it is computed.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    # Texts like ${env:HOME} in expressions and names are texts.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # Damaged and missing files are errors, whatever the user's settings say.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Old dates are read as they were written, not shifted to another calendar.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.databricks.delta.dynamicPartitionOverwrite.enabled": "true",
    # What is merged was put down just before; Delta would put it down once more.
    "spark.databricks.delta.merge.materializeSource": "none",
    # With it each join has Delta look for files in which no key is null, and a filter by a hash of many
    # columns takes minutes to plan.
    "spark.sql.constraintPropagation.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class Token:
    """What a commit is made for.

    Attributes:
        app_id: Of the application; one for each table and entity.
        number: Of the item's revision.
        content: Kept in the commit, JSON-able: item, revision, run, record, metrics, watermarks.
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
    """A commit that landed; its version is None and its content empty where the log has forgotten it."""

    version: int | None
    content: Mapping[str, Any]


def strict_session(lake: Lake) -> SparkSession:
    """Return a session of its own in which processing means the same whatever the user's settings are."""
    session = lake.new_session()
    for key, value in STRICT.items():
        session.conf.set(key, value)
    return session


@contextmanager
def carrying_token(session: SparkSession, token: Token) -> Iterator[None]:
    """Let every Delta commit of the session carry the token meanwhile, and none afterwards."""
    values = {_APP: token.app_id, _NUMBER: str(token.number), _METADATA: token.text}
    left = [key for key in values if session.conf.get(key, None) is not None]
    if left:
        raise RuntimeError(f"the session still carries another commit's token: {left}")
    try:
        for key, value in values.items():
            session.conf.set(key, value)
        yield
    finally:
        for key in values:
            session.conf.unset(key)


def find_commit(lake: Lake, address: Address, app_id: str, number: int) -> LandedCommit | None:
    """Return the commit with that number, or None where the table has none.

    Raises:
        CommitTooLate: The table holds a later number: a commit with this one would be left out silently.
    """
    last = last_commit_number(lake, address, app_id)
    if last is None or last < number:
        return None
    found = _find(lake, address, app_id, number)
    if found is not None:
        return found
    if last == number:
        return LandedCommit(None, {})
    raise CommitTooLate(
        f"{address} already holds commit {last} of {app_id}; {number} would come too late, and the table's "
        "log doesn't rule out that the slice is in it",
        remedy="Look whether the slice's rows are in the table: if they are, resolve and skip the item; if "
        "not, requeue it, which gives it a new number.",
        details={"address": str(address), "last": last, "number": number},
    )


def is_superseded(lake: Lake, address: Address, app_id: str, number: int, item_id: str) -> bool:
    """Return whether no commit with an item's number is in the table, and for certain none ever will be.

    Delta refuses it once there is a later one. An application's numbers grow with the table's versions: had
    the commit landed, a log that goes back to a smaller number, or to the table's beginning, would have it.
    A clone brings numbers without their commits, so that its beginning says nothing. A later commit of the
    item itself says that whoever gave the number, an older copy of the manifest, doesn't know the last one.
    """
    last = last_commit_number(lake, address, app_id)
    if last is None or last <= number:
        return False
    log = read_commits(lake, address)
    own = [commit.content for commit in log if commit.content.get("app") == app_id]
    numbers = {content["number"] for content in own}
    if number in numbers or any(c["number"] > number and c.get("item") == item_id for c in own):
        return False
    is_whole = bool(log) and log[0].version == 0 and all(commit.operation != "CLONE" for commit in log)
    return is_whole or min(numbers, default=number) < number


def _find(lake: Lake, address: Address, app_id: str, number: int) -> LandedCommit | None:
    for limit in (FEW, None):
        for entry in _history(lake, address, limit):
            content = _content(entry.get("userMetadata"))
            if content.get("app") == app_id and content.get("number") == number:
                return LandedCommit(int(entry["version"]), content)
    return None


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a table's log.

    Attributes:
        at: When, as the log says; None where it doesn't.
        operation: What Delta calls it: MERGE, WRITE, RESTORE, …
        parameters: Of the operation.
        content: What its token carries; empty for commits of others.
    """

    version: int
    at: datetime | None
    operation: str
    parameters: Mapping[str, Any]
    content: Mapping[str, Any]


def read_commits(lake: Lake, address: Address) -> tuple[Commit, ...]:
    """Return the commits that the table's log still knows, oldest first."""
    return tuple(sorted(map(_commit, _history(lake, address, None)), key=lambda commit: commit.version))


def _commit(entry: Mapping[str, Any]) -> Commit:
    at = entry.get("timestamp")
    return Commit(
        version=int(entry["version"]),
        at=datetime.fromtimestamp(at / 1000, UTC) if isinstance(at, int) else at,
        operation=str(entry.get("operation") or ""),
        parameters=entry.get("operationParameters") or {},
        content=_content(entry.get("userMetadata")),
    )


def _history(lake: Lake, address: Address, limit: int | None) -> list[dict[str, Any]]:
    _, table = read_log(local_table_path(lake, address))
    if table is not None:
        return table.history(limit)
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
