"""Where the lakes of tests get their Spark session from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.spark.conf import SessionSettings, master_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Started", "no_session", "same"]


@dataclass
class Started:
    """Calls a function to start a session; stopping it calls the session's own `stop` if asked to."""

    begin: Callable[[SessionSettings], SparkSession]
    is_shared: bool = False
    stops: bool = False

    def check(self) -> None:
        """Let everything begin."""

    def master(self, settings: SessionSettings) -> str:
        return master_of(settings)

    def start(self, settings: SessionSettings) -> SparkSession:
        return self.begin(settings)

    def abandon(self) -> None:
        """Let the start go on."""

    def derive(self, session: SparkSession, settings: SessionSettings) -> SparkSession:
        del settings
        return session.newSession()

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
