"""What is due: `lakewright apply` takes it, `lakewright decide` says what only a person can say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.manifest.operate import author_option, operator_options
from lakewright.cli.completion import complete_decisions, names_of
from lakewright.cli.faults import FAILED, HELD, fault_branch
from lakewright.cli.group import command
from lakewright.cli.page import Block, Branch, Span, line, remedy_branches, took
from lakewright.due.facts import Grant
from lakewright.due.plan import Choice, Finding, Plan, Step
from lakewright.due.words import (
    WORTH_KNOWING,
    choice_argv,
    choice_words,
    consent_argv,
    looks,
    plan_parts,
    reason_text,
    step_words,
)
from lakewright.errors.phrase import Command, Phrase

__all__ = ["apply", "decide", "due_page", "due_summary"]


def due_page(plan: Plan) -> Iterator[Block]:
    """Yield the page of a plan, and its counts."""
    for title, steps in plan_parts(plan):
        if steps:
            yield Branch(line(Span(title, "bold")), tuple(map(_step, steps)))
    if plan.findings:
        yield Branch(line(Span(WORTH_KNOWING, "bold")), tuple(map(_finding, plan.findings)))
    yield line(Span(due_summary(plan), "bold"))


def due_summary(plan: Plan) -> str:
    """Return the numbers of steps in one line."""
    return f"Plan. NEEDS_YOU={len(plan.asked)} DUE={len(plan.ready)} WAITS={len(plan.waiting)}"


def _step(step: Step) -> Branch:
    asked = step.choices if step.state.needs_person else ()
    below = [*remedy_branches(step.reason.params.get("remedy")), *_choices(asked)]
    if step.needs:
        below.append(_do(Command(*consent_argv(step))))
    return Branch(line(Span(step.subject.text, "bold"), f": {step_words(step)}"), tuple(below))


def _finding(finding: Finding) -> Branch:
    text = line(Span(finding.subject.text, "bold"), f": {reason_text(finding.reason)}")
    more = (Branch(line(Span("look: ", "dim"), Phrase(each))) for each in looks(finding.reason))
    return Branch(text, (*_choices(finding.choices), *more))


def _choices(choices: Iterable[Choice]) -> Iterator[Branch]:
    return (_do(Command(*choice_argv(each)), f": {choice_words(each)}") for each in choices)


def _do(*parts: str) -> Branch:
    return Branch(line(Span("do: ", "dim"), Phrase(*parts)))


@command(
    examples=[
        "lakewright apply",
        "lakewright apply regions --dry-run",
        "lakewright apply regions --allow replay",
    ],
)
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
@author_option("Who applies it.")
@click.pass_obj
def apply(
    call: Call, /, names: tuple[str, ...], *, allowed: tuple[str, ...], dry_run: bool, author: str
) -> int:
    """Take every step that is due and needs nobody; all of the project unless some are named.

    The exit code is 1 if a step failed, and 4 if something needs a person.
    """
    from lakewright.cli.commands.job import run_watched
    from lakewright.due.words import plan_document, step_words
    from lakewright.usecases.due.take import apply_plan, plan_of_project

    grants, begin = frozenset(map(Grant, allowed)), call.clock()
    if dry_run:
        plan = plan_of_project(call.app, names, grants)
        call.output.answer(plan_document(plan), due_page(plan))
        return 0

    def tell(step: Step) -> None:
        call.output.note(line(Span(step.subject.text, "bold"), f": {step_words(step)}"))

    done = apply_plan(
        call.app,
        lambda request: run_watched(call, request),
        names,
        grants=grants,
        author=author,
        on_step=tell,
    )
    document = {
        "taken": [{"id": each.step.id, "is_done": each.fault is None} for each in done.taken],
        "left": plan_document(done.left),
    }
    call.output.result(document, due_page(done.left))
    call.output.note(*(fault_branch(each.fault) for each in done.failed if each.fault is not None))
    counts = f"DONE={len(done.taken) - len(done.failed)} FAILED={len(done.failed)}"
    call.output.last(f"Applied. {counts} {due_summary(done.left)} in {took(begin, call.clock())}")
    if done.failed:
        return FAILED
    return HELD if done.needs_person else 0


@command(
    examples=[
        "lakewright decide regions/2025-07-02-slice.parquet place",
        "lakewright decide regions/2025-07-03-slice.parquet skip --reason 'the file is broken'",
    ],
)
@click.argument("subject", shell_complete=complete_decisions)
@click.argument("choice", shell_complete=complete_decisions)
@operator_options
@click.pass_obj
def decide(call: Call, /, subject: str, choice: str, *, author: str, reason: str) -> int:
    """Decide CHOICE about SUBJECT, as `lakewright plan` offers it; `lakewright apply` goes by it.

    SUBJECT is an entity, or ENTITY/SLICE. Nothing is recorded if the choice is not offered any more.
    """
    from lakewright.usecases.due.decide import decide as save

    made = save(call.app, subject, choice, author=author, reason=reason)
    document = {"subject": made.subject.text, "choice": made.verb.value, "basis": made.basis}
    decided = line(
        Span(made.subject.text, "bold"), Phrase(f": {made.verb.value}; ", Command("apply"), " goes by it")
    )
    call.output.result(document, [decided])
    return 0
