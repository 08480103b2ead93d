"""`lakewright rebuild`: build a silver table again from its slices."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.manifest.operate import operator_options
from lakewright.cli.completion import names_of
from lakewright.cli.group import command
from lakewright.cli.page import Block, Branch, Span, line
from lakewright.cli.progress import working
from lakewright.cli.render.rewind import difference_blocks
from lakewright.cli.render.words import counted
from lakewright.cli.signals import listening_to_run

if TYPE_CHECKING:
    from lakewright.usecases.rebuild_table import Rebuilt

__all__ = ["rebuild"]


@command(
    examples=[
        "lakewright rebuild regions --check",
        "lakewright rebuild regions --yes --reason 'regions have a history now'",
        "lakewright rebuild regions --from 2025-07-02-slice.parquet --yes",
        "lakewright rebuild regions --include 2025-07-02-slice.parquet --yes",
    ],
)
@click.argument("entity", shell_complete=names_of("entities"))
@click.option("--from", "from_slice", metavar="SLICE", help="Keep what the table held before this slice.")
@click.option("--from-time", metavar="TIME", help="Keep what the table held before this processing time.")
@click.option(
    "--include",
    metavar="SLICE",
    multiple=True,
    help="Apply this slice, which waits, where its processing time puts it; repeatable.",
)
@click.option("--check", is_flag=True, help="Only build beside the table and compare.")
@click.option("--yes", "-y", is_flag=True, help="Swap the new table in without asking.")
@click.option("--over-foreign", is_flag=True, help="Allow commits that no slice made to be lost.")
@operator_options
@click.pass_obj
def rebuild(call: Call, /, entity: str, **options: Any) -> int:
    """Build the silver table of ENTITY again from its slices, under today's declaration.

    It is built beside the old one, compared with it, and swapped in by one commit. Slices that arrive
    meanwhile wait. The old rows stay reachable by Delta's time travel.
    """
    from lakewright.usecases.rebuild_table import ended_rebuild, rebuild_table
    from lakewright.usecases.rewinding import ended_words

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
            told = {"entity": entity, "done": True, "recorded_run": ended.run_id}
            call.output.result(told, [line(Span(entity, "bold"), f": {ended_words(ended)}")])
            return 0
    if is_check or not is_sure:
        found = run(is_only_check=True)
        if is_check or not _is_confirmed(call, found):
            call.output.result(found.as_json(), _page(found) if is_check else ())
            return 0 if is_check else 1
        call.app.begin_run()
    done = run(is_only_check=False)
    call.output.result(done.as_json(), _page(done))
    return 0


def _is_confirmed(call: Call, found: Rebuilt) -> bool:
    """Show the difference, and return whether the user wants the new table."""
    if not call.output.is_json:
        call.output.page(_page(found))
    if call.output.is_json or not sys.stdin.isatty():
        call.output.note(line("The table is as it was: give --yes to swap the new one in."))
        return False
    return click.confirm("Swap it in?", err=True)


def _page(found: Rebuilt) -> Iterator[Block]:
    plan = found.plan
    replay = plan.replay
    start = "" if replay.base is None else f", after the rows of version {replay.base}"
    number = counted(len(replay.slices), "slice")
    yield line(Span(found.entity, "bold"), f": built again from {number}{start}")
    for name, at in plan.included_times.items():
        yield Branch(line(f"{name}, which waited, is in its place, at the processing time {at.isoformat()}"))
    yield from (Branch(line(each)) for each in found.words)
    if found.difference is not None:
        if found.difference.is_none:
            yield Branch(line("both tables have the same rows"))
        yield from difference_blocks(found.difference, "is only in the old table", "is only in the new table")
    if found.version is not None:
        old = "" if replay.state.version is None else f" The former rows are version {replay.state.version}."
        yield line(Span(f"Done. The table is at version {found.version}.{old}", "bold"))
