"""Hadoop's file systems, which Spark and Delta read and write by the scheme of a location."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.errors import NotInstalled
from lakewright.spark.jvm import full_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["file_system", "missing_file_system"]

_MISSING_CLASS = re.compile(r"Class (\S+FileSystem) not found|No FileSystem for scheme \"?([\w.+-]+)")

_ARTIFACTS = {"abfs": "hadoop-azure", "abfss": "hadoop-azure", "wasbs": "hadoop-azure"}
"""Artifacts of Hadoop with the file system of a scheme."""


def file_system(spark: SparkSession, location: str) -> tuple[Any, Any]:
    """Return Hadoop's file system of a location, and the location as its path.

    Raises:
        NotInstalled: Spark has no jar with the file system.
    """
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm
    place = jvm.org.apache.hadoop.fs.Path(location)
    try:
        return place.getFileSystem(spark._jsc.hadoopConfiguration()), place
    except Py4JJavaError as error:
        raise missing_file_system(error, location) or error from error


def missing_file_system(error: BaseException, location: str = "") -> NotInstalled | None:
    """Return the error for a file system whose jar is missing, or None if `error` is another one."""
    found = _MISSING_CLASS.search(full_text(error))
    if found is None:
        return None
    scheme = location.partition("://")[0] or found[2] or _scheme_of(found[1])
    why = f"its class {found[1]} is missing" if found[1] else "no jar has one for this scheme"
    return NotInstalled(f"Spark cannot read or write {scheme}:// locations: {why}", remedy=_remedy(scheme))


def _scheme_of(name: str) -> str:
    """Return the scheme of a file system's class: Hadoop's packages have their names."""
    parts = name.split(".")
    return {"azurebfs": "abfss"}.get(parts[-2], parts[-2]) if len(parts) > 1 else name


def _remedy(scheme: str) -> str:
    if scheme in ("s3", "s3a"):
        return "Declare the store: `storage: {s3: {}}`, with an endpoint_url if it isn't Amazon's."
    artifact = _ARTIFACTS.get(scheme)
    if artifact is None:
        return "Add the jar of its file system to the project's config: spark.jars.packages or spark.jars."
    package = f"org.apache.hadoop:{artifact}:{_hadoop_version()}"
    return f"Add its jar to the project's config: - spark.jars.packages={package}"


def _hadoop_version() -> str:
    """Return the version of Hadoop that PySpark contains: jars of another one don't fit."""
    spec = find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec is not None and spec.origin else Path()
    names = (jar.name for jar in folder.glob("hadoop-client-api-*.jar"))
    return next((name.removeprefix("hadoop-client-api-").removesuffix(".jar") for name in names), "VERSION")
