"""`lakewright process`: process the pending slices of one entity, without a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import rows_option, slice_named
from lakewright.cli.completion import names_of
from lakewright.cli.faults import FAILED, HELD, fault_line
from lakewright.cli.group import command
from lakewright.cli.options import despite_faults
from lakewright.cli.page import Block, Span, line, status, took
from lakewright.cli.progress import listening_to_run, watching, working
from lakewright.cli.render.run import slice_line
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.plain_values import document_of
from lakewright.plan.permissions import Permissions
from lakewright.plan.status import Status
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from lakewright.slices.result import ProcessResult


@command(
    examples=[
        "lakewright process regions",
        "lakewright process regions 2025-07-01-slice.parquet --processing-time 2025-07-01T06:00:00",
        "lakewright process regions --strategy full --allow-data-loss",
        "lakewright process regions 2025-07-01-slice.parquet --rehearse",
    ],
)
@click.argument("entity", shell_complete=names_of("entities"))
@click.argument("slice_name", metavar="[SLICE]", required=False)
@click.option(
    "--processing-time",
    metavar="TIME",
    help="When versions begin and end: ISO 8601, or an expression such as '${slice.date}'; by default as the "
    "entity's jobs declare it, or now.",
)
@click.option(
    "--strategy",
    type=click.Choice(["full", "merge", "historic"], case_sensitive=False),
    help="Use this strategy instead of the entity's own.",
)
@click.option("--late", is_flag=True, help="Allow a slice to be applied although a later one is processed.")
@click.option("--allow-data-loss", is_flag=True, help="Allow full to replace the rows of another strategy.")
@click.option("--allow-backdated", is_flag=True, help="Allow a processing time earlier than the table's.")
@click.option("--wait", is_flag=True, help="Wait for slices that another run is processing.")
@click.option(
    "--rehearse",
    "is_rehearsed",
    is_flag=True,
    help="Only show what SLICE would change, on a clone of the table; nothing is written.",
)
@rows_option("With --rehearse: the largest number of records.")
@despite_faults
def process(call: Call, /, entity: str, slice_name: str | None, **options: Any) -> int:
    """Process the pending slices of ENTITY in order, or only SLICE.

    --rehearse applies SLICE, in any state, to a shallow clone of the table, and removes the clone. The
    exit code is 1 if a run would fail.
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
    call.output.result({**_document(entity, result), "run_id": call.app.run_id}, _page(entity, result))
    call.output.note(*map(fault_line, result.faults))
    if result.warning is not None:
        call.output.note(fault_line(result.warning, "warning"))
    call.output.last(f"{_summary(result)} in {took(begin, call.clock())}")
    return 128 + stopper.signal if stopper.signal is not None else _exit_code(result)


def _summary(result: ProcessResult) -> str:
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


def _document(entity: str, result: ProcessResult) -> dict[str, Any]:
    error = result.faults[0] if result.faults else None
    named = ("status", "slices", "waits_for", "notes", "unrecorded")
    return {"entity": entity, **document_of(result, *named, error=error, warning=result.warning)}


def _page(entity: str, result: ProcessResult) -> Iterator[Block]:
    slices = [slice_line(one.as_json()) for one in result.slices]
    why = "" if result.slices or result.error is not None else ": no slice is ready"
    yield line(status(result.status.value), " ", Span(entity, "bold"), why, below=slices)
    for note in (*result.notes, *(() if result.waits_for is None else (result.waits_for,))):
        yield line(note)
    if result.unrecorded_text is not None:
        yield line(f"{result.unrecorded_text[0].upper()}{result.unrecorded_text[1:]}")
    if result.waiting:
        yield line(f"{counted(len(result.waiting), 'slice')} left: {', '.join(result.waiting)}")
