"""The steps of what targets have written: an instance is stale if it is not built from what is there now.

Nothing else makes it stale, and nothing has to be remembered for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakewright.due.facts import Check, Facts, Output, Subject, Verb
from lakewright.due.plan import Action, Choice, Code, Finding, Reason, State, Step, choices_of

_MOVES = (Action.FORWARD, Action.REPLAY, Action.BUILD)
"""Actions that change rows which others read."""

_OF_ROWS = (Code.NO_BUILD, Code.CUT_OFF, Code.OUTPUT_GONE)
"""Causes for which rows are missing, or may be there in part."""


def stale(output: Output) -> Reason | None:
    """Return why an instance is not built from what is there now; None if it is."""
    build = output.build
    if build is None:
        return Reason(Code.NO_BUILD)
    if build.output is None:
        return Reason(Code.CUT_OFF)
    if output.mark is None:
        return Reason(Code.OUTPUT_GONE)
    if build.definition != output.definition:
        return Reason(Code.REDEFINED)
    places = {**build.inputs, **output.inputs}
    moved = [place for place in places if build.inputs.get(place) != output.inputs.get(place)]
    if moved:
        names = {name for place in moved for name in output.makers_of(place) or (place,)}
        return Reason(Code.INPUT_MOVED, {"places": sorted(names)})
    return Reason(Code.OUTPUT_CHANGED) if output.mark != build.output else None


class Moves:
    """The steps of a plan that change rows which others read, by the names of what they change."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self._by_name: dict[str, list[Step]] = {}
        self.add(steps)

    def add(self, steps: Iterable[Step]) -> None:
        """Add the steps that can be taken and change rows."""
        for step in steps:
            if step.state is State.READY and step.action in _MOVES:
                self._by_name.setdefault(step.subject.name, []).append(step)

    def own(self, subject: Subject) -> list[Step]:
        """Return the steps that build an instance itself."""
        return [step for step in self._by_name.get(subject.name, ()) if step.subject == subject]

    def of(self, output: Output) -> list[Step]:
        """Return the steps that change what an instance reads."""
        names = {name for place in output.inputs for name in output.makers_of(place)}
        return [step for name in names for step in self._by_name.get(name, ()) if _moves(step, output)]


def output_plan(output: Output, facts: Facts, before: Moves) -> tuple[tuple[Step, ...], tuple[Finding, ...]]:
    """Return the steps that build an instance of a target, and what was noticed.

    Args:
        output: The instance.
        facts: The facts of the lake.
        before: The steps before it in the plan that change rows.
    """
    if not output.is_wanted:
        return (), ()
    moving = before.of(output)
    reason = stale(output) or (Reason(Code.INPUT_DUE) if moving else None)
    if output.is_refresh_due:
        reason = reason or Reason(Code.REFRESH, {"places": list(output.unseen)})
    if _foreign(output, facts) is Verb.DROP:
        reason = reason or Reason(Code.OUTPUT_CHANGED)
    lock = facts.locks.get(output.subject)
    if lock is not None and not lock.is_dead:
        held = Reason(Code.LOCKED, {"holder": lock.holder})
        return ((_step(Action.HOLD, output, held, State.WAITS),) if reason else ()), ()
    releases = (
        []
        if lock is None
        else [_step(Action.RELEASE, output, Reason(Code.DEAD_LOCK, {"holder": lock.holder}))]
    )
    if output.is_unrecorded:
        releases.append(_step(Action.RECORD, output, Reason(Code.HELD_UNRECORDED)))
    noticed = _noticed(output, facts)
    if reason is None:
        return tuple(releases), noticed
    builds, findings = _build(output, facts, reason, moving)
    return (*releases, *builds), (*findings, *noticed)


def _foreign(output: Output, facts: Facts) -> Verb | None:
    return facts.decided(output.whole, str(output.foreign)) if output.foreign else None


def _noticed(output: Output, facts: Facts) -> tuple[Finding, ...]:
    """Return what is noticed of a target, whatever its instances need."""
    found = []
    if output.foreign and _foreign(output, facts) is None:
        is_version = isinstance(output.foreign, int)
        rows = Reason(Code.FOREIGN_ROWS, {"version": output.foreign})
        reason = rows if is_version else Reason(Code.OUTPUT_CHANGED)
        # Nothing that was appended is made again, so that no build takes the changes back.
        verbs = (Verb.KEEP,) if output.is_append else (Verb.KEEP, Verb.DROP)
        choices = choices_of(output.whole, str(output.foreign), verbs, reason.code)
        found.append(Finding(reason, output.whole, choices))
    if output.unseen and not output.is_refreshed:
        found.append(Finding(Reason(Code.UNSEEN, {"places": list(output.unseen)}), output.whole))
    return tuple(found)


def _moves(step: Step, output: Output) -> bool:
    """Return whether a step changes what an instance reads."""
    name = step.subject.name
    places = [place for place in output.inputs if name in output.makers_of(place)]
    if step.subject == output.subject:
        return False
    is_missing = any(output.inputs[place] is None for place in places)
    is_whole = step.reason.code is Code.REDECLARED or is_missing
    concerned = None if is_whole else output.slices.get(name)
    parts = {each.name for each in step.slices} | {step.subject.part, *step.removes}
    return concerned is None or not concerned.isdisjoint(parts)


def _build(
    output: Output, facts: Facts, reason: Reason, moving: Sequence[Step]
) -> tuple[list[Step], list[Finding]]:
    if facts.decided(output.subject, _wanted(output)) is Verb.WAIVE:
        return [], [_finding(output, Code.WAIVED, _wanted(output), Verb.AGAIN)]
    is_there = output.is_unsure or (output.mark is not None and reason.code not in _OF_ROWS)
    basis = _basis(output)
    verb = facts.decided(output.subject, basis)
    if output.is_withdrawn and verb is not Verb.AGAIN:
        return [], [_finding(output, Code.WITHDRAWN, basis, Verb.AGAIN)]
    if is_there and output.only_if_empty:
        return [], [_finding(output, Code.KEPT_AS_FILLED, basis)]
    made, waives = {step.subject.name for step in moving}, _waives(output)
    missing = sorted(
        place
        for place, mark in output.inputs.items()
        if mark is None and made.isdisjoint(output.makers_of(place))
    )
    if missing:
        # What another step makes comes by itself; what nothing makes, a person must bring.
        state = State.WAITS if all(map(output.makers_of, missing)) else State.BLOCKED
        held = Reason(Code.INPUT_MISSING, {"places": missing})
        return [_step(Action.HOLD, output, held, state, choices=waives)], []
    after = tuple(step.id for step in moving)
    if output.is_append and is_there:
        return _append_again(output, reason, verb, after)
    return [_step(Action.BUILD, output, reason, after=after, choices=waives)], []


def _waives(output: Output) -> tuple[Choice, ...]:
    """Return the choice not to have an instance any more; what has no parameters is declared for good."""
    verbs = (Verb.WAIVE,) if output.instance else ()
    return choices_of(output.subject, _wanted(output), verbs, Code.WAIVED)


def _wanted(output: Output) -> str:
    """Return the fact that a person answers who does not want an instance: a run of a job builds it again."""
    return f"wanted after {None if output.build is None else output.build.output}"


def _append_again(
    output: Output, reason: Reason, verb: Verb | None, after: tuple[str, ...]
) -> tuple[list[Step], list[Finding]]:
    """Return the steps of an append whose rows are there: only a person knows if they may come again."""
    basis = _basis(output)
    if verb is Verb.KEEP:
        return [], [_finding(output, Code.APPENDED_BEFORE, basis, Verb.AGAIN)]
    if verb is Verb.AGAIN:
        return [_step(Action.BUILD, output, reason, after=after)], []
    if reason.code is Code.INPUT_DUE:
        return [], []  # once its inputs have moved, there is something to decide about
    held = Reason(Code.APPENDED_BEFORE, {"cause": reason.code})
    choices = choices_of(output.subject, basis, (Verb.KEEP, Verb.AGAIN), held.code)
    return [_step(Action.HOLD, output, held, State.NEEDS_DECISION, choices=choices)], []


def check_plan(check: Check, facts: Facts, before: Moves) -> tuple[Step, ...]:
    """Return the step that checks an instance anew, or that asks about a check that has failed.

    Args:
        check: The instance.
        facts: The facts of the lake.
        before: The steps before it in the plan that change rows. What others than its own build change makes
            the check due once it has changed.
    """
    own = before.own(check.subject)
    if None in check.inputs.values() and not own:
        return ()
    if own or check.is_good is None or check.inputs != check.checked:
        after = tuple(step.id for step in own)
        return (_step(Action.CHECK, check, Reason(Code.UNCHECKED), after=after),)
    basis = f"check {sorted(check.checked.items())}"
    if check.is_good or facts.decided(check.subject, basis) is Verb.WAIVE:
        return ()
    reason = Reason(Code.CHECK_FAILED)
    choices = choices_of(check.subject, basis, (Verb.WAIVE,), reason.code)
    return (_step(Action.HOLD, check, reason, State.NEEDS_DECISION, choices=choices),)


def _basis(output: Output) -> str:
    """Return the facts of which a person decides whether rows stay as they are."""
    inputs = ", ".join(f"{place} {mark}" for place, mark in sorted(output.inputs.items()))
    return f"{output.definition}; {inputs}"


def _finding(output: Output, code: Code, basis: str, *verbs: Verb) -> Finding:
    choices = choices_of(output.subject, basis, verbs, code)
    return Finding(Reason(code), output.subject, choices, output.instance)


def _step(
    action: Action,
    output: Output | Check,
    reason: Reason,
    state: State = State.READY,
    *,
    after: tuple[str, ...] = (),
    choices: tuple[Choice, ...] = (),
) -> Step:
    name = f"{action} {output.subject.name} {output.subject.part}".strip()
    if action is Action.HOLD:
        name = f"{name} {reason.code}"
    return Step(name, action, output.subject, reason, state, after, choices=choices, instance=output.instance)
