"""Small slices on a standalone cluster beside the same ones in local mode: the processor time of the driver.

python -m benchmarks Cluster
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.stores.standalone import running_standalone

from benchmarks.fold import ENTITY, MODULE, processor_seconds, write_slices
from benchmarks.report import Row
from benchmarks.timing import time_command

if TYPE_CHECKING:
    from lakewright.app import App


WARM, MEASURED = 2, 4
"""Slices after the first one that are not measured, and those measured."""


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the driver's processor time of a first slice and of a warm one, on the cluster and locally."""
    del rounds  # each side has a process of its own, with a start and eight slices
    write_slices(folder / "slices", WARM + MEASURED + 1)
    found = {"local": _measured(folder, "local[2]")}
    with running_standalone(folder / "cluster") as cluster:
        found["cluster"] = _measured(folder, cluster.master)
    return [
        Row(
            f"{what} of a small slice, cluster : local",
            _ratio(found["cluster"][key], found["local"][key]),
            wanted,
        )
        for key, what, wanted in (
            (
                "first",
                "processor time of the driver with its start and the check of the executors,",
                "<= 1.5",
            ),
            ("warm", "processor time of the driver, warm,", "<= 1.5"),
            ("jobs", "Spark jobs", ""),
            ("tasks", "tasks", ""),
        )
    ]


def _ratio(cluster: float, local: float) -> str:
    return f"{cluster:.2f} : {local:.2f}, ratio {cluster / local:.2f}"


def _measured(folder: Path, master: str) -> dict[str, float]:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    name = master.partition(":")[0].partition("[")[0]
    command = [sys.executable, "-m", "benchmarks.cluster", str(folder), name, master]
    found: dict[str, float] = json.loads(time_command(command).output.splitlines()[-1])
    return found


def measure(folder: Path, name: str, master: str) -> dict[str, float]:
    """Return the processor seconds of the first slice, and of warm ones in the middle, with their jobs."""
    from statistics import median

    from lakewright.app import App

    app = App.open(_project(folder / name, master))
    spent: list[tuple[float, int, int]] = []
    for file in sorted((folder / "slices").iterdir()):
        bronze = folder / name / "lake" / "bronze" / "orders"
        bronze.mkdir(parents=True, exist_ok=True)
        (bronze / file.name).write_bytes(file.read_bytes())
        jobs, tasks = _counts(app) if spent else (0, 0)
        before = processor_seconds() if spent else 0.0
        _process(app)
        after = _counts(app)
        spent.append((processor_seconds() - before, after[0] - jobs, after[1] - tasks))
    app.close()
    middle = [median(each) for each in zip(*spent[1 + WARM :], strict=True)]
    return {"first": spent[0][0], "warm": middle[0], "jobs": middle[1], "tasks": middle[2]}


def _process(app: App) -> None:
    from lakewright.usecases.process_slices import process_slices

    app.begin_run()
    result = process_slices(app, "orders")
    assert result.error is None, result.error
    assert len(result.slices) == 1


def _counts(app: App) -> tuple[int, int]:
    """Return the numbers of jobs and of tasks that Spark has begun."""
    spark: Any = app.lake.spark
    context = spark.sparkContext._jsc.sc()
    return int(context.dagScheduler().nextJobId()), int(context.taskScheduler().nextTaskId())


def _project(folder: Path, master: str) -> Path:
    folder.mkdir()
    is_local = master.startswith("local")
    sections: dict[str, Any] = {
        "name": "small",
        "modules": ["entities.yml"],
        "lake": {"root_folder": str(folder / "lake")},
        # The executors are on this machine too.
        **({} if is_local else {"cluster": {"master": master, "shared": True}}),
    }
    conf = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m", "spark.ui.enabled": "false"}
    config = f"config: {json.dumps({**conf, **({'spark.master': master} if is_local else {})})}\n"
    (folder / "project.yml").write_text(json.dumps(sections))
    text = ENTITY.format(name="orders", strategy="merge", fold="false")
    (folder / "entities.yml").write_text(config + MODULE + text)
    return folder


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), sys.argv[2], sys.argv[3])))
