"""Sessions of Spark Connect: Spark is elsewhere, and this process has no JVM.

The master, or the session that is given, decides between them and those of a JVM.

What only a JVM of this process gives is asked in other ways, or left out
(docs/decisions/029-spark-connect.md).
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

from lakewright.errors import NotInstalled, SparkUnavailable
from lakewright.spark.causes import first_line
from lakewright.spark.cluster import check_master
from lakewright.spark.conf import SessionSettings, is_connect, master_of, runtime_conf
from lakewright.spark.engine import is_of_connect
from lakewright.spark.jvm import has_stopped
from lakewright.spark.loggers import filter_query_logs
from lakewright.spark.releases import check_release
from lakewright.spark.session import OwnSession, Sessions, SharedSession, check_running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


log = logging.getLogger(__name__)

_PROBE = "DESCRIBE DETAIL delta.`/lakewright/probe`"
"""A statement that only Delta understands; there is no such table."""

_LONGEST_PAUSE = 10_000
"""Milliseconds between two attempts to reach a server that does not answer; 15 of them take two minutes."""

_PROBED = "DELTA_MISSING_DELTA_TABLE"


class ConnectSessions(Sessions):
    """Sessions of a server of Spark Connect, each with settings and temporary views of its own.

    They are made by the address of the server, or like a session that is there already, as on Databricks,
    which is never changed or stopped.
    """

    is_shared = True

    def __init__(self, given: SparkSession | None = None) -> None:
        self.given = given
        # Tags belong to a session and a thread: what is cancelled is cancelled in each of them.
        self._sessions: WeakSet[Any] = WeakSet()
        self._thread = _Thread()

    def check(self) -> None:
        """Raise an error if the given session is stopped, or of a release that is not supported.

        Raises:
            SparkUnavailable: With what is wrong.
        """
        if self.given is not None:
            check_running(self.given, is_stopped=has_stopped(self.given))

    def master(self, settings: SessionSettings) -> str:
        """Return the address of the server."""
        return master_of(settings) if self.given is None else f"sc://{self.given.client.host}"

    def start(self, settings: SessionSettings) -> SparkSession:
        """Return a session of the server.

        Raises:
            NotInstalled: PySpark's part for Spark Connect is missing.
            SparkUnavailable: The server can't be reached, is of another release or has no Delta Lake.
        """
        if self.given is None:
            check_master(master_of(settings), settings.patience, os.environ)
        session = _connected(master_of(settings)) if self.given is None else session_like(self.given)
        try:
            check_release(session.version)
            _check_delta(session)
        except BaseException:
            session.stop()
            raise
        return self._prepared(session, settings)

    def derive(self, session: SparkSession, settings: SessionSettings) -> SparkSession:
        """Return a new session of the same server, with the settings."""
        derived = session_like(session)
        # A clone has the settings of its session. Each setting is a request.
        return self._kept(derived) if hasattr(session, "cloneSession") else self._prepared(derived, settings)

    def stop(self, session: SparkSession) -> None:
        """End the sessions that were made; rows of those like a given session may still be in use."""
        if self.given is not None:
            return
        for each in {*self._sessions, session}:
            with suppress(Exception):  # the server may have gone
                each.stop()

    def _prepared(self, session: SparkSession, settings: SessionSettings) -> SparkSession:
        from pyspark.errors import PySparkException

        for key, value in runtime_conf(settings, master_of(settings)).items():
            try:
                session.conf.set(key, value)
            except PySparkException:  # a setting of the server, not of a session
                if key in settings.conf and session.conf.get(key, None) != value:
                    log.warning("%s=%s of the project has no effect: the server decides it", key, value)
        return self._kept(session)

    def _kept(self, session: SparkSession) -> SparkSession:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        # By default a request is repeated for ten minutes.
        made: Any = session
        made.client.set_retry_policies([DefaultPolicy(max_backoff=_LONGEST_PAUSE)])
        self._sessions.add(session)
        if self._thread.tag is not None:
            session.addTag(self._thread.tag)
        return session

    def tag(self, session: SparkSession, tag: str) -> None:
        """Tag the jobs that this thread starts from now on."""
        self._thread.tag = tag
        for each in tuple(self._sessions):
            each.addTag(tag)

    def untag(self, session: SparkSession, tag: str, before: str | None) -> None:
        """Tag no more jobs of this thread."""
        self._thread.tag = None
        for each in tuple(self._sessions):
            each.removeTag(tag)

    def cancel(self, session: SparkSession, tags: Iterable[str] | None) -> None:
        """Cancel the jobs with these tags, or all of these sessions."""
        for each in tuple(self._sessions):
            with suppress(Exception):  # the server may have gone
                if tags is None:
                    each.interruptAll()
                for tag in tags or ():
                    each.interruptTag(tag)


def sessions_for(master: str) -> Sessions:
    """Return where a project gets its session from: a server of Spark Connect, or a JVM of this process."""
    return ConnectSessions() if is_connect(master) else OwnSession()


def sessions_like(given: SparkSession) -> Sessions:
    """Return where a project gets its session from that has to work like a given one."""
    return ConnectSessions(given) if is_of_connect(given) else SharedSession(given)


class _Thread(threading.local):
    """What a thread's jobs are tagged with."""

    tag: str | None = None


def _connected(url: str) -> SparkSession:
    try:
        from pyspark.sql import SparkSession

        filter_query_logs()
        return SparkSession.builder.remote(url).create()
    except ImportError as missing:
        raise NotInstalled.of(missing, "Spark Connect", "connect") from missing
    except Exception as error:
        raise SparkUnavailable(
            f"the server {url} can't be reached: {first_line(error)}",
            remedy="Check its address, its token and that it runs; nothing was claimed.",
        ) from error


def session_like(session: Any) -> SparkSession:
    """Return a new session of the same server and user."""
    if hasattr(session, "cloneSession"):
        cloned: Any = session.cloneSession()
        # PySpark does not set it, and then fails to stop the clone, which keeps the process from ending.
        cloned.release_session_on_close = True
        return cast("SparkSession", cloned)
    return cast("SparkSession", type(session)(connection=session.client._builder))


def _check_delta(session: SparkSession) -> None:
    from pyspark.errors import PySparkException

    try:
        session.sql(_PROBE).collect()
    except PySparkException as error:
        if error.getCondition() != _PROBED:
            raise SparkUnavailable(
                f"the server has no Delta Lake: {first_line(error)}",
                remedy="Start it with Delta's jar, and with spark.sql.extensions and "
                "spark.sql.catalog.spark_catalog of Delta.",
            ) from error
