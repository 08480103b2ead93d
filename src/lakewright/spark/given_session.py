"""Checks of a Spark session that another program started: whether it runs, and whether it has Delta Lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakewright.errors import SparkUnavailable
from lakewright.spark.releases import Release, check_release, installed_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


EXTENSIONS_KEY = "spark.sql.extensions"
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG_KEY = "spark.sql.catalog.spark_catalog"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

_STATEMENT_OF_DELTA = "VACUUM delta.`/x` DRY RUN"
"""A statement that only Delta's parser accepts; it is parsed, not run."""

_CATALOGS = (DELTA_CATALOG, "io.unitycatalog.", "com.databricks.")
"""Beginnings of the classes of catalogs that have Delta tables: Delta's own, and those that wrap it."""


def check_given_session(session: SparkSession) -> None:
    """Raise an error if a session is stopped, too old, or has no Delta Lake; it isn't changed.

    Its settings alone prove nothing: Spark ignores an extension whose jar is missing, and one that is set
    after the start.

    Raises:
        SparkUnavailable: With the settings that it lacks, or with the release of Spark that it is of.
    """
    java: Any = getattr(session, "_jsparkSession", None)
    if java is None:
        raise SparkUnavailable(
            f"the given session is of type {type(session).__name__}, not SparkSession",
            remedy="Give a SparkSession, or none: Lakewright then starts one.",
        )
    if session.sparkContext._jsc is None or session.sparkContext._jsc.sc().isStopped():
        raise SparkUnavailable(
            "the given Spark session has been stopped",
            remedy="Start a new one, and load the project with it.",
        )
    release = check_release(session.version)
    lacks = [] if _has_extension(java) else [f"{EXTENSIONS_KEY}={DELTA_EXTENSION}"]
    catalog = session.conf.get(CATALOG_KEY, None)
    if catalog is not None and not catalog.startswith(_CATALOGS):
        lacks.append(f"{CATALOG_KEY}={DELTA_CATALOG} (it is {catalog})")
    if lacks:
        raise SparkUnavailable(
            f"the Spark session that runs in this process has no Delta Lake: it lacks {' and '.join(lacks)}",
            remedy=_remedy(release),
            details={"lacks": lacks},
        )


def check_jvm(jvm: Any) -> None:
    """Raise an error if a JVM whose session has been stopped can't load Delta's classes.

    A process has one JVM; a jar that it was started without can't be added to Spark's driver any more.

    Raises:
        SparkUnavailable: With the settings that the JVM lacks.
    """
    from py4j.protocol import Py4JJavaError

    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(DELTA_EXTENSION)
    except Py4JJavaError:
        raise SparkUnavailable(
            "the JVM of this process was started without Delta Lake, by a session that has been stopped",
            remedy=_remedy(installed_release()),
        ) from None


def _has_extension(java: Any) -> bool:
    from pyspark.errors import ParseException

    try:
        java.newSession().sessionState().sqlParser().parsePlan(_STATEMENT_OF_DELTA)
    except ParseException:
        return False
    return True


def _remedy(release: Release) -> str:
    settings = {
        "spark.jars.packages": release.delta.coordinates,
        EXTENSIONS_KEY: DELTA_EXTENSION,
        CATALOG_KEY: DELTA_CATALOG,
    }
    calls = "".join(f'.config("{key}", "{value}")' for key, value in settings.items())
    return (
        f"Start Python (the notebook's kernel) anew, and build the session with {calls}; or build none: "
        "Lakewright then starts its own."
    )
