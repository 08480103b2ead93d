"""Strike runs until the points are done, the time is over or something that must hold doesn't.

A session's seed decides its slices and its strikes; `--seed N --points K` repeats it. Moments are parts of
the time that a run takes, so that what a moment hits may differ a little from machine to machine.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from itertools import cycle
from pathlib import Path

from tests.chaos.session import Broken, Session
from tests.chaos.stores import KINDS as STORES
from tests.chaos.stores import manifests
from tests.chaos.strikes import KINDS

LONGEST_SESSION = 8
"""Strikes at one lake."""


def main(arguments: list[str]) -> int:
    """Return 0 if everything held, 1 if not."""
    given = _parser().parse_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    deadline = time.monotonic() + 60 * given.minutes
    left = given.points
    sessions: list[Session] = []
    with manifests(given.store or list(STORES)) as makers:
        for kind, make in cycle(makers.items()):
            if left <= 0 or time.monotonic() > deadline:
                break
            points = min(left, LONGEST_SESSION)
            print(f"seed {seed}: {points} strikes, manifest in {kind}", flush=True)
            folder = Path(tempfile.mkdtemp(prefix="lakewright-chaos-"))
            horizon = sessions[-1].horizon if sessions else Session.horizon
            session = Session(folder / "lake", make(), seed, given.strike or KINDS, _say, horizon)
            sessions.append(session)
            try:
                session.run(session.chosen(points))
            except Broken as broken:
                print(f"{broken}\nThe lake is left in {folder}", flush=True)
                return 1
            shutil.rmtree(folder)
            left, seed = left - points, seed + 1
    struck, missed = sum(each.struck for each in sessions), sum(each.missed for each in sessions)
    print(f"{struck} runs struck, {missed} ended before: everything held in {len(sessions)} lakes")
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    minutes = float(os.environ.get("CHAOS_MINUTES", "inf"))
    points = int(os.environ.get("CHAOS_POINTS", "1000"))
    parser.add_argument("--points", type=int, default=points, help="how many strikes in all (%(default)s)")
    parser.add_argument("--minutes", type=float, default=minutes, help="begin no session after (%(default)s)")
    parser.add_argument("--seed", type=int, help="of the first session; the next ones count on")
    parser.add_argument("--store", action="append", choices=list(STORES), help="the back end; all in turn")
    parser.add_argument("--strike", action="append", choices=KINDS, help="the kind of strikes; all")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
