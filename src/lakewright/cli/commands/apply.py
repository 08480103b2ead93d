"""What is due: `plan` and `status` show it, `apply` takes it, `decide` says what only a person can say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import (
    author_option,
    complete_decisions,
    job_arguments,
    names_of,
    operator_options,
    run_options,
)
from lakewright.cli.commands.run import run_watched
from lakewright.cli.commands.triggers import fault_blocks, next_line, trigger_branches
from lakewright.cli.faults import FAILED, HELD, fault_line, remedy_lines
from lakewright.cli.group import command
from lakewright.cli.options import despite_faults
from lakewright.cli.page import Block, Line, Span, ago, assignments, labelled, line, table_of, took
from lakewright.cli.page import status as coloured
from lakewright.cli.progress import SlicesDue
from lakewright.cli.render.run import plan_page, runs_table
from lakewright.due.plan import Action, Choice, Finding, Plan, Step
from lakewright.due.words import (
    SCHEMA,
    WORTH_KNOWING,
    choice_argv,
    choice_words,
    consent_argv,
    looks,
    plan_document,
    plan_parts,
    step_words,
)
from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command, Phrase
from lakewright.plan.phase import Phase
from lakewright.spec.grants import Grant

if TYPE_CHECKING:
    from datetime import datetime

    from lakewright.manifest.journal import Run
    from lakewright.run.request import JobRequest
    from lakewright.run.result import RunResult
    from lakewright.usecases.due.status import ProjectStatus
    from lakewright.usecases.items import Row


def due_page(plan: Plan) -> Iterator[Block]:
    """Yield the page of a plan, and its counts."""
    for title, steps in plan_parts(plan):
        if steps:
            yield line(Span(title, "bold"), below=map(_step, steps))
    if plan.findings:
        yield line(Span(WORTH_KNOWING, "bold"), below=map(_finding, plan.findings))
    yield line(Span(due_summary(plan), "bold"))


def due_summary(plan: Plan) -> str:
    """Return the numbers of steps in one line."""
    return f"Plan. NEEDS_YOU={len(plan.asked)} DUE={len(plan.ready)} WAITS={len(plan.waiting)}"


def _step(step: Step) -> Line:
    asked = step.choices if step.state.needs_person else ()
    below = [*remedy_lines(step.reason.params.get("remedy")), *_choices(asked)]
    if step.needs:
        below.append(labelled("do", Phrase(Command(*consent_argv(step)))))
    return line(Span(step.subject.text, "bold"), f": {step_words(step)}", below=below)


def _finding(finding: Finding) -> Line:
    below = (
        *_choices(finding.choices),
        *(labelled("look", Phrase(each)) for each in looks(finding.reason)),
    )
    return line(Span(finding.subject.text, "bold"), f": {finding.reason.text}", below=below)


def _choices(choices: Iterable[Choice]) -> Iterator[Line]:
    for each in choices:
        yield labelled("do", Phrase(Command(*choice_argv(each)), f": {choice_words(each)}"))


@command
@click.argument(
    "names", nargs=-1, metavar="[ENTITY|TARGET]...", shell_complete=names_of("entities", "targets")
)
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    type=click.Choice([grant.value for grant in Grant]),
    help="Allow what destroys something or costs much.",
)
@click.option("--dry-run", is_flag=True, help="Only show what is due.")
@author_option
def apply(
    call: Call, /, names: tuple[str, ...], *, allowed: tuple[str, ...], dry_run: bool, author: str
) -> int:
    """Take every step that is due and needs nobody; all of the project unless some are named.

    The exit code is 1 if a step failed, and 4 if something needs a person.

    Examples:
        lakewright apply
        lakewright apply regions --dry-run
        lakewright apply regions --allow replay
    """
    grants = frozenset(map(Grant, allowed))
    if not dry_run:
        return take_steps(call, names, grants=grants, author=author)
    from lakewright.usecases.due.take import plan_of_project

    plan = plan_of_project(call.app, names, grants)
    call.output.answer(plan_document(plan), due_page(plan))
    return 0


def take_steps(
    call: Call,
    names: tuple[str, ...] = (),
    *,
    grants: frozenset[Grant] = frozenset(),
    author: str | None = None,
    document: Mapping[str, object] | None = None,
    advice: Iterable[Block] = (),
) -> int:
    """Take the steps that are due, print what was done, and return the exit code.

    Args:
        call: The call.
        names: Entities and targets; all unless given.
        grants: What steps may do that they otherwise wait with.
        author: Who applies it; default: the user.
        document: The document in which what was done is the `outcome`; by default that alone is printed.
        advice: What to print below the page if nothing failed.
    """
    from lakewright.stores.process import user_name
    from lakewright.usecases.due.take import apply_plan
    from lakewright.usecases.due.work_done import pace_of, work_done

    begin, due = call.clock(), SlicesDue()

    def expect(plan: Plan) -> None:
        if call.output.is_live:
            for step in plan.ready:
                if step.action is Action.FORWARD:
                    with suppress(LakewrightError):  # an estimate must not fail what is done
                        due.expect(pace_of(call.app, step))

    def announce(step: Step) -> None:
        call.output.note(line(Span(step.subject.text, "bold"), f": {step_words(step)}"))

    results = []

    def run(request: JobRequest) -> RunResult:
        results.append(run_watched(call, request, due))
        return results[-1]

    done = apply_plan(
        call.app,
        run,
        names,
        grants=grants,
        author=author or user_name(),
        on_plan=expect,
        on_step=announce,
    )
    outcome = {
        "taken": [each.as_json() for each in done.taken],
        "left": plan_document(done.left),
        "entities": (work := work_done(call.app, results, done.taken)),
    }
    shown = [{key.replace("_", " "): value for key, value in each.items()} for each in work]
    page = [*([table_of(shown, "")] if work else []), *due_page(done.left)]
    whole = outcome if document is None else {**document, "outcome": outcome}
    call.output.result(whole, [*page, *(() if done.failed else advice)])
    call.output.note(*(fault_line(each.fault) for each in done.failed if each.fault is not None))
    counts = f"DONE={len(done.taken) - len(done.failed)} FAILED={len(done.failed)}"
    call.output.last(f"Applied. {counts} {due_summary(done.left)} in {took(begin, call.clock())}")
    if done.failed:
        return FAILED
    return HELD if done.needs_person else 0


@command
@click.argument("subject", shell_complete=complete_decisions)
@click.argument("choice", shell_complete=complete_decisions)
@operator_options
def decide(call: Call, /, subject: str, choice: str, *, author: str, reason: str) -> None:
    """Decide CHOICE about SUBJECT, as `lakewright plan` offers it, for the next `lakewright apply`.

    SUBJECT is an entity, ENTITY/SLICE or TARGET/INSTANCE.

    Examples:
        lakewright decide regions/2025-07-02-slice.parquet place
        lakewright decide regions/2025-07-03-slice.parquet skip --reason 'the file is broken'
    """
    from lakewright.usecases.due.decide import decide as save

    made = save(call.app, subject, choice, author=author, reason=reason)
    document = {"subject": made.subject.text, "choice": made.verb.value, "basis": made.basis}
    what = Phrase(f": {made.verb.value}; ", Command("apply"), " goes by it")
    decided = line(Span(made.subject.text, "bold"), what)
    call.output.result(document, [decided])


@command
def status(call: Call, /) -> int:
    """Show what is running, what is due, needs you or waits, the triggers and the last runs.

    The exit code is 4 if something needs a person or is locked.

    Examples:
        lakewright status
        lakewright status -o json
    """
    from lakewright.usecases.due.status import project_status

    call.accept_faults(are_reported=False)
    found = project_status(call.app)
    call.output.schema = SCHEMA
    call.output.answer(found.as_json(), _page(found, call.app.store.now()))
    return HELD if found.needs_person or found.locked else 0


def _page(found: ProjectStatus, now: datetime) -> Iterator[Block]:
    yield from fault_blocks(found.faults, found.withheld)
    if found.unwritable is not None:
        yield fault_line(found.unwritable)
    running = (*(_run(run, now) for run in found.running), *(_lock(row, now) for row in found.locked))
    if running:
        yield line(Span("Running", "bold"), below=running)
    yield from due_page(found.plan)
    if shown := trigger_branches(found.triggers, now):
        yield line(Span("Triggers", "bold"), below=shown)
    if (soon := next_line(found.triggers, now)) is not None:
        yield soon
    if found.last_runs:
        yield line(Span("Last runs", "bold"))
        yield runs_table(found.last_runs, now)


def _run(run: Run, now: datetime) -> Line:
    what = " ".join(filter(None, (run.job, run.phase.lower(), assignments(run.parameters))))
    said = f" {what}, run {run.run_id}, {ago(run.started, now)}, by {run.holder}"
    return line(coloured(run.status), said)


def _lock(row: Row, now: datetime) -> Line:
    lock = row.lock
    if lock is None:
        return line(coloured("locked"), f" {row.owner} {row.slice}")
    held = f": {lock.stale_reason}" if lock.stale_reason else f" by {lock.holder}"
    since = ago(lock.processing.since, now)
    return line(coloured("locked"), f" {row.owner} {row.slice} {since}{held}")


HAS_WORK = 3


@command
@job_arguments(is_required=False)
@run_options
@click.option(
    "--preview", is_flag=True, help="Count the deletes that each entity's next slice implies; starts Spark."
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 3 if anything but checks would run.")
@despite_faults
def plan(
    call: Call,
    /,
    name: str | None,
    phase: Phase | None,
    parameters: tuple[str, ...],
    *,
    detailed_exitcode: bool,
    **options: Any,
) -> int:
    """Show what a run of JOB would do to each target up to PHASE, and why; without JOB, what is due.

    Nothing is written.

    Examples:
        lakewright plan
        lakewright plan monthly build month=2022-01-01
        lakewright plan monthly verify month:start=2022-01-01 month:end=2022-06-01 -o json
        lakewright plan monthly build month=2022-01-01 --detailed-exitcode
        lakewright plan monthly build month=2022-01-01 --preview
    """
    if name is None:
        return _show_due(call, detailed_exitcode=detailed_exitcode)
    if phase is None:
        raise click.MissingParameter(param_hint="'PHASE'", param_type="argument")
    from lakewright.run.request import JobRequest
    from lakewright.usecases.run_job import plan_job
    from lakewright.usecases.triggers import triggers_of_job

    found = plan_job(call.app, JobRequest.typed(name, phase, parameters, **options))

    if (soon := next_line(triggers_of_job(call.app, name), call.clock())) is not None:
        call.output.note(soon)
    call.output.answer(found.as_json(), plan_page(found))
    return HAS_WORK if detailed_exitcode and found.has_work else 0


def _show_due(call: Call, *, detailed_exitcode: bool) -> int:
    """Show what is due in all entities."""
    from lakewright.usecases.due.take import plan_of_project

    found = plan_of_project(call.app)
    call.output.schema = SCHEMA
    call.output.answer(plan_document(found), due_page(found))
    return HAS_WORK if detailed_exitcode and found.ready else 0
