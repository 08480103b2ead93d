"""What is asked of Spark beyond its DataFrames: of its JVM in this process, or of a server of Spark Connect.

Outside this package nothing touches PySpark's handles of the JVM, and nothing asks which of both it is, but
whether there is a JVM to ask (docs/decisions/029-spark-connect.md).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import date
from datetime import time as clock_time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession


PATIENCE = 2.0
"""Seconds that a measurement may arrive after the rows were computed: Spark sends it by its listeners."""

_INVALID = "CONNECT_INVALID_PLAN"
"""The condition of what a server refuses before Spark analyses it, such as a name that the rows lack."""

_creating = threading.RLock()
"""Held while a session is the active one: PySpark's is one for all threads."""


_NO_PACKAGES = ("long", "package")
"""Names in small letters that are no packages: a type of Java, and an object of Scala."""


class Packages:
    """A package of the JVM, or the root of all; a class is asked for by its whole name.

    Py4J asks the JVM at each dot whether this is a class, and for what is none the JVM searches all jars.
    """

    def __init__(self, view: Any, name: str = "") -> None:
        self._view = view
        self._name = name

    def __getattr__(self, name: str) -> Any:
        whole = f"{self._name}.{name}" if self._name else name
        is_package = name[:1].islower() and name not in _NO_PACKAGES
        return Packages(self._view, whole) if is_package else getattr(self._view, whole)


class Jvm:
    """The JVM of this process, with the objects that it has for a session.

    Attributes:
        session: Spark's own session.
        packages: The root of the JVM's packages, as in `packages.org.apache.hadoop.fs.Path`.
    """

    def __init__(self, session: Any) -> None:
        self.session = session._jsparkSession
        self.packages = Packages(session._jvm)
        self._context = session._jsc
        self._made = session

    @property
    def hadoop(self) -> Any:
        """The settings of Hadoop's file systems."""
        return self._context.hadoopConfiguration()

    @property
    def executors(self) -> int:
        """The number of executors; the driver is in Spark's list too."""
        return int(self.context.getExecutorMemoryStatus().size()) - 1

    @property
    def context(self) -> Any:
        """Spark's own context."""
        return self._context.sc()

    def array(self, kind: Any, length: int) -> Any:
        """Return an array of Java."""
        return self._made._sc._gateway.new_array(kind, length)

    @contextmanager
    def kept_active(self) -> Iterator[Any]:
        """Set this thread's active session in the JVM back after the `with` block; gives Spark's sessions."""
        sessions = self.packages.org.apache.spark.sql.classic.SparkSession
        of_thread = sessions.getActiveSession()
        try:
            yield sessions
        finally:
            if of_thread.isDefined():
                sessions.setActiveSession(of_thread.get())
            else:
                sessions.clearActiveSession()

    def plan(self, frame: Any) -> Any:
        """Return the analyzed plan of a frame."""
        return frame._jdf.queryExecution().analyzed()

    def moved(self, frame: DataFrame, session: SparkSession) -> DataFrame:
        """Return a frame of another session of the same application as one of this session."""
        from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

        datasets = self.packages.org.apache.spark.sql.classic.Dataset
        return ClassicFrame(datasets.ofRows(self.session, self.plan(frame)), session)


class Engine(Protocol):
    """How a session works."""

    def analyzed(self, frame: DataFrame) -> None:
        """Raise what Spark's analysis finds in a query."""

    def materialized(self, frame: DataFrame) -> DataFrame:
        """Return the rows, computed once and kept by the executors; what was observed of them has arrived."""

    def active(self, session: SparkSession) -> AbstractContextManager[None]:
        """Make a session the active one in the `with` block."""

    def kept_active(self, session: SparkSession) -> AbstractContextManager[None]:
        """Set the active session back after the `with` block."""


class _Classic:
    """Spark in the JVM of this process."""

    def analyzed(self, frame: DataFrame) -> None:
        """Do nothing: the frame was analysed when it was made."""

    def materialized(self, frame: DataFrame) -> DataFrame:
        return frame.localCheckpoint()

    @contextmanager
    def active(self, session: SparkSession) -> Iterator[None]:
        from pyspark.sql import SparkSession as Sessions

        jvm = Jvm(session)
        with self.kept_active(session):
            Sessions._activeSession = session
            jvm.packages.org.apache.spark.sql.classic.SparkSession.setActiveSession(jvm.session)
            yield

    @contextmanager
    def kept_active(self, session: SparkSession) -> Iterator[None]:
        from pyspark.sql import SparkSession as Sessions

        with _creating, Jvm(session).kept_active():
            before = Sessions._activeSession
            try:
                yield
            finally:
                Sessions._activeSession = before


class _Connect:
    """A server of Spark Connect."""

    def analyzed(self, frame: DataFrame) -> None:
        """Ask the server, which analyses a query at its first use."""
        from pyspark.errors import AnalysisException, PySparkException

        try:
            _ = frame.isStreaming  # it asks the server; the schema may be known from the frame before
        except PySparkException as error:
            if str(error.getCondition()).startswith(_INVALID):
                raise AnalysisException(str(error)) from error
            raise

    def materialized(self, frame: DataFrame) -> DataFrame:
        # A server sends what it observed with the rows of a query, not with a checkpoint.
        kept = frame.persist()
        try:
            kept.count()
            with self.active(frame.sparkSession):
                return kept.localCheckpoint()
        finally:
            kept.unpersist()

    @contextmanager
    def active(self, session: SparkSession) -> Iterator[None]:
        """Make a session the active one of this thread.

        PySpark gives what a checkpoint returns to the active session, not to that of its rows.
        """
        made: Any = session
        active = type(made)._active_session
        before = getattr(active, "session", None)
        active.session = session
        try:
            yield
        finally:
            active.session = before

    def kept_active(self, session: SparkSession) -> AbstractContextManager[None]:
        """Do nothing: no call makes a session the active one."""
        return nullcontext()


_CLASSIC, _CONNECT = _Classic(), _Connect()


def is_of_connect(made: object) -> bool:
    """Return whether a session or a frame is one of Spark Connect."""
    return type(made).__module__.startswith("pyspark.sql.connect.")


def engine_of(made: SparkSession | DataFrame) -> Engine:
    """Return how the session of a frame, or a session, works."""
    return _CONNECT if is_of_connect(made) else _CLASSIC


def jvm_of(made: Any) -> Jvm | None:
    """Return the JVM of the session of a frame, or of a session; None with Spark Connect."""
    return None if is_of_connect(made) else Jvm(getattr(made, "sparkSession", made))


def analyzed(frame: DataFrame) -> DataFrame:
    """Return the frame after its analysis, which Spark Connect otherwise leaves to its first use.

    Raises:
        AnalysisException: Spark rejects the query.
    """
    engine_of(frame).analyzed(frame)
    return frame


def materialized(frame: DataFrame) -> DataFrame:
    """Return the rows, computed once and kept by the executors; what was observed of them has arrived."""
    return engine_of(frame).materialized(frame)


def _observed_values(observation: Observation) -> Mapping[str, Any] | None:
    """Return what was observed of rows, or None if they haven't been computed."""
    classic: Any = getattr(observation, "_jo", None)
    if classic is not None:
        future = classic.future()
        deadline = time.monotonic() + PATIENCE
        while not future.isCompleted():
            if time.monotonic() > deadline:
                return None
            time.sleep(0.01)
    return observation.get


def counted(frame: DataFrame) -> tuple[DataFrame, Callable[[], int]]:
    """Return the rows, and what returns their number when they have been computed."""
    from pyspark.sql import Observation, functions

    observed = Observation()
    rows = frame.observe(observed, functions.count(functions.lit(1)).alias("rows"))
    return rows, lambda: int(observed.get["rows"])


def measured(observation: Observation) -> dict[str, Any] | None:
    """Return the values that were measured, or None if the rows haven't been computed."""
    found = _observed_values(observation)
    return None if found is None else {name: _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    """Return a value of Spark as JSON has it, but for NaN: times as ISO 8601, bytes in hexadecimal digits."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | float | str) else _plain_scalar(value)


def _plain_scalar(value: Any) -> float | str:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    return value.isoformat() if isinstance(value, date | clock_time) else str(value)
