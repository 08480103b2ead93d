"""The bus: what a command under a lock costs, and whether readiness and state depend on the manifest's size.

python -m benchmarks Bus
"""

from __future__ import annotations

import os
import subprocess
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.manifest import fill, leave_open, seed
from benchmarks.report import Row
from lakewright.bus.manifest import Manifest
from lakewright.bus.run_commands import run_commands
from lakewright.manifest.redact import Redactor
from lakewright.stores.registry import open_store

__all__ = ["run"]

SIZES = (10_000, 100_000, 1_000_000)
"""Numbers of items at which questions are timed."""

ITEMS = 100

COMMAND = ("true",)

LEASE = timedelta(seconds=60)


@dataclass
class _NoStop:
    signal: int | None = None


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the measurements of the bus."""
    return [*_overhead(folder, rounds), *_growth(folder, SIZES, rounds)]


def _overhead(folder: Path, rounds: int) -> Iterator[Row]:
    """Compare a command under a lock with the bare command, in turns: others may load the machine."""
    bare, held = [], []
    with _opened(folder / "overhead.db") as manifest:
        for turn in range(rounds):
            manifest.add(*(f"item {turn} {number}" for number in range(ITEMS)), application="acme/landing")
            begin = time.perf_counter()
            for _ in range(ITEMS):
                subprocess.run(COMMAND, check=True, stdin=subprocess.DEVNULL)
            bare.append((time.perf_counter() - begin) / ITEMS)
            begin = time.perf_counter()
            done = run_commands(
                manifest,
                manifest.demand("acme/scanner", ()),
                COMMAND,
                environ=os.environ,
                redactor=Redactor(),
                stops=_NoStop(),
                forward=lambda _: None,
                report=lambda _: None,
            )
            held.append((time.perf_counter() - begin) / ITEMS)
            if done.count("processed") != ITEMS:
                raise RuntimeError(f"{done.count('processed')} of {ITEMS} items were processed")
    alone, under = 1000 * median(bare), 1000 * median(held)
    yield Row(
        "SQLite: a command that does nothing, alone and under `manifest run`, for each item",
        f"{alone:.1f} and {under:.1f} ms, {under - alone:.1f} ms more",
        "≤ 30 ms more",
    )


def _growth(folder: Path, sizes: tuple[int, ...], rounds: int) -> Iterator[Row]:
    timed: dict[str, list[float]] = {}
    place = folder / "bus.db"
    with _opened(place) as manifest:
        leave_open(manifest.store)
        seed(manifest.store)
        manifest.add(*(f"table {number}" for number in range(ITEMS)), application="acme/landing")
        for application in ("a", "b"):
            manifest.process_all(application, lambda _: {"rows": 1}, match="table *")
        items = 0
        for size in sizes:
            fill(place, size - items)
            items = size
            for what, ask in _questions(manifest).items():
                timed.setdefault(what, []).append(min(_seconds(ask) for _ in range(5 * rounds)))
        yield from _memory(manifest)
    for what, times in timed.items():
        told = ", ".join(f"{1000 * each:.2f}" for each in times)
        named = ", ".join(f"{size:,}" for size in sizes)
        yield Row(
            f"SQLite: {what} at {named} items",
            f"{told} ms of processor time, ratio {times[-1] / times[0]:.2f}",
            "ratio ≤ 2",
        )


def _questions(manifest: Manifest) -> dict[str, Callable[[], Any]]:
    after = ["a", "b"]
    return {
        f"the {ITEMS} items that are ready after two applications": lambda: _exactly(
            manifest.ready("loader", after)
        ),
        "the backlog of an application after two others": lambda: manifest.backlog("loader", after),
    }


def _exactly(found: Iterator[Any]) -> None:
    number = sum(1 for _ in found)
    if number != ITEMS:
        raise RuntimeError(f"{number} items were ready instead of {ITEMS}")


def _memory(manifest: Manifest) -> Iterator[Row]:
    """Compare the peak memory of the state of a tenth of the items, and of ten times as many."""
    peaks = []
    for wanted in (3_000, 30_000):
        tracemalloc.start()
        for _ in islice(manifest.state("lakewright/bench/entity"), wanted):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
        tracemalloc.stop()
    yield Row(
        "SQLite: peak memory of the state of 3,000 and of 30,000 items",
        f"{peaks[0]:.1f} and {peaks[1]:.1f} MiB, ratio {peaks[1] / peaks[0]:.2f}",
        "flat",
    )


def _seconds(ask: Callable[[], Any]) -> float:
    """Return the seconds of processor time: other work on the machine doesn't count."""
    begin = time.process_time()
    ask()
    return time.process_time() - begin


def _opened(place: Path) -> closing[Manifest]:
    store = open_store({"kind": "sqlite", "path": str(place)})
    return closing(Manifest(store, redactor=Redactor(), lease=LEASE))
