"""The example of `examples/s3`: two drivers over a lake in S3, one of which is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.command import PATH

EXAMPLE = Path(__file__).parents[2] / "examples" / "s3"


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_two_drivers_of_which_one_is_killed_do_each_slice_once(tmp_path: Path) -> None:
    environ = {**os.environ, "PATH": PATH, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "run.py")], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the first driver was killed after its first slice" in done.stdout
    assert "each slice was committed at most once, and none is missing" in done.stdout
