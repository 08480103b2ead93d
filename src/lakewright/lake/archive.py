"""An archive of the JVM's loaded classes, so that each session starts some seconds sooner.

Much of a short run goes into reading, verifying and linking ten thousand classes. A JVM can keep them at its
exit in a file that later ones map (class data sharing, JEP 350). The file holds for one Java and one set of
jars at their paths, so it stands in the Python environment that has PySpark, and goes with it. Where it can't
be made or doesn't fit, sessions start as without it.

    python -m lakewright.lake.archive     makes the archive of this environment, unless it is there
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.errors import NotInstalled
from lakewright.lake.jars import DELTA_JARS
from lakewright.lake.java import Java, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["archive_options", "archive_path"]

# Without these the JVM tells of each class that it can't keep, and of each archive that doesn't fit.
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
DUMP_SECONDS = 300


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
    return (f"-XX:SharedArchiveFile={archive}", *QUIET) if archive.is_file() else ()


def make_archive(archive: Path) -> bool:
    """Run a JVM through the usual work and keep its classes in the archive; return whether that worked."""
    from lakewright.lake.session import SessionSettings, build_session

    archive.parent.mkdir(parents=True, exist_ok=True)
    part = archive.with_name(f".{archive.name}.{os.getpid()}")
    options = " ".join([f'"-XX:ArchiveClassesAtExit={part}"', *QUIET])
    try:
        with tempfile.TemporaryDirectory() as folder:
            conf = {"spark.driver.extraJavaOptions": options}
            spark = build_session(SessionSettings(Path(folder), master="local[2]", conf=conf))
            _work(spark, Path(folder))
            _end(spark)
        for old in archive.parent.glob("classes-*.jsa"):
            old.unlink()
        part.replace(archive)
    except (OSError, subprocess.TimeoutExpired):
        part.unlink(missing_ok=True)
        return False
    return True


def _work(spark: SparkSession, folder: Path) -> None:
    """Touch what a run touches: CSV, Delta writes, a MERGE, windows, hashes, history."""
    from delta.tables import DeltaTable

    source, table = str(folder / "csv"), str(folder / "table")
    spark.range(100).selectExpr("id", "cast(id as string) v").write.option("header", True).csv(source)
    read = spark.read.option("header", True).schema("id long, v string").csv(source)
    hashed = read.selectExpr("*", "sha2(v, 256) h", "row_number() over (partition by id order by v) n")
    hashed.write.format("delta").save(table)
    delta = DeltaTable.forPath(spark, table)
    merge = delta.alias("t").merge(hashed.selectExpr("id + 50 id", "v", "h", "n").alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    hashed.limit(1).write.format("delta").mode("append").save(table)
    delta.history(1).collect()
    delta.toDF().groupBy("n").count().collect()


def _end(spark: SparkSession) -> None:
    """Stop the session and its JVM, and wait for what the JVM writes at its end."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    # PySpark keeps the JVM's process there, without a type; the JVM ends when its standard input does.
    process: subprocess.Popen[bytes] = vars(gateway)["proc"]
    process.communicate(timeout=DUMP_SECONDS)


def main() -> int:
    """Make the archive if it is missing; return the process's exit code."""
    try:
        archive = archive_path(find_java(os.environ))
        if archive.exists():
            return 0
        print("making an archive of the JVM's classes, once (half a minute)", file=sys.stderr)
        if not make_archive(archive):
            print("it could not be made; sessions start without it", file=sys.stderr)
    except NotInstalled as error:
        print(f"{error}\n{error.remedy}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
