"""What tests of several folders need: the order they run in, one Spark session, a PostgreSQL server."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from hypothesis import settings
from tests.connect_server import VARIABLE
from tests.durations import Durations, load_kept, longest_first
from tests.sessions import BOTH_COMPILERS
from tests.shared_jvm import ADDRESS, SharedJvm, session_in
from tests.stores.cluster import programs, running_cluster

from lakewright.lake.s3 import LOG_STORE
from lakewright.spark.conf import SessionSettings
from lakewright.spark.connect import ConnectSessions
from lakewright.spark.jars import POSTGRES_DRIVER
from lakewright.spark.loggers import LOGGERS
from lakewright.spark.session_builder import build_session
from lakewright.strategies import tuning
from lakewright.strategies.tuning import INTERPRETED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# A slow machine is no fault: Hypothesis' own limit of 200 ms an example fails tests on one.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")
settings.register_profile("nightly", max_examples=2000, deadline=None, print_blob=True)


class _Silent(logging.Logger):
    """Takes the arguments of PySpark's logger, and logs nothing."""

    def exception(self, msg: object, *args: object, **kwargs: Any) -> None:
        """Do nothing."""


# pytest adds its handlers to loggers that do not propagate; those of PySpark would change their formatter.
logging.setLoggerClass(_Silent)
for each in LOGGERS:
    logging.getLogger(each)
logging.setLoggerClass(logging.Logger)


MEMORY_DISK = Path("/dev/shm")
"""Where folders of tests lie, if there is room: a commit of SQLite, or of a log, waits for no disk there."""

ROOM = 4 << 30
"""Bytes that must be free there, and half of what the machine has left."""


def is_roomy(disk: Path) -> bool:
    """Return whether a disk in memory has room, and lets programs of tests be run."""
    if not os.access(disk, os.W_OK):
        return False
    found = os.statvfs(disk)
    free = min(found.f_bavail * found.f_frsize, psutil.virtual_memory().available // 2)
    return free >= ROOM and not found.f_flag & os.ST_NOEXEC


def pytest_configure(config: pytest.Config) -> None:
    """Count durations, share a JVM, and choose the disk, in the process that starts the workers."""
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(Durations(), "durations")
    if config.getoption("markexpr") != "not nightly":
        return
    if is_roomy(MEMORY_DISK):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))
    if config.getoption("dist", "no") == "loadfile":
        config.add_cleanup(SharedJvm().end)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files that take longest first."""
    if VARIABLE in os.environ:
        skipped = pytest.mark.skip(reason="Spark Connect gives no JVM")
        for item in items:
            if item.get_closest_marker("jvm"):
                item.add_marker(skipped)
    order = longest_first([item.nodeid for item in items], load_kept())
    items[:] = [items[n] for n in order]


def pytest_collection_finish() -> None:
    """Leave what was collected to no further collection of garbage: it is a million objects."""
    gc.collect()
    gc.freeze()


# The tests' queries are interpreted: over a handful of rows they take a sixth less processor time, 144 s
# instead of 172 s for the strategies' cases. `make nightly` and each test that starts a JVM of its own run
# with what users have.
#
# Tried without a gain beyond 5 % of processor time: one shuffle partition with adaptive execution off (six
# slices in 10.4 s instead of 10.7 s, in turns in one JVM), fewer Hadoop properties, `local[1]`, a larger
# young generation.


LOG_STORES = {f"spark.delta.logStore.{scheme}.impl": LOG_STORE for scheme in ("s3", "s3a")}
"""Where Delta commits on S3. Spark reads it only when a JVM starts; the rest of S3 is set by each session."""

ONE_TASK_A_PROCESS = {"spark.python.worker.reuse": "false"}
"""A cancelled task ends its Python process, which by then may work for a task of another test."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of a run on this machine but for `INTERPRETED`, shared by all tests of a worker.

    The workers of `make test` share its JVM too. `make connect` gives a server of Spark Connect instead.
    """
    if server := os.environ.get(VARIABLE):
        remote = SessionSettings(tmp_path_factory.mktemp("session"), master=server, conf=INTERPRETED)
        sessions = ConnectSessions()
        connected = sessions.start(remote)
        yield connected
        sessions.stop(connected)
        return
    settings = SessionSettings(
        tmp_path_factory.mktemp("session"),
        app_name="tests",
        master="local[2]",
        drivers=(POSTGRES_DRIVER,),
        conf={
            **LOG_STORES,
            **BOTH_COMPILERS,
            **ONE_TASK_A_PROCESS,
            **({} if os.environ.get("COMPILE_QUERIES") else INTERPRETED),
        },
        stores=("s3",),
    )
    if address := os.environ.get(ADDRESS):
        with session_in(address, settings) as session:
            yield session
        return
    session = build_session(settings)
    with pytest.MonkeyPatch.context() as patch:
        if os.environ.get("COMPILE_QUERIES"):
            patch.setattr(tuning, "TINY_TABLE", -1)
        yield session
    session.stop()


@pytest.fixture(scope="session")
def plain() -> Iterator[SparkSession]:
    """A session that stands in for one of Spark, where a test is not about how rows are written."""
    from tests.plain.engine import standing_in
    from tests.plain.session import plain_session

    with standing_in():
        yield plain_session()


@pytest.fixture(params=["plain", pytest.param("spark", marks=pytest.mark.nightly)])
def either(request: pytest.FixtureRequest) -> SparkSession:
    """The stand-in by day, and the session of Spark by night."""
    session: SparkSession = request.getfixturevalue(request.param)
    return session


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server: one that is given, or one of the tests' own."""
    given = os.environ.get("LAKEWRIGHT_TEST_POSTGRES")
    if given:
        yield given
        return
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL isn't installed, and LAKEWRIGHT_TEST_POSTGRES names no server")
    with running_cluster(found) as cluster:
        yield cluster.url


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handler of SIGINT: PySpark's cancels jobs itself, a background shell ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
