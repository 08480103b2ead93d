"""Where the lakes of tests get their Spark session from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.spark.conf import SessionSettings, runtime_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SharedSession", "Started", "no_session", "same"]


@dataclass
class Started:
    """Calls a function to start a session; stopping it calls the session's own `stop` if asked to."""

    begin: Callable[[SessionSettings], SparkSession]
    has_new_catalog: bool = True
    stops: bool = False

    def start(self, settings: SessionSettings) -> SparkSession:
        return self.begin(settings)

    def stop(self, session: SparkSession) -> None:
        if self.stops:
            session.stop()


def same(session: SparkSession) -> Started:
    """Return what gives a lake this very session, with its temporary views, and never stops it."""
    return Started(lambda _: session)


def _refuse(settings: SessionSettings) -> SparkSession:
    del settings
    raise AssertionError("Spark was started")


no_session = Started(_refuse)


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
        for key, value in runtime_conf(settings).items():
            if derived.conf.isModifiable(key):
                derived.conf.set(key, value)
        return derived

    def stop(self, session: SparkSession) -> None:
        """Leave the given session running; a derived one holds nothing that must be released."""
