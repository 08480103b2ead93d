"""Record what a person decides of what is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.due.facts import Decision, Subject, Verb
from lakewright.due.plan import Code
from lakewright.errors import NotOffered
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.store import Write
from lakewright.plan.phase import Phase
from lakewright.run.wants import read_wants
from lakewright.spec.suggestions import hint
from lakewright.spec.words import first_of
from lakewright.usecases.due.build_marks import part_of
from lakewright.usecases.due.decisions import read_decisions, save_decision
from lakewright.usecases.due.take import plan_of_project
from lakewright.usecases.items import find_or_record_item
from lakewright.usecases.operate_items import accept_item, requeue_items, resolve_item, skip_item

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lakewright.app import App
    from lakewright.due.plan import Choice


MOST_NAMED = 10


def decide(
    app: App, subject: str, choice: str, *, author: str, reason: str, basis: str | None = None
) -> Decision:
    """Record a decision of what is due now, and return it; `apply` goes by it.

    Args:
        app: The project.
        subject: An entity, `entity/slice` or a target, as a plan names it; `entity:NAME` or `target:NAME` if
            both have the name.
        choice: One of the choices that the plan offers.
        author: Who decides.
        reason: Why.
        basis: The fact that the decision answers, as a plan has shown it; any unless given. What is decided
            already of this fact is not recorded twice.

    Raises:
        NotOffered: There is nothing to decide about the subject, or the choice is not offered, or it answers
            another fact, or there is an entity and a target of the name; nothing is recorded.
    """
    choices = plan_of_project(app).choices
    own = [each for each in choices if subject in _names(each.decision.subject)]
    kinds = sorted({str(each.decision.subject.kind) for each in own})
    if len(kinds) > 1:
        names = [f"{kind}:{subject}" for kind in kinds]
        raise NotOffered(
            f"{subject!r} may be {' or '.join(names)}",
            remedy=Phrase("Name one of them, as in ", Command("decide", names[0], choice), "."),
            details={"subjects": names},
        )
    offered = [each for each in own if each.verb.value == choice and basis in (None, each.decision.basis)]
    if not offered:
        made = None if basis is None else _made(app, subject, basis)
        if made is None or made.verb.value != choice:
            subjects = {each.decision.subject.text for each in choices}
            raise _not_offered(subject, choice, [each.verb.value for each in own], subjects)
        return made
    last = offered[-1]
    app.make_store()
    _record(app, last, author=author, reason=reason)
    save_decision(app, last.decision, author=author, reason=reason)
    return last.decision


def _names(subject: Subject) -> tuple[str, str]:
    """Return what commands call a subject: with its kind, too, if another kind has the same name."""
    return subject.text, f"{subject.kind}:{subject.text}"


def _made(app: App, subject: str, basis: str) -> Decision | None:
    """Return what was decided last of a fact."""
    found = (each for each in read_decisions(app) if each.basis == basis and subject in _names(each.subject))
    return next(reversed(list(found)), None)


def _not_offered(subject: str, choice: str, offered: Sequence[str], subjects: Collection[str]) -> NotOffered:
    """Return the error of a choice that is not offered, with what is offered now."""
    details = {"choices": list(dict.fromkeys(offered)), "subjects": [] if offered else sorted(subjects)}
    if not offered:
        asked = f"To be decided: {first_of(details['subjects'], MOST_NAMED)}."
        remedy = asked if subjects else Phrase(Command("plan"), " shows what is due.")
        return NotOffered(f"there is nothing to decide about {subject!r}", remedy=remedy, details=details)
    if choice in offered:
        return NotOffered(
            f"{subject} is not what it was when {choice!r} was offered",
            remedy=Phrase(Command("plan"), " shows what it is now."),
            details=details,
        )
    return NotOffered(f"{choice!r} is no choice for {subject}; {hint(choice, offered)}", details=details)


def _record(app: App, choice: Choice, *, author: str, reason: str) -> None:
    """Write the records of the manifest that say the same, so that runs of jobs go by the decision, too."""
    subject, verb, about = choice.decision.subject, choice.verb, choice.about
    item = subject.text
    if about is Code.CHECK_FAILED:  # it is not left to be done any more
        wants = read_wants(app.journal, app.project.name)
        own = [each for each in wants if part_of(each.parameters) == subject.part]
        left = (each.without(Phase.VERIFY, subject.name).put for each in own)
        app.store.write(Write(puts=tuple(left)))
    has_failed = about is Code.FAILED_SLICE and find_or_record_item(app, item).failed is not None
    if has_failed:  # it is first made ready, whatever is next; one that failed in a replay is what it was
        resolve_item(app, item, author=author, reason=reason)
    if verb is Verb.END:
        requeue_items(app, [item], late=True, author=author, reason=reason)
    elif verb is Verb.SKIP and about in (Code.LATE_SLICE, Code.FAILED_SLICE, Code.SLICE_GONE):
        skip_item(app, item, author=author, reason=reason)
    elif verb is Verb.KEEP and about in (Code.CHANGED_SLICE, Code.FAILED_SLICE) and not has_failed:
        accept_item(app, item, author=author, reason=reason)
