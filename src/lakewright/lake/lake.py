"""The lake: where its places are, and one Spark session that starts when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from lakewright.lake.session import SessionSettings, build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.spec.lake import LakeSettings

__all__ = ["Lake"]


class Lake:
    """The lake's places, and the session that all of a run shares.

    Attributes:
        settings: What the project's `lake:` section declares.
        session: What the session is built with.
    """

    def __init__(
        self,
        settings: LakeSettings,
        session: SessionSettings,
        *,
        start: Callable[[SessionSettings], SparkSession] = build_session,
    ) -> None:
        self.settings = settings
        self.session = session
        self._start = start
        self._spark: SparkSession | None = None
        self._lock = threading.Lock()

    @property
    def is_started(self) -> bool:
        """Whether the session runs; asking doesn't start it."""
        return self._spark is not None

    @property
    def spark(self) -> SparkSession:
        """The session, started on first use.

        Raises:
            NotInstalled: PySpark, a Java or Delta's jars are missing.
        """
        with self._lock:
            if self._spark is None:
                self._spark = self._start(self.session)
            return self._spark

    def isolated(self) -> SparkSession:
        """Return a new session of the same application, with settings and temporary views of its own."""
        return self.spark.newSession()

    def stop(self) -> None:
        """End the session, if it was started; the next use starts another."""
        with self._lock:
            spark, self._spark = self._spark, None
        if spark is not None:
            spark.stop()
