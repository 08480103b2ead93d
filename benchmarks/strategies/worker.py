"""A contestant in its own process: reads requests as lines of JSON, answers with measurements.

Usage: python -m benchmarks.strategies.worker CONTESTANT FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.spark.conf import SessionSettings, driver_memory_gib, machine_memory
from lakewright.spark.jars import fetch_jars
from lakewright.spark.java import find_java, java_home_for_spark
from lakewright.spark.releases import delta_jars, installed_release
from lakewright.spark.session_builder import build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright import Project


LEFT_OUT = ("PK_rows", "dlf_SourceHash", "dlf_source_filename")
"""Columns whose content differs between contestants."""


class Worker:
    """One contestant with its session and its tables, below a folder.

    Args:
        contestant: `tool`; `warm`, which is the same in a JVM like that of a server; `naive`, `hand`,
            `duckdb`, `floor` or `delta-rs`.
        folder: Location of its tables and, for the tool, of its project.
    """

    def __init__(self, contestant: str, folder: Path) -> None:
        self.folder = folder
        self.project: Project | None = None
        self._spark: SparkSession | None = None
        if contestant in ("hand", "warm"):
            self._spark = build_session(SessionSettings(folder / "state"), is_resident=contestant == "warm")
        elif contestant == "naive":
            self._spark = _default_session(folder / "state")
        if contestant in ("tool", "warm"):
            from lakewright import Project

            self.project = Project.load(folder)
            self._spark = self._spark or self.project.app.lake.spark
        self._script = contestant

    @property
    def spark(self) -> SparkSession:
        """The session of a contestant that has one."""
        if self._spark is None:
            raise RuntimeError(f"{self._script} uses no Spark")
        return self._spark

    def stop(self) -> None:
        """End the session, if there is one."""
        if self._spark is not None:
            self._spark.stop()

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to one request."""
        requests: dict[str, Callable[..., dict[str, Any]]] = {
            "apply": self.apply,
            "sum": self.sum,
        }
        return requests[request["do"]](**{key: value for key, value in request.items() if key != "do"})

    def apply(self, table: str, file: str, strategy: str, at: str) -> dict[str, Any]:
        """Apply a slice to a table, and return the measurement."""
        place = self.place(table)
        before = _bytes(place)
        jobs, cpu, begin = self._jobs(), self._cpu_seconds(), time.monotonic()
        self._apply(table, file, strategy, datetime.fromisoformat(at))
        seconds = time.monotonic() - begin
        return {
            "seconds": round(seconds, 3),
            "cpu_seconds": round(self._cpu_seconds() - cpu, 2),
            "jobs": self._jobs() - jobs,
            "bytes": sum(size for name, size in _bytes(place).items() if name not in before),
            "files": len(_bytes(place).keys() - before.keys()),
            "memory_mib": self._peak_memory(),
        }

    def _apply(self, table: str, file: str, strategy: str, at: datetime) -> None:
        if self.project is not None:
            from lakewright import Processing

            entity = self.project.entity(table)
            Processing(entity, Path(file).name, {"processing.time": at.isoformat()}).process()
        elif self._script == "duckdb":
            from benchmarks.strategies.duck import apply_with_duckdb

            apply_with_duckdb(str(self.place(table)), file, strategy, at)
        elif self._spark is None:
            from benchmarks.one_slice import append_changed, merge_slice

            apply = append_changed if self._script == "floor" else merge_slice
            apply(str(self.place(table)), file)
        else:
            from benchmarks.strategies import scripts

            script = scripts.apply_naively if self._script == "naive" else scripts.apply_by_hand
            script(self.spark.newSession(), str(self.place(table)), file, strategy, at)

    def sum(self, place: str, is_seen: bool) -> dict[str, Any]:
        """Return a checksum over all rows of the columns in which contestants must agree.

        Args:
            place: A table, of this contestant or of another one.
            is_seen: Whether the times at which rows were seen are part of it.
        """
        frame = self.spark.newSession().read.format("delta").load(place)
        left_out = {*LEFT_OUT, *(() if is_seen else ("dlf_lastSeen",))}
        names = sorted(name for name in frame.columns if name not in left_out)
        row = frame.selectExpr(f"xxhash64({', '.join(names)}) as h").selectExpr(
            "count(1) as rows", "cast(sum(cast(h as decimal(38, 0))) as string) as total"
        )
        found = row.first()
        return {"rows": found["rows"], "total": found["total"], "columns": names} if found else {}

    def place(self, table: str) -> Path:
        """Return the folder of a table."""
        return self.folder / "lake" / "silver" / table

    def _jobs(self) -> int:
        if self._spark is None:
            return 0
        context: Any = self._spark.sparkContext
        return int(context._jsc.sc().dagScheduler().nextJobId())

    def _peak_memory(self) -> int:
        """Return the peak resident size of the JVM in MiB; without one, that of this process."""
        status = Path(f"/proc/{self._jvm or 'self'}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) >> 10

    def _cpu_seconds(self) -> float:
        """Return the CPU time of this process and the JVM, which hardly depends on other load."""
        if self._jvm is None:
            return time.process_time()
        fields = Path(f"/proc/{self._jvm}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()

    @cached_property
    def _jvm(self) -> int | None:
        if self._spark is None:
            return None
        gateway: Any = self._spark.sparkContext._gateway
        return int(gateway.jvm.java.lang.ProcessHandle.current().pid())


def _bytes(place: Path) -> dict[str, int]:
    """Return the size of each file of a table, except for its log."""
    files = (f for f in place.rglob("*") if f.suffix in {".parquet", ".bin"} and "_delta_log" not in f.parts)
    return {str(file): file.stat().st_size for file in files}


def _default_session(folder: Path) -> SparkSession:
    """Return a session with Spark's and Delta's default settings, and as much memory as the others."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("JAVA_HOME", str(java_home_for_spark(find_java(os.environ), os.environ)))
    builder = SparkSession.builder.appName("naive").master("local[*]")
    settings = {
        "spark.jars": ",".join(str(jar) for jar in fetch_jars(os.environ, delta_jars(installed_release()))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.memory": f"{driver_memory_gib(machine_memory())}g",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main() -> None:
    """Answer requests until there are no more."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of Spark is not an answer
    os.environ["TZ"] = UTC.tzname(None)
    time.tzset()
    worker = Worker(sys.argv[1], Path(sys.argv[2]))
    print(json.dumps({"ready": True}), file=out)
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), file=out)
    worker.stop()


if __name__ == "__main__":
    main()
