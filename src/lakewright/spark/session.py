"""Spark sessions: built for this process, derived from a session that is already running, or refused.

The master decides where a session runs: in a JVM of this process (`local[...]`, the default), on a cluster,
or, with the key `spark.remote`, on a Spark Connect server.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from lakewright.errors import LakewrightError, NotInstalled, SparkUnavailable
from lakewright.spark.class_archive import archive_options
from lakewright.spark.conf import (
    SessionSettings,
    local_cores,
    master_of,
    results_conf,
    session_conf,
)
from lakewright.spark.jars import Jar, fetch_jars
from lakewright.spark.java import find_java, java_home_for_spark
from lakewright.spark.jvm import is_jvm_failure
from lakewright.spark.metastore import check_metastore_is_free, embedded_metastore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "NoSession",
    "OwnSession",
    "Sessions",
    "build_session",
]

log = logging.getLogger(__name__)


class Sessions(Protocol):
    """Where a lake gets its Spark session from."""

    @property
    def has_new_catalog(self) -> bool:
        """Whether a session that is not started yet will begin with the catalog its settings describe."""
        ...

    def start(self, settings: SessionSettings) -> SparkSession:
        """Return a session with these settings.

        Raises:
            LakewrightError: There is no such session.
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
    """Return the process's session with these settings, which starts a JVM unless one runs already.

    If a session exists already, only settings that Spark can change at run time take effect.

    Raises:
        NotInstalled: PySpark, a Java or Delta's jars are missing and can't be fetched.
        LeaseHeld: Another process has the catalog's metastore open.
        SparkUnavailable: Spark refuses the settings.
    """
    if "spark.remote" in settings.conf:
        return _session(results_conf() | dict(settings.conf))
    metastore = embedded_metastore(settings.conf, settings.state_folder)
    if metastore is not None and not _has_jvm():
        check_metastore_is_free(metastore)
    java = find_java(os.environ)
    environ = {
        "JAVA_HOME": str(java_home_for_spark(java, os.environ)),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if local_cores(master_of(settings)) is not None:
        # Otherwise Spark resolves this machine's name, and listens on the network.
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
    """Return whether this process has a JVM, which may hold the metastore open from an earlier session."""
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.SparkContext._gateway is not None


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
    """Set environment variables for the JVM that is started in the block, and restore them afterwards."""
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
    """Restore the caller's handler of Ctrl-C, which PySpark replaces by one that cancels all jobs.

    PySpark's handler stays if Python's default was set before: an interrupted call must not leave its job
    running.
    """
    before = signal.getsignal(signal.SIGINT)
    yield
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and before is not signal.default_int_handler:
        signal.signal(signal.SIGINT, before)
