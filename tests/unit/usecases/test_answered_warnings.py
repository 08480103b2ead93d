"""Warnings of targets that an operator has answered, and those that are the same in several instances."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.usecases.test_warned_targets import NOW, entry, run

from lakewright.manifest.journal import Run
from lakewright.usecases.answered_warnings import unanswered
from lakewright.usecases.history import Warned, alike_once

CHANGED = {
    "code": "rows_changed",
    "message": "another program changed rows of orders",
    "remedy": None,
}


def app() -> Any:
    orders = SimpleNamespace(raw={"kind": "entity", "entity": "orders"})
    project = SimpleNamespace(
        jobs={},
        targets={"orders": orders},
        entities={"orders": None},
        entity=lambda name: SimpleNamespace(name=name, called=name),
    )
    return SimpleNamespace(project=project)


def rebuild(job: str = "rebuild orders", *, status: str = "SUCCESS", hours: int = 1, **facts: Any) -> Run:
    made = run("later", "REBUILD", **facts)
    return replace(made, job=job, status=status, started=NOW + timedelta(hours=hours))


@pytest.mark.parametrize(
    ("later", "is_left"),
    [
        (rebuild(), False),
        (rebuild(check=True), True),
        (rebuild(status="FAILED"), True),
        (rebuild("rebuild prices"), True),
        (rebuild(hours=-1), True),
    ],
)
def test_a_rebuild_answers_a_warning_of_rows_that_others_changed(later: Run, is_left: bool) -> None:
    """`status` named the rebuild that had been made, once for each instance."""
    warned = Warned(run("r"), entry("orders", {"status": "SUCCESS_WITH_ERRORS", "error": CHANGED}))
    assert list(unanswered(app(), [warned], [later, warned.run])) == ([warned] if is_left else [])


def test_a_table_that_was_gone_is_told_by_status_itself() -> None:
    """Once the table was back, the warning still named builds, which added its rows twice."""
    told = {"status": "SUCCESS_WITH_ERRORS", "error": {**CHANGED, "code": "lost_rows"}}
    assert list(unanswered(app(), [Warned(run("r"), entry("log", told))], ())) == []


def test_the_same_warning_of_several_instances_is_told_once() -> None:
    told = {"status": "SUCCESS_WITH_ERRORS", "error": CHANGED}
    days = [Warned(run("r"), entry("orders", {**told, "instance": {"day": f"d{n}"}})) for n in range(3)]
    other = Warned(run("r"), entry("orders", {**told, "error": {**CHANGED, "message": "it is late"}}))
    assert [each.subject for each in alike_once([*days, other])] == [
        "orders (day=d0 and 2 other instances)",
        "orders",
    ]
