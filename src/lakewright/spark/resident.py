"""The resident JVM of a server, and the sessions in it of other processes, which attach, work and detach.

The JVM belongs to one process and serves several, one after the other and at once. Each has a session of its
own there, and a gateway of its own, so that its objects are released when it ends, whether or not it had time
to say so. Threads that serve a gateway inherit the session, the tag and the scheduler pool of the thread that
opened it. A process that attaches may not stop Spark's context or cancel the jobs of others.
"""

from __future__ import annotations

import json
import logging
import os
import select
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.errors import NotInstalled, SparkUnavailable
from lakewright.spark.conf import CATALOG, SessionSettings, master_of
from lakewright.spark.java import find_java
from lakewright.spark.releases import Jar
from lakewright.spark.session import OwnSession, Sessions
from lakewright.spark.session_builder import build_session

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


log = logging.getLogger(__name__)

ATTEMPTS = 5
"""How often a session is asked for while JVMs are being replaced."""

_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "HADOOP_", "HIVE_", "JAVA_", "JDK_", "KRB5", "PYSPARK_", "SPARK_")
_OTHERS = ("LD_LIBRARY_PATH", "LD_PRELOAD", "TZ", "_JAVA_OPTIONS")
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")


def jvm_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what of the environment matters to a JVM: variables that Java, Spark and its drivers read.

    Of the locale, only whether names of files are UTF-8 counts.

    Example:
        >>> jvm_variables({"AWS_REGION": "eu-west-1", "PATH": "/bin", "LANG": "nl_NL.UTF-8"})
        {'AWS_REGION': 'eu-west-1', 'utf-8': 'True'}
    """
    locale = next((environ[name] for name in _LOCALE if environ.get(name)), "")
    is_utf8 = locale.lower().replace("-", "").endswith("utf8")
    found = {name: value for name, value in environ.items() if name.startswith(_PREFIXES) or name in _OTHERS}
    return {**found, "utf-8": str(is_utf8)}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The session that a process wants: its settings, and what of its environment a JVM reads.

    Attributes:
        java: The folder of the Java that it would start.
    """

    settings: SessionSettings
    environ: Mapping[str, str]
    java: str

    @classmethod
    def here(cls, settings: SessionSettings) -> Wanted:
        """Return what this process wants."""
        try:
            java = str(find_java(os.environ).home)
        except NotInstalled:  # the attempt to start one says so
            java = ""
        # A resident JVM has both compilers whatever is pending: two processes that differ in it share one.
        return cls(replace(settings, pending_bytes=0), dict(os.environ), java)

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        settings = asdict(self.settings) | {"state_folder": str(self.settings.state_folder)}
        return {"settings": settings, "environ": dict(self.environ), "java": self.java}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Wanted:
        """Return what `as_json` gave."""
        raw = dict(document["settings"])
        raw["state_folder"] = Path(raw["state_folder"])
        raw["drivers"] = tuple(Jar(**each) for each in raw["drivers"])
        raw["stores"] = tuple(raw["stores"])
        return cls(SessionSettings(**raw), document["environ"], document["java"])


_SECONDS_TO_REPORT = 10
"""Seconds in which the host of a JVM reports that it has ended, on a machine with much to do."""


class _RemoteProcess:
    """The JVM of another process, with the part of `Popen` that returns whether it has ended."""

    def __init__(self, link: socket.socket, pid: int) -> None:
        self._link = link
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return its exit code if it has ended, as its host reports."""
        return self._exit_code(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code; a caller that waits at all waits long enough for a busy host to report it.

        Raises:
            TimeoutExpired: It still runs.
        """
        code = self._exit_code(max(timeout, _SECONDS_TO_REPORT) if timeout else timeout)
        if code is None:
            raise subprocess.TimeoutExpired("java", timeout or 0)
        return code

    def _exit_code(self, timeout: float | None) -> int | None:
        if self._code is None and select.select([self._link], [], [], timeout)[0]:
            answer = _read(self._link)
            self._code = -9 if answer is None else int(answer["code"])
        return self._code


class AttachedSession(Sessions):
    """Takes sessions from a resident JVM; if it can't have one there, starts a JVM of this process.

    Attributes:
        folder: The working folder of the JVM.
    """

    def __init__(self, connect: Callable[[], socket.socket | None], folder: Path) -> None:
        """Make it; `connect` returns a connection to the process that has the JVM, or None."""
        self._connect = connect
        self.folder = folder
        self._own = OwnSession()
        self._attached: _Attached | None = None
        self._asked: socket.socket | None = None
        self._is_abandoned = False

    def master(self, settings: SessionSettings) -> str:
        """Return the master of the session that runs in this process, or of the one that `start` returns."""
        return self._own.master(settings)

    def start(self, settings: SessionSettings) -> SparkSession:
        """Return a session with these settings."""
        if self._attached is not None:
            self._attached.users += 1
            return self.derive(self._attached.session, settings)
        self._is_abandoned = False
        self._attached = self._attach(settings)
        return self._own.start(settings) if self._attached is None else self._attached.session

    def abandon(self) -> None:
        """End the JVM of this process that `start` is launching, or stop waiting for the resident one.

        The resident JVM is not this process's, and goes on to start.
        """
        self._is_abandoned = True
        if self._asked is not None:
            with suppress(OSError):  # the other side has closed it
                self._asked.shutdown(socket.SHUT_RDWR)
        self._own.abandon()

    def stop(self, session: SparkSession) -> None:
        """Detach from the JVM when the last one stops; a JVM of this process is stopped."""
        attached = self._attached
        if attached is None or session.sparkContext is not attached.context:
            self._own.stop(session)
            return
        attached.users -= 1
        if attached.users == 0:
            self._attached = None
            attached.detach()

    def _attach(self, settings: SessionSettings) -> _Attached | None:
        why = "the server has no process for Spark"
        for _ in range(ATTEMPTS):
            link = self._connect()
            if link is None:
                break
            self._asked = link
            try:
                link.sendall(json.dumps(Wanted.here(settings).as_json()).encode() + b"\n")
                answer = _read(link)
            finally:
                self._asked = None
            if self._is_abandoned:
                link.close()
                raise SparkUnavailable("the start of Spark was interrupted")
            if answer is not None and answer["state"] == "ready":
                return _Attached(link, answer, settings)
            link.close()
            if answer is not None and answer["state"] == "refused":
                why = answer["why"]
                break
        log.info("Spark starts in a JVM of its own, not in the server's: %s", why)
        return None


class _Attached:
    """This process's place in a resident JVM."""

    def __init__(self, link: socket.socket, answer: Mapping[str, Any], settings: SessionSettings) -> None:
        from pyspark import SparkConf
        from pyspark.java_gateway import launch_gateway

        self.users = 1
        self._link = link
        self._tag: str = answer["tag"]
        names = {"PYSPARK_GATEWAY_PORT": str(answer["port"]), "PYSPARK_GATEWAY_SECRET": answer["secret"]}
        os.environ.update(names)
        try:
            self._gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            for name in names:
                os.environ.pop(name)
        # Whether an error comes from the end of the JVM is asked there.
        self._gateway.proc = _RemoteProcess(link, answer["pid"])
        jvm = self._gateway.jvm
        java_context = jvm.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
        conf = SparkConf(_jconf=java_context.sc().conf())
        self.context = _context(self._gateway, java_context, conf, self._tag, self.detach)
        self.session = _session(self.context, jvm)

    def detach(self) -> None:
        """Leave the JVM: its host ends what this process has there, and nothing of others."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        with suppress(OSError):
            shutil.rmtree(self.context._temp_dir or "", ignore_errors=True)
        self._gateway.shutdown_callback_server()
        self._gateway.close()
        self._link.close()
        SparkContext._active_spark_context = None
        SparkContext._gateway = SparkContext._jvm = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None


def _context(
    gateway: Any, java_context: Any, conf: Any, tag: str, detach: Callable[[], None]
) -> SparkContext:
    """Return PySpark's object for the resident context, which can neither stop it nor cancel others' jobs."""
    from pyspark import SparkContext

    class AttachedContext(SparkContext):
        def cancelAllJobs(self) -> None:  # noqa: N802 - PySpark's name
            self.cancelJobsWithTag(tag)

        def stop(self) -> None:
            detach()

    return AttachedContext(gateway=gateway, jsc=java_context, conf=conf)


def _session(context: SparkContext, jvm: Any) -> SparkSession:
    """Return PySpark's object for the session that the host made for this process."""
    from pyspark.sql import SparkSession

    class AttachedSparkSession(SparkSession):
        def stop(self) -> None:
            self.sparkContext.stop()

    # A first session would become the default of all that use the JVM.
    kept: Any = SparkSession.__new__(AttachedSparkSession)
    kept._sc = context
    SparkSession._instantiatedSession = kept
    java_session = getattr(jvm, "org.apache.spark.sql.classic.SparkSession").active()
    session = AttachedSparkSession(context, jsparkSession=java_session)
    SparkSession._instantiatedSession = SparkSession._activeSession = session
    return session


def _read(link: socket.socket) -> dict[str, Any] | None:
    """Return the next line of a connection, or None at its end."""
    try:
        # Without a buffer: what comes after the line is not taken from those who wait for it by `select`.
        with link.makefile("rb", buffering=0) as stream:
            line = stream.readline()
    except ConnectionError:
        return None
    found: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
    return found


_TAGS = "spark.job.tags"
_POOL = "spark.scheduler.pool"
_WAREHOUSE = "spark.sql.warehouse.dir"

_SECONDS_TO_END = 30


@dataclass(frozen=True, slots=True)
class Place:
    """What one process has in the JVM.

    Attributes:
        base: The session whose catalog it has; it is used again by another one.
    """

    number: int
    tag: str
    port: int
    secret: str
    server: Any
    base: Any


class ResidentJvm:
    """A JVM with a Spark context that outlives the processes which use it."""

    def __init__(self, wanted: Wanted) -> None:
        """Start the JVM.

        Raises:
            LakewrightError: Spark can't be started with these settings.
        """
        self.wanted = wanted
        self._spark = build_session(wanted.settings, is_resident=True)
        self._context = self._spark.sparkContext
        gateway: Any = self._context._gateway
        self.process = gateway.proc
        self._jvm: Any = self._context._jvm
        self._scala: Any = self._context._jsc.sc()
        self._sessions: Any = getattr(self._jvm, "org.apache.spark.sql.classic.SparkSession")
        self._is_hive = self._spark.conf.get(CATALOG) == "hive"
        self._lock = threading.Lock()
        self._numbers: set[int] = set()
        self._bases: list[Any] = []
        self._served = 0

    @property
    def in_use(self) -> int:
        """How many processes use it."""
        return len(self._numbers)

    @property
    def served(self) -> int:
        """How many processes have used it."""
        return self._served

    @property
    def pid(self) -> int:
        """The process of the JVM."""
        return int(self.process.pid)

    def heap_share(self) -> float:
        """Return the share of the heap that is in use after its last whole collection; 0 before the first."""
        beans = self._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        shares = [0.0]
        for bean in beans:
            usage = bean.getCollectionUsage() if str(bean.getName()).endswith("Old Gen") else None
            if usage is not None and usage.getMax() > 0:
                shares.append(usage.getUsed() / usage.getMax())
        return max(shares)

    def heap(self) -> tuple[int, int]:
        """Return how many bytes of the heap are used, garbage included, and how many it may use."""
        usage = self._jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
        return int(usage.getUsed()), int(usage.getMax())

    def differences(self, wanted: Wanted) -> tuple[dict[str, str], list[str]]:
        """Return the settings of a session that would make it as wanted, and what can't be made so."""
        options: dict[str, str] = {}
        fixed: list[str] = []
        ours, theirs = self.wanted.settings, wanted.settings
        for key in sorted(ours.conf.keys() | theirs.conf.keys()):
            if ours.conf.get(key) == theirs.conf.get(key):
                continue
            if key in theirs.conf and self._spark.conf.isModifiable(key):
                options[key] = theirs.conf[key]
            else:
                fixed.append(key)
        if ours.state_folder != theirs.state_folder:
            if self._is_hive or theirs.conf.get(CATALOG, "in-memory") != "in-memory":
                fixed.append("the folder of the catalog")
            options[_WAREHOUSE] = str(theirs.state_folder.absolute() / "spark-warehouse")
        fixed += [what for what, is_same in self._others(wanted).items() if not is_same]
        return options, fixed

    def _others(self, wanted: Wanted) -> dict[str, bool]:
        ours, theirs = jvm_variables(self.wanted.environ), jvm_variables(wanted.environ)
        names = [name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]
        return {
            "spark.master": master_of(self.wanted.settings) == master_of(wanted.settings),
            "the jars of JDBC drivers": set(wanted.settings.drivers) <= set(self.wanted.settings.drivers),
            "the object stores": set(wanted.settings.stores) <= set(self.wanted.settings.stores),
            "Java": self.wanted.java == wanted.java,
            f"the environment ({', '.join(names)})": not names,
        }

    def open(self, options: Mapping[str, str]) -> Place:
        """Make a place for a process: a session with these settings, and a gateway to it."""
        with self._lock:
            number = next(each for each in range(len(self._numbers) + 1) if each not in self._numbers)
            self._numbers.add(number)
            self._served += 1
        try:
            return self._open(number, self._served, options)
        except BaseException:
            self._numbers.discard(number)
            raise

    def _open(self, number: int, request: int, options: Mapping[str, str]) -> Place:
        base = self._base(options)
        session = base.newSession()
        for key, value in options.items():
            if key != _WAREHOUSE:
                session.conf().set(key, value)
        tag = f"lakewright-request-{request}"
        # The gateway's threads inherit these from the one that starts it.
        self._context.setLocalProperty(_TAGS, tag)
        self._context.setLocalProperty(_POOL, f"request-{number}")
        self._sessions.setActiveSession(session)
        try:
            server = self._jvm.org.apache.spark.api.python.Py4JServer(self._scala.conf())
            server.start()
        finally:
            self._sessions.clearActiveSession()
            for key in (_TAGS, _POOL):
                self._context._jsc.setLocalProperty(key, None)
        return Place(number, tag, int(server.getListeningPort()), str(server.secret()), server, base)

    def _base(self, options: Mapping[str, str]) -> Any:
        """Return a session whose catalog nobody else has; a Hive catalog is the same for all."""
        if self._is_hive:
            return self._spark._jsparkSession
        wanted = self._jvm.java.util.HashMap()
        if _WAREHOUSE in options:
            wanted.put(_WAREHOUSE, options[_WAREHOUSE])
        else:
            with self._lock:
                if self._bases:
                    return self._bases.pop()
        return self._sessions(self._scala, wanted)

    def close(self, place: Place) -> None:
        """End what a process has: its jobs, its gateway with its objects, its views and cached tables."""
        try:
            self._context.cancelJobsWithTag(place.tag)
            place.server.shutdown()
            if not self._is_hive:
                self._clean(place.base)
        finally:
            self._numbers.discard(place.number)

    def _clean(self, base: Any) -> None:
        shared = base.sharedState()
        shared.cacheManager().clearCache()
        shared.globalTempViewManager().clear()
        catalog = shared.externalCatalog()
        is_empty = catalog.listDatabases().size() == 1 and catalog.listTables("default").size() == 0
        if is_empty and catalog.listFunctions("default", "*").size() == 0:
            with self._lock:
                self._bases.append(base)
            return
        listener = shared.statusStore().listener()
        if listener.isDefined():
            self._scala.listenerBus().removeListener(listener.get())

    def stop(self) -> None:
        """Stop Spark, and wait until its JVM has ended: it may hold the metastore open."""
        self._spark.stop()
        self.process.stdin.close()
        self.process.wait(_SECONDS_TO_END)
