"""The history of runs: list, find, compare and prune them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest import run_comparison
from lakewright.manifest.journal import RUNNING, Run
from lakewright.manifest.run_comparison import TargetDifference
from lakewright.plan.status import Status
from lakewright.spec.expressions.age import before_now
from lakewright.spec.suggestions import suggestion

__all__ = [
    "RunComparison",
    "compare_runs",
    "find_run",
    "list_runs",
    "prune_runs",
    "run_as_json",
    "run_with_targets",
]


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs, with each target that took part in one of them.

    Attributes:
        before: The earlier run; None if `after` is the first of its job with its phase and parameters.
        unlike: If there is no `before`: the job's last run before `after`, of another kind.
    """

    before: Run | None
    after: Run
    differences: tuple[TargetDifference, ...] = ()
    unlike: Run | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the document that `history diff -o json` prints."""
        return {
            "before": None if self.before is None else run_as_json(self.before),
            "after": run_as_json(self.after),
            "targets": [difference.as_json() for difference in self.differences],
        }


def list_runs(
    app: App,
    *,
    job: str | None = None,
    status: str | None = None,
    age: str | None = None,
    limit: int | None = None,
) -> list[Run]:
    """Return the runs of the project's jobs, newest first.

    Args:
        app: The project.
        job: Only runs of this job.
        status: Only runs with this status, or RUNNING, in any case.
        age: Only runs that started at most this long ago: `2h`, `7d`, `P1M`.
        limit: The largest number of runs.

    Raises:
        UsageError: Neither the project nor the history has such a job or status, or `age` is not an age.
    """
    status = None if status is None else str(status).upper()
    known_statuses = [*(each.value for each in Status), RUNNING]
    if status is not None and status not in known_statuses:
        raise UsageError(f"{status} is no status of a run", remedy=f"there are {', '.join(known_statuses)}")
    since = before_now(app.store.now(), age) if age else None
    runs = list(app.journal.runs(limit, project=app.project.name, job=job, status=status, since=since))
    if not runs and job is not None and job not in (known := {*jobs_that_ran(app), *app.project.jobs}):
        raise UsageError(f"there is no job {job!r}", remedy=suggestion(job, known))
    return runs


def jobs_that_ran(app: App) -> set[str]:
    """Return the names of all jobs in the history."""
    return {run.job for run in app.journal.runs(project=app.project.name)}


def find_run(app: App, text: str) -> Run:
    """Return the run with this id, or the only run whose id starts with the text.

    Raises:
        UsageError: No run matches, or several do.
    """
    found = app.journal.run(text)
    if found is not None:
        return found
    alike = [other for other in app.journal.runs() if text and other.run_id.startswith(text)]
    if len(alike) != 1:
        raise UsageError(
            f"{len(alike)} runs start with {text!r}" if alike else f"there is no run {text!r}",
            remedy=Phrase(Command("history"), " lists the runs."),
        )
    return alike[0]


def run_with_targets(app: App, text: str) -> dict[str, Any]:
    """Return a run with all its targets, in the shape of `job -o json`.

    Raises:
        UsageError: No run matches, or several do.
    """
    run = find_run(app, text)
    instances = [
        {
            "parameters": parameters,
            "phases": [
                {"phase": phase, "targets": [_without_place(target) for target in of_phase]}
                for phase, of_phase in groupby(of_instance, key=lambda target: target["phase"])
            ],
        }
        for parameters, of_instance in groupby(
            app.journal.targets(run.run_id), key=lambda target: target["instance"]
        )
    ]
    return {**run_as_json(run), "instances": instances}


def compare_runs(app: App, run: str, other: str | None = None) -> RunComparison:
    """Compare two runs target by target; a single run is compared with the previous one like it.

    The first run of its kind has nothing to be compared with, so `before` is None.

    Raises:
        UsageError: There is no such run.
    """
    after = find_run(app, run if other is None else other)
    before = _run_before(app, after) if other is None else find_run(app, run)
    if before is None:
        return RunComparison(None, after, unlike=next(_earlier_runs(app, after), None))
    differences = run_comparison.compare_runs(
        app.journal.targets(before.run_id), app.journal.targets(after.run_id)
    )
    return RunComparison(before, after, tuple(differences))


def prune_runs(app: App, age: str | None = None, *, is_dry: bool = False) -> list[Run]:
    """Remove runs older than `age`, by default the manifest's retention; return them.

    Those that `Journal.old_runs` keeps stay. Records of slices are never removed.

    Raises:
        UsageError: Neither `age` nor a retention is given.
    """
    kept = age or app.project.manifest.get("retention")
    if kept is None:
        raise UsageError(
            "no age is given for the runs to remove",
            remedy="Give --older-than, or set `manifest: {retention: 90d}` in the project.",
        )
    old = list(app.journal.old_runs(before_now(app.store.now(), str(kept))))
    for run in old if not is_dry else ():
        app.journal.delete(run)
    return old


def run_as_json(run: Run) -> dict[str, Any]:
    """Return a run as `history -o json` lists it."""
    document = run.as_json()
    facts = document.pop("facts")
    return {**document, "holder": str(run.holder), **facts}


def _run_before(app: App, run: Run) -> Run | None:
    alike = (run.phase, run.parameters)
    return next((each for each in _earlier_runs(app, run) if (each.phase, each.parameters) == alike), None)


def _earlier_runs(app: App, run: Run) -> Iterator[Run]:
    """Yield the earlier runs of a run's job, the latest first."""
    found: Iterator[Run] = app.journal.runs(project=run.project, job=run.job)
    return (other for other in found if other.started < run.started)


_LEFT_OUT = ("phase", "instance", "writes", "table", "append")
"""Entries of a result that are told elsewhere, or that earlier versions recorded of builds."""


def _without_place(target: Any) -> dict[str, Any]:
    # Results that earlier versions recorded have no warnings.
    kept = {key: value for key, value in target.items() if key not in _LEFT_OUT}
    return {"warnings": [], **kept}
