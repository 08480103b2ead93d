"""Where a run spends its time: loading, observing, starting the JVM, and Spark jobs by target."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.report import Row
from benchmarks.timing import lakewright, time_command

LAST = "2022-04-01"
"""The month whose run is measured, after that of the months before."""


def run(folder: Path, rounds: int) -> list[Row]:
    """Return where the last month of the demo spends its time, in one process after the months before."""
    del rounds  # These counts vary little, and are for reading, not for comparison
    project = folder / "spending"
    time_command(lakewright("demo", str(project), "--no-run"))
    spent = json.loads(
        time_command([sys.executable, "-m", "benchmarks.spending", str(project)]).output.splitlines()[-1]
    )
    rows = [
        Row("importing and loading the project", f"{spent['load']:.2f} s"),
        Row("observing and planning", f"{spent['plan']:.2f} s"),
        Row("starting the JVM and the session", f"{spent['start']:.2f} s"),
    ]
    for name, (seconds, jobs) in spent["targets"].items():
        rows.append(Row(f"last month, BUILD of `{name}`", f"{seconds:.1f} s, {jobs} Spark jobs"))
    return rows


class _Counting:
    """Records the duration and the number of Spark jobs of each step."""

    signal: int | None = None

    def __init__(self, jobs: Any) -> None:
        self._jobs = jobs
        self._before = 0
        self.found: dict[str, tuple[float, int]] = {}

    def step_started(self, instance: int, step: Any) -> None:
        del instance, step
        self._before = self._jobs()

    def step_finished(self, instance: int, step: Any, result: Any) -> None:
        del instance
        if step.phase == "BUILD":
            self.found[step.target] = (result.seconds, self._jobs() - self._before)


def measure(project: Path) -> dict[str, Any]:
    """Return the seconds and jobs of the demo's last month, after the months before."""
    begin = time.monotonic()
    from lakewright.app import App
    from lakewright.plan.phase import Phase
    from lakewright.run.request import JobRequest
    from lakewright.usecases.run_job import plan_job, run_job

    app = App.open(project)
    loaded = time.monotonic()
    request, files = JobRequest("all", Phase.BUILD), list((project / "data").rglob(f"{LAST}*"))
    kept = {file: file.with_name(f".{file.name}") for file in files}
    for file, hidden in kept.items():
        file.rename(hidden)
    plan_job(app, request)
    planned = time.monotonic()
    spark: Any = app.lake.spark
    started = time.monotonic()
    counting = _Counting(lambda: spark.sparkContext._jsc.sc().dagScheduler().nextJobId())
    run_job(app, request, listener=counting, interruption=counting)
    for file, hidden in kept.items():
        hidden.rename(file)
    counting.found.clear()
    run_job(app, request, listener=counting, interruption=counting)
    app.close()
    return {
        "load": loaded - begin,
        "plan": planned - loaded,
        "start": started - planned,
        "targets": counting.found,
    }


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
