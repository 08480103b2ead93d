"""The history of runs: list, find, compare and prune them, and say what became of failed ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase, Placeholder
from lakewright.manifest import run_comparison
from lakewright.manifest.journal import ABORTED, RUNNING, Run
from lakewright.manifest.lock import FAILED_ITEMS
from lakewright.manifest.plain_values import json_of
from lakewright.manifest.run_comparison import TargetDifference
from lakewright.plan.phase import Phase
from lakewright.plan.reason import error_reason, note
from lakewright.plan.status import Status
from lakewright.run.wants import read_wants
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.spec.expressions.values import before_now
from lakewright.spec.suggestions import suggestion

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.spec.project import Project


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
"""Entries of a result that are shown elsewhere, or that earlier versions recorded of builds."""


def _without_place(target: Any) -> dict[str, Any]:
    kept = {key: value for key, value in target.items() if key not in _LEFT_OUT}
    return {"warnings": [], **kept, "reason_codes": _reason_codes(target)}  # earlier versions had no warnings


def _reason_codes(target: Any) -> list[Any]:
    """Return the codes of a result's reasons, also if an earlier version recorded only texts.

    An error reason is then one that the message of the error contains.
    """
    found = target.get("reason_codes")
    if isinstance(found, list) and all(isinstance(each, Mapping) for each in found):
        return found
    message = target["error"]["message"].splitlines() if target["error"] else []
    made = (
        error_reason(text) if text.splitlines()[:1] and text.splitlines()[0] in message else note(text)
        for text in target["reasons"]
    )
    return list(map(json_of, made))


UNDO, REBUILD, REPLAY = "UNDO", "REBUILD", "REPLAY"
"""The phases under which the history lists what these commands, and `apply`, have replayed."""

REWINDS = (UNDO, REBUILD, REPLAY)
"""The phases of all replays of tables, whose runs are named after their entities."""

REPAIR = "REPAIR"
"""The phase under which the history lists the repairs of tables."""

_FAILED = (Status.FAILED.value, Status.BLOCKED.value, ABORTED)


def failed_items(app: App, run: Run) -> list[Item]:
    """Return the items because of whose failures a run ended, as far as these still wait for somebody."""
    found = (item for each in app.journal.targets(run.run_id) for item in each.get(FAILED_ITEMS, ()))
    return [item for item in app.store.read(list(dict.fromkeys(found))).values() if item.failed is not None]


def is_superseded(app: App, run: Run) -> bool:
    """Return whether a failed run has left nothing: later runs have done, or begun, all of its steps."""
    if run.status not in _FAILED:
        return False
    if is_rewind(run):
        later = app.journal.runs(project=run.project, job=run.job, since=run.finished or run.started)
        return any(each.run_id != run.run_id and each.phase == run.phase for each in later)
    wants = read_wants(app.journal, run.project, run.job)
    return not any(run.run_id in want.left.values() for want in wants)


def is_of_former_job(project: Project, run: Run) -> bool:
    """Return whether a run is of a job that a project without faults does not declare any more."""
    is_job = run.phase in Phase.__members__ and run.project == project.name
    return is_job and run.job not in project.jobs and not project.faults


def is_rewind(run: Run) -> bool:
    """Return whether a run has replayed a table, which the history lists beside runs of jobs."""
    return run.phase in REWINDS


def replayed_slices(document: Mapping[str, Any]) -> list[str]:
    """Return the names of the slices that a replay took back or applied again; runs of jobs have none.

    Args:
        document: The run as JSON.
    """
    return [*(document.get("slices") or ()), *([document["slice"]] if document.get("slice") else [])]


def is_resumable(run: Run) -> bool:
    """Return whether a page may offer to resume a run: not one that rewinds or removes tables."""
    return not is_rewind(run) and run.phase not in (Phase.TRUNCATE, Phase.DESTROY)


def resume_command(run: Run) -> Command:
    """Return the command that resumes a run, of the targets that it was restricted to.

    A secret value becomes `<name>`, which no shell accepts.
    """
    if is_rewind(run):
        return _rewind_command(run)
    hidden = {name for name, value in run.parameters.items() if HIDDEN in str(value)}
    arguments = [
        Placeholder(f"{name}=<{name}>") if name in hidden else argument
        for name, argument in zip(run.parameters, run.arguments, strict=True)
    ]
    return Command(
        *("job", run.job, run.phase.lower(), *_choice(run)),
        *arguments,
        "--resume",
        *(["--yes"] if run.phase in (Phase.TRUNCATE, Phase.DESTROY) else []),
    )


def _choice(run: Run) -> tuple[str, ...]:
    """Return the options by which a run left out targets or phases."""
    chosen = tuple(option for name in run.facts.get("targets") or () for option in ("-t", str(name)))
    return ("-nl", *chosen) if run.facts.get("no_lifecycle") else chosen


def _rewind_command(run: Run) -> Command:
    """Return the command that replays a table again; it continues a replay that was interrupted."""
    facts = run.facts
    # Runs of earlier versions have the entity in their names alone.
    entity = facts.get("entity") or run.job.partition(" ")[2]
    if run.phase == REPLAY:
        return Command("apply", entity)
    flags = [f"--{flag}" for flag in ("requeue", "check") if facts.get(flag)]
    started = [f"--{name}={facts[name]}" for name in ("from", "from-time") if facts.get(name)]
    started += [word for name in facts.get("include") or () for word in ("--include", str(name))]
    names = [run.phase.lower(), entity, *([facts["slice"]] if facts.get("slice") else [])]
    return Command(*map(str, names), *started, *flags)
