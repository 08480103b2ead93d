"""A Spark session is built: Java, jars and settings are found, and a JVM is started unless one runs."""

from __future__ import annotations

import atexit
import fcntl
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.errors import LeaseHeld, NotInstalled, SparkUnavailable
from lakewright.spark.cluster import check_master, is_cluster
from lakewright.spark.conf import (
    SessionSettings,
    embedded_metastore,
    executor_python,
    local_cores,
    master_of,
    session_conf,
)
from lakewright.spark.jars import fetch_jars, fetch_store_jars
from lakewright.spark.java import archive_options, find_java, java_home_for_spark
from lakewright.spark.jvm import is_jvm_failure
from lakewright.spark.launch import environment_set, has_jvm, interrupts_kept
from lakewright.spark.loggers import filter_query_logs
from lakewright.spark.releases import Jar, delta_jars, installed_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


log = logging.getLogger(__name__)

_LOCKED = "dbex.lck"
"""The file of an embedded metastore, a Derby database, that Derby locks while it has the database open.

Only one process can; Derby's own error is buried under those of Hive and Spark.
"""


def build_session(settings: SessionSettings, *, is_resident: bool = False) -> SparkSession:
    """Return the process's session with these settings, which starts a JVM unless one runs already.

    If a session exists already, only settings that Spark can change at run time take effect. The JVM of a
    resident session has both compilers, and ends when it is out of memory.

    Raises:
        NotInstalled: PySpark, a Java or Delta's jars are missing and can't be fetched.
        LeaseHeld: Another process has the catalog's metastore open.
        SparkUnavailable: Spark is of a release that is not supported, or refuses the settings.
    """
    release = installed_release()
    metastore = embedded_metastore(settings.conf, settings.state_folder)
    if metastore is not None and not has_jvm():
        check_metastore_is_free(metastore)
    if not has_jvm():
        check_master(master_of(settings), settings.patience, os.environ)
    java = find_java(os.environ)
    environ = {
        "JAVA_HOME": str(java_home_for_spark(java, os.environ)),
        "PYSPARK_PYTHON": executor_python(settings, os.environ),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if local_cores(master_of(settings)) is not None:
        # Otherwise Spark resolves this machine's name, and listens on the network.
        environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    further = fetch_store_jars(os.environ, release, settings.stores)
    if further:
        # At the end of the class path: before Spark's jars, they would keep Java from using the archive.
        given = os.environ.get("SPARK_DIST_CLASSPATH", "")
        environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(filter(None, [given, *map(str, further)]))
    conf = session_conf(
        settings,
        jars=fetch_jars(os.environ, delta_jars(release)),
        further_jars=further,
        drivers=_drivers(settings.drivers),
        jvm_options=(*archive_options(java, os.environ), f"-Djava.io.tmpdir={scratch_folder()}"),
        is_resident=is_resident,
    )
    settings.state_folder.mkdir(parents=True, exist_ok=True)
    with environment_set(environ), interrupts_kept():
        return _session(conf)


def check_metastore_is_free(folder: Path) -> None:
    """Raise `LeaseHeld` if another process has a metastore open.

    Raises:
        LeaseHeld: Another process has it open.
    """
    try:
        with (folder / _LOCKED).open("rb") as file:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return
    except BlockingIOError:
        raise LeaseHeld(
            f"another process has the catalog in {folder} open, and only one process can at a time",
            remedy="Run again when that process has ended. To run several at once, keep the catalog on "
            "a server (config: spark.hadoop.hive.metastore.uris=thrift://…), or use tables by location.",
            details={"key": str(folder)},
        ) from None


def _drivers(jars: Sequence[Jar]) -> list[Path]:
    try:
        return fetch_jars(os.environ, jars)
    except NotInstalled as error:
        # Work that needs the driver will fail and say so; other work doesn't need it.
        log.warning("a JDBC driver is missing: %s %s", error, error.remedy)
        return []


def _session(conf: Mapping[str, str]) -> SparkSession:
    try:
        from pyspark.sql import SparkSession

        filter_query_logs()
        builder = SparkSession.builder
        for key, value in conf.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except ImportError as missing:
        raise NotInstalled.of(missing, "Spark", "spark") from missing
    except Exception as error:
        if is_jvm_failure(error):
            raise
        message = str(_java_message(error) or error).strip().partition("\n")[0] or type(error).__name__
        master = conf.get("spark.master", "")
        if "stopped SparkContext" in message and is_cluster(master):
            raise SparkUnavailable(
                f"the cluster {master} ended the application while Spark started: its executors fail at once",
                remedy="Look into the logs of the workers for the cause; nothing was claimed.",
            ) from error
        raise SparkUnavailable(f"Spark can't be started: {message}") from error


def _java_message(error: Exception) -> str | None:
    java = getattr(error, "java_exception", None)
    return None if java is None else java.getMessage() or java.toString()


PREFIX = "lakewright-run-"
_NAME = re.compile(rf"{PREFIX}(?P<process>\d+)-.*")
OLD = 24 * 3600
"""Seconds after which the folder of a process that doesn't run is removed. Another container may share the
temporary folder of this machine, but not its numbers of processes."""


@cache
def scratch_folder() -> Path:
    """Return the folder, which is made on first use and removed when the process ends."""
    remove_leftovers(Path(tempfile.gettempdir()), time.time())
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def remove_leftovers(place: Path, now: float) -> None:
    """Remove the scratch folders of processes that ended without removing them."""
    for folder in _leftovers(place, now):
        shutil.rmtree(folder, ignore_errors=True)


def _leftovers(place: Path, now: float) -> Iterator[Path]:
    import psutil

    for folder in place.glob(f"{PREFIX}*"):
        found = _NAME.fullmatch(folder.name)
        try:
            is_old = folder.is_dir() and now - folder.stat().st_mtime > OLD
        except OSError:
            continue
        if found and is_old and not psutil.pid_exists(int(found["process"])):
            yield folder
