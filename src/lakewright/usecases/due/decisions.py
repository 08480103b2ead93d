"""What people have decided, kept in the manifest: nothing of it is ever changed or removed.

A decision names the fact that it answers, and lapses when that is another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lakewright.due.facts import Decision, Kind, Subject, Verb
from lakewright.manifest.journal import DECISION
from lakewright.manifest.record import format_instant
from lakewright.manifest.store import Put, Write

if TYPE_CHECKING:
    from lakewright.app import App


def read_decisions(app: App) -> Iterator[Decision]:
    """Yield what was decided in a project, the last decision last; about a renamed entity by its new name."""
    now = app.project.new_names
    for document in app.store.documents(DECISION, prefix=f"{app.project.name}/"):
        yield _decision(document.value, now)


def save_decision(app: App, decision: Decision, *, author: str, reason: str) -> None:
    """Save a decision after all others, with who made it, when and why."""
    at = format_instant(app.store.now())
    value = {
        "kind": decision.subject.kind.value,
        "name": decision.subject.name,
        "part": decision.subject.part,
        "verb": decision.verb.value,
        "basis": decision.basis,
        "by": author,
        "reason": reason,
        "at": at,
    }
    # Keys sort by the time, and ids keep two decisions of one instant apart.
    key = f"{app.project.name}/{at} {app.ids()}"
    app.store.write(Write(puts=(Put(DECISION, key, value, expected=0),)))


def _decision(value: Mapping[str, Any], renamed: Mapping[str, str]) -> Decision:
    kind, name = Kind(value.get("kind", Kind.ENTITY)), value["name"]
    subject = Subject(renamed.get(name, name) if kind is Kind.ENTITY else name, value["part"], kind)
    return Decision(subject, Verb(value["verb"]), value["basis"])
