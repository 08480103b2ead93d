"""What tasks are made of, and what they return: from Lakewright's JSON documents, without Airflow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]

CHECKED_FIRST = frozenset({"validate"})
CHECKED_LAST = frozenset({"compare", "document", "measure", "verify"})
"""Kinds of targets that take part in VERIFY alone: a job runs them after everything is built."""

CHANGED = ("inserted", "changed", "closed", "deleted")
SUCCESSES = frozenset({"SUCCESS", "SUCCESS_WITH_ERRORS", "SKIPPED"})


class JobFailed(Exception):
    """A run did not succeed; the text names the first target that did not, and what to do."""


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task for one target of a job.

    Attributes:
        after: The targets whose tasks end before this one starts.
    """

    target: str
    kind: str
    after: tuple[str, ...]


def planned_tasks(graph: Document) -> tuple[PlannedTask, ...]:
    """Return a task for each target of `lakewright graph JOB -o json`, in the order of a run.

    Example:
        >>> targets = [("orders", "entity", []), ("totals", "relation", ["orders"]), ("check", "verify", [])]
        >>> graph = {"targets": [dict(zip(("name", "kind", "sources"), each)) for each in targets]}
        >>> [(each.target, each.after) for each in planned_tasks(graph)]
        [('orders', ()), ('totals', ('orders',)), ('check', ('orders', 'totals'))]
    """
    stages = {each["name"]: _stage(each["kind"]) for each in graph["targets"]}
    tasks = []
    for each in sorted(graph["targets"], key=lambda target: stages[target["name"]]):
        own = stages[each["name"]]
        earlier = {name for name, stage in stages.items() if stage < own}
        # A link to a target of a later phase orders nothing in a job either.
        linked = {name for name in each["sources"] if stages[name] == own}
        tasks.append(PlannedTask(each["name"], each["kind"], tuple(sorted(earlier | linked))))
    return tuple(tasks)


def _stage(kind: str) -> int:
    return 0 if kind in CHECKED_FIRST else 2 if kind in CHECKED_LAST else 1


def summary(document: Document) -> dict[str, Any]:
    """Return the summary of the document of `job` or `apply`."""
    return apply_summary(document) if "taken" in document else job_summary(document)


def job_summary(document: Document) -> dict[str, Any]:
    """Return what a run of a job did: small, plain JSON, for XCom.

    Raises:
        JobFailed: The run did not succeed.
    """
    targets = list(_targets(document))
    if document["status"] not in SUCCESSES:
        raise JobFailed(_failure(document, targets))
    return {**{key: document[key] for key in ("run_id", "job", "phase", "status")}, "targets": targets}


def _targets(document: Document) -> Iterator[dict[str, Any]]:
    for instance in document["instances"]:
        for phase in instance["phases"]:
            for target in phase["targets"]:
                yield {
                    "name": target["name"],
                    "parameters": instance["parameters"],
                    "phase": phase["phase"],
                    "status": target["status"],
                    "seconds": target["seconds"],
                    **_counts(target["metrics"]),
                    "error": target["error"],
                }


def _counts(metrics: Document) -> dict[str, int]:
    if "records_in_slice" in metrics:
        return {
            "rows_in": metrics["records_in_slice"],
            "changed": sum(metrics.get(key, 0) for key in CHANGED),
        }
    return {"rows": metrics["target_records"]} if "target_records" in metrics else {}


def _failure(document: Document, targets: list[dict[str, Any]]) -> str:
    said = f"run {document['run_id']} of {document['job']} ended {document['status']}"
    first = next((each for each in targets if each["error"]), None)
    if first is None:
        return said
    return f"{said}: {first['name']} in {first['phase']}: {error_text(first['error'])}"


def apply_summary(document: Document) -> dict[str, Any]:
    """Return what `apply` did, and what it left to a person.

    Raises:
        JobFailed: A step failed.
    """
    failed = [f"{each['id']}: {error_text(each['error'])}" for each in document["taken"] if each["error"]]
    if failed:
        raise JobFailed(f"steps failed: {'; '.join(failed)}")
    asked = ("blocked", "needs_consent", "needs_decision")
    left = [each for each in document["left"]["steps"] if each["status"] in asked]
    return {
        "taken": [each["id"] for each in document["taken"]],
        "needs_you": sorted({each["subject"]["name"] for each in left}),
    }


def error_text(error: Document) -> str:
    """Return the message of an error, and what to do about it."""
    return ". Do: ".join(filter(None, (error["message"], error["remedy"])))


def verdict_of(item: Document, entity: str) -> str:
    """Return the verdict of an item for an entity, from the document of `manifest show`.

    Example:
        >>> verdict_of({"verdicts": {"lakewright/shop/orders:orders": "processed"}}, "orders")
        'processed'
    """
    own = re.compile(rf"lakewright/[^/]+/{re.escape(entity)}(:|$)")
    found = (verdict for application, verdict in item["verdicts"].items() if own.match(application))
    return next(found, "unknown")
