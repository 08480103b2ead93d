"""Pages of the history: a table of runs, one run as a tree, two runs compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright.cli.page import Block, Branch, Line, Span, Table, line
from lakewright.cli.render.run import details, metric_text
from lakewright.cli.render.words import ago, assignments, counted, seconds, status, took
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.journal import Run
from lakewright.manifest.run_comparison import TargetDifference

if TYPE_CHECKING:
    from lakewright.usecases.history import RunComparison

SHORT_ID = 8

__all__ = ["diff_page", "run_page", "runs_table"]


def runs_table(runs: Sequence[Run], now: datetime) -> Block:
    """Return runs as a table, the newest first."""
    columns = ("run", "status", "job", "phase", "parameters", "started", "took")
    return Table(columns, tuple(_row(run, now) for run in runs))


def _row(run: Run, now: datetime) -> tuple[Line, ...]:
    return (
        # `history show` takes the beginning of an id.
        line(run.run_id[:SHORT_ID]),
        line(status(run.status)),
        line(run.job),
        line(_phase_of(run)),
        line(assignments(run.parameters)),
        line(ago(run.started, now)),
        line(took(run.started, run.finished) if run.finished else ""),
    )


def _phase_of(run: Run) -> str:
    """Return the phase of a run as text; a rebuild that only compares writes nothing."""
    return f"{run.phase.lower()} --check" if run.facts.get("check") else run.phase.lower()


def run_page(document: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the page of a run from its JSON document."""
    head = f" up to {document['phase'].lower()}, run {document['run_id']}, "
    yield line(Span(f"{document['project']}/{document['job']}", "bold"), head, status(document["status"]))
    yield line(f"started {document['started']}, finished {document['finished'] or 'not yet'}")
    begun_by = f", begun by the trigger {document['trigger']}" if document.get("trigger") else ""
    yield line(f"by {document['holder']}{begun_by}")
    if choice := _choice(document):
        yield line(f"restricted to {choice}")
    for instance in document["instances"]:
        yield Branch(
            line(Span(assignments(instance["parameters"]) or "without parameters", "bold")),
            tuple(_phase(phase) for phase in instance["phases"]),
        )


def _choice(document: Mapping[str, Any]) -> str:
    targets = ", ".join(document.get("targets") or ())
    parts = (f"the targets {targets}" if targets else "", "this phase" * bool(document.get("no_lifecycle")))
    return " and ".join(filter(None, parts))


def _phase(phase: Mapping[str, Any]) -> Branch:
    return Branch(line(phase["phase"]), tuple(_target(target) for target in phase["targets"]))


def _target(target: Mapping[str, Any]) -> Branch:
    time = Span(f" {seconds(target['seconds'])}", "dim") if target["seconds"] else ""
    message = target["error"]["message"].splitlines()[:1] if target["error"] else []  # stands below
    said = [reason for reason in target["reasons"] if reason not in message]
    reasons = Phrase(": ", Phrase.joined("; ", said)) if said else ""
    head = line(status(target["status"]), f" {target['name']} ({target['kind']})", time, reasons)
    return Branch(head, tuple(details(target["metrics"], target["error"], target["warnings"])))


def diff_page(compared: RunComparison, *, is_all: bool) -> Iterator[Block]:
    """Yield two runs and how their targets differ; with `is_all` also targets that are the same."""
    found = compared.differences
    if compared.before is None:
        yield from _first_run(compared.after, compared.unlike)
        return
    for word, run in (("before", compared.before), ("after", compared.after)):
        time = took(run.started, run.finished) if run.finished else "not finished"
        yield line(Span(f"{word} ", "dim"), f"{run.run_id} ", status(run.status), f" {time}")
    shown = [difference for difference in found if is_all or not difference.is_same]
    yield from (
        Branch(_place(difference), tuple(Branch(each) for each in _changes(difference)))
        for difference in shown
    )
    same = len(found) - len(shown)
    yield line(Span(f"{counted(len(shown), 'difference')}, {same} the same", "bold"))


def _first_run(run: Run, unlike: Run | None) -> Iterator[Line]:
    """Yield that a run has no earlier one like it, and the command that compares it with another one."""
    with_what = f"with {assignments(run.parameters)}" if run.parameters else "without parameters"
    yield line(
        f"{run.run_id} is the first run of {run.job} up to {run.phase} {with_what}, so there is nothing to "
        "compare it with."
    )
    if unlike is not None:
        named = " ".join(filter(None, (unlike.phase, assignments(unlike.parameters))))
        typed = Command("history", "diff", unlike.run_id, run.run_id)
        yield line(Span("do: ", "dim"), Phrase(f"to compare it with the run before, {named}: ", typed))


def _place(difference: TargetDifference) -> Line:
    return line(
        Span(difference.name, "bold"), f" {difference.phase} {assignments(difference.instance)}".rstrip()
    )


def _changes(difference: TargetDifference) -> Iterator[Line]:
    old, new = difference.status
    if old != new:
        yield line(status(old or "not there"), " → ", status(new or "not there"))
    if None not in difference.seconds and old != "SKIPPED" != new:
        first, second = (seconds(value or 0) for value in difference.seconds)
        yield line(Span(f"took {first} → {second}", "dim"))
    for pair in (difference.reasons, tuple(filter(None, (each,)) for each in difference.error)):
        words = ["; ".join(side) or "nothing" for side in map(tuple, pair)]
        if words[0] != words[1]:
            yield line(Span("said ", "dim"), f"{words[0]} → {words[1]}")
    for name, (first_value, second_value) in difference.metrics.items():
        if all(value in (0, None) for value in (first_value, second_value)):
            continue
        yield line(f"{name} {metric_text(first_value)} → {metric_text(second_value)}")
