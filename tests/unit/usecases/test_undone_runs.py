"""Which failed runs `status` still lists: those whose work no later run has done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewright.manifest.journal import Journal, Run
from lakewright.manifest.lease import Holder
from lakewright.plan.phase import Phase, phases_until
from lakewright.testing import MemoryStore
from lakewright.usecases.status import undone_runs

NOW = datetime(2024, 5, 1, tzinfo=UTC)
FAILED = Run(
    "failed",
    "shop",
    "daily",
    "BUILD",
    {"day": "1"},
    NOW,
    Holder("here", 1, "then", "x", "ada"),
    "FAILED",
    NOW,
)


def undone(newest_first: Sequence[Run]) -> Iterator[Run]:
    """Return the failed runs of a history whose runs have results in the phases that their facts tell."""
    journal = Journal(MemoryStore())
    for run in newest_first:
        phase = Phase.__members__.get(run.phase)
        ran = () if phase is None else (phase,) if run.facts.get("alone") else phases_until(phase)
        entries = {number: {"name": "orders", "phase": each.value} for number, each in enumerate(ran)}
        journal.record_targets(run, entries)
    return undone_runs(journal, newest_first)


@pytest.mark.parametrize(
    ("later", "is_left"),
    [
        ({"phase": "BUILD"}, False),
        ({"phase": "BUILD", "facts": {"targets": ["orders"]}}, False),
        ({"phase": "VERIFY"}, False),
        ({"phase": "VERIFY", "facts": {"no_lifecycle": True}}, True),
        ({"phase": "VERIFY", "facts": {"alone": True}}, True),  # of a version that did not record it
        ({"phase": "VERIFY", "facts": {"targets": ["orders"]}}, True),
        ({"phase": "CREATE"}, True),
        ({"phase": "DESTROY"}, True),
        ({"phase": "UNDO"}, True),
        ({"phase": "VERIFY", "parameters": {"day": "2"}}, True),
        ({"phase": "VERIFY", "job": "weekly"}, True),
    ],
)
def test_a_failed_build_is_listed_until_a_run_that_builds_all_of_it(
    later: dict[str, Any], is_left: bool
) -> None:
    """Issue 11: after `verify` succeeded, `status` kept the failed `build` of the same job."""
    after = replace(FAILED, run_id="later", status="SUCCESS", started=NOW + timedelta(hours=1), **later)
    assert [run.run_id for run in undone([after, FAILED])] == (["failed"] if is_left else [])


def test_a_verify_that_failed_stands_for_the_build_before_it_and_not_for_the_one_after() -> None:
    verify = replace(FAILED, run_id="verify", phase="VERIFY")
    assert [run.run_id for run in undone([verify, FAILED])] == ["verify"]
    assert [run.run_id for run in undone([FAILED, verify])] == ["failed", "verify"]
    rewind = replace(FAILED, phase="REBUILD")
    assert [run.run_id for run in undone([verify, rewind])] == ["verify", "failed"]
    check = replace(rewind, run_id="check", facts={"check": True})
    checked = replace(check, run_id="checked", status="SUCCESS")
    assert [run.run_id for run in undone([checked, rewind])] == ["failed"]


def test_a_rewind_that_was_refused_and_a_comparison_leave_nothing_undone() -> None:
    """Issue 11: a refused `rebuild --check` stayed among the runs that failed."""
    rewind = replace(FAILED, phase="REBUILD")
    check = replace(rewind, run_id="check", facts={"check": True})
    refused = replace(rewind, run_id="refused", facts={"refused": True})
    assert list(undone([check])) == []
    assert list(undone([refused])) == []
    assert [run.run_id for run in undone([refused, check, rewind])] == ["failed"]
