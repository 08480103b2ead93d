"""`lakewright status`: the first page of an operator, also at three in the morning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.items import Listing, Row
from lakewright.cli.page import Block, Branch, Span, line
from lakewright.cli.render.history import run_row, runs_table
from lakewright.cli.render.items import advice, said_of
from lakewright.cli.render.words import ago, assignments, counted
from lakewright.cli.render.words import status as coloured
from lakewright.manifest.item import Verdict
from lakewright.manifest.journal import RUNNING, Run
from lakewright.manifest.lock import Lock
from lakewright.manifest.store import Query

__all__ = ["status"]

LAST_RUNS = 5
MOST_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Situation:
    """What there is to know at first sight.

    Attributes:
        running: Runs under way.
        locked: Items being processed.
        stale: Items whose lock nobody stands behind.
        failed: Items that wait for an operator, or are damaged.
        waiting: Items that are ready, or will be once what they wait for is done.
    """

    running: tuple[Run, ...]
    locked: tuple[Row, ...]
    stale: tuple[Row, ...]
    failed: tuple[Row, ...]
    waiting: tuple[Row, ...]
    last_runs: tuple[Run, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the document that `status -o json` prints."""
        return {
            "running": [
                *(run_row(run) for run in self.running),
                *(row.as_json() for row in self.locked),
            ],
            "waiting": [row.as_json() for row in self.waiting],
            "failed": [{**row.as_json(), "do": advice(row)} for row in self.failed],
            "stale": [{**row.as_json(), "do": advice(row)} for row in self.stale],
            "last_runs": [run_row(run) for run in self.last_runs],
        }


@command(
    examples=["lakewright status", "lakewright status -o json"],
)
@click.pass_obj
def status(call: Call, /) -> None:
    """Show what runs, what waits and what failed, since when, with the command to type next."""
    found = _situation(call)
    call.output.result(found.as_json(), _page(found, call.app.store.now(), call.at))


def _situation(call: Call) -> Situation:
    verdicts = frozenset({Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID, Verdict.READY})
    listing = Listing(call.app.store, call.app.ledger.lock)
    items = call.app.store.select(Query(verdicts=verdicts))
    rows = [row for item in items for row in listing.rows(item) if row.verdict in verdicts]
    last_runs = tuple(call.app.journal.runs(LAST_RUNS))
    return Situation(
        running=tuple(call.app.journal.runs(status=RUNNING)),
        locked=tuple(row for row in rows if row.lock is not None and not row.is_stale),
        stale=tuple(row for row in rows if row.is_stale),
        failed=tuple(row for row in rows if row.verdict in (Verdict.FAILED, Verdict.INVALID)),
        waiting=tuple(row for row in rows if row.verdict is Verdict.READY),
        last_runs=last_runs,
    )


def _page(found: Situation, now: datetime, at: str) -> Iterator[Block]:
    more = "lakewright manifest ls --state "
    locks = [_lock(row, row.lock, now, at) for row in found.locked if row.lock is not None]
    stale = [_lock(row, row.lock, now, at) for row in found.stale if row.lock is not None]
    sections = [
        ("Failed", [_failure(row, now, at) for row in found.failed], f"{more}failed{at}"),
        ("Stale locks", stale, f"lakewright manifest ls --stale{at}"),
        ("Running", [*(_run(run, now) for run in found.running), *locks], f"{more}locked{at}"),
        ("Waiting", list(_waiting(found.waiting)), f"{more}ready{at}"),
    ]
    for title, branches, typed in sections:
        yield from _section(title, branches, typed)
    if not any(branches for _, branches, _ in sections):
        yield line(Span("Nothing runs, waits or has failed.", "green"))
    if found.last_runs:
        yield line(Span("Last runs", "bold"))
        yield runs_table(found.last_runs, now)


def _section(title: str, branches: Sequence[Branch], more: str) -> Iterator[Block]:
    if not branches:
        return
    hidden = len(branches) - MOST_SHOWN
    rest = (Branch(line(Span(f"{hidden} more: `{more}`", "dim"))),) if hidden > 0 else ()
    yield Branch(line(Span(title, "bold"), Span(f" {len(branches)}", "dim")), (*branches[:MOST_SHOWN], *rest))


def _failure(row: Row, now: datetime, at: str) -> Branch:
    said = row.item.problem or said_of(row.item)
    since = f" {ago(row.since, now)}" if row.since else ""
    return Branch(
        line(coloured(row.verdict.value), f" {row.entity or row.application} {row.slice}{since}: {said}"),
        _do(row, at),
    )


def _lock(row: Row, lock: Lock, now: datetime, at: str) -> Branch:
    why = f", stale: {lock.stale}" if lock.stale else ""
    since = ago(lock.processing.since, now)
    return Branch(
        line(
            coloured("locked"),
            f" {row.entity or row.application} {row.slice} {since} by {lock.holder}{why}",
        ),
        _do(row, at),
    )


def _run(run: Run, now: datetime) -> Branch:
    what = " ".join(filter(None, (run.job, run.phase.lower(), assignments(run.parameters))))
    return Branch(
        line(coloured(run.status), f" {what}, run {run.run_id}, {ago(run.started, now)}, by {run.holder}")
    )


def _waiting(rows: Sequence[Row]) -> Iterator[Branch]:
    groups: dict[tuple[str, str | None], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.entity or str(row.application), row.waits_for), []).append(row)
    for (name, waits_for), of_group in groups.items():
        why = f" for {waits_for}" if waits_for else " to be processed by the next run"
        verb = "waits" if len(of_group) == 1 else "wait"
        yield Branch(line(Span(name, "bold"), f": {counted(len(of_group), 'slice')} {verb}{why}"))


def _do(row: Row, at: str) -> tuple[Branch, ...]:
    typed = advice(row)
    return (Branch(line(Span("do: ", "dim"), f"`{typed}{at}`")),) if typed else ()
