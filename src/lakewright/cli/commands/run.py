"""`lakewright job`, `process` and `test`: run a job, the slices of an entity, or the project's own tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import job_arguments, names_of, rows_option, run_options, slice_named
from lakewright.cli.faults import FAILED, HELD, fault_line
from lakewright.cli.group import command
from lakewright.cli.options import despite_faults
from lakewright.cli.page import Block, Line, Span, assignments, line, status, took
from lakewright.cli.progress import listening_to_run, watching, working
from lakewright.cli.render.run import (
    details,
    failure_lines,
    plan_page,
    removal_page,
    run_page,
    slice_line,
    warning_lines,
)
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.plain_values import document_of
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned, Status, overall
from lakewright.spec.reason import reasons_text
from lakewright.spec.words import counted, duration

if TYPE_CHECKING:
    from lakewright.cli.progress import SlicesDue
    from lakewright.run.case import AssertionResult, CaseResult
    from lakewright.run.request import JobRequest
    from lakewright.run.result import RunResult, TargetResult
    from lakewright.slices.result import ProcessResult


DECLINED = 130


@command
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

    Examples:
        lakewright job monthly build month=2022-01-01
        lakewright job monthly verify month:start=2022-01-01 month:end=2022-06-01
        lakewright job monthly build month=2022-01-01 --resume
        lakewright job monthly destroy month=2022-01-01 --dry-run
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


@command
@click.argument("entity", shell_complete=names_of("entities"))
@click.argument("slice_name", metavar="[SLICE]", required=False)
@click.option(
    "--processing-time",
    metavar="TIME",
    help="When versions begin and end: ISO 8601, or an expression such as '${slice.date}'.",
)
@click.option(
    "--strategy",
    type=click.Choice(["full", "merge", "historic"], case_sensitive=False),
    help="Use another strategy than the entity's.",
)
@click.option("--late", is_flag=True, help="Allow a slice to be applied although a later one is processed.")
@click.option("--allow-data-loss", is_flag=True, help="Allow full to replace the rows of another strategy.")
@click.option("--allow-backdated", is_flag=True, help="Allow a processing time earlier than the table's.")
@click.option("--wait", is_flag=True, help="Wait for slices that another run is processing.")
@click.option(
    "--rehearse",
    "is_rehearsed",
    is_flag=True,
    help="Only show what SLICE would change.",
)
@rows_option("With --rehearse: the largest number of records.")
@despite_faults
def process(call: Call, /, entity: str, slice_name: str | None, **options: Any) -> int:
    """Process the pending slices of ENTITY in order, or only SLICE.

    --rehearse applies SLICE to a clone of the table. The exit code is 1 if a run would fail.

    Examples:
        lakewright process regions
        lakewright process regions 2025-07-01-slice.parquet --processing-time 2025-07-01T06:00:00
        lakewright process regions --strategy full --allow-data-loss
        lakewright process regions 2025-07-01-slice.parquet --rehearse
    """
    entity, slice_name = slice_named(entity, slice_name)
    if options["is_rehearsed"]:
        return _rehearse(call, entity, slice_name, options)
    from lakewright.usecases.process_slices import process_slices

    begin = call.clock()
    with (
        listening_to_run(call) as stopper,
        watching(call.output, call.app, entity=entity),
    ):
        result = process_slices(
            call.app,
            entity,
            slice_name,
            wait=options["wait"],
            interruption=stopper,
            **_given(options),
        )
    call.output.result(
        {**_processed_document(entity, result), "run_id": call.app.run_id}, _processed_page(entity, result)
    )
    call.output.note(*map(fault_line, result.faults))
    if result.warning is not None:
        call.output.note(fault_line(result.warning, "warning"))
    call.output.last(f"{_processed_summary(result)} in {took(begin, call.clock())}")
    return 128 + stopper.signal if stopper.signal is not None else _exit_code(result)


def _processed_summary(result: ProcessResult) -> str:
    """Return the counts of slices; what is not recorded is counted by itself, neither failed nor waiting."""
    ended = f"PROCESSED={len(result.slices)} FAILED={len(result.failed)}"
    waiting = f"WAITING={len(result.waiting)}"
    if not result.is_unrecorded:
        return f"Done. {ended} {waiting}"
    return f"Stopped, because the manifest failed. {ended} UNRECORDED={len(result.unrecorded)} {waiting}"


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that say how slices are processed, also for a rehearsal."""
    permissions = Permissions(
        allow_data_loss=options["allow_data_loss"],
        allow_backdated=options["allow_backdated"],
        allow_late=options["late"],
    )
    names = ("strategy", "processing_time")
    return {**{name: options[name] for name in names}, "permissions": permissions}


def _rehearse(call: Call, entity: str, slice_name: str | None, options: Mapping[str, Any]) -> int:
    """Show what a slice would change."""
    from lakewright.cli.render.look_back import rehearsal_page
    from lakewright.usecases.process_slices import rehearse_slice

    if slice_name is None:
        raise UsageError(
            "--rehearse needs the name of one slice",
            remedy=Phrase("Type ", Command("process", entity, "SLICE", "--rehearse"), "."),
        )
    if options["wait"]:
        raise UsageError(
            "--wait has no meaning with --rehearse, which waits for nobody", remedy="Leave it out."
        )
    with (
        listening_to_run(call) as stopper,
        working(call.output, f"rehearsing {slice_name}"),
    ):
        found = rehearse_slice(
            call.app,
            entity,
            slice_name,
            limit=options["rows"],
            interruption=stopper,
            **_given(options),
        )
    call.output.result(found.as_json(), rehearsal_page(found))
    if found.error is not None:
        call.output.note(fault_line(found.error.as_fault()))
    return 0 if found.error is None else FAILED


def _exit_code(result: ProcessResult) -> int:
    if result.status is Status.BLOCKED:
        return HELD
    return FAILED if result.status.is_failure else 0


def _processed_document(entity: str, result: ProcessResult) -> dict[str, Any]:
    error = result.faults[0] if result.faults else None
    named = ("status", "slices", "waits_for", "notes", "unrecorded")
    more = {"error": error, "warning": result.warning, "waits_for": reasons_text(result.waits_for) or None}
    return {"entity": entity, **document_of(result, *named, **more)}


def _processed_page(entity: str, result: ProcessResult) -> Iterator[Block]:
    slices = [slice_line(one.as_json()) for one in result.slices]
    why = "" if result.slices or result.error is not None else ": no slice is ready"
    yield line(status(result.status.value), " ", Span(entity, "bold"), why, below=slices)
    for note in (*result.notes, *(each.text for each in result.waits_for)):
        yield line(note)
    if result.unsettled is not None:
        yield line(result.unsettled.text.capitalized())
    if result.waiting:
        yield line(f"{counted(len(result.waiting), 'slice')} left: {', '.join(result.waiting)}")


@command
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("-k", "--keep-going", is_flag=True, help="Check assertions even if something failed before.")
@click.option("--dry-run", is_flag=True, help="Only show what would be built.")
def test(call: Call, /, names: tuple[str, ...], *, keep_going: bool, dry_run: bool) -> int:
    """Run the project's tests, or those with these names; `*` matches anything.

    Each test builds its targets in a temporary place. Exits with 1 if a test fails.

    Examples:
        lakewright test
        lakewright test prices 'load_*'
        lakewright test prices --dry-run
    """
    from lakewright.usecases.run_job import run_tests, select_tests

    chosen = select_tests(call.app, names)
    if dry_run:
        return _plan_tests(call, chosen)
    with (
        listening_to_run(call) as stopper,
        watching(call.output, call.app) as listener,
    ):
        results = list(
            run_tests(call.app, chosen, listener=listener, interruption=stopper, keep_going=keep_going)
        )
    document = {
        "project": call.app.project.name,
        "status": overall(result.status for result in results).value,
        "tests": [result.as_json() for result in results],
    }
    call.output.result(document, map(case_branch, results))
    call.output.last(summary_of(results))
    if stopper.signal is not None:
        return 128 + stopper.signal
    return 1 if any(result.status.is_failure for result in results) else 0


def _plan_tests(call: Call, names: Sequence[str]) -> int:
    from lakewright.usecases.run_job import plan_tests

    plans = plan_tests(call.app, names)
    call.output.result(
        {"project": call.app.project.name, "tests": [plan.as_json() for plan in plans]},
        (block for plan in plans for block in plan_page(plan)),
    )
    return 0


def case_branch(result: CaseResult) -> Line:
    """Return the tree of one test; a successful target gets no line."""
    description = f": {result.description}" if result.description else ""
    head = (status(result.status.value), " ", Span(result.name, "bold"), description, _time(result.seconds))
    return line(*head, below=_inside(result))


def summary_of(results: Sequence[CaseResult]) -> str:
    """Return the last line on the console, easy to find with grep."""
    counts = Counter(result.status.is_failure for result in results)
    length = sum(result.seconds for result in results)
    return f"Tested. PASSED={counts[False]} FAILED={counts[True]} in {length:.1f} s"


def _inside(result: CaseResult) -> Iterator[Line]:
    yield from details({}, result.error)
    targets = list(result.targets())
    if targets:
        quiet = [target for target in targets if target.error is None and not target.status.is_failure]
        built = len({target.name for target in quiet})
        if built:
            yield line(Span(f"{counted(built, 'target')} built and taken away", "dim"))
        yield from (_target(target) for target in targets if target not in quiet)
    yield from map(_assertion, result.assertions)


def _target(target: TargetResult) -> Line:
    reasons = reasons_text(target.reasons)
    head = (status(target.status.value), f" {target.phase} {target.name}: ", reasons)
    return line(*head, below=details({}, target.error))


def _assertion(result: AssertionResult) -> Line:
    description = f" ({result.description})" if result.description else ""
    inside = (*map(line, result.failures), *details({}, result.error))
    time = _time(result.seconds) if result.status is not Status.SKIPPED else Span(" not reached", "dim")
    return line(status(result.status.value), f" {result.name}{description}", time, below=inside)


def _time(length: float) -> Span:
    return Span(f" {duration(length)}", "dim")
