"""`lakewright history`: what ran, and how each target of a run ended."""

from __future__ import annotations

import click

from lakewright.cli.call import Call
from lakewright.cli.group import LazyGroup
from lakewright.cli.options import settings_of
from lakewright.cli.page import Line, line
from lakewright.cli.render.history import diff_page, run_document, run_page, run_row, runs_table
from lakewright.cli.render.words import counted
from lakewright.errors import UsageError
from lakewright.manifest.journal import RUNNING, Run
from lakewright.manifest.run_comparison import compare_runs
from lakewright.plan.status import Status
from lakewright.spec.expressions.age import before_now
from lakewright.spec.suggestions import suggestion

__all__ = ["history"]

STATUSES = [status.lower() for status in (*Status, RUNNING) if status is not Status.BLOCKED]
"""How runs end; what blocks a target fails its run."""


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    examples=[
        "lakewright history",
        "lakewright history --job monthly --status failed",
        "lakewright history --since 7d",
        "lakewright history show RUN",
        "lakewright history diff RUN OTHER",
    ],
)
@click.option("--job", metavar="NAME", help="Only runs of this job.")
@click.option(
    "--status",
    type=click.Choice(STATUSES, case_sensitive=False),
    help="Only runs that ended so, or that run.",
)
@click.option("--since", "age", metavar="AGE", help="Only runs that began so long ago or less: 2h, 7d, P1M.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many."
)
@click.pass_context
def history(
    context: click.Context, /, *, job: str | None, status: str | None, age: str | None, limit: int
) -> None:
    """List the runs of jobs, the newest first."""
    call = context.find_object(Call)
    if context.invoked_subcommand is not None or call is None:
        return
    with call.configured(settings_of(context)):
        wanted = status.upper() if status else None
        since = before_now(call.app.store.now(), age) if age else None
        found = call.app.journal.runs(
            limit, project=call.app.project.name, job=job, status=wanted, since=since
        )
        runs = list(found)
        page = runs_table(runs, call.app.store.now()) if runs else _none(call, job)
        call.output.result([run_row(run) for run in runs], [page])


def _none(call: Call, job: str | None) -> Line:
    """Return why no run is listed.

    Raises:
        UsageError: The project has no such job, and none has run.
    """
    jobs = {run.job for run in call.app.journal.runs(project=call.app.project.name)}
    if job is not None and job not in (known := {*jobs, *call.app.project.jobs}):
        raise UsageError(f"there is no job {job!r}", remedy=suggestion(job, known))
    return line("no run is like that" if jobs else "nothing has run yet")


@history.add(name="show", examples=["lakewright history show RUN", "lakewright history show RUN -o json"])
@click.argument("run")
@click.pass_obj
def show_run(call: Call, /, run: str) -> None:
    """Show how each target of one run ended; the beginning of its id is enough where it is the only one."""
    found = _named(call, run)
    document = run_document(found, call.app.journal.targets(found.run_id))
    call.output.result(document, run_page(document))


@history.add(name="diff", examples=["lakewright history diff RUN OTHER", "lakewright history diff RUN"])
@click.argument("run")
@click.argument("other", required=False)
@click.option("--all", "is_all", is_flag=True, help="Also what is the same but for its time.")
@click.pass_obj
def diff(call: Call, /, run: str, other: str | None, *, is_all: bool) -> None:
    """Compare two runs target by target: status, time, metrics, reasons, error.

    Without OTHER, RUN is compared with the run before it of the same job, phase and parameters.
    """
    journal = call.app.journal
    after = _named(call, run if other is None else other)
    before = _run_before(call, after) if other is None else _named(call, run)
    found = compare_runs(journal.targets(before.run_id), journal.targets(after.run_id))
    document = {
        "before": run_row(before),
        "after": run_row(after),
        "targets": [difference.as_json() for difference in found],
    }
    call.output.result(document, diff_page(before, after, found, is_all=is_all))


@history.add(name="prune", examples=["lakewright history prune --older-than 90d"])
@click.option("--older-than", "age", metavar="AGE", help="90d, 12h, P3M; manifest's retention if not given.")
@click.option("--dry-run", is_flag=True, help="Only tell which.")
@click.pass_obj
def prune(call: Call, /, *, age: str | None, dry_run: bool) -> None:
    """Remove old runs from the history.

    The last run of each job with its phase and parameters stays, the last that succeeded, and all that run.
    Records of slices are never removed.
    """
    kept = age or call.app.project.manifest.get("retention")
    if kept is None:
        raise UsageError(
            "it isn't said how old runs must be",
            remedy="Give --older-than, or the project `manifest: {retention: 90d}`.",
        )
    old = list(call.app.journal.old_runs(before_now(call.app.store.now(), str(kept))))
    if not dry_run:
        for run in old:
            call.app.journal.delete(run)
    document = {"removed": [run.run_id for run in old], "dry_run": dry_run}
    does = "would be removed" if dry_run else "removed"
    call.output.result(document, [line(f"{counted(len(old), 'run')} {does}")])


def _named(call: Call, text: str) -> Run:
    """Return the run with that id, or the only one whose id begins so."""
    journal = call.app.journal
    found = journal.run(text)
    if found is not None:
        return found
    alike = [other for other in journal.runs() if text and other.run_id.startswith(text)]
    if len(alike) != 1:
        raise UsageError(
            f"{len(alike)} runs begin with {text!r}" if alike else f"there is no run {text!r}",
            remedy="`lakewright history` lists the runs there were.",
        )
    return alike[0]


def _run_before(call: Call, run: Run) -> Run:
    found = call.app.journal.runs(project=run.project, job=run.job)
    for other in found:
        is_like = (other.phase, other.parameters) == (run.phase, run.parameters)
        if is_like and other.started < run.started:
            return other
    raise UsageError(
        f"no run of {run.job} was like {run.run_id} before it",
        remedy="Name two runs: `lakewright history` lists them.",
    )
