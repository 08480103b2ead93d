"""`lakewright plan`: show what is due, or what a run would do, and why, without writing anything."""

from __future__ import annotations

from typing import Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import job_arguments, job_request, run_options
from lakewright.cli.commands.triggers import next_line
from lakewright.cli.group import command
from lakewright.cli.options import despite_faults
from lakewright.cli.render.run import plan_page
from lakewright.plan.phase import Phase

__all__ = ["plan"]

HAS_WORK = 3


@command(
    examples=[
        "lakewright plan",
        "lakewright plan monthly build month=2022-01-01",
        "lakewright plan monthly verify month:start=2022-01-01 month:end=2022-06-01 -o json",
        "lakewright plan monthly build month=2022-01-01 --detailed-exitcode",
        "lakewright plan monthly build month=2022-01-01 --preview",
    ],
)
@job_arguments(is_required=False)
@run_options
@click.option(
    "--preview", is_flag=True, help="Count the deletes that each entity's next slice implies; starts Spark."
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 3 if anything but checks would run.")
@despite_faults
@click.pass_obj
def plan(
    call: Call,
    /,
    name: str | None,
    phase: Phase | None,
    parameters: tuple[str, ...],
    *,
    preview: bool,
    detailed_exitcode: bool,
    **options: Any,
) -> int:
    """Show what a run of JOB would do to each target up to PHASE, and why; without JOB, what is due.

    Nothing is written: no table, no record, no history.
    """
    if name is None:
        return _show_due(call, detailed_exitcode=detailed_exitcode)
    if phase is None:
        raise click.MissingParameter(param_hint="'PHASE'", param_type="argument")
    request = job_request(name, phase, parameters, preview=preview, **options)
    from lakewright.usecases.run_job import plan_job
    from lakewright.usecases.triggers import triggers_of_job

    found = plan_job(call.app, request)

    if (soon := next_line(triggers_of_job(call.app, name), call.clock())) is not None:
        call.output.note(soon)
    call.output.answer(found.as_json(), plan_page(found))
    return HAS_WORK if detailed_exitcode and found.has_work else 0


def _show_due(call: Call, *, detailed_exitcode: bool) -> int:
    """Show what is due in all entities."""
    from lakewright.cli.commands.apply import due_page
    from lakewright.due.words import SCHEMA, plan_document
    from lakewright.usecases.due.take import plan_of_project

    found = plan_of_project(call.app)
    call.output.schema = SCHEMA
    call.output.answer(plan_document(found), due_page(found))
    return HAS_WORK if detailed_exitcode and found.ready else 0
