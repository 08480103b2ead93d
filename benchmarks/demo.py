"""The demo: Lakewright's session settings against the defaults, and a first run against a clean one."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.report import Row
from benchmarks.timing import Measured, by_turns, lakewright, seconds, time_command

# Defaults of Spark 4.2 and Delta 4.4. The location of jars and the settings that affect results (time zone,
# ANSI mode) stay as Lakewright sets them, so that both compute the same.
DEFAULTS = {
    "spark.ui.enabled": "true",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "10000",
    "spark.sql.autoBroadcastJoinThreshold": "10m",
    "spark.databricks.delta.snapshotPartitions": "50",
    "spark.scheduler.mode": "FIFO",
    "spark.driver.defaultJavaOptions": "",
}


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the measurements of the demo; projects are written below `folder`."""
    defaults = [part for key, value in DEFAULTS.items() for part in ("--conf", f"{key}={value}")]
    times = by_turns(
        rounds,
        tuned=lambda: _first_run(folder / "tuned", []),
        defaults=lambda: _first_run(folder / "defaults", defaults),
        clean=lambda: time_command(_apply(folder / "tuned")),
    )
    tuned, default, clean = (seconds(times[name]) for name in ("tuned", "defaults", "clean"))
    return [
        Row("the demo, first run", f"{tuned:.1f} s"),
        Row(
            "the same with Spark's and Delta's default settings",
            f"{default:.1f} s, ratio {tuned / default:.2f}",
            "< 0.5",
        ),
        Row("the same again, nothing due", f"{clean:.1f} s, ratio {clean / tuned:.2f}", "< 0.33"),
    ]


def _first_run(project: Path, conf: list[str]) -> Measured:
    shutil.rmtree(project, ignore_errors=True)
    time_command(lakewright("demo", str(project), "--no-run"))
    return time_command([*_apply(project), *conf])


def _apply(project: Path) -> list[str]:
    return lakewright("apply", "--project", str(project))
