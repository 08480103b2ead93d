"""What is due in a project, in four parts: what needs a person, what is due, what waits, and findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakewright.cli.page import Block, Branch, Span, line
from lakewright.due.plan import Action, Choice, Finding, Plan, State, Step
from lakewright.errors.phrase import Command, Phrase
from lakewright.usecases.due.words import choice_argv, choice_words, reason_text, step_text

__all__ = ["due_page", "due_summary"]

_PARTS = (
    ("Needs you", tuple(state for state in State if state.needs_person)),
    ("Due", (State.READY,)),
    ("Waits", (State.WAITS,)),
)


def due_page(plan: Plan) -> Iterator[Block]:
    """Yield the page of a plan, and its counts."""
    for title, states in _PARTS:
        steps = [step for step in plan.steps if step.state in states]
        if steps:
            yield Branch(line(Span(title, "bold")), tuple(map(_step, steps)))
    if plan.findings:
        yield Branch(line(Span("Worth knowing", "bold")), tuple(map(_finding, plan.findings)))
    yield line(Span(due_summary(plan), "bold"))


def due_summary(plan: Plan) -> str:
    """Return the numbers of steps in one line."""
    counts = (sum(step.state in states for step in plan.steps) for _, states in _PARTS)
    asked, due, waits = counts
    return f"Plan. NEEDS_YOU={asked} DUE={due} WAITS={waits}"


def _step(step: Step) -> Branch:
    does = "" if step.action is Action.HOLD else f"{step_text(step)}, because "
    below = [*_choices(step.choices)]
    if step.needs:
        allowed = (word for grant in sorted(step.needs) for word in ("--allow", grant.value))
        below.append(Branch(line(Span("do: ", "dim"), Phrase(Command("apply", step.subject.name, *allowed)))))
    return Branch(line(Span(step.subject.text, "bold"), f": {does}{reason_text(step.reason)}"), tuple(below))


def _finding(finding: Finding) -> Branch:
    text = line(Span(finding.subject.text, "bold"), f": {reason_text(finding.reason)}")
    return Branch(text, tuple(_choices(finding.choices)))


def _choices(choices: Iterable[Choice]) -> Iterator[Branch]:
    for each in choices:
        typed = Phrase(Command(*choice_argv(each)), f": {choice_words(each)}")
        yield Branch(line(Span("do: ", "dim"), typed))
