"""Make the plan of a lake: what is due, in order, and what a person must decide."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.due.facts import Facts, Subject
from lakewright.due.outputs import Moves, check_plan, output_plan
from lakewright.due.plan import Action, Code, Finding, Plan, Reason, State, Step, broken
from lakewright.due.slices import entity_plan
from lakewright.spec.grants import Grant


def make_plan(facts: Facts, grants: frozenset[Grant] = frozenset()) -> Plan:
    """Return the steps that make a lake as it should be, each after those that it follows.

    A step that changes what a later one reads is taken for granted, so that both are in one plan. What could
    not be observed has one step that stands for the error, or a finding if it is no error.
    """
    steps, findings = _unknown(facts)
    for entity in facts.entities:
        if Subject(entity.name) not in facts.unknown:
            found, noticed = entity_plan(entity, facts, grants)
            steps += found
            findings += noticed
    moves = Moves(steps)
    of_targets: dict[tuple[Subject, Code], Finding] = {}
    for output in facts.outputs:
        if output.subject not in facts.unknown:
            found, noticed = output_plan(output, facts, moves)
            moves.add(found)
            steps += found
            for each in noticed:  # what is noticed of a target is the same in all its instances
                of_targets.setdefault((each.subject, each.reason.code), each)
    for check in facts.checks:
        if check.subject not in facts.unknown:
            steps += check_plan(check, facts, moves)
    return Plan(tuple(steps), (*findings, *of_targets.values(), *_others(facts)))


def _unknown(facts: Facts) -> tuple[list[Step], list[Finding]]:
    steps, findings = list[Step](), list[Finding]()
    for subject, each in sorted(facts.unknown.items()):
        if each.code:
            name = f"{Action.HOLD} {subject.text} {Code.BROKEN}"
            steps.append(Step(name, Action.HOLD, subject, broken(each), State.BLOCKED))
        else:
            findings.append(Finding(Reason(Code.UNKNOWN, {"why": each.why}), subject))
    return steps, findings


def _others(facts: Facts) -> Iterator[Finding]:
    """Yield what the manifest has of others than the declared entities."""
    for each in facts.undeclared:
        params = {"application": each.application, "processed": each.processed, "others": each.others}
        yield Finding(Reason(Code.UNDECLARED, params), Subject(each.name))
    for subject in facts.unrecorded:
        yield Finding(Reason(Code.UNRECORDED), subject)
    for item, lock in facts.items.items():
        code, held = (Code.FAILED_ITEM, {}) if lock is None else (Code.LEFT_ITEM, {"holder": lock.holder})
        yield Finding(Reason(code, {"item": item.part, **held}), item)
