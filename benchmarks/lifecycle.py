"""Overhead of Lakewright itself: loading, planning, finding nothing to do, and running in parallel."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import deltalake
import pandas as pd
from deltalake import write_deltalake

from benchmarks.clean_lake import write_clean_lake
from benchmarks.report import Row
from benchmarks.timing import Measured, by_turns, cpu_seconds, lakewright, seconds, time_command
from lakewright.app import App
from lakewright.stores.sql.database import Database
from lakewright.usecases.due import observe
from lakewright.usecases.due.take import plan_of_project

FIRST = date(2022, 1, 1)
CPU = "processor time"
COUNTED = {"listings of bronze": "100", "opened logs": "as many", "queries of the manifest": "as many"}
"""What a plan of a whole project is counted by, and how often it should happen."""

CHAIN = 5
"""Every fifth target starts a chain; the others read the previous one."""


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the measurements of a project of 1,000 targets and of one with 200 clean ones; no JVM starts."""
    # In this order: the memory of a process is at least what the one that starts it has.
    rows = [*_load(folder / "large", rounds), *_clean(folder / "clean", rounds)]
    few = write_clean_lake(folder / "few", entities=100, targets=200, slices=1, builds=1)
    many = write_clean_lake(folder / "many", entities=100, targets=200, slices=100, builds=500)
    return [*rows, *compare_growth(few, many, rounds)]


def run_side_by_side(folder: Path, rounds: int) -> list[Row]:
    """Return the measurements of small targets built by Spark; only some, so that it takes minutes."""
    del rounds  # one round takes minutes
    return compare_jobs(folder / "jobs", targets=40, instances=3, rounds=1)


def write_project(folder: Path, targets: int, lake: str = "lake") -> Path:
    """Return a project of Delta relations by day, each filled from the previous one or from constants."""
    folder.mkdir(parents=True)
    fields = "{kind: inline, fields: [{name: k, type: integer}, {name: v, type: string}]}"
    lines = ["mappings:", f"  start: {{kind: values, records: [[1, a], [2, b]], schema: {fields}}}"]
    lines += [f"  m{n}: {{kind: relation, relation: r{n - 1}}}" for n in range(1, targets)]
    lines += ["relations:"]
    for n in range(targets):
        lines += [f"  r{n}:", "    kind: delta", f"    location: {lake}/t{n}", f"    schema: {fields}"]
        lines += ["    partitions: [{name: day, type: date}]"]
    lines += ["targets:"]
    for n in range(targets):
        source = f"m{n}" if n % CHAIN else "start"
        lines += [f"  t{n}: {{kind: relation, relation: r{n}, mapping: {source}, partition: {{day: $day}}}}"]
    names = ", ".join(f"t{n}" for n in range(targets))
    lines += ["jobs:", f"  daily: {{parameters: [{{name: day, type: date}}], targets: [{names}]}}"]
    (folder / "project.yml").write_text("name: bench\nmodules: [model.yml]\n")
    (folder / "model.yml").write_text("\n".join(lines) + "\n")
    return folder


def fill(folder: Path, targets: int, instances: int) -> None:
    """Fill every table for every day without Spark."""
    each_day = [FIRST + timedelta(n) for n in range(instances)]
    rows = pd.DataFrame({"k": 1, "v": "a", "day": each_day}).astype({"k": "int32"})
    write_deltalake(folder / "lake" / "t0", rows, partition_by=["day"])
    for n in range(1, targets):
        shutil.copytree(folder / "lake" / "t0", folder / "lake" / f"t{n}")


def days(instances: int) -> list[str]:
    """Return the arguments for this many days."""
    return [f"day:start={FIRST}", f"day:end={FIRST + timedelta(instances - 1)}"]


def _load(folder: Path, rounds: int) -> list[Row]:
    project = write_project(folder, 1_000)
    at = ["--project", str(project)]
    times = by_turns(
        max(3, rounds),
        load=lambda: time_command(lakewright("ls", "jobs", *at)),
        validate=lambda: time_command(lakewright("validate", *at)),
        start=lambda: time_command(lakewright("--version")),
    )
    load, validate, start = (cpu_seconds(times[name]) for name in ("load", "validate", "start"))
    what = "1,000 targets, 1,000 relations and 1,000 mappings"
    return [
        Row(f"loading a project of {what}, {CPU}", f"{load - start:.2f} s", "≤ 1 s"),
        Row(f"`validate` of it, including the order of its targets, {CPU}", f"{validate:.2f} s"),
    ]


def _clean(folder: Path, rounds: int) -> list[Row]:
    project = write_project(folder, 200)
    fill(project, 200, 50)
    at = ["--project", str(project)]
    build = lakewright("job", "daily", "build", *at)
    times = by_turns(
        max(3, rounds),
        plan=lambda: time_command(lakewright("plan", "daily", "build", *days(1), *at)),
        one=lambda: time_command([*build, *days(1)]),
        ten=lambda: time_command([*build, *days(10)]),
        fifty=lambda: time_command([*build, *days(50)]),
    )
    # CREATE and BUILD of each target in each instance
    each = (cpu_seconds(times["ten"]) - cpu_seconds(times["one"])) / (9 * 200 * 2) * 1000
    growth = _memory(times["fifty"]) - _memory(times["ten"])
    return [
        Row(f"`plan` of 200 targets, all clean, {CPU}", f"{cpu_seconds(times['plan']):.2f} s", "< 3 s"),
        Row(f"`job` of 200 targets, all clean, {CPU}", f"{cpu_seconds(times['one']):.2f} s", "< 3 s"),
        Row("one more clean target, observed, planned and recorded", f"{each:.1f} ms", "≤ 20 ms"),
        Row("memory of 50 instances compared with 10", f"{growth:+.0f} MiB of {_memory(times['ten']):.0f}"),
    ]


def compare_growth(few: Path, many: Path, rounds: int) -> list[Row]:
    """Return what `plan` of a whole project costs with few and with many slices and builds; nothing is due.

    Args:
        few: A project of 100 entities and 200 targets, with a slice and a build of each.
        many: The same with 100 slices and 500 builds of each.
        rounds: How often each is planned.
    """
    times = by_turns(
        max(3, rounds),
        few=lambda: time_command(lakewright("plan", "--project", str(few))),
        many=lambda: time_command(lakewright("plan", "--project", str(many))),
    )
    small, large = (cpu_seconds(times[name]) for name in ("few", "many"))
    counts = {place: _count(place) for place in (few, many)}
    changed = many / "lake" / "bronze" / "e0" / "2030-01-01.csv"
    changed.write_text("id,n\n1,1\n")
    again = [time_command(lakewright("plan", "--project", str(many))) for _ in times["many"]]
    changed.unlink()
    what = "`plan` of 200 targets and 100 entities in which nothing is due"
    return [
        Row(f"{what}, with 10,000 slices and 100,000 builds, {CPU}", f"{large:.2f} s", "≤ 3 s"),
        Row("the same compared with 100 slices and 200 builds", f"{large / small:.2f}", "≤ 1.2"),
        Row("the same with one new slice, compared with none", f"{cpu_seconds(again) / large:.2f}"),
        *(
            Row(f"{name}, with few and with many", f"{counts[few][name]} and {counts[many][name]}", wanted)
            for name, wanted in COUNTED.items()
        ),
    ]


def _count(project: Path) -> Counter[str]:
    """Return how often a plan of a project lists bronze, opens a log and asks the manifest."""
    counts: Counter[str] = Counter()

    def counted(name: str, module: Any, attribute: str) -> Any:
        own = getattr(module, attribute)

        def call(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return own(*arguments, **options)

        return patch.object(module, attribute, call)

    app = App.open(project, environ={})
    with (
        counted("listings of bronze", observe, "list_bronze"),
        counted("opened logs", deltalake, "DeltaTable"),
        counted("queries of the manifest", Database, "read"),
    ):
        plan_of_project(app)
    app.close()
    return counts


def _memory(measured: list[Measured]) -> float:
    return min(each.memory_mib for each in measured)


def compare_jobs(folder: Path, *, targets: int, instances: int, rounds: int) -> list[Row]:
    """Return how long the same builds take sequentially and with four in parallel."""
    numbers = iter(range(1_000))

    def build(*options: str) -> Measured:
        project = write_project(folder / str(next(numbers)), targets)
        at = ["--project", str(project), *options]
        done = time_command(lakewright("job", "daily", "build", *days(instances), *at))
        shutil.rmtree(project)
        return done

    times = by_turns(rounds, one=build, four=lambda: build("-j", "4"))
    one, four = seconds(times["one"]), seconds(times["four"])
    what = f"{targets} small targets in {instances} instances"
    return [
        Row(f"{what}, sequentially", f"{one:.0f} s"),
        Row(f"{what}, `-j 4`", f"{four:.0f} s, {four / one:.2f} of that", "≤ 0.6"),
    ]
