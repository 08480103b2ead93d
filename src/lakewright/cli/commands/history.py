"""`lakewright history`: what ran, and how each target of a run ended."""

from __future__ import annotations

import click

from lakewright.cli.call import Call
from lakewright.cli.group import LazyGroup
from lakewright.cli.options import settings_of
from lakewright.cli.page import line
from lakewright.cli.render.history import run_document, run_page, run_row, runs_table
from lakewright.errors import UsageError

__all__ = ["history"]


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    examples=[
        "lakewright history",
        "lakewright history --job monthly --status failed",
        "lakewright history show RUN",
    ],
)
@click.option("--job", metavar="NAME", help="Only runs of this job.")
@click.option(
    "--status", metavar="WORD", help="Only runs that ended so: success, failed, skipped, running, …"
)
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many."
)
@click.pass_context
def history(context: click.Context, /, *, job: str | None, status: str | None, limit: int) -> None:
    """List the runs of jobs, the newest first."""
    call = context.find_object(Call)
    if context.invoked_subcommand is not None or call is None:
        return
    with call.configured(settings_of(context)):
        wanted = status.upper() if status else None
        runs = list(call.app.journal.runs(limit, project=call.app.project.name, job=job, status=wanted))
        page = runs_table(runs, call.app.store.now()) if runs else line("nothing has run yet")
        call.output.result([run_row(run) for run in runs], [page])


@history.add(name="show", examples=["lakewright history show RUN", "lakewright history show RUN -o json"])
@click.argument("run")
@click.pass_obj
def show_run(call: Call, /, run: str) -> None:
    """Show how each target of one run ended; the beginning of its id is enough where it is the only one."""
    journal = call.app.journal
    found = journal.run(run)
    if found is None:
        alike = [other for other in journal.runs() if run and other.run_id.startswith(run)]
        if len(alike) != 1:
            raise UsageError(
                f"{len(alike)} runs begin with {run!r}" if alike else f"there is no run {run!r}",
                remedy="`lakewright history` lists the runs there were.",
            )
        found = alike[0]
    document = run_document(found, journal.targets(found.run_id))
    call.output.result(document, run_page(document))
