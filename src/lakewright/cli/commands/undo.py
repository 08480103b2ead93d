"""`lakewright undo`: take a slice back out of its table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import slice_named
from lakewright.cli.commands.manifest.operate import operator_options
from lakewright.cli.completion import names_of
from lakewright.cli.group import command
from lakewright.cli.page import Block, Branch, Span, line
from lakewright.cli.progress import working
from lakewright.cli.render.rewind import difference_blocks

if TYPE_CHECKING:
    from lakewright.usecases.undo_slice import Undone

__all__ = ["undo"]


@command(
    examples=[
        "lakewright undo regions 2025-07-02-slice.parquet --dry-run",
        "lakewright undo regions 2025-07-02-slice.parquet --yes --reason 'the file is broken'",
        "lakewright undo regions 2025-07-02-slice.parquet --requeue --yes",
    ],
)
@click.argument("entity", shell_complete=names_of("entities"))
@click.argument("slice_name", metavar="SLICE", required=False)
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--yes", "-y", is_flag=True, help="Undo without asking, and without comparing rows first.")
@click.option(
    "--skip/--requeue",
    "is_skipped",
    default=True,
    help="Skip the slice from now on; or process it again, and those after it, in the next run.",
    show_default="--skip",
)
@click.option("--over-foreign", is_flag=True, help="Allow commits of other writers to be lost.")
@operator_options
@click.pass_obj
def undo(call: Call, /, entity: str, slice_name: str | None, **options: Any) -> int:
    """Take SLICE back: the silver table of ENTITY is as if the slice had never been processed.

    The last slice, or any slice with --requeue, is undone by one commit that writes no rows, unless
    that of the slice holds others before it. What would change is shown first.
    """
    from lakewright.usecases.rewinding import ended_words
    from lakewright.usecases.undo_slice import ended_undo, preview_undo, undo_slice

    entity, slice_name = slice_named(entity, slice_name)
    if slice_name is None:
        raise click.MissingParameter(param_hint="'SLICE'", param_type="argument")
    choices = {"is_requeued": not options["is_skipped"], "is_over_foreign": options["over_foreign"]}
    if not options["dry_run"]:
        is_requeued, author = choices["is_requeued"], options["author"]
        ended = ended_undo(call.app, entity, slice_name, is_requeued=is_requeued, author=author)
        if ended is not None:
            told = {"entity": entity, "slice": slice_name, "done": True, "recorded_run": ended.run_id}
            call.output.result(told, [line(Span(entity, "bold"), f": {ended_words(ended)}")])
            return 0
    if options["dry_run"] or not options["yes"]:
        with working(call.output, "comparing"):
            planned = preview_undo(call.app, entity, slice_name, **choices)
        if options["dry_run"] or not _is_confirmed(call, planned):
            call.output.result(planned.as_json(), () if not options["dry_run"] else _page(planned))
            return 0 if options["dry_run"] else 1
    with working(call.output, f"undoing {slice_name}"):
        done = undo_slice(
            call.app, entity, slice_name, **choices, author=options["author"], reason=options["reason"]
        )
    call.output.result(done.as_json(), _page(done))
    return 0


def _is_confirmed(call: Call, planned: Undone) -> bool:
    """Show what would change, and return whether the user wants it."""
    if call.output.is_json or not sys.stdin.isatty():
        if not call.output.is_json:
            call.output.page(_page(planned))
        call.output.note(line("Nothing was written: give --yes to undo the slice."))
        return False
    call.output.page(_page(planned))
    return click.confirm("Undo?", err=True)


def _page(undone: Undone) -> Iterator[Block]:
    plan = undone.plan
    counts = ", ".join(f"{name} {count:,}" for name, count in plan.counts.items())
    yield line(
        Span(undone.entity, "bold"), f": slice {plan.slice}", Span(f" ({counts})" if counts else "", "dim")
    )
    yield from (Branch(line(each)) for each in undone.words)
    if undone.difference is not None:
        if plan.replay.slices:
            yield Branch(line("what it changed by itself; later slices may have changed these rows again:"))
        yield from difference_blocks(undone.difference, "goes", "comes back")
    if undone.version is not None:
        yield line(Span(f"Done. The table is at version {undone.version}.", "bold"))
