"""Runs the cases, each contestant in turn, and saves measurements so that a run can continue later."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.report import Row, machine
from benchmarks.strategies.cases import CONTESTANTS, STRATEGIES, Case, every_case
from benchmarks.strategies.page import write_details
from benchmarks.strategies.slices import write_slice
from benchmarks.strategies.wanted import rows_wanted

RESULTS = Path(__file__).parent / "measured.json"
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
HISTORY = "historic_history"
SLICES, WARM = 50, 8


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure.

    Attributes:
        rounds: Number of turns of each case.
        budget: Seconds after which no case is started.
        only: Part of the names of the cases to run; all if empty.
        history: Rows of the table for the fifty slices; 0 leaves it out.
        is_fresh: Whether to discard earlier measurements.
    """

    sizes: tuple[int, ...] = (300_000, 2_000_000)
    rounds: int = 2
    budget: float = float("inf")
    only: str = ""
    history: int = 100_000
    is_fresh: bool = False


class Contestant:
    """A worker process that answers one request after the other."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "benchmarks.strategies.worker", name, str(folder)]
        self._log = (folder / "log.txt").open("w")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self._answer()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return the answer to a request."""
        if self._process.stdin is None:
            raise RuntimeError("the worker accepts no requests")
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            self._process.wait()
            log = (self.folder / "log.txt").read_text()[-3_000:]
            raise RuntimeError(f"{self.name} ended:\n{log}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def place(self, table: str) -> Path:
        return self.folder / "lake" / "silver" / table

    def slice_file(self, table: str, file: Path) -> Path:
        """Put a slice where the contestant reads it."""
        there = self.folder / "lake" / "bronze" / table / file.name
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, there)
        return there

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        self._log.close()


@dataclass
class Results:
    """Measurements so far: case, contestant, and a measurement per round."""

    file: Path
    measured: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)
    machine: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, file: Path) -> Results:
        if not file.exists():
            return cls(file)
        kept = json.loads(file.read_text())
        return cls(file, kept["measured"], kept["machine"], kept["history"])

    def add(self, case: str, contestant: str, measure: Mapping[str, Any]) -> None:
        self.measured.setdefault(case, {}).setdefault(contestant, []).append(dict(measure))
        self.write()

    def rounds(self, case: Case) -> int:
        """Return how often all contestants of a case have been measured."""
        done = self.measured.get(case.name, {})
        return min(len(done.get(name, ())) for name in case.contestants)

    def begin(self, case: Case) -> None:
        """Discard measurements that lack a contestant: only those of one run can be compared."""
        if not self.rounds(case):
            self.measured.pop(case.name, None)

    def write(self) -> None:
        self.machine = machine()
        kept = {"machine": self.machine, "measured": self.measured, "history": self.history}
        self.file.write_text(json.dumps(kept, indent=1) + "\n")


def measure(folder: Path, plan: Plan, results: Results) -> None:
    """Measure what the plan asks for and the results do not have, within its budget.

    Raises:
        RuntimeError: The contestants' tables differ.
    """
    end = time.monotonic() + plan.budget
    left = [
        (turn, case)
        for turn in range(plan.rounds)
        for case in every_case(plan.sizes)
        if plan.only in case.name and results.rounds(case) <= turn
    ]
    is_history_wanted = plan.history and plan.only in HISTORY and not results.history
    if not left and not is_history_wanted:
        return
    for name in ("tool", "warm"):
        write_project(folder / name, [f"{case.name}_{turn}" for turn, case in left], [c for _, c in left])
    with ExitStack() as stack:
        wanted = {name for _, case in left for name in case.contestants}
        names = [name for name in CONTESTANTS if name in wanted] or CONTESTANTS[:1]
        contestants = [stack.enter_context(Contestant(name, folder / name)) for name in names]
        warm: set[str] = set()
        for turn, case in left:
            if time.monotonic() > end:
                return
            if case.strategy not in warm:
                # An uncounted turn loads classes and compiles methods.
                _measure_case(folder, contestants, case, turn, None)
                warm.add(case.strategy)
            results.begin(case)
            first = turn % len(contestants)
            _measure_case(folder, contestants[first:] + contestants[:first], case, turn, results)
        if is_history_wanted and time.monotonic() < end:
            _measure_history(folder, contestants[0], plan.history, results)


def apply_slice(contestant: Contestant, table: str, file: Path, strategy: str, hour: int) -> dict[str, Any]:
    """Let a contestant apply a slice to a table, and return the measurement."""
    there = contestant.slice_file(table, file)
    at = (FIRST + timedelta(hours=hour)).isoformat()
    return contestant.ask(do="apply", table=table, file=str(there), strategy=strategy, at=at)


def _measure_case(
    folder: Path, contestants: Sequence[Contestant], case: Case, turn: int, results: Results | None
) -> None:
    """Let each contestant take its turn; without results, the turn is not counted.

    Raises:
        RuntimeError: The contestants' tables differ.
    """
    size = f"{case.rows}x{case.columns}"
    first = write_slice(folder / "slices" / f"{size}_0.parquet", case.rows, columns=case.columns)
    kind = "whole" if case.is_whole else "changes"
    second = write_slice(
        folder / "slices" / f"{size}_1_{kind}_{case.share:g}.parquet",
        case.rows,
        version=1,
        share=case.share,
        is_whole=case.is_whole,
        columns=case.columns,
    )
    sums = {}
    reader = next(each for each in contestants if each.name == "tool")
    for contestant in (each for each in contestants if each.name in case.contestants):
        table = f"{case.name}_{turn}" if results is not None else f"{case.strategy}_warm"
        if not contestant.place(case.base).exists():
            apply_slice(contestant, case.base, first, case.strategy, 0)
        shutil.copytree(contestant.place(case.base), contestant.place(table))
        taken = apply_slice(contestant, table, second, case.strategy, 1)
        place = str(contestant.place(table))
        sums[contestant.name] = reader.ask(do="sum", place=place, is_seen=case.strategy != "merge")
        taken["load"] = round(os.getloadavg()[0], 1)
        taken["table_bytes"] = _size(contestant.place(case.base))
        shutil.rmtree(contestant.place(table))
        if results is not None:
            results.add(case.name, contestant.name, taken)
        print(f"{case.name}: {contestant.name}: {taken}", flush=True)
    if len({json.dumps(each, sort_keys=True) for each in sums.values()}) > 1:
        raise RuntimeError(f"{case.name}: the contestants' tables differ: {sums}")


def _size(place: Path) -> int:
    return sum(file.stat().st_size for file in place.rglob("*.parquet") if "_delta_log" not in file.parts)


def _measure_history(folder: Path, tool: Contestant, rows: int, results: Results) -> None:
    """Let Lakewright apply fifty slices of one percent each."""
    found = []
    # Warm up with slices of another table; otherwise the early slices, the baseline, would look expensive.
    for table, last in ((f"{HISTORY}_warm", WARM), (HISTORY, SLICES)):
        for version in range(last + 1):
            share, is_whole = (0.01, False) if version else (0.0, True)
            file = folder / "slices" / f"history_{version:02}.parquet"
            write_slice(file, rows, version=version, share=share, is_whole=is_whole)
            taken = apply_slice(tool, table, file, "historic", version)
            if table == HISTORY:
                found.append(taken)
                print(f"history: slice {version}: {taken}", flush=True)
    results.history = found
    results.write()


def write_project(folder: Path, tables: Iterable[str], cases: Iterable[Case]) -> None:
    """Write Lakewright's project with an entity for each table."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = [
        *tables,
        *sorted({case.base for case in cases}),
        *(f"{s}_warm" for s in (*STRATEGIES, HISTORY)),
        HISTORY,
    ]
    lines = ["connections: [{name: bench}]", "entities:"]
    for number, name in enumerate(names, 1):
        strategy = next(s for s in sorted(STRATEGIES, key=len, reverse=True) if name.startswith(s))
        seen = ", last_seen: on_change" if strategy == "merge" else ""
        lines += [
            f"  - name: {name}",
            f"    id: {number}",
            "    connection: bench",
            "    destination: rows",
            f"    processtype: {strategy.partition('_')[0]}",
            "    columns: [{name: id, fieldroles: [businesskey]}]",
            f"    settings: {{bronze_path: {name}, silver_path: {name}{seen}}}",
        ]
    (folder / "model.yml").write_text("\n".join(lines) + "\n")
    (folder / "project.yml").write_text("name: bench\nmodules: [model.yml]\nlake: {root_folder: lake}\n")


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the measurements that have targets, after measuring the missing ones."""
    results = Results.read(RESULTS)
    measure(folder, Plan(rounds=rounds), results)
    write_details(results.measured, results.history)
    return rows_wanted(results.measured, results.history)
