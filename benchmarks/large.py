"""A large table in a small heap: loaded by one slice, and updated by a second one with 1 % changed rows.

Merge rewrites all rows of a slice, because `last_seen` is `column` unless an entity says otherwise. The
script by hand has both compilers of Java and as many partitions of a shuffle as Lakewright chooses.

LAKEWRIGHT_LARGE_ROWS=5000000 LAKEWRIGHT_LARGE_HEAP=1g LAKEWRIGHT_LARGE_STRATEGIES=historic \\
    python -m benchmarks Large
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.fold import ENTITY, MODULE
from benchmarks.report import Row
from benchmarks.timing import time_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ROWS = int(os.environ.get("LAKEWRIGHT_LARGE_ROWS", "20000000"))
STEP = 5_000_000
"""Rows of a file of a slice."""

STRATEGIES = os.environ.get("LAKEWRIGHT_LARGE_STRATEGIES", "merge historic").split()
HEAP = os.environ.get("LAKEWRIGHT_LARGE_HEAP", "4g")
SLICES = ("2023-01-01", "2023-01-02")
FIRST, SECOND = "the first slice", "a slice with 1 % changed"

CONTENT = ("count(1) as rows", "cast(sum(cast(xxhash64(*) as decimal(38, 0))) as string) as total")
"""What two tables with the same rows have in common."""


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the time, the peak memory and the spilled bytes of each slice, each in a process of its own."""
    del rounds  # a slice takes minutes
    _write_project(folder)
    _measured(folder, "generate")
    slices = sum(file.stat().st_size for file in (folder / "slices" / SLICES[1]).iterdir())
    rows = [
        Row(
            f"{ROWS:,} rows of 20 columns: a slice as Parquet, with a heap of {HEAP}", f"{slices >> 20:,} MiB"
        )
    ]
    for strategy in STRATEGIES:
        bronze = folder / "lake" / "bronze" / strategy
        bronze.mkdir(parents=True)
        for name, what in zip(SLICES, (FIRST, SECOND), strict=True):
            by_hand = _measured(folder, strategy, name)
            (folder / "slices" / name).rename(bronze / name)
            found = _measured(folder, strategy)
            (bronze / name).rename(folder / "slices" / name)
            if found["content"] != by_hand["content"]:
                raise RuntimeError(f"{strategy}, {what}: the tables differ: {found}, {by_hand}")
            rows += [_row(f"{strategy}, {what}", found, slices), _compared(strategy, what, found, by_hand)]
    return rows


def _compared(strategy: str, what: str, found: dict[str, Any], by_hand: dict[str, Any]) -> Row:
    spent, other = found["processor"], by_hand["processor"]
    return Row(
        f"{strategy}, {what} : *by hand*",
        f"CPU {spent:.0f} s : {other:.0f} s = {spent / other:.2f}; "
        f"elapsed {found['seconds']:.0f} s : {by_hand['seconds']:.0f} s; "
        f"the script spilled {by_hand['spilled'] >> 20:,} MiB",
        "" if what == FIRST else "<= 1.05",
    )


def _row(what: str, found: dict[str, Any], slice_bytes: int) -> Row:
    return Row(
        what,
        f"CPU {found['processor']:.0f} s; elapsed {found['seconds']:.0f} s; "
        f"heap {found['heap'] >> 20:,} MiB; resident {found['resident'] >> 10:,} MiB; "
        f"spilled {found['spilled'] / slice_bytes:.2f} x the slice",
        "spilled <= 2 x",
    )


def _measured(folder: Path, *what: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.large", str(folder), *what]
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
    from lakewright.spark.conf import SessionSettings
    from lakewright.spark.session_builder import build_session

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
        "content": _content(spark, folder / "lake" / "silver" / entity),
    }
    app.close()
    return found


def _by_hand(folder: Path, strategy: str, name: str) -> dict[str, Any]:
    """Apply a slice by the script, in a session with the settings that Lakewright's run has."""
    from benchmarks.fold import processor_seconds
    from benchmarks.strategies.scripts import apply_by_hand
    from lakewright.spark.conf import SessionSettings
    from lakewright.spark.session_builder import build_session
    from lakewright.strategies.tuning import PARTITION

    slice_folder, place = folder / "slices" / name, folder / "hand" / strategy
    size = sum(file.stat().st_size for file in slice_folder.iterdir())
    conf = {"spark.driver.memory": HEAP, "spark.sql.shuffle.partitions": str(max(4, -(-size // PARTITION)))}
    spark = build_session(SessionSettings(folder / "state", conf=conf, pending_bytes=size))
    kind = "merge_column" if strategy == "merge" else strategy
    begin = time.monotonic()
    apply_by_hand(spark, str(place), str(slice_folder), kind, datetime.fromisoformat(name))
    found = {
        "seconds": time.monotonic() - begin,
        "processor": processor_seconds(),
        "spilled": _spilled(spark),
        "content": _content(spark, place),
    }
    spark.stop()
    return found


def _content(spark: SparkSession, place: Path) -> dict[str, Any]:
    """Return a checksum over the slice's columns of all rows of a table."""
    columns = [text.rpartition(" ")[2] for text in _columns(0)]
    found = spark.read.format("delta").load(str(place)).select(columns).selectExpr(*CONTENT).first()
    return found.asDict() if found else {}


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


def _main(folder: Path, what: str, by_hand: str = "") -> None:
    """Generate the slices, or process one: an entity's next one, or by hand the one that is named."""
    if what == "generate":
        found = _generate(folder)
    else:
        found = _by_hand(folder, what, by_hand) if by_hand else _process(folder, what)
    print(json.dumps(found))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), *sys.argv[2:])
