"""Which warnings of targets `status` still lists: those that no later run of the same target came without."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lakewright.cli.commands.status import _warning
from lakewright.errors import Fault
from lakewright.manifest.journal import Journal, Run
from lakewright.manifest.lease import Holder
from lakewright.slices.deviations import SLICES_CHANGED
from lakewright.slices.discover import BRONZE_UNREADABLE
from lakewright.testing import MemoryStore
from lakewright.usecases.history import Warned
from lakewright.usecases.status import warned_beside, warned_targets

NOW = datetime(2024, 5, 1, tzinfo=UTC)
WARNED = {"status": "SUCCESS_WITH_ERRORS", "error": {"message": "it was changed", "remedy": None}}
CLEAN = {"status": "SKIPPED", "reasons": ["every slice has been processed"]}
LEFT = {"status": "SKIPPED", "reasons": [], "is_reached": False}


def run(run_id: str, phase: str = "BUILD", **facts: Any) -> Run:
    holder = Holder("here", 1, "then", "x", "ada")
    return Run(run_id, "shop", "daily", phase, {}, NOW, holder, "SUCCESS_WITH_ERRORS", NOW, facts=facts)


def entry(name: str, told: dict[str, Any], phase: str = "BUILD") -> dict[str, Any]:
    return {"name": name, "phase": phase, "instance": {}, "reasons": [], "error": None, **told}


def warned(*newest_first: tuple[Run, list[dict[str, Any]]]) -> list[tuple[str, str]]:
    """Return the runs and targets of the listed warnings of a history."""
    journal = Journal(MemoryStore())
    for each, entries in newest_first:
        journal.record_targets(each, dict(enumerate(entries)))
    found = warned_targets(journal, [each for each, _ in newest_first])
    return [(each.run.run_id, each.entry["name"]) for each in found]


BOTH = (run("both"), [entry("orders", WARNED), entry("names", WARNED)])


@pytest.mark.parametrize(
    ("later", "left"),
    [
        ((run("later"), [entry("orders", CLEAN), entry("names", CLEAN)]), []),
        ((run("later", targets=["names"]), [entry("names", CLEAN)]), ["orders"]),
        ((run("later", targets=["names"]), [entry("names", LEFT)]), ["orders", "names"]),
        ((run("later", resume="both"), [entry("names", CLEAN)]), ["orders"]),
        ((run("later", "VERIFY", no_lifecycle=True), [entry("names", CLEAN, "VERIFY")]), ["orders", "names"]),
        ((run("later", "CREATE"), [entry("names", CLEAN, "CREATE")]), ["orders", "names"]),
    ],
)
def test_a_warning_stays_until_its_target_is_done_without_it(
    later: tuple[Run, list[dict[str, Any]]], left: list[str]
) -> None:
    assert warned(later, BOTH) == [("both", name) for name in left]


def test_a_warning_that_ended_does_not_come_back_with_a_later_run_that_fails_before_its_target() -> None:
    """A run of the whole job, of another day, stood for the one that had ended the warning."""
    failed = (replace(run("failed"), status="FAILED"), [entry("orders", {"status": "FAILED"})])
    mended = (replace(run("mended"), status="SUCCESS"), [entry("orders", CLEAN)])
    assert warned(failed, mended, (run("verified", "VERIFY"), [entry("orders", WARNED)])) == []


@pytest.mark.parametrize("status", ["FAILED", "ABORTED"])
def test_warnings_of_a_run_that_did_not_succeed_are_listed(status: str) -> None:
    """Nobody heard of a failed check of the documentation in a run that another target had failed."""
    ended = replace(run("ended"), status=status, finished=None if status == "ABORTED" else NOW)
    assert warned((ended, [entry("docs", WARNED), entry("names", LEFT)])) == [("ended", "docs")]
    assert warned((replace(ended, status="RUNNING"), [entry("docs", WARNED)])) == []


def test_warnings_of_one_target_say_in_which_instance() -> None:
    """Two of one run looked the same in `status`."""
    entries = [{**entry("orders", WARNED), "instance": {"day": day}} for day in ("2024-05-01", "2024-05-02")]
    journal, found = Journal(MemoryStore()), run("both")
    journal.record_targets(found, dict(enumerate(entries)))
    told = list(warned_targets(journal, [found]))
    assert [each.subject for each in told] == ["orders (day=2024-05-01)", "orders (day=2024-05-02)"]
    assert [each.as_json()["instance"]["day"] for each in told] == ["2024-05-01", "2024-05-02"]
    assert "orders (day=2024-05-01) BUILD" in str(_warning(told[0], NOW).line)
    assert Warned(found, entry("names", WARNED)).subject == "names"


def test_a_target_that_is_warned_of_again_is_listed_with_the_last_run() -> None:
    one = (run("one", targets=["names"]), [entry("names", WARNED)])
    two = (run("two", targets=["names"]), [entry("names", WARNED)])
    assert warned(two, one, BOTH) == [("two", "names"), ("both", "orders")]


def test_a_warning_is_left_out_if_a_look_at_the_lake_tells_each_of_its_parts() -> None:
    """A line was known for one of changed slices by its words."""
    changed = Fault("2 slices of orders changed", code=SLICES_CHANGED, details={"changed": ["a", "b"]})
    gone = Fault("the bronze folder is gone", code=BRONZE_UNREADABLE)
    old = {"code": SLICES_CHANGED, "message": "1 slice of orders changed", "remedy": None}

    def left(*told: Fault, **recorded: Any) -> int:
        each = Warned(run("r"), {**entry("orders", {**WARNED, "error": old}), "changed": ["a"], **recorded})
        return len(list(warned_beside([each], told)))

    for recorded in ({}, {"parts": [[SLICES_CHANGED, "1 slice of orders changed"]]}):
        assert left(changed, **recorded) == 0
        assert left(gone, **recorded) == 1
        assert left(changed, changed=["c"], **recorded) == 1
    both = changed.and_also(gone)
    assert both.parts == [(SLICES_CHANGED, changed.message), (BRONZE_UNREADABLE, gone.message)]
    two = {"parts": [[SLICES_CHANGED, "1 slice of orders changed"], *map(list, gone.parts)]}
    assert (left(changed, **two), left(both, **two)) == (1, 0)
