"""A plan of two hundred clean tables in an object store beside the same tables on a disk; no JVM starts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tests.stores.proxy import FaultyProxy
from tests.stores.s3 import CONCURRENT, Store, running_concurrent_store, running_store

from benchmarks.lifecycle import days, fill, write_project
from benchmarks.report import Row
from benchmarks.timing import Measured, by_turns, cpu_seconds, lakewright, seconds, time_command

TABLES, DAYS = 200, 5


def compare_plans(folder: Path, rounds: int) -> list[Row]:
    """Return how long a plan takes on both sides, and its requests."""
    disk = write_project(folder / "disk", TABLES)
    fill(disk, TABLES, DAYS)
    with _store(folder / "objects") as store:
        bucket = store.new_bucket()
        for file in sorted(file for file in (disk / "lake").rglob("*") if file.is_file()):
            store.client.upload_file(str(file), bucket, f"lake/{file.relative_to(disk / 'lake')}")
        stored = _stored_project(folder / "stored", bucket, store)
        times = by_turns(rounds, disk=lambda: _plan(disk), store=lambda: _plan(stored))
        with FaultyProxy(store.url) as proxy:
            _plan(_stored_project(folder / "counted", bucket, Store(proxy.url)))
    what = f"`plan` of {TABLES} clean tables in a store that answers {_ANSWERS} : on a disk"
    clock, processor = (_ratio(of(times["store"]), of(times["disk"])) for of in (seconds, cpu_seconds))
    return [
        Row(f"{what}, by the clock", clock, "<= 3"),
        Row(f"{what}, processor time", processor),
        Row("requests of that plan", _told(proxy.requests)),
    ]


_ANSWERS = "several requests at once" if CONCURRENT else "one request after the other"


def _store(folder: Path) -> AbstractContextManager[Store]:
    return running_concurrent_store(folder) if CONCURRENT else running_store()


def _plan(project: Path) -> Measured:
    done = time_command(lakewright("plan", "daily", "build", *days(1), "--project", str(project)))
    if "\n  BUILD CLEAN\n" in done.output:
        return done
    raise RuntimeError(f"the tables are not clean:\n{done.output[:2000]}")


def _stored_project(folder: Path, bucket: str, store: Store) -> Path:
    project = write_project(folder, TABLES, lake=f"s3://{bucket}/lake")
    sections = {"name": "bench", "modules": ["model.yml"], "storage": store.section}
    (project / "project.yml").write_text(json.dumps(sections))
    return project


def _ratio(store: float, disk: float) -> str:
    return f"{store:.2f} s : {disk:.2f} s, ratio {store / disk:.2f}"


def _told(requests: Sequence[str]) -> str:
    counts = Counter("LIST" if "list-type=" in each else each.partition(" ")[0] for each in requests)
    return ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts))
