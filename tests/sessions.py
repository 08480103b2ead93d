"""Where the lakes of tests get their Spark session from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.spark.conf import LATE_COMPILER, SessionSettings
from lakewright.spark.connect import session_like
from lakewright.spark.engine import is_of_connect
from lakewright.spark.session import Sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LATER_FIRST_COMPILER = [
    "-XX:Tier3InvocationThreshold=1000",
    "-XX:Tier3MinInvocationThreshold=500",
    "-XX:Tier3CompileThreshold=10000",
]
"""Java's first compiler for what runs five times as often as its defaults ask.

Of the same 23 tests with 54 slices, from a new JVM on, the first 11 took 78 s of processor time instead of 98
s, and the other 12 took 48 s instead of 45 s, in one run each beside other work.
"""

BOTH_COMPILERS = {
    "spark.driver.extraJavaOptions": " ".join(
        ["-XX:TieredStopAtLevel=4", "-XX:+UseParallelGC", *LATE_COMPILER, *LATER_FIRST_COMPILER]
    )
}
"""Java's second compiler for what runs often, as in a server's JVM: a worker's JVM lives as long.

Of 60 tests of strategies, the first 194 s of processor time did 26 without it and 21 with it; all took 283
and 286 s, side by side. A worker runs hundreds of them, so what comes later counts.
"""


@dataclass
class Started(Sessions):
    """Calls a function to start a session; stopping it calls the session's own `stop` if asked to."""

    begin: Callable[[SessionSettings], SparkSession]
    is_shared: bool = False
    stops: bool = False

    def start(self, settings: SessionSettings) -> SparkSession:
        return self.begin(settings)

    def derive(self, session: SparkSession, settings: SessionSettings) -> SparkSession:
        del settings
        return session_like(session) if is_of_connect(session) else session.newSession()

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
