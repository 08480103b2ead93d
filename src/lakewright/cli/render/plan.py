"""A plan as a tree: instance, phase, target, with reasons and what would change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from lakewright.cli.faults import fault_branch
from lakewright.cli.page import Block, Branch, Line, Span, line, remedy_branches
from lakewright.cli.render.words import assignments, counted, status
from lakewright.errors.phrase import Phrase
from lakewright.plan.observation import TableChange
from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned
from lakewright.plan.step import InstancePlan, PhasePlan, Plan, Step

__all__ = ["plan_page", "plan_summary", "removal_page"]

REPEATED = 60
"""Characters of the longest reason that the next phases repeat."""


def plan_page(plan: Plan) -> Iterator[Block]:
    """Yield the page of a plan: a heading, a tree for each instance, and the counts."""
    yield line(
        Span(f"{plan.project}/{plan.job}", "bold"),
        f" up to {plan.phase.value.lower()}, {counted(len(plan.instances), 'instance')}",
    )
    for instance in plan.instances:
        yield _instance(instance)
    if plan.warning is not None:
        yield fault_branch(plan.warning, is_warning=True)
    yield line(Span(plan_summary(plan), "bold"))


def plan_summary(plan: Plan) -> str:
    """Return the numbers of steps by status, in one line."""
    counts = Counter(step.status for step in plan.steps())
    return "Plan. " + " ".join(f"{one.value}={counts[one]}" for one in Planned)


def removal_page(plan: Plan) -> Iterator[Block]:
    """Yield what a TRUNCATE or DESTROY would empty or remove: a line for each target, and its warning."""
    for instance in plan.instances:
        of_instance = f" ({assignments(instance.parameters)})" if instance.parameters else ""
        for phase in instance.phases:
            for step in phase.steps:
                if step.status is Planned.WOULD_RUN:
                    does = "remove" if step.phase is Phase.DESTROY else "empty"
                    yield line(Span(f"{does} ", "bold red"), f"{step.target}{of_instance}: ", _reasons(step))
                    if step.warning is not None:
                        yield fault_branch(step.warning, is_warning=True)


def _instance(instance: InstancePlan) -> Branch:
    named = assignments(instance.parameters) or "without parameters"
    head = line(Span(named, "bold"), " ", status(instance.status.value))
    told: dict[tuple[str, str], Phase] = {}
    return Branch(head, tuple(_phase(_told_once(phase, told)) for phase in instance.phases))


def _told_once(phase: PhasePlan, told: dict[tuple[str, str], Phase]) -> PhasePlan:
    """Return a phase with the phase that told a long reason of a target before, in the place of the reason.

    What can't be observed is the reason in each phase, and its text is long.
    """

    def short(step: Step, reason: str) -> str:
        first = told.setdefault((step.target, reason), phase.phase)
        return reason if first is phase.phase or len(reason) <= REPEATED else f"as in {first.value}"

    steps = (replace(step, reasons=tuple(short(step, each) for each in step.reasons)) for step in phase.steps)
    return replace(phase, steps=tuple(steps))


def _phase(phase: PhasePlan) -> Branch:
    if not phase.steps:
        return Branch(
            line(phase.phase.value, Span(Phrase(" skipped: ", phase.note or "nothing takes part"), "dim"))
        )
    head = line(phase.phase.value, " ", status(phase.status.value))
    grouped = groupby(phase.steps, key=_sameness)
    return Branch(head, tuple(branch for _, steps in grouped for branch in _steps(list(steps))))


def _sameness(step: Step) -> tuple[object, ...]:
    # Adjacent steps with the same status and reasons share a line.
    has_details = bool(step.changes) or step.error is not None or step.warning is not None
    return (step.target,) if has_details else (step.status, step.reasons)


def _steps(steps: Sequence[Step]) -> Iterator[Branch]:
    first = steps[0]
    names = ", ".join(step.target for step in steps) if len(steps) > 1 else f"{first.target} ({first.kind})"
    yield Branch(line(status(first.status.value), f" {names}: ", _reasons(first)), tuple(_details(first)))


def _details(step: Step) -> Iterator[Branch]:
    for change in step.changes:
        yield Branch(_change(change))
    if step.fault is not None and step.fault.location is not None:
        yield Branch(line(Span("where: ", "dim"), str(step.fault.location)))
    if step.error is not None:
        yield from remedy_branches(step.error.remedy)
    if step.warning is not None:
        yield fault_branch(step.warning, is_warning=True)


def _change(change: TableChange) -> Line:
    if change.loses is None:
        return line(Span("change: ", "dim"), change.description)
    return line(Span("change: ", "dim"), change.description, Span(f", loses {change.loses}", "bold red"))


def _reasons(step: Step) -> str:
    return Phrase.joined("; ", step.reasons)
