"""`lakewright undo` and `lakewright rebuild`: take a slice back, or build a table again from its slices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import names_of, operator_options, slice_named
from lakewright.cli.group import command
from lakewright.cli.page import Block, Span, line
from lakewright.cli.progress import listening_to_run, working
from lakewright.cli.render.look_back import difference_blocks
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from lakewright.manifest.journal import Run
    from lakewright.usecases.rewinds import Rebuilt, Undone


def _show_ended(call: Call, entity: str, ended: Run, **what: str) -> None:
    """Print that a run had done this already, although its process ended before it was recorded."""
    from lakewright.usecases.rewinding import ended_words

    document = {"entity": entity, **what, "done": True, "recorded_run": ended.run_id}
    call.output.result(document, [line(Span(entity, "bold"), f": {ended_words(ended)}")])


@command
@click.argument("entity", shell_complete=names_of("entities"))
@click.argument("slice_name", metavar="SLICE", required=False)
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--yes", "-y", is_flag=True, help="Undo without asking, and without comparing rows first.")
@click.option(
    "--skip/--requeue",
    "is_skipped",
    default=True,
    help="Skip the slice from now on; or process it, and those after it, in the next run.",
    show_default="--skip",
)
@click.option("--over-foreign", is_flag=True, help="Allow commits of other writers to be lost.")
@operator_options
def undo(call: Call, /, entity: str, slice_name: str | None, **options: Any) -> int:
    """Take SLICE back: the silver table of ENTITY is as if the slice had never been processed.

    What would change is shown first.

    Examples:
        lakewright undo regions 2025-07-02-slice.parquet --dry-run
        lakewright undo regions 2025-07-02-slice.parquet --yes --reason 'the file is broken'
        lakewright undo regions 2025-07-02-slice.parquet --requeue --yes
    """
    from lakewright.usecases.rewinds import ended_undo, preview_undo, undo_slice

    entity, slice_name = slice_named(entity, slice_name)
    if slice_name is None:
        raise click.MissingParameter(param_hint="'SLICE'", param_type="argument")
    is_dry, author = options["dry_run"], options["author"]
    choices = {"is_requeued": not options["is_skipped"], "is_over_foreign": options["over_foreign"]}
    if not is_dry:
        is_requeued = choices["is_requeued"]
        ended = ended_undo(call.app, entity, slice_name, is_requeued=is_requeued, author=author)
        if ended is not None:
            _show_ended(call, entity, ended, slice=slice_name)
            return 0
    if is_dry or not options["yes"]:
        with working(call.output, "comparing"):
            planned = preview_undo(call.app, entity, slice_name, **choices)
        refused = "Nothing was written: give --yes to undo the slice."
        if is_dry or not call.confirms("Undo?", refused, undo_page(planned)):
            call.output.result(planned.as_json(), undo_page(planned) if is_dry else ())
            return 0 if is_dry else 1
    with working(call.output, f"undoing {slice_name}"):
        done = undo_slice(call.app, entity, slice_name, **choices, author=author, reason=options["reason"])
    call.output.result(done.as_json(), undo_page(done))
    return 0


@command
@click.argument("entity", shell_complete=names_of("entities"))
@click.option("--from", "from_slice", metavar="SLICE", help="Keep what the table held before this slice.")
@click.option("--from-time", metavar="TIME", help="Keep what the table held before this processing time.")
@click.option(
    "--include",
    metavar="SLICE",
    multiple=True,
    help="Apply this slice, which waits, in its place; repeatable.",
)
@click.option("--check", is_flag=True, help="Only build beside the table and compare.")
@click.option("--yes", "-y", is_flag=True, help="Swap the new table in without asking.")
@click.option("--over-foreign", is_flag=True, help="Allow commits that no slice made to be lost.")
@operator_options
def rebuild(call: Call, /, entity: str, **options: Any) -> int:
    """Build the silver table of ENTITY again from its slices, under today's declaration.

    It is built beside the old one, compared with it, and swapped in by one commit.

    Examples:
        lakewright rebuild regions --check
        lakewright rebuild regions --yes --reason 'regions have a history now'
        lakewright rebuild regions --from 2025-07-02-slice.parquet --yes
        lakewright rebuild regions --include 2025-07-02-slice.parquet --yes
    """
    from lakewright.usecases.rewinds import ended_rebuild, rebuild_table

    is_check, is_sure = options.pop("check"), options.pop("yes")
    over_foreign = options.pop("over_foreign")

    def run(*, is_only_check: bool) -> Rebuilt:
        with (
            listening_to_run(call) as stopper,
            working(call.output, f"building {entity}"),
        ):
            return rebuild_table(
                call.app,
                entity,
                is_check=is_only_check,
                is_over_foreign=over_foreign,
                interruption=stopper,
                **options,
            )

    if not is_check:
        asked = {name: options[name] for name in ("from_slice", "from_time", "include", "author")}
        ended = ended_rebuild(call.app, entity, **asked)
        if ended is not None:
            _show_ended(call, entity, ended)
            return 0
    if is_check or not is_sure:
        found = run(is_only_check=True)
        refused = "The table is as it was: give --yes to swap the new one in."
        if is_check or not call.confirms("Swap it in?", refused, rebuild_page(found)):
            call.output.result(found.as_json(), rebuild_page(found) if is_check else ())
            return 0 if is_check else 1
        call.app.begin_run()
    done = run(is_only_check=False)
    call.output.result(done.as_json(), rebuild_page(done))
    return 0


def undo_page(undone: Undone) -> Iterator[Block]:
    """Yield what an undo does, with the rows that change."""
    plan = undone.plan
    counts = ", ".join(f"{name} {count:,}" for name, count in plan.counts.items())
    yield line(
        Span(undone.entity, "bold"), f": slice {plan.slice}", Span(f" ({counts})" if counts else "", "dim")
    )
    yield from map(line, undone.words)
    if undone.difference is not None:
        if plan.replay.slices:
            yield line("what it changed by itself; later slices may have changed these rows again:")
        yield from difference_blocks(undone.difference, "goes", "comes back")
    if undone.version is not None:
        yield line(Span(f"Done. The table is at version {undone.version}.", "bold"))


def rebuild_page(found: Rebuilt) -> Iterator[Block]:
    """Yield from what a table was built again, and how its rows differ from the old ones."""
    plan = found.plan
    replay = plan.replay
    start = "" if replay.base is None else f", after the rows of version {replay.base}"
    number = counted(len(replay.slices), "slice")
    yield line(Span(found.entity, "bold"), f": built again from {number}{start}")
    for name, at in plan.included_times.items():
        yield line(f"{name}, which waited, is in its place, at the processing time {at.isoformat()}")
    yield from map(line, found.words)
    if found.difference is not None:
        if found.difference.is_none:
            yield line("both tables have the same rows")
        yield from difference_blocks(found.difference, "is only in the old table", "is only in the new table")
    if found.version is not None:
        old = "" if replay.state.version is None else f" The former rows are version {replay.state.version}."
        yield line(Span(f"Done. The table is at version {found.version}.{old}", "bold"))
