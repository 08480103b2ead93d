"""What is due in a project, in four parts: what needs a person, what is due, what waits, and findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakewright.cli.page import Block, Branch, Span, line, remedy_branches
from lakewright.due.plan import Choice, Finding, Plan, Step
from lakewright.errors.phrase import Command, Phrase
from lakewright.usecases.due.words import (
    WORTH_KNOWING,
    choice_argv,
    choice_words,
    consent_argv,
    looks,
    plan_parts,
    reason_text,
    step_words,
)

__all__ = ["due_page", "due_summary"]


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
