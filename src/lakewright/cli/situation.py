"""What an operator must know at first sight: what runs, waits and failed, and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.cli.items import Listing, Row
from lakewright.cli.render.history import run_row
from lakewright.cli.render.items import advice
from lakewright.manifest.item import Verdict
from lakewright.manifest.journal import RUNNING, Run
from lakewright.manifest.redact import HIDDEN
from lakewright.manifest.store import Query
from lakewright.plan.status import Status

if TYPE_CHECKING:
    from lakewright.app import App

__all__ = ["Situation", "hidden_parameters", "resume_command", "situation_of"]

RECENT = 200
"""Runs that are looked at: a history may hold very many."""

LAST_RUNS = 5
OPEN = frozenset({Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID, Verdict.READY})


@dataclass(frozen=True, slots=True)
class Situation:
    """What there is to know.

    Attributes:
        running: Runs under way.
        locked: Items being processed.
        stale: Items whose lock nobody stands behind.
        failed: Items that wait for an operator, or are damaged.
        waiting: Items that are ready, or will be once what they wait for is done.
        undone: Runs that failed and that no later run of the same job, phase and parameters made good.
    """

    running: tuple[Run, ...]
    locked: tuple[Row, ...]
    stale: tuple[Row, ...]
    failed: tuple[Row, ...]
    waiting: tuple[Row, ...]
    undone: tuple[Run, ...]
    last_runs: tuple[Run, ...]

    @property
    def is_calm(self) -> bool:
        """Whether there is nothing to tell but what ran."""
        return not (self.running or self.locked or self.stale or self.failed or self.waiting or self.undone)

    def as_json(self) -> dict[str, Any]:
        """Return the document that `status -o json` prints."""
        undone = {run.run_id for run in self.undone}
        return {
            "running": [*map(run_row, self.running), *(row.as_json() for row in self.locked)],
            "waiting": [row.as_json() for row in self.waiting],
            "failed": [{**row.as_json(), "do": advice(row)} for row in self.failed],
            "stale": [{**row.as_json(), "do": advice(row)} for row in self.stale],
            "last_runs": [
                {**run_row(run), "do": resume_command(run) if run.run_id in undone else None}
                for run in self.last_runs
            ],
        }


def situation_of(app: App) -> Situation:
    """Return the situation in a project's manifest and history."""
    listing = Listing(app.store, app.ledger.lock)
    items = app.store.select(Query(verdicts=OPEN))
    rows = [row for item in items for row in listing.rows(item) if row.verdict in OPEN]
    runs = tuple(app.journal.runs(RECENT))
    return Situation(
        running=tuple(run for run in runs if run.status == RUNNING),
        locked=tuple(row for row in rows if row.lock is not None and not row.is_stale),
        stale=tuple(row for row in rows if row.is_stale),
        failed=tuple(row for row in rows if row.verdict in (Verdict.FAILED, Verdict.INVALID)),
        waiting=tuple(row for row in rows if row.verdict is Verdict.READY),
        undone=tuple(_undone(runs)),
        last_runs=runs[:LAST_RUNS],
    )


def resume_command(run: Run) -> str:
    """Return what to type to do what a run left undone; for a hidden value `<name>`, which no shell takes."""
    hidden = hidden_parameters(run)
    arguments = [
        f"{name}=<{name}>" if name in hidden else shlex.quote(f"{name}={value}")
        for name, value in run.parameters.items()
    ]
    return " ".join(
        [*map(shlex.quote, ("lakewright", "job", run.job, run.phase.lower())), *arguments, "--resume"]
    )


def hidden_parameters(run: Run) -> tuple[str, ...]:
    """Return the names of a run's parameters whose values, being secret, aren't kept."""
    return tuple(name for name, value in run.parameters.items() if HIDDEN in str(value))


def _undone(newest_first: Iterable[Run]) -> Iterator[Run]:
    seen: set[tuple[object, ...]] = set()
    for run in newest_first:
        kind = (run.project, run.job, run.phase, *sorted(run.parameters.items()))
        if kind not in seen and run.status in (Status.FAILED, Status.ABORTED):
            yield run
        seen.add(kind)
