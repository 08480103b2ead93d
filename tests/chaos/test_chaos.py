"""Runs that are killed or stopped at any moment, on each back end, and what holds of their lakes afterwards.

`make chaos` does the same for as long as one likes. `processing-manifest.md`, "State".
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.session import Session
from tests.chaos.stores import manifests

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

# Of each kind that every machine allows, the quick ones more often.
STRIKES = ["all", "all", "failpoint", "failpoint", "file", "file", "python", "jvm", "term"]
POINTS = 13
SEED = 20


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_whatever_kills_a_run_the_next_one_makes_it_good(tmp_path: Path, store: str) -> None:
    try:
        with manifests([store]) as makers:
            session = Session(tmp_path / "lake", makers[store](), SEED, STRIKES, print)
            session.run(POINTS)
    except RuntimeError as missing:
        pytest.skip(str(missing))
    assert session.struck > POINTS / 2
