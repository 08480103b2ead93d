"""A plan of two hundred clean tables in an object store beside the same tables on a disk; no JVM starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.lifecycle import days, fill, write_project
from benchmarks.report import Row
from benchmarks.timing import Measured, by_turns, cpu_seconds, lakewright, seconds, time_command

__all__ = ["compare_plans"]

TABLES, DAYS = 200, 5


def compare_plans(folder: Path, url: str, bucket: str, rounds: int, ask: Callable[[], str]) -> list[Row]:
    """Return how long a plan takes on both sides, and its requests.

    Args:
        folder: Where the projects are written.
        url: The address of the store.
        bucket: An existing bucket.
        rounds: Plans on each side.
        ask: Returns the requests since it was asked last.
    """
    disk = write_project(folder / "disk", TABLES)
    fill(disk, TABLES, DAYS)
    store = write_project(folder / "store", TABLES, lake=f"s3://{bucket}/plans")
    section = _in_store(store, url)
    _upload(disk / "lake", section, bucket)
    requests = []

    def plan(project: Path) -> Measured:
        ask()
        done = time_command(lakewright("plan", "daily", "build", *days(1), "--project", str(project)))
        if project == store:
            requests.append(ask())
        if "\n  BUILD CLEAN\n" in done.output:
            return done
        raise RuntimeError(f"the tables are not clean:\n{done.output[:2000]}")

    times = by_turns(rounds, disk=lambda: plan(disk), store=lambda: plan(store))
    what = f"`plan` of {TABLES} clean tables in a store : on a disk"
    ratios = (("by the clock", seconds, "<= 3"), ("processor time", cpu_seconds, ""))
    return [
        *(
            Row(f"{what}, {name}", _ratio(*(of(times[s]) for s in ("store", "disk"))), w)
            for name, of, w in ratios
        ),
        Row("requests of that plan", requests[-1]),
    ]


def _ratio(store: float, disk: float) -> str:
    return f"{store:.2f} s : {disk:.2f} s, ratio {store / disk:.2f}"


def _in_store(project: Path, url: str) -> dict[str, Any]:
    """Add the sections by which a project reaches the store, and return that of the storage."""
    s3 = {
        "endpoint_url": url,
        "credentials": "static",
        "access_key": "benchmark",
        "secret_key": "not-a-secret",
    }
    storage = {"s3": s3, "single_driver": True}
    sections = {"name": "bench", "modules": ["model.yml"], "storage": storage, "manifest": {"kind": "sqlite"}}
    (project / "project.yml").write_text(json.dumps(sections))
    return storage


def _upload(lake: Path, section: dict[str, Any], bucket: str) -> None:
    from lakewright.lake.object_storage import ObjectStorage
    from lakewright.spec.models.storage import StorageSettings

    objects = ObjectStorage(StorageSettings.model_validate(section), {}, is_used=True).bucket(bucket)
    for file in sorted(lake.rglob("*")):
        if file.is_file():
            objects.put(f"plans/{file.relative_to(lake)}", file.read_bytes())
