"""The configuration of a Spark session: settings that make local runs quick, and results repeatable.

Settings that decide results (time zone, ANSI mode) apply to all sessions. Tuning applies to local sessions
only. A `spark.*` key of the user's always wins.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lakewright.spark.releases import Jar

GIB = 1 << 30
LOGGING = Path(__file__).with_name("log4j2.properties")
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")

# Keys that bind a session to a master, a server, a catalog or a warehouse.
_BINDING = re.compile(
    r"spark\.(master|remote|connect|submit\.deployMode|sql\.catalog|sql\.catalogImplementation|"
    r"sql\.defaultCatalog|sql\.hive|sql\.warehouse\.dir|hadoop\.(hive|javax)|hive)(\.|$)"
)

CATALOG = "spark.sql.catalogImplementation"
"""Spark's key for whether tables and views outlive the session (`hive`) or not (`in-memory`)."""

HADOOP = "spark.hadoop."
"""Prefix of the settings that Spark hands to Hadoop."""

# Lists that the user's values are appended to: the jar of a JDBC driver must not displace Delta's.
LISTS = {"spark.driver.extraClassPath": os.pathsep, "spark.jars": ",", "spark.sql.extensions": ","}


# A resident JVM has both compilers, the second one for what runs ten times as often as Java's default asks.
# Processor time, in one run each, of 24 small Merge slices from a new JVM on, and of two historic slices of
# 200,000 rows after them: 155 and 62 s with the first compiler alone, 190 and 43 s with the second one at
# Java's defaults, 153 and 48 s with it at these numbers.
LATE_COMPILER = [
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
]

RETURNING_COLLECTOR = ["-XX:+UseG1GC", "-XX:G1PeriodicGCInterval=120000"]
"""The collector of a resident JVM, which gives memory back to the system while nothing runs.

The parallel one keeps what it has ever taken, mostly for new objects: after 40 small slices a JVM with 79 MiB
of live objects held 3,017 MiB, and one with this collector 1,807. After two collections at rest it held 950.
They are two minutes apart, so that a server at rest costs next to nothing.
"""

_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
"""A collector that the user chooses. Java does not start with two of them."""

LONG_WORK = 64 * 1024 * 1024
"""A session has both compilers if the slices that are pending have this many bytes or more.

Measured for the first slice of an entity from a new JVM on (docs/benchmarks.md): with both, 62 MiB of CSV
take as long as with the first alone, and 270 MiB of Parquet three quarters of the time.
"""


MOST_HASHED = 64 << 20
"""Bytes of a partition above which rows are sorted in any heap: Spark's own size of partitions."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The settings of a session.

    Attributes:
        state_folder: Folder of the warehouse and, with Hive, of the metastore; created if missing.
        app_name: The name that Spark shows.
        master: Spark's master URL; the key `spark.master` of `conf` wins.
        conf: The user's `spark.*` keys.
        drivers: Jars of JDBC drivers to load.
        stores: The kinds of object stores that Spark reads or writes.
        patience: Seconds to wait for a cluster, and for its first executor.
        shares_folders: Whether all machines of the cluster see local folders.
        pending_bytes: Size of the slices that the session is to process, as far as it is known.
    """

    state_folder: Path
    app_name: str = "lakewright"
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    drivers: tuple[Jar, ...] = ()
    stores: tuple[str, ...] = ()
    patience: float = 120.0
    shares_folders: bool = False
    pending_bytes: int = 0


def session_conf(
    settings: SessionSettings,
    *,
    jars: Sequence[Path],
    further_jars: Sequence[Path] = (),
    drivers: Sequence[Path] = (),
    jvm_options: Sequence[str] = (),
    is_resident: bool = False,
) -> dict[str, str]:
    """Return all keys for a session that starts a JVM; a resident one serves many commands.

    Args:
        settings: The settings of the session.
        jars: Jars that come first on the class path of the JVM.
        further_jars: Jars that the environment puts at the end of it: the package's own, and those of stores.
        drivers: Jars of JDBC drivers.
        jvm_options: Further options of the JVM.
        is_resident: Whether the session serves many commands.
    """
    master = master_of(settings)
    cores = local_cores(master)
    is_local = cores is not None
    is_long = is_resident or settings.pending_bytes >= LONG_WORK
    options = [
        *java_options(settings.state_folder, is_resident=is_resident, is_long=is_long),
        *jvm_options,
    ]
    if is_local and not _COLLECTOR.search(settings.conf.get("spark.driver.extraJavaOptions", "")):
        # The parallel collector aims at throughput; the short pauses of Java's default matter to servers.
        options += RETURNING_COLLECTOR if is_resident else ["-XX:+UseParallelGC"]
    # Jars are on the class path, because the class archive only holds classes from there. The
    # executors of a cluster don't share this class path, so that Spark must send them the jars too.
    sent = drivers if is_local else [*jars, *further_jars, *drivers]
    ours = {
        "spark.app.name": settings.app_name,
        "spark.master": master,
        **({"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))} if jars else {}),
        **({"spark.jars": ",".join(map(str, sent))} if sent else {}),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(settings.state_folder.absolute() / "spark-warehouse"),
        "spark.driver.defaultJavaOptions": shlex.join(options),
        "spark.ui.showConsoleProgress": "false",
        # By default Spark keeps 100 compiled queries. A slice has more, and would compile all of them again.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Stages that differ in their number alone have the same Java: numbers vary as stages end.
        "spark.sql.codegen.useIdInClassName": "false",
        # Targets that run in parallel share the session; by Spark's default the first one's jobs go first.
        "spark.scheduler.mode": "FAIR",
        **results_conf(),
        **(cluster_conf() if cores is None else local_conf(cores, settings.conf)),
        **(local_files_conf() if is_local and further_jars else {}),
        **(resident_conf() if is_resident else {}),
    }
    return _with_users(ours, settings.conf)


def results_conf() -> dict[str, str]:
    """Return the keys that decide the results of queries, for sessions of every kind."""
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "false",
        # By default Delta refuses versions that are older than the time for which VACUUM keeps removed files,
        # also if none was removed: the newest of weekly slices could not be undone.
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    }


def runtime_conf(settings: SessionSettings, master: str, executor_cores: int = 0) -> dict[str, str]:
    """Return the keys for a session that shares the JVM of another one, which has this master.

    On a cluster, `executor_cores` decides how many partitions a shuffle has; 0 leaves Spark's default.
    Hadoop's settings (`spark.hadoop.fs.s3a.endpoint`) are read when a JVM starts. In a running one, a session
    hands its own settings to Hadoop, without the prefix.
    """
    cores = local_cores(master)
    tuned = shuffle_conf(executor_cores) if cores is None else local_conf(cores, settings.conf)
    conf = _with_users({**results_conf(), **tuned}, settings.conf)
    hadoop = {key.removeprefix(HADOOP): text for key, text in conf.items() if key.startswith(HADOOP)}
    return {**conf, **hadoop}


def temporary_session_conf(config: Mapping[str, str]) -> dict[str, str]:
    """Return the keys for a session on this machine with a temporary catalog of its own.

    Keys that name a master, a server, a catalog or a warehouse are left out.
    """
    return {
        key: value for key, value in config.items() if key.startswith("spark.") and not _BINDING.match(key)
    }


def local_conf(cores: int, users: Mapping[str, str]) -> dict[str, str]:
    """Return the keys that make small work on one machine fast.

    Spark's and Delta's defaults are for clusters. With them, a MERGE of 20 rows took 9.2 s instead of 2.5 s.

    Args:
        cores: Tasks that run at once.
        users: The user's keys; the heap is a quarter of the machine's memory unless they set it.
    """
    memory = users.get("spark.driver.memory", f"{driver_memory_gib(machine_memory())}g")
    hashed = str(_hashed_bytes(memory, cores))
    return {
        # A run of a minute needs no web page, and several runs would compete for its port.
        "spark.ui.enabled": "false",
        # Spark describes each plan even so. The long form takes 6 % of a small slice's processor time.
        "spark.sql.ui.explainMode": "simple",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Spark's default, 1 GiB, doesn't depend on the machine. Benchmarks run with this heap too.
        "spark.driver.memory": memory,
        # Spark's default is 200. With two tasks for each core, one that finishes early has more work.
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(2 * cores),
        # Spark's default is 10 MiB, for broadcasts over a network. In one JVM they cost only memory.
        # The keys, digests and places of 2,000,000 rows fit.
        "spark.sql.autoBroadcastJoinThreshold": "80m",
        # Partitions up to this are joined by a hash table: sorting long keys takes longer than the join.
        # It counts only if adaptive planning joins small partitions to none that is larger.
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": hashed,
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": hashed,
        # Delta's default is 50 tasks to read the log of any table, however small.
        "spark.databricks.delta.snapshotPartitions": "1",
    }


def local_files_conf() -> dict[str, str]:
    """Return the keys by which Hadoop starts no program for each local file that it creates or renames.

    The classes are in the package's own jar. A commit of Delta would start about twenty.
    """
    return {
        "spark.hadoop.fs.file.impl": "io.lakewright.storage.NioLocalFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "io.lakewright.storage.NioLocalFs",
    }


def _hashed_bytes(memory: str, cores: int) -> int:
    """Return the most bytes of a partition, as it is sent, that a task may hold in a hash table.

    A table that does not fit in a task's share of the heap fails the query: it can't be spilled. Rows take
    about three times as many bytes in it, and a little more than half of the heap is for such tables.

    Example:
        >>> _hashed_bytes("4g", 2) >> 20, _hashed_bytes("1g", 2) >> 20, _hashed_bytes("4096m", 16) >> 20
        (64, 32, 16)
    """
    heap = bytes_of(memory, unit="m")
    if heap is None:
        return MOST_HASHED  # Spark names what is wrong with it
    return min(MOST_HASHED, heap // cores // 16)


def embedded_metastore(conf: Mapping[str, str], state_folder: Path) -> Path | None:
    """Return the folder of a session's embedded metastore; None if it has none, or one on a server."""
    is_elsewhere = any("metastore.uris" in key or "ConnectionURL" in key for key in conf)
    is_kept = conf.get(CATALOG, "in-memory") != "in-memory"
    return state_folder / "metastore_db" if is_kept and not is_elsewhere else None


def bytes_of(size: str, *, unit: str) -> int | None:
    """Return the bytes of a size as Spark's settings have it; None if it is none.

    Args:
        size: A number, with a unit or without.
        unit: The unit of a number without one, which each setting has for itself: `b`, `k`, `m`, `g` or `t`.

    Example:
        >>> bytes_of("64m", unit="b") >> 20, bytes_of("10485760b", unit="b") >> 20, bytes_of("-1", unit="b")
        (64, 10, None)
    """
    match = re.fullmatch(r"(\d+)([kmgt]?)(b?)", size.strip().lower())
    return None if match is None else int(match[1]) << 10 * "bkmgt".index(match[2] or match[3] or unit)


def cluster_conf() -> dict[str, str]:
    """Return the keys that keep small work cheap on a cluster, and its executors in UTC like the driver."""
    return {
        "spark.sql.ui.explainMode": "simple",
        # Delta's default is 50 tasks to read the log of any table, each of which is sent to an executor.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.executor.defaultJavaOptions": "-Duser.timezone=UTC",
    }


def shuffle_conf(executor_cores: int) -> dict[str, str]:
    """Return the number of a shuffle's partitions for a cluster: two tasks for each core, as on one machine.

    With 0 cores, which may be because executors come and go with the work, Spark's default stays.
    """
    return {"spark.sql.shuffle.partitions": str(2 * executor_cores)} if executor_cores else {}


def resident_conf() -> dict[str, str]:
    """Return the keys that bound what Spark keeps of jobs that have ended, for a page that is not shown."""
    return {
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "500",
        "spark.sql.ui.retainedExecutions": "20",
    }


def java_options(state_folder: Path, *, is_resident: bool = False, is_long: bool = False) -> list[str]:
    """Return the options of the driver's JVM; the user's `spark.driver.extraJavaOptions` come after them."""
    options = [
        f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        f"-Dderby.system.home={state_folder.absolute()}",
        "-Duser.timezone=UTC",
    ]
    # Only Java's first compiler: a run of a minute ends before the second one pays off. The second makes
    # the first three slices 11, 6 and 3 s slower, and warm ones take a third of the time
    # (docs/benchmarks.md); two million rows take three quarters of the time (docs/decisions/006). A run
    # with much to do has both; users enable the second one with -XX:TieredStopAtLevel=4. The driver of a
    # cluster, which plans and commits, needs 10.4 s for its start and a small slice, and 15.6 s with both.
    options += LATE_COMPILER if is_long else ["-XX:TieredStopAtLevel=1"]
    # With the first compiler alone, Java reserves 48 MB for compiled code. Wide tables, or some minutes
    # of queries, fill them, and then nothing more is compiled. 240 MB is the default with both compilers.
    options += ["-XX:ReservedCodeCacheSize=240m"]
    if is_resident:
        # Spark survives some failures of memory in a state that nobody knows; the next JVM is clean.
        options += ["-XX:+ExitOnOutOfMemoryError"]
        # Counters for tools like jstat: sampling them wakes an idle JVM twenty times a second.
        options += ["-XX:-UsePerfData"]
    return options


def executor_python(settings: SessionSettings, environ: Mapping[str, str]) -> str:
    """Return the program that runs a project's Python functions on executors.

    It is the one that the user's `spark.pyspark.python` names, which PySpark reads in `spark-submit` alone.
    Without that, it is the one of PYSPARK_PYTHON on a cluster, else the Python of this process.
    """
    declared = settings.conf.get("spark.pyspark.python")
    if declared or local_cores(master_of(settings)) is not None:
        return declared or sys.executable
    return environ.get("PYSPARK_PYTHON") or sys.executable


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
    """Return the heap of a local session in GiB: a quarter of the machine's memory in bytes, at least 1.

    The rest is for memory that the JVM uses outside its heap, Python, and the file system's cache.
    """
    return max(1, machine // 4 // GIB)


def machine_memory() -> int:
    """Return the memory in bytes that this process may use: the machine's, or its container's if less."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = CGROUP_LIMIT.read_text().strip()
    except OSError:
        return physical
    return min(physical, int(limit)) if limit.isdigit() else physical


def master_of(settings: SessionSettings) -> str:
    """Return the URL of the session's master, or of its server of Spark Connect; the user's key wins."""
    return master_among(settings.conf, settings.master)


def master_among(conf: Mapping[str, str], declared: str) -> str:
    """Return the master, or the server, that the user's keys name; without one, the declared one."""
    return conf.get("spark.remote", conf.get("spark.master", declared))


def is_connect(master: str) -> bool:
    """Return whether a master is a server of Spark Connect.

    Example:
        >>> is_connect("sc://host:15002"), is_connect("spark://host:7077")
        (True, False)
    """
    return master.startswith("sc://")


def _with_users(ours: Mapping[str, str], users: Mapping[str, str]) -> dict[str, str]:
    conf = {**ours, **users}
    for key in LISTS.keys() & ours.keys() & users.keys():
        separator = LISTS[key]
        conf[key] = separator.join(dict.fromkeys([*ours[key].split(separator), *users[key].split(separator)]))
    return conf
