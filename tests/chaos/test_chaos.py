"""Runs that are killed at a point of the code or at any moment, and what holds of their lakes afterwards.

`make chaos` does the same for as long as one likes, on each back end. What a run that dies in this process
leaves behind, at every point, is tested in `spark/strategies/test_crash.py`. `processing-manifest.md`,
"State" (Processing acquires a lock).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.chaos.lake import ENTITIES
from tests.chaos.served import VICTIMS
from tests.chaos.session import Session
from tests.chaos.stores import manifests
from tests.chaos.strikes import FAILPOINTS, SYSCALLS, Strike, killed_at, refused_at

# Of each kind that every machine allows, the quick ones more often.
STRIKES = ["all", "all", "failpoint", "failpoint", "file", "file", "python", "jvm", "term"]
POINTS = 13
SEED = 20


CALLS = """
import os
for turn in "12":
    os.mkdir("m" + turn)
    with open("f" + turn, "w") as file:
        os.ftruncate(file.fileno(), 1)
        os.fdatasync(file.fileno())
    os.rename("f" + turn, "r" + turn)
    os.unlink("r" + turn)
    print(turn, flush=True)
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("place", SYSCALLS)
@pytest.mark.parametrize(("count", "turns"), [(1, ""), (2, "1\n"), (3, "1\n2\n")])
def test_a_system_call_is_struck_where_it_is_counted_to(
    tmp_path: Path, place: str, count: int, turns: str
) -> None:
    program = [sys.executable, "-I", "-S", "-c", CALLS]
    struck = subprocess.run(
        [*killed_at(place, count), *program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (struck.stdout, struck.returncode) == (turns, -9 if count < 3 else 0), struck.stderr
    made = {path.name for path in tmp_path.iterdir()}
    assert (f"m{count}" in made) == (place != "mkdir" and count < 3)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("place", SYSCALLS)
def test_a_system_call_is_refused_where_it_is_counted_to(tmp_path: Path, place: str) -> None:
    program = [sys.executable, "-I", "-S", "-c", CALLS]
    refused = subprocess.run(
        [*refused_at(place, 2), *program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (refused.stdout, refused.returncode) == ("1\n", 1)
    assert "No space left on device" in refused.stderr


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.slow
def test_a_run_that_is_killed_is_made_good_by_the_next_whatever_the_strategy(tmp_path: Path) -> None:
    """Locked only, written but not committed, committed but not recorded; one entity of each strategy."""
    session = Session(tmp_path / "lake", {"kind": "sqlite"}, SEED, (), print)
    points = zip(("after_lock", "before_commit", "after_commit"), ENTITIES, strict=True)
    session.run([Strike("failpoint", place=point, targets=entity) for point, entity in points])
    assert session.struck == len(ENTITIES)


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("entity", ENTITIES)
def test_a_run_that_is_killed_at_any_point_is_made_good_by_the_next(tmp_path: Path, entity: str) -> None:
    session = Session(tmp_path / "lake", {"kind": "sqlite"}, SEED, (), print)
    session.run([Strike("failpoint", place=point, targets=entity) for point in FAILPOINTS])
    assert session.struck == len(FAILPOINTS)


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_whatever_process_of_a_server_is_killed_the_next_run_makes_it_good(tmp_path: Path) -> None:
    session = Session(tmp_path / "lake", {"kind": "sqlite"}, SEED, (), print)
    moments = (0.2, 0.45, 0.7)
    session.run(Strike("served", moments[number % 3], count=number) for number, _ in enumerate(VICTIMS))
    assert session.struck > len(VICTIMS) / 2


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_a_server_that_is_killed_while_slices_arrive_goes_on_after_its_restart(tmp_path: Path) -> None:
    session = Session(tmp_path / "lake", {"kind": "sqlite"}, SEED, (), print)
    moments = (0.2, 0.5, 0.8, 1.1)
    session.run(Strike("arriving", moment, count=number) for number, moment in enumerate(moments))
    assert session.struck == len(moments)


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_whatever_kills_a_run_the_next_one_makes_it_good(tmp_path: Path, store: str) -> None:
    try:
        with manifests([store]) as makers:
            session = Session(tmp_path / "lake", makers[store](), SEED, STRIKES, print)
            session.run(session.chosen(POINTS))
    except RuntimeError as missing:
        pytest.skip(str(missing))
    assert session.struck > POINTS / 2
