"""The Spark session: settings that make small local runs quick and every run quiet and repeatable.

A session runs where its master says: in a JVM of this process (`local[...]`, the default), on a cluster, or,
with the key `spark.remote`, on a Spark Connect server. Tuning is for local sessions only; what decides
results (time zone, ANSI mode) holds in all. A `spark.*` key of the user's always wins.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from lakewright.errors import LakewrightError, NotInstalled, SparkUnavailable
from lakewright.spark.class_archive import archive_options
from lakewright.spark.jars import Jar, fetch_jars
from lakewright.spark.java import find_java, java_home_for_spark
from lakewright.spark.jvm import is_jvm_failure
from lakewright.spark.metastore import embedded_metastore, refuse_metastore_in_use

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "NoSession",
    "OwnSession",
    "SessionSettings",
    "Sessions",
    "SharedSession",
    "build_session",
    "session_conf",
    "throw_away_conf",
]

log = logging.getLogger(__name__)

GIB = 1 << 30
LOGGING = Path(__file__).with_name("log4j2.properties")
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")

# What the user lists under these comes in addition: the jar of a JDBC driver should not put Delta's out.
_BINDING = re.compile(
    r"spark\.(master|remote|connect|submit\.deployMode|sql\.catalog|sql\.catalogImplementation|"
    r"sql\.defaultCatalog|sql\.hive|sql\.warehouse\.dir|hadoop\.(hive|javax)|hive)(\.|$)"
)

LISTS = {"spark.driver.extraClassPath": os.pathsep, "spark.jars": ",", "spark.sql.extensions": ","}


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session depends on.

    Attributes:
        state_folder: Where the session keeps its warehouse and, with Hive, its metastore; made if missing.
        app_name: The name that Spark shows.
        master: Spark's master URL; the key `spark.master` of `conf` wins.
        conf: The user's `spark.*` keys.
        drivers: Jars of JDBC drivers to have besides.
    """

    state_folder: Path
    app_name: str = "lakewright"
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    drivers: tuple[Jar, ...] = ()


class Sessions(Protocol):
    """Where a lake gets its Spark session from."""

    @property
    def has_new_catalog(self) -> bool:
        """Whether a session that is not started yet will begin with the catalog its settings describe."""
        ...

    def start(self, settings: SessionSettings) -> SparkSession:
        """Return a session with these settings.

        Raises:
            LakewrightError: There is none.
        """
        ...

    def stop(self, session: SparkSession) -> None:
        """End a session that `start` returned."""
        ...


class OwnSession:
    """Builds the session of this process, and stops it with its JVM."""

    has_new_catalog = True

    def start(self, settings: SessionSettings) -> SparkSession:
        """Build the session."""
        return build_session(settings)

    def stop(self, session: SparkSession) -> None:
        """Stop the session and its JVM."""
        session.stop()


class SharedSession:
    """Derives new sessions from one that is already running, and never stops that one.

    A derived session shares the JVM, the catalog and cached tables with the given one; its settings and
    temporary views are its own. Settings that Spark can only take when a JVM starts (`spark.master`, jars,
    a Hive catalog) stay those of the given session.
    """

    has_new_catalog = False

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def start(self, settings: SessionSettings) -> SparkSession:
        """Return a new session with those settings that Spark can change while it runs."""
        derived = self.session.newSession()
        for key, value in _runtime_conf(settings).items():
            if derived.conf.isModifiable(key):
                derived.conf.set(key, value)
        return derived

    def stop(self, session: SparkSession) -> None:
        """Leave the given session running; a derived one holds nothing that must be released."""


class NoSession:
    """Refuses to start Spark with a given error."""

    has_new_catalog = True

    def __init__(self, error: LakewrightError) -> None:
        self.error = error

    def start(self, settings: SessionSettings) -> NoReturn:
        """Raise the error."""
        del settings
        raise self.error

    def stop(self, session: SparkSession) -> None:
        """Do nothing: there is no session."""


def build_session(settings: SessionSettings) -> SparkSession:
    """Return the process's session under these settings; starts a JVM unless one runs already.

    Where a session is there already, only those settings change that Spark can change in one.

    Raises:
        NotInstalled: PySpark, a Java or Delta's jars are missing and can't be had.
        LeaseHeld: Another process has the catalog's metastore open.
        SparkUnavailable: Spark refuses the settings.
    """
    if "spark.remote" in settings.conf:
        return _session(results_conf() | dict(settings.conf))
    metastore = embedded_metastore(settings.conf, settings.state_folder)
    if metastore is not None and not _has_jvm():
        refuse_metastore_in_use(metastore)
    java = find_java(os.environ)
    environ = {
        "JAVA_HOME": str(java_home_for_spark(java, os.environ)),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if local_cores(_master(settings)) is not None:
        # Else Spark looks up this machine's name, and listens to the network.
        environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    conf = session_conf(
        settings,
        jars=fetch_jars(os.environ),
        drivers=_drivers(settings.drivers),
        jvm_options=archive_options(java),
    )
    settings.state_folder.mkdir(parents=True, exist_ok=True)
    with _environment(environ), _interrupts_kept():
        return _session(conf)


def _has_jvm() -> bool:
    """Whether a JVM of this process runs, which may have the metastore open from an earlier session."""
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.SparkContext._gateway is not None


def _drivers(jars: Sequence[Jar]) -> list[Path]:
    try:
        return fetch_jars(os.environ, jars)
    except NotInstalled as error:
        # Whoever uses the database will say that its driver is missing; the rest can do without.
        log.warning("a JDBC driver is missing: %s %s", error, error.remedy)
        return []


def session_conf(
    settings: SessionSettings,
    *,
    jars: Sequence[Path],
    drivers: Sequence[Path] = (),
    jvm_options: Sequence[str] = (),
) -> dict[str, str]:
    """Return every key that a session on a JVM of its own is built with."""
    master = _master(settings)
    cores = local_cores(master)
    options = [*java_options(settings.state_folder, is_local=cores is not None), *jvm_options]
    # Jars on the class path are in the archive of classes, which holds for these alone; executors elsewhere
    # must be sent theirs.
    on_path, sent = ([], [*jars, *drivers]) if cores is None else (jars, drivers)
    ours = {
        "spark.app.name": settings.app_name,
        "spark.master": master,
        **({"spark.driver.extraClassPath": os.pathsep.join(map(str, on_path))} if on_path else {}),
        **({"spark.jars": ",".join(map(str, sent))} if sent else {}),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(settings.state_folder.absolute() / "spark-warehouse"),
        "spark.driver.defaultJavaOptions": shlex.join(options),
        "spark.ui.showConsoleProgress": "false",
        # Targets that run side by side share the session; the first should not starve the others.
        "spark.scheduler.mode": "FAIR",
        **results_conf(),
        **(local_conf(cores) if cores is not None else {}),
    }
    return _with_users(ours, settings.conf)


def results_conf() -> dict[str, str]:
    """Return the keys that decide what queries give, for sessions of every kind."""
    return {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "false"}


def _runtime_conf(settings: SessionSettings) -> dict[str, str]:
    cores = local_cores(_master(settings))
    return _with_users({**results_conf(), **(local_conf(cores) if cores is not None else {})}, settings.conf)


def throw_away_conf(config: Mapping[str, str]) -> dict[str, str]:
    """Return the keys for a session on this machine with a catalog of its own, which ends with it.

    Keys that name a master, a server, a catalog or a warehouse are left out.
    """
    return {
        key: value for key, value in config.items() if key.startswith("spark.") and not _BINDING.match(key)
    }


def local_conf(cores: int) -> dict[str, str]:
    """Return the keys that make small work on one machine quick.

    Spark's and Delta's defaults (200 partitions a shuffle, 50 a snapshot) are for clusters: with them a MERGE
    of twenty rows takes three times as long.
    """
    return {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{driver_memory_gib(machine_memory())}g",
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(2 * cores),
        "spark.sql.autoBroadcastJoinThreshold": "64m",
        # Partitions below this are joined by a hash table; sorting long keys takes more than the join.
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "64m",
        "spark.databricks.delta.snapshotPartitions": "1",
    }


def java_options(state_folder: Path, *, is_local: bool) -> list[str]:
    """Return the options of the driver's JVM; the user's `spark.driver.extraJavaOptions` come after them."""
    options = [
        f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        f"-Dderby.system.home={state_folder.absolute()}",
    ]
    if is_local:
        # The quick compiler only: a run of a minute ends before the thorough one pays. With millions of rows
        # that one would; -XX:TieredStopAtLevel=4 among the user's options brings it back.
        options += ["-Duser.timezone=UTC", "-XX:+UseParallelGC", "-XX:TieredStopAtLevel=1"]
        # That one alone is given 48 MB for its code, which wide tables or some minutes of queries fill: from
        # then on nothing more is compiled.
        options += ["-XX:ReservedCodeCacheSize=240m"]
    return options


def local_cores(master: str) -> int | None:
    """Return how many tasks a local master runs at once, or None if the master isn't local.

    Example:
        >>> local_cores("local[3, 2]"), local_cores("local"), local_cores("spark://host:7077")
        (3, 1, None)
    """
    match = re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\])?", master)
    if match is None:
        return None
    if match[1] == "*":
        return os.cpu_count() or 1
    return int(match[1] or 1)


def driver_memory_gib(machine: int) -> int:
    """Return the heap for a local session in GiB: a quarter of the machine's memory in bytes, 1 at least."""
    return max(1, machine // 4 // GIB)


def machine_memory() -> int:
    """Return the memory in bytes that this process may use: the machine's, or its container's if less."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = CGROUP_LIMIT.read_text().strip()
    except OSError:
        return physical
    return min(physical, int(limit)) if limit.isdigit() else physical


def _master(settings: SessionSettings) -> str:
    return settings.conf.get("spark.master", settings.master)


def _with_users(ours: Mapping[str, str], users: Mapping[str, str]) -> dict[str, str]:
    conf = {**ours, **users}
    for key in LISTS.keys() & ours.keys() & users.keys():
        separator = LISTS[key]
        conf[key] = separator.join(dict.fromkeys([*ours[key].split(separator), *users[key].split(separator)]))
    return conf


def _session(conf: Mapping[str, str]) -> SparkSession:
    try:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder
        for key, value in conf.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except ImportError as error:
        raise NotInstalled(
            f"PySpark, or a part of it, is not installed: {error}",
            remedy="Run `pip install 'lakewright[spark]'`; Spark Connect needs pyspark[connect]==4.2.0 too.",
        ) from error
    except Exception as error:
        if is_jvm_failure(error):
            raise
        way = "reached" if "spark.remote" in conf else "started"
        told = str(_java_message(error) or error).strip().partition("\n")[0] or type(error).__name__
        raise SparkUnavailable(f"Spark can't be {way}: {told}") from error


def _java_message(error: Exception) -> str | None:
    java = getattr(error, "java_exception", None)
    return None if java is None else java.getMessage() or java.toString()


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Have the JVM started with these variables, and this process as it was afterwards."""
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keep the caller's handler of Ctrl-C, which PySpark replaces by one that cancels all jobs.

    PySpark's stays where Python's default was: an interrupted call should not leave its job running.
    """
    before = signal.getsignal(signal.SIGINT)
    yield
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and before is not signal.default_int_handler:
        signal.signal(signal.SIGINT, before)
