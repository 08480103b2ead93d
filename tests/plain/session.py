"""A session that stands in for one of Spark: it has settings, and knows the statements of a table's life."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.spark.conf import SessionSettings
from lakewright.spark.connect import sessions_like
from lakewright.spark.session import Sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.plain.tables import PlainTable


class Conf(dict[str, str]):
    """Settings."""

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        self.pop(key, None)


class PlainSession:
    """A session without Spark."""

    is_stopped = False

    def __init__(self) -> None:
        self.conf = Conf()

    def sql(self, statement: str) -> PlainSession:
        """Run a statement that changes a table."""
        for pattern, change in STATEMENTS.items():
            if found := re.fullmatch(pattern, statement, re.IGNORECASE | re.DOTALL):
                change(self, **found.groupdict())
                return self
        raise NotImplementedError(statement)

    def collect(self) -> list[Any]:
        """Return the rows of a statement, which are none."""
        return []


def plain_session() -> SparkSession:
    """Return a session that stands in for one of Spark."""
    made: Any = PlainSession()
    session: SparkSession = made
    return session


def is_plain(session: object) -> bool:
    """Return whether a session stands in for one of Spark."""
    return isinstance(session, PlainSession)


def sessions_of(session: SparkSession) -> Sessions:
    """Return where a project gets its sessions from that works with one of Spark, or with a stand-in."""
    return PlainSessions() if is_plain(session) else sessions_like(session)


# As a session of Spark Connect it has no JVM.
PlainSession.__module__ = "pyspark.sql.connect.plain"


def _table(folder: str) -> PlainTable:
    from tests.plain.tables import PlainTable

    return PlainTable(Path(folder))


def _clone(session: PlainSession, table: str, source: str, version: str) -> None:
    _table(table).clone(session, _table(source), int(version))


def _restore(session: PlainSession, table: str, version: str) -> None:
    _table(table).restore(session, int(version))


def _swap(session: PlainSession, table: str, source: str, properties: str | None) -> None:
    pairs = re.findall(r"'((?:[^'\\]|\\.)*)' = '((?:[^'\\]|\\.)*)'", properties or "")
    _table(table).swap(session, _table(source), {_plain(key): _plain(value) for key, value in pairs})


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _delete(session: PlainSession, table: str, condition: str | None) -> None:
    from tests.plain.tables import foreign_delete

    if condition is not None:
        foreign_delete(Path(table), condition)
        return
    found = _table(table)
    found.replace(session, [], found.log().fields, "DELETE")


_TABLE = r"delta\.`(?P<{}>[^`]+)`"
STATEMENTS: Mapping[str, Callable[..., None]] = {
    f"CREATE TABLE {_TABLE.format('table')} SHALLOW CLONE {_TABLE.format('source')} "
    r"VERSION AS OF (?P<version>\d+)": _clone,
    rf"RESTORE (?:TABLE )?{_TABLE.format('table')} TO VERSION AS OF (?P<version>\d+)": _restore,
    f"CREATE OR REPLACE TABLE {_TABLE.format('table')} USING delta "
    rf"(?:TBLPROPERTIES \((?P<properties>.*)\) )?AS SELECT \* FROM {_TABLE.format('source')}": _swap,
    rf"DELETE FROM {_TABLE.format('table')}(?: WHERE (?P<condition>.*))?": _delete,
}


class PlainSessions(Sessions):
    """Starts sessions that stand in for those of Spark."""

    is_shared = True

    def start(self, settings: SessionSettings) -> SparkSession:
        del settings
        return plain_session()

    def derive(self, session: SparkSession, settings: SessionSettings) -> SparkSession:
        return self.start(settings)

    def tag(self, session: SparkSession, tag: str) -> None:
        return None

    def untag(self, session: SparkSession, tag: str, before: str | None) -> None:
        pass

    def cancel(self, session: SparkSession, tags: Iterable[str] | None) -> None:
        pass
