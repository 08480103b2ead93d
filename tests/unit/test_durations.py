"""Files run in an order that keeps all workers busy, and the summary says which of them take too long."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import durations
from tests.durations import BUDGET, REASONS, Durations, longest_first, over_budget

ROOT = Path(__file__).parents[2]


def test_a_file_that_nobody_has_measured_runs_first() -> None:
    kept = {"long.py": 100.0, "short.py": 1.0}
    assert longest_first(["short.py::a", "long.py::a", "new.py::a"], kept) == [2, 1, 0]


def test_a_file_beyond_its_budget_is_told_with_its_reason_if_it_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(durations, "REASONS", {"b.py": "it starts two JVMs"})
    seen = Durations()
    for nodeid, seconds in (("a.py::x", BUDGET), ("a.py::y", 5.0), ("b.py::x", 60.0), ("c.py::x", BUDGET)):
        seen.tests[nodeid] = seconds
    assert over_budget(seen.files()) == [
        "Files that take longer than 25 s",
        "   60.0 s b.py: it starts two JVMs",
        "   30.0 s a.py: OVER ITS BUDGET",
    ]


def test_a_run_of_some_files_keeps_what_is_known_of_the_others() -> None:
    here, other = "tests/unit/test_durations.py", "tests/unit/test_nightly.py"
    kept = {here: 9.0, f"{here}::gone": 9.0, other: 1.0, f"{other}::x": 3.0, "tests/no_more.py": 7.0}
    seen = Durations()
    seen.tests[f"{here}::short"] = 0.5
    seen.tests[f"{here}::long"] = 4.0
    assert seen.to_keep(kept) == {here: 4.5, f"{here}::long": 4.0, other: 1.0, f"{other}::x": 3.0}


def test_reasons_are_of_files_that_exist() -> None:
    assert [name for name in REASONS if not (ROOT / name).is_file()] == []
