"""The lake: where its places are, and one Spark session that starts when it is first needed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from lakewright.spark.jvm import is_jvm_failure
from lakewright.spark.metastore import CATALOG, embedded_metastore
from lakewright.spark.session import OwnSession, Sessions, SessionSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.spec.models.lake import LakeSettings

__all__ = ["Lake"]

log = logging.getLogger(__name__)


class Closeable(Protocol):
    """What holds something open."""

    def close(self) -> None:
        """Let go of it."""
        ...


T = TypeVar("T")
C = TypeVar("C", bound=Closeable)

_PATIENCE = 2.0
"""Seconds to wait for a thread that starts the session."""


def _nothing() -> None:
    """Do nothing."""


class Lake:
    """The lake's places, and the session that all of a run shares.

    Attributes:
        settings: What the project's `lake:` section declares.
        session: The settings of the session.
        sessions: Starts and stops the session.
        redirect: Tells where a place is: there, unless it is redirect for a test.
    """

    def __init__(
        self,
        settings: LakeSettings,
        session: SessionSettings,
        *,
        sessions: Sessions | None = None,
        redirect: Callable[[str], str] = str,
    ) -> None:
        self.redirect = redirect
        self.settings = settings
        self.session = session
        self.sessions = OwnSession() if sessions is None else sessions
        self._spark: SparkSession | None = None
        self._lock = threading.Lock()
        self._keeping = threading.Lock()
        self._work = _Work()
        self._seen: dict[Hashable, Any] | None = None
        self._kept: dict[Hashable, Closeable] = {}

    @property
    def is_started(self) -> bool:
        """Whether the session runs; asking doesn't start it."""
        return self._spark is not None

    @property
    def has_empty_catalog(self) -> bool:
        """Whether a session that is started now finds no table and no view in its catalog."""
        conf = self.session.conf
        if not self.sessions.has_new_catalog or "spark.remote" in conf:
            return False
        if any(key.startswith("spark.sql.catalog.") for key in conf):
            return False
        if conf.get(CATALOG, "in-memory") == "in-memory":
            return True
        folder = embedded_metastore(conf, self.session.state_folder)
        return folder is not None and not folder.exists()

    @property
    def spark(self) -> SparkSession:
        """The session, started on first use.

        Raises:
            NotInstalled: PySpark, a Java or Delta's jars are missing.
        """
        with self._lock:
            if self._spark is None:
                self._spark = self.sessions.start(self.session)
            self._mark(self._spark)
            return self._spark

    def new_session(self) -> SparkSession:
        """Return a new session of the same application, with settings and temporary views of its own."""
        return self.spark.newSession()

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Have things be looked at once while inside, where nothing is written."""
        self._seen = {}
        try:
            yield
        finally:
            self._seen = None

    def observed(self, thing: Hashable, look: Callable[[], T]) -> T:
        """Return what looking at a thing gives: anew, or within `observing` what it gave before."""
        if self._seen is None:
            return look()
        if thing not in self._seen:
            self._seen[thing] = look()
        found: T = self._seen[thing]
        return found

    def keep_open(self, key: Hashable, make: Callable[[], C]) -> C:
        """Return what was made under a key before, or make it; it is closed when the lake is let go."""
        with self._keeping:
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = make()
            return cast("C", found)

    @contextmanager
    def tagging_jobs(self, tag: str) -> Iterator[None]:
        """Have the Spark jobs that this thread starts inside carry a tag, for `cancel_jobs`.

        Threads share Spark fairly: each has a pool of its own. Nothing is marked on Spark Connect, whose
        sessions can't see each other's jobs.
        """
        self._work.tag, self._work.is_marked = tag, False
        if self._spark is not None:
            self._mark(self._spark)
        try:
            yield
        finally:
            self._work.tag = None
            if self._work.is_marked and self._spark is not None:
                self._unmark(self._spark, tag)

    def _mark(self, spark: SparkSession) -> None:
        tag = self._work.tag
        if tag is None or self._work.is_marked or self._is_remote:
            return
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", threading.current_thread().name)
        spark.sparkContext.addJobTag(tag)
        self._work.is_marked = True

    def _unmark(self, spark: SparkSession, tag: str) -> None:
        try:
            spark.sparkContext.removeJobTag(tag)
        except Exception as error:
            if not is_jvm_failure(error):
                raise

    def cancel_jobs(self, tag: str | None = None) -> None:
        """End the Spark jobs that carry a tag, or all; whoever waits for them gets an error."""
        # Not under the lock: whoever starts the session holds it for seconds.
        spark = self._spark
        if spark is None or self._is_remote:
            return
        if tag is None:
            spark.sparkContext.cancelAllJobs()
        else:
            spark.sparkContext.cancelJobsWithTag(tag)

    @contextmanager
    def checking_commits(self, check: Callable[[], None]) -> Iterator[None]:
        """Have what this thread writes inside be refused by `check`, which raises, before readers see it."""
        before, self._work.check = self._work.check, check
        try:
            yield
        finally:
            self._work.check = before

    def check_commit(self) -> None:
        """Return where nothing speaks against putting what was written where readers see it.

        Raises:
            LeaseLost: Somebody else may be writing the same by now.
        """
        self._work.check()

    def job_canceller(self) -> Callable[[], None]:
        """Return what ends the Spark jobs that this thread is at, for another thread to call."""
        tag = self._work.tag
        return _nothing if tag is None else lambda: self.cancel_jobs(tag)

    @property
    def _is_remote(self) -> bool:
        return "spark.remote" in self.session.conf

    def stop(self) -> None:
        """End the session, if it was started, and close what is kept; the next use starts another."""
        with self._keeping:
            while self._kept:
                self._kept.popitem()[1].close()
        # One that is only being started can't be ended; its JVM ends with this process.
        if not self._lock.acquire(timeout=_PATIENCE):
            return
        try:
            spark, self._spark = self._spark, None
        finally:
            self._lock.release()
        if spark is None:
            return
        try:
            self.sessions.stop(spark)
        except Exception as error:  # its JVM has gone: whoever ends this process may end that first
            log.warning("the Spark session had ended already: %s", error)


class _Work(threading.local):
    """What a thread is at: the tag of its Spark jobs, whether Spark knows it, and what checks its commits."""

    tag: str | None = None
    is_marked: bool = False
    check: Callable[[], None] = staticmethod(_nothing)
