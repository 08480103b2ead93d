"""`lakewright history`: list, show, compare and prune runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import rows_option, slice_named
from lakewright.cli.group import group
from lakewright.cli.page import Block, Line, Span, assignments, labelled, line, status, took
from lakewright.cli.progress import working
from lakewright.cli.render.run import metric_text, runs_table, target_branch
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.journal import RUNNING, Run
from lakewright.manifest.run_comparison import TargetDifference
from lakewright.plan.status import Status
from lakewright.spec.words import counted, duration, first_of

if TYPE_CHECKING:
    from lakewright.usecases.history import RunComparison


STATUSES = [status.lower() for status in (*Status, RUNNING) if status is not Status.BLOCKED]
"""Statuses of runs; a blocked target makes its run fail."""
MOST_NAMED = 5


@group
@click.option("--job", metavar="NAME", help="Only runs of this job.")
@click.option(
    "--status",
    type=click.Choice(STATUSES, case_sensitive=False),
    help="Only runs with this status.",
)
@click.option("--since", "age", metavar="AGE", help="Only runs started at most this long ago: 2h, 7d, P1M.")
@rows_option("The largest number of runs.", name="--limit")
def history(call: Call, /, *, job: str | None, status: str | None, age: str | None, limit: int) -> None:
    """List the runs of jobs, newest first.

    Examples:
        lakewright history
        lakewright history --job monthly --status failed
        lakewright history --since 7d
        lakewright history show RUN
        lakewright history diff RUN OTHER
        lakewright history row regions 302811
    """
    from lakewright.usecases import history as use_case

    call.accept_faults()
    runs = use_case.list_runs(call.app, job=job, status=status and status.upper(), age=age, limit=limit)
    none = "" if runs else "no run matches" if use_case.jobs_that_ran(call.app) else "nothing has run yet"
    page = runs_table(runs, call.app.store.now(), none)
    call.output.answer([use_case.run_as_json(run) for run in runs], [page])


@history.add("show")
@click.argument("run")
def show_run(call: Call, /, run: str) -> None:
    """Show how each target of one run ended; the start of its id is enough.

    Examples:
        lakewright history show RUN
        lakewright history show RUN -o json
    """
    from lakewright.usecases.history import run_with_targets

    call.accept_faults()
    document = run_with_targets(call.app, run)
    call.output.answer(document, history_page(document))


@history.add("diff")
@click.argument("run", metavar="RUN|ENTITY")
@click.argument("other", metavar="[OTHER|SLICE]", required=False)
@click.option("--all", "is_all", is_flag=True, help="Show targets that differ only in their time, too.")
@rows_option("Of a slice: the largest number of records.")
def diff(call: Call, /, run: str, other: str | None, *, is_all: bool, rows: int) -> None:
    """Compare two runs target by target, or show what one slice changed in an entity's table.

    By default RUN is compared with the previous one of its job, phase and parameters.

    Examples:
        lakewright history diff RUN OTHER
        lakewright history diff RUN
        lakewright history diff regions 2022-02-01.parquet
    """
    call.accept_faults()
    named = slice_named(run, other)
    run, other = named if named[0] in call.app.project.entities else (run, other)
    if other is not None and run in call.app.project.entities:
        from lakewright.cli.render.look_back import changes_page
        from lakewright.usecases.look_back import slice_changes

        with working(call.output, f"comparing the table before and after {other}"):
            changes = slice_changes(call.app, run, other, limit=rows)
        call.output.answer(changes.as_json(), changes_page(changes))
        return
    from lakewright.usecases.history import compare_runs

    compared = compare_runs(call.app, run, other)
    call.output.answer(compared.as_json(), diff_page(compared, is_all=is_all))


@history.add("row")
@click.argument("entity")
@click.argument("key", nargs=-1, required=True)
def show_row(call: Call, /, entity: str, key: tuple[str, ...]) -> None:
    """Show the life of one record: each version, by which slice, in which run.

    KEY is the business key, or its values in the order of the declaration.

    Examples:
        lakewright history row regions 302811
        lakewright history row prices NL 2022-02 -o json
    """
    from lakewright.cli.render.look_back import life_page
    from lakewright.usecases.look_back import record_life

    call.accept_faults()
    with working(call.output, "reading the table's versions"):
        life = record_life(call.app, entity, key)
    call.output.answer(life.as_json(), life_page(life))


@history.add("prune")
@click.option(
    "--older-than", "age", metavar="AGE", help="90d, 12h, P3M; by default the manifest's retention."
)
@click.option("--dry-run", is_flag=True, help="Only list them.")
def prune(call: Call, /, *, age: str | None, dry_run: bool) -> None:
    """Remove old runs from the history.

    The last and the last successful run of each job, phase and parameters are kept.

    Examples:
        lakewright history prune --older-than 90d
    """
    from lakewright.usecases.history import prune_runs

    call.accept_faults()
    old = prune_runs(call.app, age, is_dry=dry_run)
    document = {"removed": [run.run_id for run in old], "dry_run": dry_run}
    does = "would be removed" if dry_run else "removed"
    call.output.result(document, [line(f"{counted(len(old), 'run')} {does}")])


def history_page(document: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the page of a run from its JSON document."""
    from lakewright.usecases.history import REWINDS, replayed_slices

    is_rewind = document["phase"] in REWINDS  # its name says so already
    until = "" if is_rewind else f" up to {document['phase'].lower()}"
    head = f"{until}, run {document['run_id']}, "
    yield line(Span(f"{document['project']}/{document['job']}", "bold"), head, status(document["status"]))
    yield line(f"started {document['started']}, finished {document['finished'] or 'not yet'}")
    begun_by = f", begun by the trigger {document['trigger']}" if document.get("trigger") else ""
    yield line(f"by {document['holder']}{begun_by}")
    if is_rewind:
        yield from _rewind_lines(document, replayed_slices(document))
    if choice := _choice(document):
        yield line(f"restricted to {choice}")
    for instance in document["instances"]:
        yield line(
            Span(assignments(instance["parameters"]) or "without parameters", "bold"),
            below=(_phase(phase) for phase in instance["phases"]),
        )


def _rewind_lines(document: Mapping[str, Any], names: Sequence[str]) -> Iterator[Block]:
    """Yield who has replayed a table, why, and which slices were taken back or applied again."""
    reason = ": ".join(filter(None, (document.get("author"), document.get("reason"))))
    code = f" ({document['code']})" if document.get("code") else ""
    if reason or code:
        yield line(f"for {reason}{code}")
    if names:
        yield line(f"{'slice' if len(names) == 1 else 'slices'} {first_of(names, MOST_NAMED)}")


def _choice(document: Mapping[str, Any]) -> str:
    targets = ", ".join(document.get("targets") or ())
    parts = (f"the targets {targets}" if targets else "", "this phase" * bool(document.get("no_lifecycle")))
    return " and ".join(filter(None, parts))


def _phase(phase: Mapping[str, Any]) -> Line:
    shown = (target_branch(target, has_time=bool(target["seconds"])) for target in phase["targets"])
    return line(phase["phase"], below=shown)


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
    yield from map(_difference, shown)
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
        yield labelled("do", Phrase(f"to compare it with the run before, {named}: ", typed))


def _difference(difference: TargetDifference) -> Line:
    place = f" {difference.phase} {assignments(difference.instance)}".rstrip()
    return line(Span(difference.name, "bold"), place, below=_changes(difference))


def _changes(difference: TargetDifference) -> Iterator[Line]:
    old, new = difference.status
    if old != new:
        yield line(status(old or "not there"), " → ", status(new or "not there"))
    if None not in difference.seconds and old != "SKIPPED" != new:
        first, second = (duration(value or 0) for value in difference.seconds)
        yield line(Span(f"took {first} → {second}", "dim"))
    for pair in (difference.reasons, tuple(filter(None, (each,)) for each in difference.error)):
        words = ["; ".join(side) or "nothing" for side in map(tuple, pair)]
        if words[0] != words[1]:
            yield line(Span("said ", "dim"), f"{words[0]} → {words[1]}")
    for name, (first_value, second_value) in difference.metrics.items():
        if all(value in (0, None) for value in (first_value, second_value)):
            continue
        yield line(f"{name} {metric_text(first_value)} → {metric_text(second_value)}")
