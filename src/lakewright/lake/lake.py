"""The lake of a project: its settings, and one Spark session that starts when it is first needed."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from lakewright.errors import SparkUnavailable
from lakewright.lake.object_storage import ObjectStorage
from lakewright.spark.conf import CATALOG, SessionSettings, embedded_metastore, master_of
from lakewright.spark.connect import sessions_for
from lakewright.spark.jvm import has_stopped, is_jvm_failure
from lakewright.spark.session import Sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.spec.models.lake import LakeSettings


log = logging.getLogger(__name__)


def cancel_quietly(cancel: Callable[[], object]) -> None:
    """Cancel Spark jobs; a failure is logged, as what has waited for them ends all the same."""
    try:
        cancel()
    except Exception as error:
        log.warning("Spark jobs could not be cancelled: %s", error)


class Closeable(Protocol):
    """A resource that must be closed."""

    def close(self) -> None:
        """Release the resource."""


T = TypeVar("T")
C = TypeVar("C", bound=Closeable)

_PATIENCE = 2.0
"""Seconds that `stop` waits for a thread that is starting the session."""


def _nothing() -> None:
    """Do nothing."""


class Lake:
    """The lake's settings, and the session that a whole run shares.

    Attributes:
        settings: The settings of the project's `lake:` section.
        session: The settings of the session.
        sessions: Starts and stops the session.
        storage: The object stores, which are read without the session.
        redirect: Returns the place of a location's files, which is another one during a test of the project.
        starting: Entered while the session starts, to show that to the user.
        owner: The lake whose session it uses, and which stops that; None if it has its own.
    """

    def __init__(
        self,
        settings: LakeSettings,
        session: SessionSettings,
        *,
        sessions: Sessions | None = None,
        storage: ObjectStorage | None = None,
        redirect: Callable[[str], str] = str,
        owner: Lake | None = None,
    ) -> None:
        self.owner = owner
        self.storage = storage or ObjectStorage(environ=os.environ, conf=session.conf)
        self.redirect = redirect
        self.starting: Callable[[], AbstractContextManager[None]] = nullcontext
        self.settings = settings
        self.session = session
        self.sessions = sessions_for(master_of(session)) if sessions is None else sessions
        self._spark: SparkSession | None = None
        self._is_starting = False
        self._is_abandoned = False
        self._lock = threading.Lock()
        self._kept_lock = threading.Lock()
        self._thread = _ThreadState()
        self._tags: set[str] = set()
        self._observations: dict[Hashable, Any] | None = None
        self._kept: dict[Hashable, Closeable] = {}
        self._pending: dict[str, int] = {}

    @property
    def is_starting(self) -> bool:
        """Whether the session is starting at this moment."""
        return self._is_starting

    @property
    def is_started(self) -> bool:
        """Whether the session runs; asking doesn't start it."""
        return self._spark is not None

    @property
    def has_empty_catalog(self) -> bool:
        """Whether a session that is started now finds no table and no view in its catalog."""
        conf = self.session.conf
        if self.sessions.is_shared:
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
            SparkUnavailable: `abandon_start` was called meanwhile.
        """
        with self._lock:
            if self._spark is not None and has_stopped(self._spark):
                # By the user's program; a session that it gave is then refused.
                self._spark, self._thread.is_tagged = None, False
            if self._spark is None:
                self._is_starting, self._is_abandoned = True, False
                try:
                    with self.starting():
                        self._spark = self._started()
                finally:
                    self._is_starting = False
            self._tag(self._spark)
            return self._spark

    def expect(self, what: str, size: int) -> None:
        """Note the bytes that are to be processed of something, before the session starts.

        The session that starts for much work has both of Java's compilers.
        """
        self._pending[what] = size

    def _started(self) -> SparkSession:
        if self.owner is not None:
            return self.owner.spark
        pending = sum(self._pending.values())
        session = self.sessions.start(replace(self.session, pending_bytes=pending))
        if self._is_abandoned:
            self.sessions.stop(session)
            raise SparkUnavailable("the start of Spark was interrupted")
        return session

    def abandon_start(self) -> None:
        """Make a start of the session that is in progress in another thread fail, as soon as it can.

        Without such a start, nothing happens.
        """
        # Without the lock, which the thread that starts the session holds.
        if self._is_starting:
            self._is_abandoned = True
            if self.owner is not None:
                self.owner.abandon_start()
            else:
                self.sessions.abandon()

    def new_session(self) -> SparkSession:
        """Return a new session of the same application, with settings and temporary views of its own."""
        return self.sessions.derive(self.spark, self.session)

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Cache the results of `observed` inside a block that writes nothing."""
        self._observations = {}
        try:
            yield
        finally:
            self._observations = None

    def observed(self, thing: Hashable, observe: Callable[[], T]) -> T:
        """Return an observation by its key: a new one, or inside an `observing` block the cached one."""
        if self._observations is None:
            return observe()
        if thing not in self._observations:
            self._observations[thing] = observe()
        found: T = self._observations[thing]
        return found

    def keep_open(self, key: Hashable, make: Callable[[], C]) -> C:
        """Return the resource kept under a key, which is made on first use and closed by `stop`."""
        with self._kept_lock:
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = make()
            return cast("C", found)

    @contextmanager
    def tagging_jobs(self, tag: str) -> Iterator[None]:
        """Tag the Spark jobs that this thread starts in the block, so that `cancel_jobs` can find them.

        Threads share Spark fairly.
        """
        self._thread.tag, self._thread.is_tagged = tag, False
        if self._spark is not None:
            self._tag(self._spark)
        try:
            yield
        finally:
            self._thread.tag = None
            self._tags.discard(tag)
            if self._thread.is_tagged and self._spark is not None:
                self._untag(self._spark, tag)

    def _tag(self, spark: SparkSession) -> None:
        tag = self._thread.tag
        if tag is None or self._thread.is_tagged or has_stopped(spark):
            return
        self._thread.before = self.sessions.tag(spark, tag)
        self._tags.add(tag)
        self._thread.is_tagged = True

    def _untag(self, spark: SparkSession, tag: str) -> None:
        if has_stopped(spark):
            return
        try:
            self.sessions.untag(spark, tag, self._thread.before)
        except Exception as error:
            if not is_jvm_failure(error):
                raise

    def cancel_jobs(self, tag: str | None = None) -> None:
        """Cancel the Spark jobs with a tag, or all of ours; the threads that wait for them get an error."""
        # Without the lock, which a thread that starts the session holds for seconds.
        spark = self._spark
        if spark is None or has_stopped(spark):
            return
        if tag is None and not self.sessions.is_shared:
            self.sessions.cancel(spark, None)
        else:
            self.sessions.cancel(spark, tuple(self._tags) if tag is None else (tag,))

    @property
    def past(self) -> Past | None:
        """The time at which this thread reads tables; None for their present state."""
        return self._thread.past

    @contextmanager
    def looking_back(self, at: datetime | None) -> Iterator[Past | None]:
        """Make this thread read tables as they were at a time, inside the block; None changes nothing."""
        before, self._thread.past = self._thread.past, None if at is None else Past(at)
        try:
            yield self._thread.past
        finally:
            self._thread.past = before

    @contextmanager
    def checking_commits(self, check: Callable[[], None]) -> Iterator[None]:
        """Make `check_commit` call `check`, which raises to prevent a commit, in this thread and block."""
        before, self._thread.check = self._thread.check, check
        try:
            yield
        finally:
            self._thread.check = before

    def check_commit(self) -> None:
        """Raise an error unless this thread may still make its output visible to readers.

        Raises:
            LeaseLost: The lease is lost, so that another run may be writing the same output.
        """
        self._thread.check()

    def job_canceller(self) -> Callable[[], None]:
        """Return a function that cancels this thread's Spark jobs, for another thread to call."""
        tag = self._thread.tag
        return _nothing if tag is None else lambda: self.cancel_jobs(tag)

    def stop(self) -> None:
        """End the session, if it was started, and close what is kept; the next use starts another."""
        with self._kept_lock:
            while self._kept:
                self._kept.popitem()[1].close()
        # A session that is still starting can't be stopped; its JVM ends with this process.
        if not self._lock.acquire(timeout=0 if self._is_abandoned else _PATIENCE):
            return
        try:
            spark, self._spark = self._spark, None
        finally:
            self._lock.release()
        if spark is None or self.owner is not None:
            return
        try:
            self.sessions.stop(spark)
        except Exception as error:  # its JVM has gone: whoever ends this process may end that first
            log.warning("the Spark session had ended already: %s", error)


class _ThreadState(threading.local):
    """A thread's state: the tag of its jobs, whether Spark has it, what was before, its check of commits."""

    tag: str | None = None
    is_tagged: bool = False
    before: str | None = None
    check: Callable[[], None] = staticmethod(_nothing)
    past: Past | None = None


@dataclass
class Past:
    """A time at which tables are read.

    Attributes:
        notes: What was read in its present state, because it keeps no other.
    """

    at: datetime
    notes: list[str] = field(default_factory=list)
