"""Spark sessions: built for this process, derived from a session that is already running, or refused.

Those on a server of Spark Connect (`sc://host:port`), and the choice between both, are in `connect`.
"""

from __future__ import annotations

import logging
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, cast
from weakref import WeakKeyDictionary

from lakewright.errors import LakewrightError, SparkUnavailable
from lakewright.spark.cluster import executor_cores, is_cluster
from lakewright.spark.conf import SessionSettings, master_of, runtime_conf
from lakewright.spark.jvm import active_context
from lakewright.spark.launch import end_launched_jvm, forget_jvm, has_jvm, launched_jvms
from lakewright.spark.releases import Release, check_release, delta_jars, installed_release
from lakewright.spark.session_builder import build_session

if TYPE_CHECKING:
    from py4j.java_gateway import JVMView
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


log = logging.getLogger(__name__)

_POOL = "spark.scheduler.pool"

EXTENSIONS_KEY = "spark.sql.extensions"
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG_KEY = "spark.sql.catalog.spark_catalog"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

_STATEMENT_OF_DELTA = "VACUUM delta.`/x` DRY RUN"
"""A statement that only Delta's parser accepts; it is parsed, not run."""

_CATALOGS = (DELTA_CATALOG, "io.unitycatalog.", "com.databricks.")
"""Beginnings of the classes of catalogs that have Delta tables: Delta's own, and those that wrap it."""


class Sessions(ABC):
    """Where a lake gets its Spark session from: by default one whose Spark context is in this process."""

    @property
    def is_shared(self) -> bool:
        """Whether another program uses the session too: its catalog and its jobs are not only ours."""
        return False

    def check(self) -> None:  # noqa: B027 - most find it out at the start only
        """Raise an error if it is known already that `start` would fail; nothing is started.

        Raises:
            SparkUnavailable: A session that is there lacks what Lakewright needs.
        """

    def master(self, settings: SessionSettings) -> str:
        """Return Spark's master in the session that `start` returns, without starting it."""
        return master_of(settings)

    @abstractmethod
    def start(self, settings: SessionSettings) -> SparkSession:
        """Return a session with these settings.

        Raises:
            LakewrightError: There is no such session.
        """

    def abandon(self) -> None:  # noqa: B027 - most starts can't be interrupted, or end at once
        """Make a `start` that is in progress in another thread fail soon, if that is possible."""

    def derive(self, session: SparkSession, settings: SessionSettings) -> SparkSession:
        """Return a new session like one that `start` returned, with temporary views of its own.

        Those settings that Spark can change while it runs are set. Spark gives a new session the settings
        with which the context was started, not those of `session`.
        """
        derived = session.newSession()
        master = str(session.sparkContext.master)
        cores = executor_cores(session) if is_cluster(master) else 0
        for key, value in runtime_conf(settings, master, cores).items():
            if derived.conf.get(key, None) != value:
                _set_if_possible(derived, key, value)
        if derived.conf.get(CATALOG_KEY, None) is None:
            derived.conf.set(CATALOG_KEY, DELTA_CATALOG)
        return derived

    def stop(self, session: SparkSession) -> None:  # noqa: B027 - a derived session holds nothing
        """End a session that `start` returned."""

    def tag(self, session: SparkSession, tag: str) -> str | None:
        """Tag the jobs that this thread starts, so that `cancel` finds them; return what `untag` needs.

        The thread gets a scheduler pool too, so that threads share Spark fairly.
        """
        context = session.sparkContext
        before = context.getLocalProperty(_POOL)
        # In a JVM that others use too, this process has a pool of its own already: theirs must not meet.
        names = filter(None, (before, threading.current_thread().name))
        context.setLocalProperty(_POOL, " ".join(names))
        context.addJobTag(tag)
        return before

    def untag(self, session: SparkSession, tag: str, before: str | None) -> None:
        """Undo `tag`, which returned `before`."""
        context = session.sparkContext
        context.removeJobTag(tag)
        # PySpark's signature has no None, which removes a property.
        context.setLocalProperty(_POOL, cast("str", before))

    def cancel(self, session: SparkSession, tags: Iterable[str] | None) -> None:
        """Cancel the jobs with these tags; None for all jobs of the session's application."""
        if tags is None:
            session.sparkContext.cancelAllJobs()
        for each in tags or ():
            session.sparkContext.cancelJobsWithTag(each)


_own_contexts: WeakKeyDictionary[SparkContext, int] = WeakKeyDictionary()
"""The Spark contexts that this module started, and how many open projects use each."""

_own_lock = threading.Lock()


class OwnSession(Sessions):
    """Builds the session of this process, and stops it with its JVM.

    If another program has started a session in this process, a new one is derived from that, and nothing is
    stopped. Projects that are open at the same time share a JVM; the last one that closes stops it.
    """

    def __init__(self) -> None:
        self._is_launching = False
        self._is_abandoned = False
        self._others: frozenset[int] = frozenset()

    @property
    def is_shared(self) -> bool:
        """Whether another program has started a session in this process."""
        context = active_context()
        return context is not None and context not in _own_contexts

    def check(self) -> None:
        """Raise an error if another program's session, or the JVM that it left, lacks what Lakewright needs.

        Raises:
            SparkUnavailable: It has no Delta Lake.
        """
        if self.is_shared:
            SharedSession(_running_session()).check()
        elif (jvm := _idle_jvm()) is not None:
            check_jvm(jvm)

    def master(self, settings: SessionSettings) -> str:
        """Return the master of the session that runs in this process, or of the one that `start` builds."""
        context = active_context()
        return master_of(settings) if context is None else str(context.master)

    def start(self, settings: SessionSettings) -> SparkSession:
        """Build the session, or derive it from the one that is running."""
        with _own_lock:
            context = active_context()
            if context is None:
                session = self._build(settings)
            else:
                session = SharedSession(_running_session()).start(settings)
            if context is None or context in _own_contexts:
                context = session.sparkContext
                _own_contexts[context] = _own_contexts.get(context, 0) + 1
            return session

    def _build(self, settings: SessionSettings) -> SparkSession:
        if (jvm := _idle_jvm()) is not None:
            check_jvm(jvm)
        self._is_launching, self._is_abandoned = not has_jvm(), False
        self._others = launched_jvms() if self._is_launching else frozenset()
        try:
            return build_session(settings)
        except BaseException as error:
            if not isinstance(error, Exception):  # Ctrl-C in the thread that starts Spark
                self.abandon()
            if self._is_abandoned:
                forget_jvm()
            if self._is_abandoned and isinstance(error, Exception):
                raise SparkUnavailable("the start of Spark was interrupted") from error
            raise
        finally:
            self._is_launching = False

    def abandon(self) -> None:
        """End the JVM that `start` is launching; one that was there before is kept."""
        if self._is_launching:
            self._is_abandoned = True
            end_launched_jvm(self._others)

    def stop(self, session: SparkSession) -> None:
        """Stop the session and its JVM, unless another program or another project uses it."""
        with _own_lock:
            context = session.sparkContext
            if context not in _own_contexts:
                return
            _own_contexts[context] -= 1
            if _own_contexts[context] == 0:
                del _own_contexts[context]
                session.stop()


class SharedSession(Sessions):
    """Derives new sessions from one that is already running, and never changes or stops that one.

    A derived session shares the JVM, the catalog, global temporary views and cached tables with the given
    one; its settings and its temporary views are its own. Settings that Spark can only take when a JVM
    starts (`spark.master`, jars, a Hive catalog) stay those of the given session.
    """

    is_shared = True

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def check(self) -> None:
        """Raise an error if the session is stopped, remote, or has no Delta Lake.

        Raises:
            SparkUnavailable: With the settings that it lacks.
        """
        check_given_session(self.session)

    def master(self, settings: SessionSettings) -> str:
        """Return the master of the given session."""
        return str(self.session.sparkContext.master)

    def start(self, settings: SessionSettings) -> SparkSession:
        """Return a new session with those settings that Spark can change while it runs."""
        self.check()
        derived = self.derive(self.session, settings)
        for key, value in settings.conf.items():
            present = derived.conf.get(key, None)
            if present != value:
                log.warning(
                    "%s=%s of the project has no effect: the Spark session was already running, with %s",
                    key,
                    value,
                    "its default" if present is None else present,
                )
        return derived


def _set_if_possible(session: SparkSession, key: str, value: str) -> None:
    from pyspark.errors import AnalysisException

    try:
        session.conf.set(key, value)
    except AnalysisException:  # a setting of the JVM or the context
        return


def _idle_jvm() -> JVMView | None:
    """Return the JVM of this process if it runs without a Spark context."""
    pyspark = sys.modules.get("pyspark")
    gateway = None if pyspark is None else pyspark.SparkContext._gateway
    return None if gateway is None or active_context() is not None else gateway.jvm


def _running_session() -> SparkSession:
    """Return the session that is running in this process; it exists if a context does."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


class NoSession(Sessions):
    """Refuses to start Spark with a given error; work that needs no session may run."""

    def __init__(self, error: LakewrightError) -> None:
        self.error = error

    def start(self, settings: SessionSettings) -> NoReturn:
        """Raise the error."""
        raise self.error


def check_given_session(session: SparkSession) -> None:
    """Raise an error if a session is stopped, too old, or has no Delta Lake; it isn't changed.

    Its settings alone prove nothing: Spark ignores an extension whose jar is missing, and one that is set
    after the start.

    Raises:
        SparkUnavailable: With the settings that it lacks, or with the release of Spark that it is of.
    """
    java: Any = getattr(session, "_jsparkSession", None)
    if java is None:
        raise SparkUnavailable(
            f"the given session is of type {type(session).__name__}, not SparkSession",
            remedy="Give a SparkSession, or none: Lakewright then starts one.",
        )
    context: Any = session.sparkContext
    release = check_running(session, is_stopped=context._jsc is None or context._jsc.sc().isStopped())
    lacks = [] if _has_extension(java) else [f"{EXTENSIONS_KEY}={DELTA_EXTENSION}"]
    catalog = session.conf.get(CATALOG_KEY, None)
    if catalog is not None and not catalog.startswith(_CATALOGS):
        lacks.append(f"{CATALOG_KEY}={DELTA_CATALOG} (it is {catalog})")
    if lacks:
        raise SparkUnavailable(
            f"the Spark session that runs in this process has no Delta Lake: it lacks {' and '.join(lacks)}",
            remedy=_remedy(release),
            details={"lacks": lacks},
        )


def check_running(session: SparkSession, *, is_stopped: bool) -> Release:
    """Return the release of a given session.

    Raises:
        SparkUnavailable: It is stopped, or of a release that is not supported.
    """
    if is_stopped:
        raise SparkUnavailable(
            "the given Spark session has been stopped",
            remedy="Start a new one, and load the project with it.",
        )
    return check_release(session.version)


def check_jvm(jvm: Any) -> None:
    """Raise an error if a JVM whose session has been stopped can't load Delta's classes.

    A process has one JVM; a jar that it was started without can't be added to Spark's driver any more.

    Raises:
        SparkUnavailable: With the settings that the JVM lacks.
    """
    from py4j.protocol import Py4JJavaError

    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(DELTA_EXTENSION)
    except Py4JJavaError:
        raise SparkUnavailable(
            "the JVM of this process was started without Delta Lake, by a session that has been stopped",
            remedy=_remedy(installed_release()),
        ) from None


def _has_extension(java: Any) -> bool:
    from pyspark.errors import ParseException

    try:
        java.newSession().sessionState().sqlParser().parsePlan(_STATEMENT_OF_DELTA)
    except ParseException:
        return False
    return True


def _remedy(release: Release) -> str:
    settings = {
        "spark.jars.packages": delta_jars(release)[0].coordinates,
        EXTENSIONS_KEY: DELTA_EXTENSION,
        CATALOG_KEY: DELTA_CATALOG,
    }
    calls = "".join(f'.config("{key}", "{value}")' for key, value in settings.items())
    return (
        f"Start Python (the notebook's kernel) anew, and build the session with {calls}; or build none: "
        "Lakewright then starts its own."
    )
