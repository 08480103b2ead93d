"""A plan of what is due as text and as JSON.

Source: the form `lakewright/plan/2` is described in `docs/reference/json.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from lakewright.due.facts import Kind, SliceTime, TimeSource, Verb
from lakewright.due.plan import Action, Code, Finding, Severity, State, Step
from lakewright.errors import Fault
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.plain_values import document_of
from lakewright.spec.words import MOST_NAMED, counted, first_of

if TYPE_CHECKING:
    from lakewright.due.plan import Choice, Plan, Reason


SCHEMA = "lakewright/plan/2"

WORTH_KNOWING = "Worth knowing"
"""The part of a plan that has its findings."""

_LOOKS: Mapping[Code, tuple[str, ...]] = {
    Code.VANISHED: ("manifest", "discover"),
    Code.UNDECLARED: ("manifest", "ls", "--application", "{application}"),
    Code.FAILED_ITEM: ("manifest", "show", "{item}"),
    Code.LEFT_ITEM: ("manifest", "release", "{item}"),
}
"""The commands that show more about a finding, or end it."""

_ALERTS: Mapping[Code, str] = {
    Code.CHANGED_SLICE: "slices_changed",
    Code.SLICE_GONE: "slices_gone",
    Code.UNREADABLE: "bronze_unreadable",
}
"""The alerts, and the codes of faults, of what a run leaves to a person."""

_DOES: Mapping[Action, str] = {
    Action.RECORD: "record {slices}",
    Action.FORWARD: "process {slices}",
    Action.REPLAY: "go back, and process {slices}",
    Action.BUILD: "build",
    Action.CHECK: "check",
    Action.RELEASE: "release the lock",
    Action.HOLD: "hold",
}

_STAMPED: Mapping[TimeSource, str] = {
    TimeSource.NAME: "by the date in {names}",
    TimeSource.FORM: "by the date {declared} in {names}",
    TimeSource.EXPRESSION: "by {declared}",
    TimeSource.COLUMN: "by the latest {declared} of each slice",
    TimeSource.CLOCK: "by the clock",
    TimeSource.UNDATED: "by the clock, without a date in {names}",
    TimeSource.RECORDED: "as before",
}

_CHOICES: Mapping[Verb, str] = {
    Verb.PLACE: "apply it in its place",
    Verb.END: "apply it after the others",
    Verb.SKIP: "leave it out",
    Verb.TAKE: "take the new content",
    Verb.KEEP: "keep what is there",
    Verb.RETRY: "try it again",
    Verb.DROP: "take the changes back",
    Verb.NEW: "make it anew",
    Verb.WAIT: "leave it as it is",
    Verb.AGAIN: "build it again",
    Verb.WAIVE: "accept it",
}


def step_text(step: Step) -> str:
    """Return what a step does.

    Example:
        >>> from lakewright.due.facts import Slice, Subject
        >>> from lakewright.due.plan import Action, Code, Reason, Step
        >>> slices = (Slice("d1", "x"), Slice("d2", "y"))
        >>> step_text(Step("1", Action.FORWARD, Subject("o"), Reason(Code.NEW_SLICES), slices=slices))
        'process 2 slices: d1, d2'
    """
    if step.action is Action.RECORD and step.subject.kind is Kind.TARGET:
        return "record the build"
    if step.action is Action.REPLAY and not step.slices:
        without = f", without {first_of(step.removes, MOST_NAMED)}" if step.removes else ""
        return f"go back to what the slices make{without}"
    names = first_of([each.name for each in step.slices], MOST_NAMED)
    does = _DOES[step.action].format(slices=f"{counted(len(step.slices), 'slice')}: {names}")
    return f"{does} (stamped {_stamped(step.times.values())})" if step.times else does


def _stamped(times: Iterable[SliceTime]) -> str:
    """Return what gives slices their processing times, and the first and last of these.

    Example:
        >>> named = [SliceTime(TimeSource.NAME, at=datetime(2024, 5, day)) for day in (1, 2)]
        >>> _stamped(named)
        '2024-05-01 to 2024-05-02 by the date in their names'
        >>> _stamped([*named, SliceTime(TimeSource.RECORDED, at=datetime(2024, 5, 3, 6))])
        '2024-05-01 to 2024-05-02 by the date in their names, 2024-05-03 06:00 as before'
        >>> _stamped([SliceTime(TimeSource.CLOCK)])
        'by the clock'
    """
    alike: dict[tuple[TimeSource, str], list[SliceTime]] = {}
    for each in times:
        alike.setdefault((each.source, each.declared), []).append(each)
    texts = []
    for (source, declared), own in alike.items():
        by = _STAMPED[source].format(declared=declared, names="its name" if len(own) == 1 else "their names")
        number = "" if len(alike) == 1 else f"{len(own):,}"
        texts.append(f"{_range([each.at for each in own if each.at]) or number} {by}".lstrip())
    return ", ".join(texts)


def _range(times: Sequence[datetime]) -> str:
    """Return the first and the last of some times of one time zone, as dates if they begin days."""
    if not times:
        return ""
    ends = dict.fromkeys((min(times), max(times)))
    if all((each.hour, each.minute, each.second, each.microsecond) == (0, 0, 0, 0) for each in times):
        return " to ".join(each.date().isoformat() for each in ends)
    unit = "seconds" if any(each.second for each in times) else "minutes"
    return " to ".join(each.replace(tzinfo=None).isoformat(" ", unit) for each in ends)


def step_words(step: Step) -> str:
    """Return what a step does, and why."""
    does = "" if step.action is Action.HOLD else f"{step_text(step)}, because "
    return f"{does}{step.reason.text}"


def consent_argv(step: Step) -> list[str]:
    """Return the arguments of the command that takes a step with the grants that it needs."""
    allowed = (word for grant in sorted(step.needs) for word in ("--allow", grant.value))
    return ["apply", step.subject.name, *allowed]


def looks(reason: Reason) -> list[Command]:
    """Return the commands that show more about what was noticed."""
    words = _LOOKS.get(reason.code, ())
    return [Command(*(word.format_map(reason.params) for word in words))] if words else []


def advice(choices: Sequence[Choice]) -> str:
    """Return what to type where a person has these choices; without any, a plan knows what to do."""
    if not choices:
        return Phrase(Command("apply"), " takes it.")
    *others, last = (f"`{each.verb}`" for each in choices)
    offered = f"{', '.join(others)} or {last}" if others else last
    return Phrase(f"Choose {offered}: ", Command(*choice_argv(choices[0])), ", then ", Command("apply"), ".")


def finding_words(finding: Finding) -> str:
    """Return what was noticed, and what to type."""
    more = [advice(finding.choices)] if finding.choices else looks(finding.reason)
    return Phrase.joined(". ", [finding.reason.text, *more])


def plan_faults(plan: Plan) -> Iterator[Fault]:
    """Yield what a plan leaves to a person, and the errors that were noticed: one fault for each code."""
    found: dict[Code, list[Step | Finding]] = {}
    errors = (each for each in plan.findings if each.reason.severity is Severity.ERROR)
    for each in chain[Step | Finding](plan.asked, errors):
        found.setdefault(each.reason.code, []).append(each)
    for code, alike in found.items():
        first, texts = alike[0], [each.reason.text for each in alike]
        yield Fault(
            f"{first.subject.name}: {first_of(texts, MOST_NAMED, '; ')}",
            remedy=advice(first.choices) if isinstance(first, Step) else "Make it readable, or remove it.",
            code=_ALERTS[code],
            details={"alerts": [_ALERTS[code]], "slices": [each.reason.params["slice"] for each in alike]},
        )


def plan_parts(plan: Plan) -> tuple[tuple[str, tuple[Step, ...]], ...]:
    """Return the parts of a plan that have steps, with their titles."""
    return ("Needs you", plan.asked), ("Due", plan.ready), ("Waits", plan.waiting)


def plan_rows(plan: Plan) -> Iterator[tuple[str, str, str, str]]:
    """Yield a plan as rows of a table: part, subject, what and why, and the commands to type."""
    for title, steps in plan_parts(plan):
        for step in steps:
            yield title, step.subject.text, step_words(step), _typed(step.choices)
    for each in plan.findings:
        typed = _typed(each.choices, looks(each.reason))
        yield WORTH_KNOWING, each.subject.text, each.reason.text, typed


def _typed(choices: Iterable[Choice], more: Iterable[Command] = ()) -> str:
    return Phrase.joined("; ", [*(Command(*choice_argv(each)) for each in choices), *more])


def choice_argv(choice: Choice) -> list[str]:
    """Return the arguments of the command that decides."""
    return ["decide", choice.decision.subject.text, choice.verb.value]


def choice_words(choice: Choice) -> str:
    """Return what a choice means."""
    return _CHOICES[choice.verb]


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON."""
    return {
        "steps": [_step(step) for step in plan.steps],
        "findings": [_finding(each) for each in plan.findings],
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        **document_of(step, "id", "action", "after"),
        "subject": _subject(step, [each.name for each in step.slices]),
        "reason": _reason(step.reason),
        "status": step.state.value,
        "needs": sorted(grant.value for grant in step.needs),
        "choices": [_choice(each) for each in step.choices],
        "times": [
            {"slice": name, "source": each.source.value, "declared": each.declared, "time": _iso(each.at)}
            for name, each in step.times.items()
        ],
        "cost": {
            "slices": len(step.slices) if step.state is State.READY else 0,
            "bytes": sum(each.size for each in step.slices) if step.state is State.READY else 0,
        },
    }


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _subject(about: Step | Finding, slices: object) -> dict[str, Any]:
    subject = about.subject
    is_slice = subject.kind is Kind.ENTITY and about.reason.code is not Code.FOREIGN_ROWS
    own = [subject.part] if subject.part and is_slice else []
    return {
        "kind": subject.kind.value,
        "name": subject.name,
        "part": subject.part,
        "instance": dict(about.instance),
        "slices": list(slices) if slices and isinstance(slices, list) else own,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        **_reason(finding.reason),
        "severity": finding.reason.severity.value,
        "subject": _subject(finding, finding.reason.params.get("slices")),
        "commands": [
            *map(choice_argv, finding.choices),
            *(list(each.argv) for each in looks(finding.reason)),
        ],
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {"code": reason.code.value, "params": dict(reason.params), "text": reason.text}


def _choice(choice: Choice) -> dict[str, Any]:
    return {
        "decision": choice.verb.value,
        "basis": choice.decision.basis,
        "argv": choice_argv(choice),
        "text": choice_words(choice),
    }
