"""Record what a person decides of what is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.due.facts import Decision, Verb
from lakewright.due.plan import Choice, Code, Finding, Plan, Reason, Step
from lakewright.errors import UsageError
from lakewright.spec.suggestions import hint
from lakewright.spec.words import first_of
from lakewright.usecases.due.decisions import save_decision
from lakewright.usecases.due.take import plan_of_project
from lakewright.usecases.operate_items import accept_item, requeue_items, resolve_item, skip_item

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakewright.app import App

__all__ = ["decide", "open_choices"]

MOST_NAMED = 10


def open_choices(plan: Plan) -> Iterator[tuple[str, Reason, tuple[Choice, ...]]]:
    """Yield what can be decided now: the subject as commands name it, why, and the choices."""
    found: tuple[Step | Finding, ...] = (*plan.steps, *plan.findings)
    for each in found:
        by_subject: dict[str, list[Choice]] = {}
        for choice in each.choices:
            by_subject.setdefault(choice.decision.subject.text, []).append(choice)
        for text, choices in by_subject.items():
            yield text, each.reason, tuple(choices)


def decide(app: App, subject: str, choice: str, *, author: str, reason: str) -> Decision:
    """Record a decision of what is due now, and return it; `apply` goes by it.

    Args:
        app: The project.
        subject: An entity, or `entity/slice`, as a plan names it.
        choice: One of the choices that the plan offers.
        author: Who decides.
        reason: Why.

    Raises:
        UsageError: There is nothing to decide about the subject, or the choice is not offered; nothing is
            recorded.
    """
    found = list(open_choices(plan_of_project(app)))
    own = [(why, each) for text, why, choices in found if text == subject for each in choices]
    if not own:
        subjects = sorted({text for text, *_ in found})
        raise UsageError(
            f"there is nothing to decide about {subject!r}",
            remedy=f"To be decided: {first_of(subjects, MOST_NAMED)}." if subjects else "",
        )
    offered = {each.verb.value: (why, each.decision) for why, each in own}
    if choice not in offered:
        raise UsageError(f"{choice!r} is no choice for {subject}; {hint(choice, offered)}")
    why, decision = offered[choice]
    app.make_store()
    _record(app, why, decision, author=author, reason=reason)
    save_decision(app, decision, author=author, reason=reason)
    return decision


def _record(app: App, why: Reason, decision: Decision, *, author: str, reason: str) -> None:
    """Write the records of the manifest that say the same, so that runs of jobs go by the decision, too."""
    item, verb = decision.subject.text, decision.verb
    if why.code is Code.FAILED_SLICE:  # a slice that has failed is first made ready, whatever is next
        resolve_item(app, item, author=author, reason=reason)
    if verb is Verb.END:
        requeue_items(app, [item], late=True, author=author, reason=reason)
    elif verb is Verb.SKIP and why.code in (Code.LATE_SLICE, Code.FAILED_SLICE):
        skip_item(app, item, author=author, reason=reason)
    elif verb is Verb.KEEP and why.code is Code.CHANGED_SLICE:
        accept_item(app, item, author=author, reason=reason)
