"""`lakewright job`: run a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import job_arguments, run_options
from lakewright.cli.group import command
from lakewright.cli.options import despite_faults
from lakewright.cli.page import assignments
from lakewright.cli.progress import listening_to_run, watching
from lakewright.cli.render.run import failure_lines, plan_page, removal_page, run_page, warning_lines
from lakewright.errors import UsageError
from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from lakewright.cli.progress import SlicesDue
    from lakewright.run.request import JobRequest
    from lakewright.run.result import RunResult


DECLINED = 130


@command(
    examples=[
        "lakewright job monthly build month=2022-01-01",
        "lakewright job monthly verify month:start=2022-01-01 month:end=2022-06-01",
        "lakewright job monthly build month=2022-01-01 --resume",
        "lakewright job monthly destroy month=2022-01-01 --dry-run",
    ],
)
@job_arguments()
@run_options
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@click.option("--yes", "-y", is_flag=True, help="Remove without asking.")
@despite_faults
def job(
    call: Call,
    /,
    name: str,
    phase: Phase,
    parameters: tuple[str, ...],
    *,
    dry_run: bool,
    yes: bool,
    **options: Any,
) -> int:
    """Run a job up to a phase: validate, create, build, verify, or truncate, or destroy.

    Only dirty targets run. A parameter takes one value (p=v), several (p=v1,v2) or a range that includes both
    ends (p:start=v p:end=v, with p:step=).
    """
    from lakewright.run.request import JobRequest

    request = JobRequest.typed(name, phase, parameters, **options)
    if dry_run:
        from lakewright.usecases.run_job import plan_job

        planned = plan_job(call.app, request)
        call.output.result(planned.as_json(), plan_page(planned))
        return 0
    if phase.is_cleanup and not yes and not _may_remove(call, request):
        call.output.note("Nothing was removed.")
        return DECLINED
    output, result = call.output, run_watched(call, request)
    is_whole = call.settings.verbosity > 0
    output.result(result.as_json(), run_page(result, is_whole=is_whole, has_errors=output.has_page_errors))
    output.note(*failure_lines(result, is_one_screen=output.is_one_screen))
    if output.is_quiet:
        output.note(*warning_lines(result))
    output.last(result.summary)
    return result.exit_code


def run_watched(call: Call, request: JobRequest, due: SlicesDue | None = None) -> RunResult:
    """Run a job, show its progress, and let signals stop it; return the result.

    Args:
        call: The call.
        request: The request.
        due: The slices that are due, where they are known.
    """
    from lakewright.usecases.run_job import instance_parameters, run_job

    hidden = call.app.journal.hide_secrets
    instances = [assignments(hidden(each)) for each in instance_parameters(call.app, request)]
    with (
        listening_to_run(call) as stopper,
        watching(call.output, call.app, instances, due, job=request.job) as listener,
    ):
        return run_job(call.app, request, listener=listener, interruption=stopper)


def _may_remove(call: Call, request: JobRequest) -> bool:
    from lakewright.usecases.run_job import plan_job

    planned = plan_job(call.app, request)
    removed = [step for step in planned.steps() if step.status is Planned.WOULD_RUN]
    if not removed:
        return True
    call.output.note(*removal_page(planned))
    if not call.can_ask:
        raise UsageError(
            f"{request.job} {request.phase.value.lower()} would remove the data of "
            f"{counted(len(removed), 'target')}, and there is no terminal to confirm it",
            remedy="Give --yes to remove it, or --dry-run to only see the plan.",
        )
    return call.asks("Remove all of this?")
