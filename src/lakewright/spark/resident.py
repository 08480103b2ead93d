"""The resident JVM of a server: sessions that several processes attach to, one after the other and at once.

Each process gets a gateway of its own, so that its objects are released when it ends, whether or not it had
time to say so. Threads that serve a gateway inherit the session, the tag and the scheduler pool of the thread
that opened it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.spark.attached_jvm import Wanted, jvm_variables
from lakewright.spark.conf import master_of
from lakewright.spark.metastore import CATALOG
from lakewright.spark.session_builder import build_session

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
            if key in theirs.conf and self._can_change(key):
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

    def _can_change(self, key: str) -> bool:
        return bool(self._spark.conf.isModifiable(key))

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

    def close(self, place: Place, *, is_reusable: bool = True) -> None:
        """End what a process has: its jobs, its gateway with its objects, its views and cached tables."""
        try:
            self._context.cancelJobsWithTag(place.tag)
            place.server.shutdown()
            if not self._is_hive:
                self._clean(place.base, is_reusable=is_reusable)
        finally:
            self._numbers.discard(place.number)

    def _clean(self, base: Any, *, is_reusable: bool) -> None:
        shared = base.sharedState()
        shared.cacheManager().clearCache()
        shared.globalTempViewManager().clear()
        catalog = shared.externalCatalog()
        is_empty = catalog.listDatabases().size() == 1 and catalog.listTables("default").size() == 0
        if is_empty and is_reusable and catalog.listFunctions("default", "*").size() == 0:
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
