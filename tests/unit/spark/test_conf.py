"""The keys that sessions are built with; no JVM."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lakewright.spark.conf import (
    GIB,
    LATE_COMPILER,
    LONG_WORK,
    RETURNING_COLLECTOR,
    SessionSettings,
    driver_memory_gib,
    executor_python,
    local_cores,
    runtime_conf,
    session_conf,
)

STATE = Path("/var/lib/a lake")
JARS = [Path("/jars/delta.jar"), Path("/jars/storage.jar")]


def conf_of(master: str = "local[2]", **users: str) -> dict[str, str]:
    settings = SessionSettings(
        STATE, master=master, conf={key.replace("__", "."): users[key] for key in users}
    )
    return session_conf(settings, jars=JARS, jvm_options=["-XX:SharedArchiveFile=/x"])


def test_a_local_session_has_few_partitions_and_no_web_page() -> None:
    conf = conf_of("local[3]")
    assert conf["spark.sql.shuffle.partitions"] == "6"
    assert conf["spark.databricks.delta.snapshotPartitions"] == "1"
    assert conf["spark.ui.enabled"] == "false"
    assert conf["spark.sql.codegen.cache.maxEntries"] == "1000"
    options = shlex.split(conf["spark.driver.defaultJavaOptions"])
    assert {"-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"} <= set(options)


@pytest.mark.parametrize(
    "master", ["spark://host:7077", "yarn", "k8s://https://host", "local-cluster[2,1,1024]"]
)
def test_a_cluster_gets_the_jars_and_what_keeps_small_work_cheap(master: str) -> None:
    conf = conf_of(master)
    tuned = {"spark.ui.enabled", "spark.sql.shuffle.partitions", "spark.driver.memory", "spark.driver.host"}
    assert not tuned & conf.keys()
    options = shlex.split(conf["spark.driver.defaultJavaOptions"])
    assert "-Duser.timezone=UTC" in options
    assert conf["spark.jars"] == "/jars/delta.jar,/jars/storage.jar"
    # The driver's class archive holds only classes from its class path.
    assert conf["spark.driver.extraClassPath"] == "/jars/delta.jar:/jars/storage.jar"
    assert conf["spark.databricks.delta.snapshotPartitions"] == "1"
    assert conf["spark.executor.defaultJavaOptions"] == "-Duser.timezone=UTC"


def test_further_jars_are_not_before_those_of_the_class_archive() -> None:
    """Java uses an archive only if the class path begins with the one that it was made with."""
    settings, further = SessionSettings(STATE), [Path("/jars/s3.jar")]
    local = session_conf(settings, jars=JARS, further_jars=further)
    assert local["spark.driver.extraClassPath"] == "/jars/delta.jar:/jars/storage.jar"
    cluster = session_conf(replace(settings, master="yarn"), jars=JARS, further_jars=further)
    assert cluster["spark.jars"] == "/jars/delta.jar,/jars/storage.jar,/jars/s3.jar"


@pytest.mark.parametrize(
    ("master", "further", "is_ours"),
    [("local[2]", ["own.jar"], True), ("local[2]", [], False), ("spark://host:7077", ["own.jar"], False)],
)
def test_only_a_local_session_with_our_jar_has_our_access_to_files(
    master: str, further: list[str], is_ours: bool
) -> None:
    settings = SessionSettings(STATE, master=master)
    conf = session_conf(settings, jars=[], further_jars=[Path(each) for each in further])
    assert ("spark.hadoop.fs.file.impl" in conf) is is_ours
    assert ("spark.hadoop.fs.AbstractFileSystem.file.impl" in conf) is is_ours


def test_shuffles_on_a_cluster_have_two_tasks_for_each_core_of_its_executors() -> None:
    settings = SessionSettings(STATE)
    assert runtime_conf(settings, "yarn", 24)["spark.sql.shuffle.partitions"] == "48"
    assert "spark.sql.shuffle.partitions" not in runtime_conf(settings, "yarn", 0)
    chosen = SessionSettings(STATE, conf={"spark.sql.shuffle.partitions": "7"})
    assert runtime_conf(chosen, "yarn", 24)["spark.sql.shuffle.partitions"] == "7"


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
def test_results_do_not_depend_on_where_a_session_runs(master: str) -> None:
    conf = conf_of(master)
    assert (conf["spark.sql.session.timeZone"], conf["spark.sql.ansi.enabled"]) == ("UTC", "false")
    assert conf["spark.sql.catalog.spark_catalog"] == "org.apache.spark.sql.delta.catalog.DeltaCatalog"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.session.timeZone", "Europe/Paris"),
        ("spark.sql.shuffle.partitions", "64"),
        ("spark.driver.memory", "12g"),
        ("spark.driver.defaultJavaOptions", "-Xss4m"),
        ("spark.anything.else", "1"),
    ],
)
def test_what_the_user_sets_wins(key: str, value: str) -> None:
    settings = SessionSettings(STATE, conf={key: value})
    assert session_conf(settings, jars=JARS)[key] == value


@pytest.mark.parametrize(
    ("key", "master", "theirs", "both"),
    [
        ("spark.jars", "yarn", "/jdbc.jar", "/jars/delta.jar,/jars/storage.jar,/jdbc.jar"),
        ("spark.jars", "local", "/jdbc.jar", "/jdbc.jar"),
        ("spark.driver.extraClassPath", "local", "/jdbc.jar", "/jars/delta.jar:/jars/storage.jar:/jdbc.jar"),
        ("spark.sql.extensions", "local", "a.B", "io.delta.sql.DeltaSparkSessionExtension,a.B"),
        (
            "spark.sql.extensions",
            "local",
            "io.delta.sql.DeltaSparkSessionExtension",
            "io.delta.sql.DeltaSparkSessionExtension",
        ),
    ],
)
def test_jars_and_extensions_of_the_user_come_in_addition(
    key: str, master: str, theirs: str, both: str
) -> None:
    settings = SessionSettings(STATE, master=master, conf={key: theirs})
    assert session_conf(settings, jars=JARS)[key] == both


def test_the_master_in_the_users_keys_decides_the_tuning() -> None:
    conf = conf_of("local[2]", spark__master="local[8]")
    assert (conf["spark.master"], conf["spark.sql.shuffle.partitions"]) == ("local[8]", "16")


def test_nothing_is_kept_outside_the_state_folder() -> None:
    conf = conf_of()
    assert conf["spark.sql.warehouse.dir"] == "/var/lib/a lake/spark-warehouse"
    assert "-Dderby.system.home=/var/lib/a lake" in shlex.split(conf["spark.driver.defaultJavaOptions"])


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[4]", 4), ("local[4,3]", 4), ("local[ 2 ]", 2), ("yarn", None), ("locals", None)],
)
def test_cores_of_a_master(master: str, cores: int | None) -> None:
    assert local_cores(master) == cores


@pytest.mark.parametrize(("machine", "heap"), [(GIB, 1), (3 * GIB, 1), (8 * GIB, 2), (64 * GIB - 1, 15)])
def test_a_session_takes_a_quarter_of_the_memory(machine: int, heap: int) -> None:
    assert driver_memory_gib(machine) == heap


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
@pytest.mark.parametrize(("pending", "has_both"), [(0, False), (LONG_WORK - 1, False), (LONG_WORK, True)])
def test_a_session_has_both_compilers_where_much_is_pending(
    master: str, pending: int, has_both: bool
) -> None:
    settings = SessionSettings(STATE, master=master, pending_bytes=pending)
    options = shlex.split(session_conf(settings, jars=JARS)["spark.driver.defaultJavaOptions"])
    assert ("-XX:TieredStopAtLevel=1" not in options) is has_both
    assert "-XX:ReservedCodeCacheSize=240m" in options
    assert (set(LATE_COMPILER) <= set(options)) is has_both
    assert "-XX:+ExitOnOutOfMemoryError" not in options


def test_the_user_s_compiler_comes_after_ours() -> None:
    users = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    conf = session_conf(SessionSettings(STATE, conf=users, pending_bytes=LONG_WORK), jars=JARS)
    assert conf["spark.driver.extraJavaOptions"] == "-XX:TieredStopAtLevel=1"


def test_a_resident_jvm_has_both_compilers_and_ends_when_it_is_out_of_memory() -> None:
    conf = session_conf(SessionSettings(STATE), jars=[], is_resident=True)
    options = shlex.split(conf["spark.driver.defaultJavaOptions"])
    assert "-XX:TieredStopAtLevel=1" not in options
    assert {*LATE_COMPILER, "-XX:+ExitOnOutOfMemoryError"} <= set(options)
    assert conf["spark.sql.ui.retainedExecutions"] == "20"
    assert set(RETURNING_COLLECTOR) <= set(options)
    assert "-XX:+UseParallelGC" not in options
    alone = session_conf(SessionSettings(STATE), jars=[])
    assert "-XX:+UseParallelGC" in alone["spark.driver.defaultJavaOptions"]
    assert "ExitOnOutOfMemoryError" not in alone["spark.driver.defaultJavaOptions"]
    assert "spark.sql.ui.retainedExecutions" not in alone


@pytest.mark.parametrize("is_resident", [False, True])
def test_a_collector_of_the_user_s_is_the_only_one(is_resident: bool) -> None:
    users = {"spark.driver.extraJavaOptions": "-Xss4m -XX:+UseZGC"}
    conf = session_conf(SessionSettings(STATE, conf=users), jars=[], is_resident=is_resident)
    assert "GC" not in conf["spark.driver.defaultJavaOptions"]
    assert conf["spark.driver.extraJavaOptions"] == "-Xss4m -XX:+UseZGC"


@pytest.mark.parametrize(
    ("master", "conf", "environ", "expected"),
    [
        ("spark://host:7077", {}, {"PYSPARK_PYTHON": "/opt/python"}, "/opt/python"),
        ("spark://host:7077", {"spark.pyspark.python": "/mine"}, {"PYSPARK_PYTHON": "/opt/python"}, "/mine"),
        ("spark://host:7077", {}, {}, sys.executable),
        ("local[2]", {}, {"PYSPARK_PYTHON": "/opt/python"}, sys.executable),
    ],
)
def test_executors_of_a_cluster_run_the_python_that_the_user_names(
    master: str, conf: dict[str, str], environ: dict[str, str], expected: str
) -> None:
    assert executor_python(SessionSettings(STATE, master=master, conf=conf), environ) == expected
