"""The bus: what a command under a lock costs, and whether readiness and state depend on the manifest's size.

python -m benchmarks Bus
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.manifest import fill, leave_open, seed
from benchmarks.report import Row
from benchmarks.timing import load_during, peak_memory
from lakewright.bus.command_runs import CommandRun
from lakewright.bus.manifest import Manifest
from lakewright.manifest.redaction import Redactor
from lakewright.stores.registry import open_store

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
    return load_during(chain(_overhead(folder, rounds), _growth(folder, SIZES, rounds)))


def _overhead(folder: Path, rounds: int) -> Iterator[Row]:
    """Compare a command under a lock with the bare command, in turns: others may load the machine."""
    bare, held = [], []
    with _opened(folder / "overhead.db") as manifest:
        for turn in range(rounds):
            manifest.add(*(f"item {turn} {number}" for number in range(ITEMS)), application="acme/landing")
            bare.append(_spent(_run_bare))
            held.append(_spent(lambda: _run_held(manifest)))
    (alone, alone_spent), (under, under_spent) = (
        (1000 * median(each) / ITEMS for each in zip(*turns, strict=True)) for turns in (bare, held)
    )
    yield Row(
        "SQLite: a command that does nothing, alone and under `manifest run`, for each item",
        f"{alone:.1f} and {under:.1f} ms, {under - alone:.1f} ms more, "
        f"of which {under_spent - alone_spent:.1f} ms processor time",
        "≤ 30 ms more",
    )


def _run_bare() -> None:
    for _ in range(ITEMS):
        subprocess.run(COMMAND, check=True, stdin=subprocess.DEVNULL)


def _run_held(manifest: Manifest) -> None:
    done = CommandRun(
        manifest=manifest,
        demand=manifest.demand("acme/scanner", ()),
        arguments=COMMAND,
        environ=os.environ,
        redactor=Redactor(),
        stops=_NoStop(),
        forward=lambda _: None,
        report=lambda _: None,
    )
    done.run()
    if done.count("processed") != ITEMS:
        raise RuntimeError(f"{done.count('processed')} of {ITEMS} items were processed")


def _spent(work: Callable[[], None]) -> tuple[float, float]:
    """Return the seconds that work takes, and its processor time, that of its commands included."""
    begin, before = time.perf_counter(), os.times()
    work()
    after = os.times()
    return time.perf_counter() - begin, sum(after[:4]) - sum(before[:4])


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
                timed.setdefault(what, []).append(min(_seconds(ask) for _ in range(20 * rounds)))
        yield peak_memory("the state", lambda: manifest.state("lakewright/bench/entity"))
    for what, times in timed.items():
        told = ", ".join(f"{1000 * each:.2f}" for each in times)
        named = ", ".join(f"{size:,}" for size in sizes)
        yield Row(
            f"SQLite: {what} at {named} items",
            f"{told} ms, ratio {times[-1] / times[0]:.2f}",
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


def _seconds(ask: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    ask()
    return time.perf_counter() - begin


def _opened(place: Path) -> closing[Manifest]:
    store = open_store({"kind": "sqlite", "path": str(place)})
    return closing(Manifest(store, redactor=Redactor(), lease=LEASE))
