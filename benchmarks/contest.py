"""What others do with the same slices: scripts in Spark, a snapshot of dbt, delta-rs and DuckDB.

Cold: each slice in a new process. Warm: from the fourth slice of a session on. The least is measured beside
them: read the slice and the table's keys, find the changed rows by a hash that the table keeps, and append
them in one commit; their former versions are not even marked.

LAKEWRIGHT_CONTEST_ROWS="300000" LAKEWRIGHT_DBT=~/dbt/bin/dbt python -m benchmarks Contest
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from benchmarks.dbt_snapshot import DBT, snapshot_command, write_dbt_project
from benchmarks.report import Row, write_section
from benchmarks.strategies.picture import Bar, draw
from benchmarks.strategies.slices import write_slice
from benchmarks.strategies.suite import Contestant, apply_slice, write_project
from benchmarks.timing import adopt_orphans, lakewright, load_during, time_with_jvm

SIZES = tuple(map(int, os.environ.get("LAKEWRIGHT_CONTEST_ROWS", "3000 30000 300000").split()))
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
CHANGED = 0.01
LARGE_ENOUGH = 300_000
"""Rows from which ratios are wanted: below, the start of queries decides."""

DOCS = Path(__file__).parent.parent / "docs"
TITLE = "Contest in detail"

COLD = {
    "merge": ("tool", "hand", "naive", "delta-rs", "duckdb"),
    "historic": ("tool", "hand", "naive", *(("dbt",) if DBT else ()), "duckdb"),
}
WARM = {
    "merge": ("warm", "hand", "delta-rs", "duckdb", "floor"),
    "historic": ("warm", "hand", "duckdb", "floor"),
}
NAMES = {
    "tool": "Lakewright",
    "warm": "Lakewright",
    "hand": "by hand",
    "naive": "naive",
    "dbt": "dbt snapshot",
    "delta-rs": "delta-rs",
    "duckdb": "DuckDB",
    "floor": "least",
}
KINDS = {
    "first": "the first slice",
    "all rows": "all rows, 1 % changed",
    "changes": "only the 1 % that changed",
}
UNCOUNTED = {"all rows": 3, "changes": 1}
"""Slices that warm a session up; the first one fills the table."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A slice of a kind, applied to a table of this many rows in new processes or in warm ones."""

    strategy: str
    rows: int
    kind: str
    is_warm: bool = False

    @property
    def what(self) -> str:
        return f"{self.strategy.capitalize()}, {self.rows:,} rows: {KINDS[self.kind]}"


@dataclass
class _Results:
    """Processor time and elapsed time of each contestant in each round of a case, in seconds."""

    taken: dict[_Case, dict[str, list[tuple[float, float]]]] = field(default_factory=dict)

    def add(self, case: _Case, name: str, cpu: float, elapsed: float) -> None:
        self.taken.setdefault(case, {}).setdefault(name, []).append((cpu, elapsed))

    def middle(self, case: _Case, name: str) -> tuple[float, float]:
        times = self.taken[case][name]
        return median(cpu for cpu, _ in times), median(elapsed for _, elapsed in times)


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the ratios that are wanted; write the table of all contestants and its picture."""
    adopt_orphans()
    results = _Results()
    return load_during(row for rows in SIZES for row in _of_size(folder / str(rows), rows, rounds, results))


def _of_size(folder: Path, rows: int, rounds: int, results: _Results) -> Iterator[Row]:
    for strategy in COLD:
        _measure_cold(folder / "cold" / strategy, strategy, rows, rounds, results)
    _measure_warm(folder / "warm", rows, rounds, results)
    _write_details(results)
    for case in [each for each in results.taken if each.rows == rows and each.kind != "first"]:
        own = "warm" if case.is_warm else "tool"
        other, wanted = _compared(case)
        (cpu, elapsed), (theirs, clock) = (results.middle(case, name) for name in (own, other))
        yield Row(
            f"{case.what}, {'warm' if case.is_warm else 'cold'}, Lakewright : {NAMES[other]}",
            f"CPU {cpu:.2f} s : {theirs:.2f} s = {cpu / theirs:.2f}; "
            f"elapsed {elapsed:.2f} s : {clock:.2f} s = {elapsed / clock:.2f}",
            wanted if case.rows >= LARGE_ENOUGH else "",
        )


def _compared(case: _Case) -> tuple[str, str]:
    """Return the contestant that a case is compared with, and the ratio that is wanted."""
    if not case.is_warm:
        return "hand", "≤ 0.8"
    return "delta-rs" if case.strategy == "merge" and case.rows < 2_000_000 else "duckdb", "≤ 2"


def _measure_cold(folder: Path, strategy: str, rows: int, rounds: int, results: _Results) -> None:
    names = COLD[strategy]
    for name in names:
        if name == "tool":
            write_project(folder / name, (strategy,), ())
        elif name == "dbt":
            write_dbt_project(folder / name)
    for version in range(2 * rounds + 1):
        kind = "changes" if version > rounds else "all rows" if version else "first"
        file = _slice(folder.parent, rows, version, is_whole=kind != "changes")
        for name in names:
            command = _command(folder / name, name, strategy, file, FIRST + timedelta(hours=version))
            measured = time_with_jvm(command)
            results.add(_Case(strategy, rows, kind), name, measured.cpu_seconds, measured.seconds)


def _command(place: Path, name: str, strategy: str, file: Path, at: datetime) -> list[str]:
    """Return the command with which a contestant applies a slice."""
    if name == "dbt":
        return snapshot_command(place, file)
    if name != "tool":
        script = [sys.executable, "-m", "benchmarks.one_slice"]
        return [*script, name, str(place), str(file), strategy, at.isoformat()]
    bronze = place / "lake" / "bronze" / strategy
    bronze.mkdir(parents=True, exist_ok=True)
    os.link(file, bronze / file.name)
    options = ["--project", str(place), f"--processing-time={at.isoformat()}"]
    return lakewright("process", strategy, file.name, *options)


def _measure_warm(folder: Path, rows: int, rounds: int, results: _Results) -> None:
    write_project(folder / "warm", WARM, ())
    with ExitStack() as stack:
        names = dict.fromkeys(name for names in WARM.values() for name in names)
        everybody = {name: stack.enter_context(Contestant(name, folder / name)) for name in names}
        for strategy, own in WARM.items():
            version = 0
            for kind, uncounted in UNCOUNTED.items():
                for turn in range(uncounted + rounds):
                    file = _slice(folder, rows, version, is_whole=kind == "all rows")
                    for name in own:
                        spent = apply_slice(everybody[name], strategy, file, strategy, version)
                        if turn >= uncounted:
                            case = _Case(strategy, rows, kind, is_warm=True)
                            results.add(case, name, spent["cpu_seconds"], spent["seconds"])
                    version += 1


def _slice(folder: Path, rows: int, version: int, *, is_whole: bool) -> Path:
    # Rows that the last slice of all rows changed have their first values again in the next one.
    share = CHANGED / 2 if is_whole else CHANGED
    return write_slice(
        folder / "slices" / f"{version}.parquet",
        rows,
        version=version,
        share=share if version else 0.0,
        is_whole=is_whole,
    )


_TEXT = """\
CPU seconds of each process with its JVM, then elapsed seconds; `-` was not measured. *By hand* is a tuned
script in Spark, *naive* one that follows the strategies' rules literally, *DuckDB* a script with DuckDB and
deltalake, and *least* appends changed rows only. None of them has checks or a manifest. A snapshot of dbt
does what Historic does; delta-rs has a merge only. `LAKEWRIGHT_CONTEST_ROWS` chooses the sizes of tables,
by default 3,000, 30,000 and 300,000 rows; `LAKEWRIGHT_DBT` names the program of dbt, whose session derives no
constraints: with Spark's default, its second snapshot of 3,000 rows was stopped after eleven minutes.
"""


def _write_details(results: _Results) -> None:
    parts = [_TEXT]
    for is_warm, title in ((False, "Cold"), (True, "Warm")):
        cases = [each for each in results.taken if each.is_warm is is_warm]
        names = list(dict.fromkeys(name for case in cases for name in results.taken[case]))
        picture = f"benchmarks-{title.lower()}.svg"
        bars = [
            Bar(each.what, {name: results.middle(each, name)[0] for name in results.taken[each]})
            for each in cases
        ]
        draw(DOCS / picture, bars, NAMES)
        parts += [
            f"### {title}\n",
            f"![CPU seconds of the contestants, {title.lower()}]({picture})\n",
            f"| slice, applied to a table | {' | '.join(NAMES[name] for name in names)} |",
            "|---" * (len(names) + 1) + "|",
            *(f"| {case.what} | {' | '.join(_cells(results, case, names))} |" for case in cases),
            "",
        ]
    write_section(DOCS / "benchmarks.md", TITLE, "\n".join(parts))


def _cells(results: _Results, case: _Case, names: list[str]) -> Iterator[str]:
    for name in names:
        if name in results.taken[case]:
            cpu, elapsed = results.middle(case, name)
            yield f"{cpu:.1f} ({elapsed:.1f})"
        else:
            yield "-"
