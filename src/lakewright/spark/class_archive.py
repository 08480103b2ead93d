"""An archive of the JVM's loaded classes, so that each session starts some seconds sooner.

Much of a short run goes into reading, verifying and linking ten thousand classes. A JVM can keep them at its
exit in a file that later ones map (class data sharing, JEP 350). The file holds for one Java and one set of
jars at their paths, so it stands in the Python environment that has PySpark, and goes with it. Where there is
none, or it doesn't fit, sessions start as without it. `warmup.py` makes it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import sys
from importlib.util import find_spec
from pathlib import Path

from lakewright.spark.jars import DELTA_JARS
from lakewright.spark.java import Java

__all__ = ["QUIET", "archive_options", "archive_path"]

# Else the JVM tells of each class that it can't keep, and of each archive that doesn't fit.
QUIET = "-Xlog:disable"


def archive_path(java: Java) -> Path:
    """Return where the archive for this Java and this environment's jars is, or would be."""
    try:
        release = (java.home / "release").read_text()
    except OSError:
        release = ""
    spark = find_spec("pyspark")
    version = importlib.metadata.version("pyspark") if spark else ""
    parts = [
        str(java.executable),
        release,
        str(spark and spark.origin),
        version,
        *(jar.sha256 for jar in DELTA_JARS),
    ]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Path(sys.prefix) / "share" / "lakewright" / f"classes-{key}.jsa"


def archive_options(java: Java) -> tuple[str, ...]:
    """Return the JVM options that use the archive; none where there is none."""
    archive = archive_path(java)
    return (f"-XX:SharedArchiveFile={archive}", QUIET) if archive.is_file() else ()
