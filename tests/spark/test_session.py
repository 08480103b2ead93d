"""A session as `build_session` makes it, on a real JVM."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from lakewright.spark.conf import SessionSettings
from lakewright.spark.java import archive_path, find_java
from lakewright.spark.session import SharedSession
from lakewright.spark.session_builder import build_session
from lakewright.strategies.tuning import Tuning

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


def test_a_session_with_the_jars_of_s3_starts_from_the_archive_of_classes(spark: SparkSession) -> None:
    """With another class path than that of the archive, Java leaves it without a word."""
    archive = archive_path(find_java(os.environ), os.environ)
    if not archive.is_file():
        pytest.skip("this environment has no archive; `make setup` makes it")
    jvm: Any = spark._jvm
    assert jvm.Class.forName("org.apache.hadoop.fs.s3a.S3AFileSystem")
    process = psutil.Process(jvm.ProcessHandle.current().pid())
    assert str(archive) in {mapped.path for mapped in process.memory_maps()}


def test_tables_without_a_path_are_kept_in_the_state_folder(spark: SparkSession) -> None:
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    spark.sql("create table kept (id int) using delta")
    try:
        (location,) = (row.location for row in spark.sql("describe detail kept").collect())
    finally:
        spark.sql("drop table kept")
    assert warehouse is not None
    assert location.startswith(warehouse)
    assert not [name for name in ("derby.log", "metastore_db", "spark-warehouse") if Path(name).exists()]


def test_a_session_that_was_tuned_for_a_tiny_slice_gets_its_settings_back(spark: SparkSession) -> None:
    keys = ["spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage"]
    lake: Any = SimpleNamespace(spark=spark, session=SimpleNamespace(conf={}))
    session = spark.newSession()
    started = [spark.conf.get(key) for key in keys]
    Tuning(is_tiny=True, is_small=True, is_wide=True).apply(session, lake)
    assert [session.conf.get(key) for key in keys] == ["1", "false", "false"]
    Tuning(is_tiny=False, is_small=False, is_wide=False).apply(session, lake)
    assert [session.conf.get(key) for key in keys] == started
    assert started[0] == "4"  # Spark's own default, which an unset key has, is 200


def test_functions_in_python_run_on_this_interpreter(spark: SparkSession) -> None:
    def interpreter(_: Row) -> str:
        return sys.executable

    assert spark.range(1).rdd.map(interpreter).first() == sys.executable


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.shuffle.partitions", "4"),
        ("spark.databricks.delta.snapshotPartitions", "1"),
        ("spark.ui.enabled", "false"),
    ],
)
def test_a_local_session_is_tuned_for_small_work(spark: SparkSession, key: str, value: str) -> None:
    assert spark.conf.get(key) == value


def test_the_jvm_lives_on_when_the_terminal_sends_an_interrupt(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    status = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/status").read_text()
    (ignored,) = re.findall(r"SigIgn:\s*(\w+)", status)
    assert int(ignored, 16) & 1 << (signal.SIGINT - 1)


def test_a_second_session_of_the_process_is_the_first(spark: SparkSession, tmp_path: Path) -> None:
    again = build_session(SessionSettings(tmp_path, conf={"spark.sql.shuffle.partitions": "4"}))
    assert again.sparkContext is spark.sparkContext


def test_a_shared_session_gives_new_ones_with_settings_of_their_own_and_lives_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    sessions = SharedSession(spark)
    settings = SessionSettings(tmp_path, conf={"spark.sql.shuffle.partitions": "7", "spark.app.name": "x"})

    derived = sessions.start(settings)
    derived.range(1).createTempView("of_the_derived_session")
    sessions.stop(derived)

    assert derived.conf.get("spark.sql.shuffle.partitions") == "7"
    assert derived.conf.get("spark.databricks.delta.snapshotPartitions") == "1"
    assert derived.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "4"
    assert not spark.catalog.tableExists("of_the_derived_session")
    assert spark.range(3).count() == 3
