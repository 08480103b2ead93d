"""Tasks and summaries follow from Lakewright's documents, without Airflow."""

from __future__ import annotations

from typing import Any

import pytest

from lakewright_airflow.documents import JobFailed, planned_tasks, summary, verdict_of


def target(name: str, kind: str, *sources: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "sources": list(sources)}


def test_tasks_keep_the_order_of_phases_and_the_links_within_one() -> None:
    graph = {
        "targets": [
            target("orders", "entity"),
            target("totals", "relation", "orders", "some"),
            target("some", "verify", "totals"),
            target("fit", "validate"),
            target("page", "document", "some"),
        ]
    }
    assert {each.target: each.after for each in planned_tasks(graph)} == {
        "fit": (),
        "orders": ("fit",),
        "totals": ("fit", "orders"),
        "some": ("fit", "orders", "totals"),
        "page": ("fit", "orders", "some", "totals"),
    }


def run(status: str, *targets: dict[str, Any]) -> dict[str, Any]:
    instance = {"parameters": {"day": "2024-05-01"}, "phases": [{"phase": "BUILD", "targets": list(targets)}]}
    named = {"run_id": "r", "job": "daily", "phase": "verify", "status": status}
    return {**named, "instances": [instance], "project": "shop"}


def result(status: str, error: object = None, **metrics: int) -> dict[str, Any]:
    return {"name": "orders", "status": status, "seconds": 1.5, "metrics": metrics, "error": error}


@pytest.mark.parametrize(
    ("metrics", "counts"),
    [
        ({"records_in_slice": 5, "inserted": 1, "updated": 3, "changed": 2}, {"rows_in": 5, "changed": 3}),
        ({"target_records": 7}, {"rows": 7}),
        ({}, {}),
    ],
)
def test_the_summary_of_a_run_has_the_rows_of_each_target(
    metrics: dict[str, int], counts: dict[str, int]
) -> None:
    found = summary(run("SUCCESS", result("SUCCESS", **metrics)))
    (only,) = found.pop("targets")
    assert found == {"run_id": "r", "job": "daily", "phase": "verify", "status": "SUCCESS"}
    common = {"name": "orders", "parameters": {"day": "2024-05-01"}, "phase": "BUILD", "status": "SUCCESS"}
    assert only == {**common, "seconds": 1.5, **counts, "error": None}


@pytest.mark.parametrize("status", ["FAILED", "BLOCKED", "ABORTED"])
def test_a_run_that_did_not_succeed_raises_its_first_error_with_what_to_do(status: str) -> None:
    error = {"message": "the slice is broken", "remedy": "resolve it"}
    with pytest.raises(JobFailed) as raised:
        summary(run(status, result(status, error)))
    assert all(part in str(raised.value) for part in (status, error["message"], error["remedy"]))


def applied(*steps: tuple[str, str], error: dict[str, Any] | None = None) -> dict[str, Any]:
    left = [{"subject": {"name": name}, "status": status} for name, status in steps]
    taken = {"id": "forward orders", "is_done": error is None, "error": error}
    return {"taken": [taken], "left": {"steps": left}}


def test_the_summary_of_apply_has_what_needs_a_person() -> None:
    steps = ("b", "needs_decision"), ("a", "needs_consent"), ("a", "blocked"), ("c", "waits"), ("d", "ready")
    assert summary(applied(*steps)) == {"taken": ["forward orders"], "needs_you": ["a", "b"]}
    with pytest.raises(JobFailed, match="forward orders: no file"):
        summary(applied(error={"message": "no file", "remedy": "bring it"}))


@pytest.mark.parametrize(
    ("application", "verdict"),
    [
        ("lakewright/shop/orders:orders", "processed"),
        ("lakewright/shop/orders", "processed"),
        ("lakewright/shop/orders_old:orders", "unknown"),
        ("orders", "unknown"),
    ],
)
def test_a_verdict_is_that_of_the_entity_and_not_of_another_application(
    application: str, verdict: str
) -> None:
    assert verdict_of({"verdicts": {application: "processed"}}, "orders") == verdict
