"""Search for faults longer than `make test` does: `make nightly`, for NIGHTLY_MINUTES.

First come the emulators of clouds, the tests marked `nightly`, those of Airflow and Dagster, and the matrix
of Spark, however long they take. What is left of the time is shared by the searches, which choose new seeds
and print them. A part that finds something does not keep the next ones from running; the exit code is 1 if
any did.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

WEIGHTS = {"properties": 1, "histories": 5, "fuzz": 3, "chaos": 6}
"""How the searches share the time. A strike of chaos takes a JVM, so it gets most."""
LEAST_MINUTES = 1.0

Run = Callable[[Sequence[str]], bool]


def main(arguments: Sequence[str], run: Run | None = None) -> int:
    """Run all parts, as commands by `run`, and return 0 if none found anything, 1 if one did."""
    run = run or _succeeds
    parser = argparse.ArgumentParser(prog="make nightly", description=__doc__)
    minutes = float(os.environ.get("NIGHTLY_MINUTES", "120"))
    parser.add_argument("--minutes", type=float, default=minutes, help="for all of it (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="tests that run at once (%(default)s)")
    given = parser.parse_args(arguments)
    begin = time.monotonic()
    found = [] if run([EMULATORS]) else ["emulators"]
    if not run(_marked(given.workers)):
        found.append("tests")
    if not run([ORCHESTRATORS]):
        found.append("orchestrators")
    if not run([sys.executable, "-m", "tests.matrix"]):
        found.append("matrix")
    left = given.minutes - (time.monotonic() - begin) / 60
    for part, share in shares(left).items():
        if not SEARCHES[part](share, run):
            found.append(part)
    if found:
        print(f"\nFound something: {', '.join(found)}. CONTRIBUTING.md says how to repeat a finding.")
        return 1
    print(f"\nNothing found in {(time.monotonic() - begin) / 60:.0f} minutes")
    return 0


def shares(minutes: float) -> Mapping[str, float]:
    """Return the minutes of each search; none gets less than one.

    Example:
        >>> shares(150)
        {'properties': 10.0, 'histories': 50.0, 'fuzz': 30.0, 'chaos': 60.0}
        >>> shares(-5)
        {'properties': 1.0, 'histories': 1.0, 'fuzz': 1.0, 'chaos': 1.0}
    """
    whole = sum(WEIGHTS.values())
    return {part: max(LEAST_MINUTES, minutes * weight / whole) for part, weight in WEIGHTS.items()}


def _marked(workers: int) -> list[str]:
    distribution = ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"]
    return [*PYTEST, "-m", "nightly", *distribution]


def _properties(minutes: float, run: Run) -> bool:
    """Run Hypothesis' tests with many examples from one seed after the other."""
    end = time.monotonic() + 60 * minutes
    while True:
        seed = random.SystemRandom().randrange(2**32)
        options = ["--hypothesis-profile=nightly", f"--hypothesis-seed={seed}"]
        if not run([*PYTEST, "tests/unit", "-m", "hypothesis", *options]):
            return False
        if time.monotonic() > end:
            return True


def _histories(minutes: float, run: Run) -> bool:
    return run([sys.executable, "-m", "tests.spark.due.histories", "--minutes", f"{minutes:.1f}"])


def _fuzz(minutes: float, run: Run) -> bool:
    return run([sys.executable, "-m", "tests.spark.strategies.fuzz", "--minutes", f"{minutes:.1f}"])


def _chaos(minutes: float, run: Run) -> bool:
    return run([sys.executable, "-m", "tests.chaos", "--points", "100000", "--minutes", f"{minutes:.1f}"])


def _succeeds(command: Sequence[str]) -> bool:
    """Run a part, which prints what it finds, with Spark's compiled queries; return whether it succeeded."""
    print(f"\n$ {shlex.join(command)}", flush=True)
    environ = {**os.environ, "COMPILE_QUERIES": "1"}
    return subprocess.run(command, env=environ, check=False).returncode == 0


EMULATORS = "scripts/emulators"
ORCHESTRATORS = "scripts/orchestrators"
PYTEST = [sys.executable, "-m", "pytest", "-q"]

SEARCHES: Mapping[str, Callable[[float, Run], bool]] = {
    "properties": _properties,
    "histories": _histories,
    "fuzz": _fuzz,
    "chaos": _chaos,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
