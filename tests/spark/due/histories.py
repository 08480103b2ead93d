"""Random histories of real lakes from new seeds, which are printed: `python -m tests.spark.due.histories`.

A finding is repeated with `HISTORIES=SEED:1 python -m pytest tests/spark/due/test_histories.py`.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time

FIRST, _, NUMBER = os.environ.get("HISTORIES", "0:2").partition(":")
SEEDS = range(int(FIRST), int(FIRST) + int(NUMBER or 1))
"""The seeds of the histories that the tests take."""

MOST, AT_ONCE = 300, 25
"""How many histories there are in all, and in one JVM."""


def main() -> int:
    """Run histories until there were enough or the time is over; return 1 as soon as one ends wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--number", type=int, default=MOST)
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    for done in range(0, given.number, AT_ONCE):
        seed, number = random.SystemRandom().randrange(2**32), min(AT_ONCE, given.number - done)
        print(f"HISTORIES={seed}:{number}", flush=True)
        tests = [sys.executable, "-m", "pytest", "-q", "-x", "tests/spark/due/test_histories.py"]
        environ = {**os.environ, "HISTORIES": f"{seed}:{number}"}
        if subprocess.run(tests, env=environ, check=False).returncode:
            return 1
        if time.monotonic() > end:
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
