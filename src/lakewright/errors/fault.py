"""What is wrong, where, and what to do, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakewright.errors.phrase import Command, Phrase

PARTS = "parts"
"""Detail of a fault that consists of several, and entry of its record: the code and message of each."""

BRIEF = "brief"
"""Detail of a fault whose cause is reported elsewhere: what its message says without the cause."""

_REMEDY = "remedy_parts"
"""Entry of a recorded error beside the text of its remedy: the parts, among them the commands."""


@dataclass(frozen=True, slots=True)
class Location:
    """A position in a project's files. Lines and columns start at 1."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line) if part is not None)


@dataclass(frozen=True, slots=True)
class Fault:
    """One problem in the project or the arguments: what is wrong, where, and what to do.

    Attributes:
        details: Values that the message is made from. Equality of faults ignores them.
        touches: The definitions that are wrong because of it, as category and name, or `("module", file)`;
            empty if it may concern the whole project.
        subject: What the message says is wrong, such as `mapping 'orders'`; None if it says of what nothing.
        problem: The message without the subject before it; None if the subject is elsewhere in it.
    """

    message: str
    location: Location | None = None
    remedy: str | None = None
    code: str = "spec"
    details: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    touches: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    subject: str | None = field(default=None, compare=False, repr=False)
    problem: str | None = field(default=None, compare=False, repr=False)

    def about(self, subject: str) -> Fault:
        """Return the fault with a subject, which stands before the message unless that has it already."""
        if self.subject == subject:
            return self
        message = Phrase(f"{subject}: ", self.message)
        return replace(self, message=message, subject=subject, problem=self.message)

    def and_also(self, other: Fault | None) -> Fault:
        """Return this fault with another one of the same target below it, each remedy in its own line."""
        if other is None:
            return self
        remedies = dict.fromkeys(filter(None, (self.remedy, other.remedy)))
        alerts = [*self.details.get("alerts", ()), *other.details.get("alerts", ())]
        others = {key: value for key, value in other.details.items() if key != BRIEF}
        return replace(
            self,
            message=f"{self.message}\n{other.message}",
            remedy=Phrase.joined("\n", remedies) or None,
            details={
                **others,
                **self.details,
                PARTS: [*self.parts, *other.parts],
                **({"alerts": alerts} if alerts else {}),
            },
            subject=self.subject if self.subject == other.subject else None,
            problem=None,
        )

    @property
    def parts(self) -> Sequence[tuple[str, str]]:
        """The code and the message of each fault that this one consists of."""
        found: Sequence[tuple[str, str]] = self.details.get(PARTS, ((self.code, self.message),))
        return found

    @property
    def located_message(self) -> str:
        """The message after its place, if that is known."""
        return Phrase(f"{self.location}: ", self.message) if self.location else self.message

    @property
    def phrase(self) -> str:
        """The message after its place, and the remedy, in one line."""
        if not self.remedy:
            return self.located_message
        return Phrase(self.located_message, " (", Phrase.joined(" ", Phrase(self.remedy).lines()), ")")

    def __str__(self) -> str:
        return str(self.phrase)

    def as_record(self) -> dict[str, Any]:
        """Return the object that a run records of an error, from which `remedy_of` reads the remedy."""
        return {**self.as_json(), **recorded_remedy(self.remedy)}

    def as_json(self) -> dict[str, Any]:
        """Return the `error` object that `-o json` prints: code, message, remedy, location, maybe a brief."""
        return {
            "code": self.code,
            "message": self.message,
            "remedy": self.remedy,
            "location": str(self.location) if self.location else None,
            **({} if self.subject is None else {"subject": self.subject}),
            **({BRIEF: self.details[BRIEF]} if BRIEF in self.details else {}),
        }


def recorded_remedy(remedy: str | None) -> dict[str, Any]:
    """Return the entries of a recorded error for its remedy: the text, and its parts if it has commands."""
    if not isinstance(remedy, Phrase) or not any(isinstance(part, Command) for part in remedy.parts):
        return {"remedy": remedy}
    return {"remedy": remedy, _REMEDY: remedy.as_json()}


def remedy_of(error: Mapping[str, Any]) -> str | None:
    """Return the remedy of an error, with its commands, as it was recorded or is printed as JSON.

    Where the parts were shortened, or a secret was removed from them, only the text is sure.
    """
    remedy: str | None = error.get("remedy")
    if _REMEDY not in error:
        return remedy
    phrase = Phrase.of_json(error[_REMEDY])
    return phrase if phrase == remedy else remedy
