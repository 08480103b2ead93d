"""Commands of Flowman's users (E15)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import InProcess


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        (["mapping", "describe", "x"], 'lakewright sql "DESCRIBE mapping.NAME"'),
        (["relation", "count", "x"], 'lakewright sql "SELECT count(*) FROM gold.NAME"'),
        (["target", "build", "x"], "lakewright job JOB PHASE -nl -t NAME"),
        (["info"], "lakewright doctor"),
    ],
)
def test_a_command_of_flowman_is_answered_with_ours(tmp_path: Path, words: list[str], ours: str) -> None:
    """E15: an unknown command that Flowman has names the one that does the same."""
    done = InProcess(tmp_path).run(*words)
    assert done.code == 2
    assert ours in " ".join(done.err.split())


def test_any_other_unknown_command_is_answered_with_the_nearest_one(tmp_path: Path) -> None:
    """E15: words that Flowman doesn't have get no command of ours for it."""
    done = InProcess(tmp_path).run("jobb")
    assert "Flowman" not in done.err
    assert "job" in done.err
