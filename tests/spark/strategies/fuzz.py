"""Machines without end: slices for the strategies, and histories for the manifest on SQLite, from new seeds.

`make fuzz` runs it for FUZZ_MINUTES. A finding ends it with the seed that leads there again:
`make fuzz FUZZ_SEED=…`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

from hypothesis.stateful import RuleBasedStateMachine
from tests.spark.strategies.machine import APPLIED
from tests.spark.strategies.rewinding import UNDONE, RewindMachine
from tests.spark.strategies.searching import run_seed
from tests.spark.strategies.test_fold import FoldMachine
from tests.stores.test_machine import LikeMemory, sqlite_places

from lakewright.spark.conf import SessionSettings
from lakewright.spark.session_builder import build_session

MACHINES = 4
"""Of slices, for one seed; of the manifest there are ten times as many."""


def main() -> int:
    """Run machines from one seed after the other until the time is up or something is found."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, help="only this one")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lakewright-fuzz-"))

    class Machine(RewindMachine):
        session = build_session(SessionSettings(folder, app_name="fuzz", master="local[2]"))

    class Folds(FoldMachine):
        session = Machine.session

    class Manifest(LikeMemory):
        places = staticmethod(sqlite_places)

    end = time.monotonic() + 60 * options.minutes
    chosen, seeds = options.seed, 0
    while chosen is None or seeds == 0:
        number = chosen if chosen is not None else random.SystemRandom().randrange(2**32)
        seeds += 1
        sound = _is_sound(Manifest, number, 10 * MACHINES) and _is_sound(Machine, number, MACHINES)
        if not (sound and _is_sound(Folds, number, MACHINES)):
            print(f"\nfound with seed {number}: make fuzz FUZZ_SEED={number}", flush=True)
            return 1
        print(
            f"seed {number}: sound; {len(APPLIED)} slices applied, {len(UNDONE)} rewinds so far", flush=True
        )
        if time.monotonic() > end:
            break
    print(f"{seeds} seeds, {len(APPLIED)} slices applied, {len(UNDONE)} rewinds, nothing found")
    return 0


def _is_sound(machine: type[RuleBasedStateMachine], number: int, examples: int) -> bool:
    try:
        run_seed(machine, number, examples=examples, steps=12)
    except Exception:  # whatever it is, it is a finding
        traceback.print_exc()
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
