"""Durations of tests, kept from run to run in `durations.json`.

Files are run in the order of their kept durations, the longest first. `--dist loadfile` hands a file to
whichever worker is free, so the workers end at about the same time: the Spark files keep both busy, and the
short files fill the end. No pytest plugin does this: pytest-split divides tests among separate runs, and
pytest-xdist knows no durations.

`make durations` runs everything and writes the file anew. `KEEP_DURATIONS=1` before a run of some files, on a
machine that does nothing else, replaces what is kept of these files. `make slow` lists the files that take
longer than their budget, by what is kept of the tests that `make test` has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_name("durations.json")
UNKNOWN = inf
"""Seconds that a file without a kept duration counts for. It may take long, so it runs first."""
BUDGET = 25.0
"""Seconds that a file may take in `make test`; the summary lists those that take longer."""
REASONS: Mapping[str, str] = {
    "tests/acceptance/test_demo.py": "two months of the demo, as a user runs it",
    "tests/spark/strategies/test_cases.py": "a table for each of many short cases",
    "tests/spark/strategies/test_crash.py": "each point at which a run may die",
    "tests/spark/strategies/test_defects.py": "a table for each of 22 defects",
    "tests/spark/test_cluster.py": "six JVMs: a master, two workers, two executors and a driver",
    "tests/spark/test_rewind.py": "undos and rebuilds apply slices again, one after the other",
    "tests/spark/test_reading_cases.py": "a table, or several, for each kind of input that was misread",
    "tests/spark/test_two_drivers.py": "two rounds of two drivers, on an object store",
    "tests/spark/targets/test_doctor.py": "each rule of a table is broken, found and repaired",
}
"""Files that may take longer than the budget, and why."""
LONG = 2.0
"""Seconds from which on a single test is kept too."""
SLOWER = 2.0
"""A test that takes this many times its kept duration is marked in the summary."""
SHOWN = 10


def load_kept(path: Path = KEPT) -> dict[str, float]:
    """Return the seconds that files and long tests took when they were last kept."""
    kept: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
    return kept


def file_of(nodeid: str) -> str:
    """Return the file of a test.

    Example:
        >>> file_of("tests/unit/test_a.py::TestB::test_c[x::y]")
        'tests/unit/test_a.py'
    """
    return nodeid.partition("::")[0]


def kind_of(nodeid: str) -> str:
    """Return the kind of a test: the folder below `tests`, or `doctests`.

    Example:
        >>> kind_of("tests/unit/test_a.py::test_b"), kind_of("src/lakewright/app.py::lakewright.app")
        ('unit', 'doctests')
    """
    parts = file_of(nodeid).split("/")
    return parts[1] if parts[0] == "tests" and len(parts) > 2 else "doctests"


def longest_first(nodeids: Iterable[str], kept: Mapping[str, float]) -> list[int]:
    """Return the positions of tests, ordered by the durations of their files; files stay together.

    Example:
        >>> longest_first(["a.py::x", "b.py::y", "a.py::z"], {"a.py": 1.0, "b.py": 2.0})
        [1, 0, 2]
    """
    files = [file_of(nodeid) for nodeid in nodeids]
    return sorted(range(len(files)), key=lambda n: (-kept.get(files[n], UNKNOWN), files[n], n))


@dataclass(eq=False)  # pytest keeps its plugins in sets
class Durations:
    """Seconds of the tests that have run, in all workers."""

    tests: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the setup, call and teardown of each test."""
        self.tests[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the seconds by kind and the slowest tests beside their kept durations."""
        if len(self.tests) < SHOWN:
            return
        terminalreporter.section("durations")
        for text in self.summary(load_kept()):
            terminalreporter.write_line(text)
        if terminalreporter.config.getoption("markexpr") == "not nightly":
            for text in ("", *over_budget(self.files())):
                terminalreporter.write_line(text)
        if os.environ.get("KEEP_DURATIONS"):
            KEPT.write_text(json.dumps(self.to_keep(load_kept()), indent=0, sort_keys=True) + "\n")
            terminalreporter.write_line(f"kept in {KEPT.name}")

    def summary(self, kept: Mapping[str, float]) -> list[str]:
        """Return the lines of the summary."""
        kinds: defaultdict[str, list[float]] = defaultdict(list)
        for nodeid, seconds in self.tests.items():
            kinds[kind_of(nodeid)].append(seconds)
        by_kind = sorted(kinds.items(), key=lambda kind: -sum(kind[1]))
        lines = [f"{kind:<12}{len(found):>6} tests {sum(found):>8.0f} s" for kind, found in by_kind]
        lines.append(f"{'all':<12}{len(self.tests):>6} tests {sum(self.tests.values()):>8.0f} s")
        long = (test for test in self.tests.items() if test[1] >= LONG)
        slowest = sorted(long, key=lambda test: -test[1])[:SHOWN]
        return [*lines, "", *(_beside(nodeid, seconds, kept.get(nodeid)) for nodeid, seconds in slowest)]

    def files(self) -> dict[str, float]:
        """Return the seconds of each file."""
        files: defaultdict[str, float] = defaultdict(float)
        for nodeid, seconds in self.tests.items():
            files[file_of(nodeid)] += seconds
        return files

    def to_keep(self, kept: Mapping[str, float]) -> dict[str, float]:
        """Return the seconds of each file, and those of tests that take long.

        Files that have not run keep what is kept of them, unless they are gone.
        """
        files = self.files()
        others = {
            name: seconds
            for name, seconds in kept.items()
            if file_of(name) not in files and (ROOT / file_of(name)).is_file()
        }
        long = {nodeid: seconds for nodeid, seconds in self.tests.items() if seconds >= LONG}
        return {**others, **{name: round(seconds, 1) for name, seconds in {**files, **long}.items()}}


def over_budget(files: Mapping[str, float]) -> list[str]:
    """Return the lines that tell which files take longer than their budget, the longest first."""
    over = [(name, seconds) for name, seconds in files.items() if seconds > BUDGET]
    if not over:
        return []
    lines = [
        f"{seconds:>7.1f} s {name}: {REASONS.get(name, 'OVER ITS BUDGET')}"
        for name, seconds in sorted(over, key=lambda file: -file[1])
    ]
    return [f"Files that take longer than {BUDGET:.0f} s", *lines]


def kept_by_day(kept: Mapping[str, float], tests: Collection[str]) -> dict[str, float]:
    """Return the kept seconds of the files of some tests, without those of their other long tests.

    Example:
        >>> kept_by_day({"a.py": 9.0, "a.py::x": 5.0, "a.py::y": 3.0, "b.py": 2.0}, {"a.py::y"})
        {'a.py': 4.0}
    """
    files = {name: kept[name] for name in map(file_of, tests) if name in kept}
    for nodeid, seconds in kept.items():
        if "::" in nodeid and nodeid not in tests and file_of(nodeid) in files:
            files[file_of(nodeid)] -= seconds
    return files


def _tests() -> set[str]:
    """Return the tests of `make test`."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {line for line in done.stdout.splitlines() if "::" in line}


def _beside(nodeid: str, seconds: float, kept: float | None) -> str:
    told = "new" if kept is None else f"kept {kept:.1f}"
    slower = "  SLOWER" if kept is not None and seconds > SLOWER * kept else ""
    return f"{seconds:>7.1f} s ({told}) {nodeid}{slower}"


if __name__ == "__main__":
    by_day = kept_by_day(load_kept(), _tests())
    for line in over_budget(by_day):
        print(line)
    print(f"{sum(by_day.values()):>7.0f} s all files")
