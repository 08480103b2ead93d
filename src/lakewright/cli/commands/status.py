"""`lakewright status`: what runs now, what is due, the triggers and the last runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.apply import due_page
from lakewright.cli.commands.history import runs_table
from lakewright.cli.commands.triggers import fault_blocks, next_line, trigger_branches
from lakewright.cli.faults import fault_branch
from lakewright.cli.group import command
from lakewright.cli.page import Block, Branch, Span, ago, assignments, line
from lakewright.cli.page import status as coloured

if TYPE_CHECKING:
    from datetime import datetime

    from lakewright.manifest.journal import Run
    from lakewright.usecases.due.status import ProjectStatus
    from lakewright.usecases.items import Row

__all__ = ["status"]


@command(
    examples=["lakewright status", "lakewright status -o json"],
)
@click.pass_obj
def status(call: Call, /) -> None:
    """Show what is running, what is due, needs you or waits, the triggers and the last runs."""
    from lakewright.due.words import SCHEMA
    from lakewright.usecases.due.status import project_status

    call.accept_faults(are_told=False)
    found = project_status(call.app)
    call.output.schema = SCHEMA
    call.output.answer(found.as_json(), _page(found, call.app.store.now()))


def _page(found: ProjectStatus, now: datetime) -> Iterator[Block]:
    yield from fault_blocks(found.faults, found.withheld)
    if found.unwritable is not None:
        yield fault_branch(found.unwritable)
    running = (*(_run(run, now) for run in found.running), *(_lock(row, now) for row in found.locked))
    yield from _section("Running", running)
    yield from due_page(found.plan)
    yield from _section("Triggers", trigger_branches(found.triggers, now))
    if (soon := next_line(found.triggers, now)) is not None:
        yield soon
    if found.last_runs:
        yield line(Span("Last runs", "bold"))
        yield runs_table(found.last_runs, now)


def _section(title: str, branches: tuple[Branch, ...]) -> Iterator[Block]:
    if branches:
        yield Branch(line(Span(title, "bold")), branches)


def _run(run: Run, now: datetime) -> Branch:
    what = " ".join(filter(None, (run.job, run.phase.lower(), assignments(run.parameters))))
    said = f" {what}, run {run.run_id}, {ago(run.started, now)}, by {run.holder}"
    return Branch(line(coloured(run.status), said))


def _lock(row: Row, now: datetime) -> Branch:
    lock = row.lock
    if lock is None:
        return Branch(line(coloured("locked"), f" {row.owner} {row.slice}"))
    held = f": {lock.stale_reason}" if lock.stale_reason else f" by {lock.holder}"
    since = ago(lock.processing.since, now)
    return Branch(line(coloured("locked"), f" {row.owner} {row.slice} {since}{held}"))
