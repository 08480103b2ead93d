"""The archive of the JVM's loaded classes, with which sessions start in 3 s instead of 7.5 s.

Much of a short run is spent on reading, verifying and linking ten thousand classes. A JVM can write them at
exit to a file that later JVMs map into memory (class data sharing, JEP 350). The file is valid for one Java
and one set of jars at their paths, so it is stored in the Python environment that has PySpark, and is removed
with it. Without a matching archive, sessions start normally. `warmup.py` creates it.

Measured: docs/decisions/006-archive-of-classes.md.
"""

from __future__ import annotations

import hashlib
import sys
from importlib.util import find_spec
from pathlib import Path

from lakewright.spark.java import Java
from lakewright.spark.releases import delta_jars, installed_release, installed_version

# Otherwise the JVM warns of each class that it can't store, and of an archive that doesn't match.
QUIET = "-Xlog:disable"


def archive_path(java: Java) -> Path:
    """Return the path of the archive for this Java and this environment's jars; it need not exist."""
    try:
        release = (java.home / "release").read_text()
    except OSError:
        release = ""
    spark = find_spec("pyspark")
    parts = [
        str(java.executable),
        release,
        str(spark and spark.origin),
        installed_version(),
        *(jar.sha256 for jar in delta_jars(installed_release())),
    ]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Path(sys.prefix) / "share" / "lakewright" / f"classes-{key}.jsa"


def archive_options(java: Java) -> tuple[str, ...]:
    """Return the JVM options that use the archive; none if it doesn't exist."""
    archive = archive_path(java)
    return (f"-XX:SharedArchiveFile={archive}", QUIET) if archive.is_file() else ()
