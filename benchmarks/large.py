"""A large table in a small heap: loaded by one slice, and updated by a second one with 1 % changed rows.

Merge rewrites all rows of a slice, because `last_seen` is `column` unless an entity says otherwise.

LAKEWRIGHT_LARGE_ROWS=5000000 LAKEWRIGHT_LARGE_HEAP=1g python -m benchmarks Large
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.fold import ENTITY, MODULE
from benchmarks.report import Row
from benchmarks.timing import time_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run"]

ROWS = int(os.environ.get("LAKEWRIGHT_LARGE_ROWS", "20000000"))
STEP = 5_000_000
"""Rows of a file of a slice."""

STRATEGIES = os.environ.get("LAKEWRIGHT_LARGE_STRATEGIES", "merge historic").split()
HEAP = os.environ.get("LAKEWRIGHT_LARGE_HEAP", "4g")
COUNTS = ("records_in_slice", "inserted", "changed")
SLICES = ("2023-01-01", "2023-01-02")


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the time, the peak memory and the spilled bytes of each slice, each in a process of its own."""
    del rounds  # a slice takes minutes
    _write_project(folder)
    _measured(folder, "generate")
    slices = sum(file.stat().st_size for file in (folder / "slices" / SLICES[1]).iterdir())
    rows = [Row(f"{ROWS:,} rows of 20 columns: a slice as Parquet", f"{slices >> 20:,} MiB")]
    for strategy in STRATEGIES:
        bronze = folder / "lake" / "bronze" / strategy
        bronze.mkdir(parents=True)
        for name, what in zip(SLICES, ("the first slice", "a slice with 1 % changed"), strict=True):
            (folder / "slices" / name).rename(bronze / name)
            found = _measured(folder, strategy)
            (bronze / name).rename(folder / "slices" / name)
            rows += _rows(f"{strategy}, {what}", found, slices)
    return rows


def _rows(what: str, found: dict[str, Any], slice_bytes: int) -> list[Row]:
    return [
        Row(f"{what}: elapsed, processor time", f"{found['seconds']:.0f} s, {found['processor']:.0f} s"),
        Row(f"{what}: most heap used, of {HEAP}", f"{found['heap'] >> 20:,} MiB"),
        Row(f"{what}: most resident memory of the JVM", f"{found['resident'] >> 10:,} MiB"),
        Row(f"{what}: spilled to disk", f"{found['spilled'] / slice_bytes:.2f} x the slice", "<= 2"),
        Row(f"{what}: rows", ", ".join(f"{key} {found['summary'][key]:,}" for key in COUNTS)),
    ]


def _measured(folder: Path, what: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.large", str(folder), what]
    found: dict[str, Any] = json.loads(time_command(command).output.splitlines()[-1])
    return found


def _write_project(folder: Path) -> None:
    sections = {
        "name": "large",
        "lake": {"root_folder": str(folder / "lake")},
        "modules": ["entities.yml"],
    }
    (folder / "project.yml").write_text(json.dumps(sections))
    config = f"config: [spark.driver.memory={HEAP}]\n"
    entities = "".join(ENTITY.format(name=each, strategy=each, fold="true") for each in STRATEGIES)
    (folder / "entities.yml").write_text(config + MODULE + entities)


def _generate(folder: Path) -> dict[str, Any]:
    """Write the slices, with as little memory as a step of rows needs."""
    from lakewright.spark.build import build_session
    from lakewright.spark.conf import SessionSettings

    spark = build_session(SessionSettings(folder / "state"))
    for number, name in enumerate(SLICES):
        for start in range(0, ROWS, STEP):
            frame = spark.range(start, min(start + STEP, ROWS), 1, 1).selectExpr(*_columns(number))
            frame.write.mode("append").parquet(str(folder / "slices" / name))
        for file in (folder / "slices" / name).iterdir():
            if not file.name.startswith("part-"):
                file.unlink()
    spark.stop()
    return {}


def _columns(version: int) -> list[str]:
    """Return the expressions of twenty columns; in a version, one number of each hundredth row differs."""
    found = ["id", f"pmod(xxhash64(id, 0), 1000000) + if(id % 100 = 7, {version}, 0) AS n0"]
    found += [f"pmod(xxhash64(id, {n}), 1000000) AS n{n}" for n in range(1, 6)]
    found += [f"pmod(xxhash64(id, 1{n}), 1000000) / 1000000 AS d{n}" for n in range(5)]
    found += [f"concat('text ', pmod(xxhash64(id, 2{n}), 10000000)) AS t{n}" for n in range(6)]
    found += ["date_add(DATE'2020-01-01', cast(id % 1000 AS int)) AS day"]
    return [*found, "timestamp_seconds(1577836800 + pmod(xxhash64(id, 30), 10000000)) AS at"]


def _process(folder: Path, entity: str) -> dict[str, Any]:
    from benchmarks.fold import processor_seconds
    from lakewright.app import App
    from lakewright.usecases.process_slices import process_slices

    app = App.open(folder)
    begin = time.monotonic()
    result = process_slices(app, entity)
    seconds = time.monotonic() - begin
    assert result.error is None, result.error
    (done,) = result.slices
    spark = app.lake.spark
    found = {
        "seconds": seconds,
        "processor": processor_seconds(),
        "heap": _most_heap(spark),
        "resident": _most_resident(spark),
        "spilled": _spilled(spark),
        "summary": done.as_json(),
    }
    app.close()
    return found


def _most_heap(spark: SparkSession) -> int:
    """Return the sum of the most bytes that each pool of the heap held: at least the most at one time."""
    jvm: Any = spark._jvm
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return sum(pool.getPeakUsage().getUsed() for pool in pools if pool.getType().name() == "HEAP")


def _most_resident(spark: SparkSession) -> int:
    jvm: Any = spark._jvm
    process = jvm.java.lang.ProcessHandle.current().pid()
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def _spilled(spark: SparkSession) -> int:
    """Return the bytes that tasks wrote to disk because they did not fit into memory."""
    context: Any = spark._jsc
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    none = jvm.java.util.ArrayList()
    quantiles = gateway.new_array(jvm.double, 0)
    stages = context.sc().statusStore().stageList(none, False, False, quantiles, none)
    return sum(int(stages.apply(number).diskBytesSpilled()) for number in range(stages.size()))


if __name__ == "__main__":
    place, what = Path(sys.argv[1]), sys.argv[2]
    print(json.dumps(_generate(place) if what == "generate" else _process(place, what)))
