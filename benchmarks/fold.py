"""A backlog of 120 slices, folded into one commit and processed one by one, in one warm process."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping
from datetime import date, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.report import Row
from benchmarks.timing import time_command

SLICES, ROWS, KEYS = 120, 2_000, 20_000
ALONE = 12
"""Number of slices that are processed one by one; the first ones, on a small table, are the cheapest."""

STRATEGIES = ("merge", "historic")

PROJECT = """
name: fold
lake: {root_folder: "${project.basedir}/lake"}
modules: [model]
"""
MODULE = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
"""
ENTITY = """
  {name}:
    id: "{name}"
    connection: shop
    processtype: {strategy}
    columns: [{{name: id, fieldroles: [businesskey]}}]
    settings: {{fold: {fold}}}
"""


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the processor time of 120 slices folded, and its share of that of slices one by one."""
    del rounds  # both ways are measured in one process
    command = [sys.executable, "-m", "benchmarks.fold", str(folder)]
    return rows_of(json.loads(time_command(command).output.splitlines()[-1]))


def rows_of(spent: Mapping[str, Mapping[str, float]]) -> list[Row]:
    """Return the rows of the page for what `measure` returned."""
    return [
        Row(
            f"{strategy}: {SLICES} slices of {ROWS:,} rows over {KEYS:,} keys, folded : one by one",
            f"{ways['folded']:.1f} s : {ways['alone']:.1f} s of processor time, "
            f"ratio {ways['folded'] / ways['alone']:.3f}",
            "<= 0.1",
        )
        for strategy, ways in spent.items()
    ]


def measure(folder: Path) -> dict[str, dict[str, float]]:
    """Return the processor seconds of both ways for each strategy; those one by one are extrapolated."""
    from lakewright.app import App
    from lakewright.usecases.process_slices import process_slices

    _write_project(folder)
    app = App.open(folder)
    for strategy in STRATEGIES:  # compiles what both ways use
        for way in ("folded", "alone"):
            process_slices(app, f"warm_{strategy}_{way}")
    spent: dict[str, dict[str, float]] = {}
    for strategy in STRATEGIES:
        spent[strategy] = {}
        for way, share in (("folded", 1), ("alone", SLICES / ALONE)):
            before = processor_seconds()
            result = process_slices(app, f"{strategy}_{way}")
            assert result.error is None
            spent[strategy][way] = (processor_seconds() - before) * share
    app.close()
    return spent


def _write_project(folder: Path) -> None:
    (folder / "project.yml").write_text(PROJECT)
    module = folder / "model"
    module.mkdir()
    text = MODULE
    for strategy in STRATEGIES:
        for way in ("folded", "alone"):
            for name, count in ((f"warm_{strategy}_{way}", 6), (f"{strategy}_{way}", _count(way))):
                text += ENTITY.format(name=name, strategy=strategy, fold=str(way == "folded").lower())
                write_slices(folder / "lake" / "bronze" / name, count)
    (module / "entities.yml").write_text(text)


def _count(way: str) -> int:
    return SLICES if way == "folded" else ALONE


def write_slices(folder: Path, count: int) -> None:
    """Write slices of drawn rows, the same ones each time."""
    pa: Any = import_module("pyarrow")
    pq: Any = import_module("pyarrow.parquet")
    folder.mkdir(parents=True)
    drawn = random.Random(1)
    for number in range(count):
        keys = drawn.sample(range(KEYS), ROWS)
        columns = {
            "id": keys,
            "name": [f"name {drawn.randrange(1000)}" for _ in keys],
            "city": [f"city {drawn.randrange(50)}" for _ in keys],
            "amount": [drawn.randrange(10_000) / 100 for _ in keys],
            "is_open": [drawn.random() < 0.5 for _ in keys],
        }
        day = date(2023, 1, 1) + timedelta(days=number)
        pq.write_table(pa.table(columns), folder / f"{day.isoformat()}.parquet")


def processor_seconds() -> float:
    """Return the processor time of this process and of its JVM."""
    import psutil

    own = psutil.Process()
    times = [each.cpu_times() for each in (own, *own.children(recursive=True))]
    return sum(each.user + each.system for each in times)


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
