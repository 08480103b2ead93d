"""`make nightly` runs all of its parts, and says which of them found something."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.nightly import main


def test_a_part_that_finds_something_keeps_no_other_from_running(capsys: pytest.CaptureFixture[str]) -> None:
    commands: list[str] = []

    def find_something(command: Sequence[str]) -> bool:
        commands.append(" ".join(command))
        return False

    assert main(["--minutes", "10"], find_something) == 1
    emulators, marked, orchestrators, matrix, properties, histories, fuzz, chaos = commands
    assert emulators == "scripts/emulators"
    assert "-m nightly" in marked
    assert orchestrators == "scripts/orchestrators"
    assert matrix.endswith("-m tests.matrix")
    assert "--hypothesis-profile=nightly --hypothesis-seed=" in properties
    assert "tests.spark.due.histories --minutes 3.3" in histories
    assert "tests.spark.strategies.fuzz --minutes 2.0" in fuzz
    assert "tests.chaos --points 100000 --minutes 4.0" in chaos
    assert (
        "Found something: emulators, tests, orchestrators, matrix, properties, histories, fuzz, chaos."
        in capsys.readouterr().out
    )
