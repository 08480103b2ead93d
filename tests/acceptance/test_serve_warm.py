"""Commands on a server's warm session do what they do by themselves: one server, one JVM, one story."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from deltalake import DeltaTable
from tests.acceptance.command import BIN, PATH
from tests.acceptance.lake import MODEL, SmallLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAPPINGS = """
mappings:
  nothing: {kind: values, records: [[1]], columns: {one: int}}
  traces: {kind: python, file: traces.py, function: leave, inputs: [nothing]}
  slow: {kind: sql, sql: "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.id + b.id < 0"}
"""
TRACES = '''
"""Leaves settings, views and a cached table, and returns what it found of them."""
import os

def leave(frame):
    spark = frame.sparkSession
    found = [
        spark.conf.get("my.setting", "none"),
        str(len(spark.catalog.listTables())),
        str(len(spark.catalog.listTables("global_temp"))),
        os.environ.get("CALLER", "none"),
        os.getcwd(),
    ]
    spark.conf.set("my.setting", "left")
    spark.range(3).createOrReplaceTempView("left")
    spark.range(3).createOrReplaceGlobalTempView("left")
    spark.catalog.cacheTable("left")
    names = ("setting", "views", "shared", "caller", "folder")
    return spark.createDataFrame([found], ", ".join(f"{name} string" for name in names))
'''
OFTEN = """
    settings:
      table_properties: {delta.enableChangeDataFeed: "true"}  # so that slices add files
      maintenance: {small_files: 2}
  prices:"""
QUICK_JVM = "config: {spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1}\n"


class Served(SmallLake):
    """A lake with a server."""

    def sql(self, query: str, **environ: str) -> Any:
        done = self.process.run("sql", query, "-o", "json", **environ)
        assert done.code == 0, done.all
        return json.loads(done.out)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(BIN / "lakewright"), *arguments],
            cwd=self.folder,
            env={**os.environ, "PATH": PATH},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def jvms(self) -> list[psutil.Process]:
        state = json.loads((self.folder / ".lakewright" / "serve.json").read_text())
        below = psutil.Process(state["pid"]).children(recursive=True)
        return [each for each in below if _is_java(each)]


def _is_java(process: psutil.Process) -> bool:
    """Return whether a process is a JVM; one that has just ended, such as a command's, is none."""
    try:
        return process.name() == "java"
    except psutil.NoSuchProcess:
        return False


pytestmark = pytest.mark.usefixtures("interruptible")


@pytest.fixture
def lake(tmp_path: Path, session: SparkSession) -> Iterator[Served]:
    lake = Served.make(tmp_path / "lake", session)
    model = QUICK_JVM + MODEL.replace("\nmappings:", MAPPINGS.rstrip()).replace("\n  prices:", OFTEN, 1)
    (lake.folder / "model" / "model.yml").write_text(model)
    (lake.folder / "traces.py").write_text(TRACES)
    started = lake.process.run("serve", "--detach", "--on-demand")
    assert started.code == 0, started.all
    yield lake
    jvms = lake.jvms
    lake.process.run("serve", "stop")
    _until(lambda: not any(jvm.is_running() for jvm in jvms))


@pytest.mark.parametrize("goes_on", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_commands_run_warm_as_they_run_cold(lake: Served, goes_on: bool) -> None:
    lake.slice("customers", "2022-01-01", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])

    # A slice is processed; the JVM is the server's.
    processed = lake.process.run("process", "customers", "-v")
    assert processed.code == 0, processed.all
    assert "JVM of its own" not in processed.err
    (jvm,) = lake.jvms

    # Answers, errors and exit codes are those of a command in a process of its own.
    for arguments in (
        ["sql", "SELECT id, name FROM customers ORDER BY id", "-o", "json"],
        ["sql", "SELECT nothing FROM customers"],
        ["process", "nobody"],
    ):
        warm, cold = lake.process.run(*arguments), lake.run(*arguments)
        assert (warm.code, warm.out.partition(" in ")[0]) == (cold.code, cold.out.partition(" in ")[0])
        if cold.code:  # the session of the tests warns of the project's options of Java
            assert cold.err.endswith(warm.err)

    # The answer does not wait for the compaction that is due; it follows, and the log has it.
    lake.slice("customers", "2022-01-02", [{"id": 3, "name": "c"}])
    job = lake.process.run("job", "daily", "build", "--target", "customers", "-o", "json")
    assert job.code == 0, job.all
    (found,) = _values(json.loads(job.out), "maintenance")
    assert (found["files"], len(found["reasons"]), found["done"]) == (2, 1, False)
    _until(lambda: lake.version("customers") == 2)
    assert DeltaTable(lake.folder / "lake/silver/customers").history(1)[0]["operation"] == "OPTIMIZE"
    _until(lambda: "COMPACTED=1" in (lake.folder / ".lakewright" / "serve.log").read_text())

    # Nothing of one request is seen by the next; each has its caller's environment.
    for caller in ("first", "second"):
        (row,) = lake.sql("SELECT * FROM mapping.traces", CALLER=caller)
        assert row == {
            "setting": "none",
            "views": row["views"],
            "shared": "0",
            "caller": caller,
            "folder": str(lake.folder),
        }

    # A setting that Spark can change while it runs needs no other JVM.
    changed = lake.process.run("sql", "SELECT 1", "--conf", "spark.sql.shuffle.partitions=3", "-v")
    assert changed.code == 0, changed.all
    assert "JVM of its own" not in changed.err

    # A project that is broken meanwhile is refused, and mended taken again.
    model = lake.folder / "model" / "model.yml"
    good = model.read_text()
    model.write_text(good + "\nentities: {}\n")
    assert lake.process.run("process", "customers").code == 2
    model.write_text(good)
    assert lake.process.run("process", "customers").code == 0
    assert lake.jvms == [jvm]

    # Ctrl-C ends a query and its Spark jobs, and nothing else.
    slow = lake.start("sql", "SELECT * FROM mapping.slow")
    _until(lambda: _is_working(jvm))
    slow.send_signal(signal.SIGINT)
    assert slow.wait(60) == 130
    slow.communicate()
    assert lake.sql("SELECT 1 AS one") == [{"one": 1}]
    _until(lambda: not _is_working(jvm))

    # A JVM that is killed ends its request with advice.
    slow = lake.start("sql", "SELECT * FROM mapping.slow")
    _until(lambda: _is_working(jvm))
    jvm.kill()
    _, err = slow.communicate(timeout=60)
    assert slow.returncode == 1
    assert "Spark's JVM was killed" in err
    assert "Run again" in err
    if goes_on:  # The next request starts another JVM, which takes half a minute.
        assert lake.sql("SELECT count(*) AS rows FROM customers") == [{"rows": 2}]
        assert lake.jvms != [jvm]


def _values(document: Any, name: str) -> Iterator[Any]:
    """Yield what a document has under a name, at any depth."""
    if isinstance(document, dict):
        yield from (document[name],) if name in document else ()
        document = list(document.values())
    for each in document if isinstance(document, list) else ():
        yield from _values(each, name)


def _is_working(jvm: psutil.Process) -> bool:
    return bool(jvm.cpu_percent(0.5) > 60)


def _until(holds: Any) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
