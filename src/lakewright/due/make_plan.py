"""Make the plan of a lake: what is due, in order, and what a person must decide."""

from __future__ import annotations

from lakewright.due.facts import Facts, Grant, Subject
from lakewright.due.outputs import output_plan
from lakewright.due.plan import Code, Finding, Plan, Reason, Step
from lakewright.due.slices import entity_plan

__all__ = ["make_plan"]


def make_plan(facts: Facts, grants: frozenset[Grant] = frozenset()) -> Plan:
    """Return the steps that make a lake as it should be, each after those that it follows.

    A step that changes what a later one reads is taken for granted, so that both are in one plan. What could
    not be observed has no steps, but a finding.
    """
    steps: list[Step] = []
    findings = [
        Finding(Reason(Code.UNKNOWN, {"why": why}), subject) for subject, why in sorted(facts.unknown.items())
    ]
    for entity in facts.entities:
        if Subject(entity.name) not in facts.unknown:
            found, noticed = entity_plan(entity, facts, grants)
            steps += found
            findings += noticed
    for output in facts.outputs:
        if output.subject not in facts.unknown:
            found, noticed = output_plan(output, facts, steps)
            steps += found
            findings += [each for each in noticed if each not in findings]
    return Plan(tuple(steps), tuple(findings))
