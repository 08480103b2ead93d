"""Commands on a server's warm session, compared with those that start Spark; a server at rest and for long.

Processor time is that of all processes: the client, the worker, the hosts and the JVM.

    python -m benchmarks.serve [--slices 500] [--rest 60] [--arrivals 10] [--rounds 3]

prints a run of another size, which is not written to the page.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from benchmarks.report import Row, print_rows
from benchmarks.timing import adopt_orphans, cpu_of_children, lakewright, time_command, time_with_jvm
from lakewright.spark.java import find_java

ENTITIES, ROWS = 20, 20
SETTLE = 1.0
PATIENCE = 120.0
COLLECTIONS = 3

PROJECT = """
name: served
lake: {root_folder: "${project.basedir}/lake"}
modules: [model]
"""
HEAD = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}", bronze_format: csv}}
entities:
"""
ENTITY = """
  e{number}:
    id: "e{number}"
    connection: shop
    processtype: merge
    columns: [{{name: id, fieldroles: [businesskey]}}]
"""


TRIGGER = f"triggers: {{arrivals: {{entities: [e0], on: arrival, settle: {SETTLE:g}s}}}}\n"


@dataclass(frozen=True)
class Taken:
    """What one command took, in seconds."""

    elapsed: float
    processor: float


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes:
        slices: Slices that go through one server.
        rest: Seconds for which a server does nothing.
        arrivals: Files that arrive in bronze while a trigger waits for them.
    """

    slices: int = 500
    rest: float = 60.0
    arrivals: int = 10


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the measurements of a project with 20 entities, which is written below `folder`."""
    return measure(folder, rounds, Size())


def measure(folder: Path, rounds: int, size: Size) -> list[Row]:
    """Return the measurements in this size."""
    lake = _Lake(folder)
    lake.write()
    adopt_orphans()
    cold = [lake.cold("process", lake.arrived(0)) for _ in range(rounds)]
    asked = ["sql", "SELECT count(*) FROM e0"]
    cold_sql = [lake.cold(*asked) for _ in range(rounds)]
    tenth = max(size.slices // 10, 1)
    with _Server(lake) as server:
        first = server.taken("process", lake.arrived(0))
        warm = [server.taken("process", lake.arrived(number % ENTITIES)) for number in range(tenth)]
        heap = [server.heap()]
        warm += [
            server.taken("process", lake.arrived(number % ENTITIES)) for number in range(tenth, size.slices)
        ]
        heap.append(server.heap())
        memory = server.memory[1:]
        warm_sql = [server.taken(*asked) for _ in range(max(rounds, 10))]
        rest = server.at_rest(size.rest)
        lake.declare_trigger()  # the server notices it
        # The first one waits until the server has noticed.
        waited = [server.committed() for _ in range(size.arrivals + 1)][1:]
    late = warm[-tenth:]
    return [
        Row(
            "`process` of a 20-row Merge slice, cold: processor time, elapsed",
            f"{_processor(cold):.1f} s, {_elapsed(cold):.1f} s",
        ),
        Row("the same, the first one on a server", f"{first.processor:.1f} s, {first.elapsed:.1f} s"),
        Row(
            f"the same, warm (the last {len(late)} of {size.slices})",
            f"{_processor(late):.2f} s, {_elapsed(late):.2f} s; "
            f"{_processor(late) / _processor(cold):.2f} x the processor time",
            "≤ 0.3 x, ≤ 2.5 s on a calm machine",
        ),
        Row(
            "`sql` of a small question, cold and warm: elapsed",
            f"{_elapsed(cold_sql):.1f} s, {_elapsed(warm_sql):.2f} s",
            "warm ≤ 1 s",
        ),
        Row(
            f"{size.slices} slices over 20 entities: resident memory of all processes, first and last tenth",
            f"{median(memory[:tenth]):.0f} and {median(memory[-tenth:]):.0f} MiB",
            "flat",
        ),
        Row(
            "the same: heap in use after collections",
            " and ".join("unknown" if each is None else f"{each:.0f} MiB" for each in heap),
            "flat",
        ),
        Row("a server at rest: share of a core", f"{rest:.2%}", "< 0.5 %"),
        Row(
            f"from a file's arrival to its commit, beyond `settle` ({len(waited)} files): median, longest",
            f"{median(waited):.1f} s, {max(waited):.1f} s",
            "≤ 3 s",
        ),
    ]


def _processor(taken: Sequence[Taken]) -> float:
    return median(each.processor for each in taken)


def _elapsed(taken: Sequence[Taken]) -> float:
    return median(each.elapsed for each in taken)


class _Lake:
    """A project whose entities get small slices."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._chance = random.Random(1)
        self._slices = 0

    def write(self) -> None:
        (self.folder / "model").mkdir()
        (self.folder / "project.yml").write_text(PROJECT)
        entities = "".join(ENTITY.format(number=number) for number in range(ENTITIES))
        (self.folder / "model" / "model.yml").write_text(HEAD + entities)

    def declare_trigger(self) -> None:
        """Have slices of the first entity processed as they arrive."""
        (self.folder / "model" / "triggers.yml").write_text(TRIGGER)

    def arrived(self, entity: int) -> str:
        """Write a slice of an entity, and return the entity's name."""
        self._slices += 1
        folder = self.folder / "lake" / "bronze" / f"e{entity}"
        folder.mkdir(parents=True, exist_ok=True)
        keys = self._chance.sample(range(1000), ROWS)
        lines = ["id,name,city,amount", *(f"{key},name {key},city {key % 7},{self._slices}" for key in keys)]
        (folder / f"{self._slices:06}.csv").write_text("\n".join(lines) + "\n")
        return f"e{entity}"

    def command(self, *arguments: str) -> list[str]:
        return lakewright(*arguments, "-q", "--project", str(self.folder))

    def cold(self, *arguments: str) -> Taken:
        measured = time_with_jvm(self.command(*arguments, "--no-serve"))
        return Taken(measured.seconds, measured.cpu_seconds)


class _Server:
    """A server of the lake, while the `with` block runs."""

    def __init__(self, lake: _Lake) -> None:
        self._lake = lake
        self.memory: list[float] = []

    def __enter__(self) -> _Server:
        subprocess.run(self._lake.command("serve", "--detach", "--port", "0"), check=True)
        state = json.loads((self._lake.folder / ".lakewright" / "serve.json").read_text())
        self._process = psutil.Process(state["pid"])
        before = -1.0
        while before < self._used() - 0.05:  # it is warming up
            before = self._used()
            time.sleep(2)
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(self._lake.command("serve", "stop"), check=True)

    def taken(self, *arguments: str) -> Taken:
        """Run a command on the server, and note the memory of its processes afterwards."""
        before, begun = self._used() + cpu_of_children(), time.monotonic()
        time_command(self._lake.command(*arguments))
        elapsed = time.monotonic() - begun
        used = self._used() + cpu_of_children() - before
        self.memory.append(self._resident())
        return Taken(elapsed, used)

    def at_rest(self, seconds: float) -> float:
        """Return the share of a core that it uses with nothing to do."""
        time.sleep(5)
        before, begun = self._used(), time.monotonic()
        time.sleep(seconds)
        return (self._used() - before) / (time.monotonic() - begun)

    def committed(self) -> float:
        """Let a slice arrive; return the seconds until its commit, without those for which it must settle."""
        log = self._lake.folder / "lake" / "silver" / "e0" / "_delta_log"
        before = {each.name for each in log.glob("*.json")}
        self._lake.arrived(0)
        arrived = time.time()
        while not (new := [each for each in log.glob("*.json") if each.name not in before]):
            if time.time() - arrived > PATIENCE:
                raise RuntimeError("the slice that arrived was not processed")
            time.sleep(0.02)
        taken = min(each.stat().st_mtime for each in new) - arrived - SETTLE
        time.sleep(SETTLE)  # its run ends
        return taken

    def heap(self) -> float | None:
        """Return the MiB of heap in use after collections; None if this Java has no tool that tells it.

        One is not enough: Spark frees blocks and broadcasts after a collection has found that nobody refers
        to them. It was 93 and 284 MiB after one, and 68 and 79 after another, with 20 and 40 slices.
        """
        jcmd = find_java(os.environ).home / "bin" / "jcmd"
        jvm = next((each for each in self._family() if each.name() == "java"), None)
        if jvm is None or not jcmd.exists():
            return None
        asked = [str(jcmd), str(jvm.pid)]
        found: list[float] = []
        for _ in range(COLLECTIONS):
            subprocess.run([*asked, "GC.run"], check=True, capture_output=True)
            told = subprocess.run([*asked, "GC.heap_info"], check=True, capture_output=True, text=True).stdout
            used = re.findall(r"(?:Gen|heap)\s+total \d+K, used (\d+)K", told)
            found.append(sum(map(int, used)) / 1024)
            time.sleep(1)
        return min(found) or None

    def _family(self) -> Iterator[psutil.Process]:
        yield self._process
        yield from self._process.children(recursive=True)

    def _resident(self) -> float:
        """Return the MiB of memory that its processes hold; one that ends meanwhile counts as none."""
        held = 0
        for each in self._family():
            with suppress(psutil.Error):
                held += each.memory_info().rss
        return held / 2**20

    def _used(self) -> float:
        """Return the processor time of its processes, with those that have ended."""
        used = 0.0
        for each in self._family():
            with suppress(psutil.Error):
                times = each.cpu_times()
                used += times.user + times.system + times.children_user + times.children_system
        return used


def main() -> None:
    """Print the measurements of a run in the size that the arguments tell."""
    parser = argparse.ArgumentParser(description="Measure a server; nothing is written.")
    parser.add_argument("--slices", type=int, default=Size.slices, help="slices through one server")
    parser.add_argument("--rest", type=float, default=Size.rest, help="seconds for which it does nothing")
    parser.add_argument("--arrivals", type=int, default=Size.arrivals, help="files that arrive")
    parser.add_argument("--rounds", type=int, default=3, help="commands that start Spark")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakewright-bench-") as folder:
        size = Size(chosen.slices, chosen.rest, chosen.arrivals)
        print_rows("Server", measure(Path(folder), chosen.rounds, size))


if __name__ == "__main__":
    main()
