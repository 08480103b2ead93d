"""The base class of all errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from lakewright.errors.fault import Fault, Location
from lakewright.errors.surfaces import in_python


class LakewrightError(Exception):
    """Base class of all errors that Lakewright raises.

    Attributes:
        code: Identifies the class to programs. It is unique and stable. A `SpecError` about the arguments of
            a job has the code of a `UsageError`, as its faults have.
        message: What happened and where, as a sentence for people.
        remedy: What to do next, in one line, or None. A traceback shows it below the message.
        location: The position in the project's files, or None if unknown.
        details: Values that the message is made from; they can be written as JSON.
        is_retryable: Whether the same work may succeed when it is tried again.
    """

    code: str = "error"
    is_retryable: ClassVar[bool] = False
    default_remedy: ClassVar[str | None] = None

    def __init__(
        self,
        message: str,
        *,
        remedy: str | None = None,
        location: Location | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.details: Mapping[str, Any] = dict(details or {})
        self._advice: tuple[str, ...] = ()
        self.remedy = remedy if remedy is not None else self.default_remedy

    @property
    def remedy(self) -> str | None:
        """What to do next, in one line, or None."""
        return self._remedy

    @remedy.setter
    def remedy(self, remedy: str | None) -> None:
        self._remedy = remedy
        others = [note for note in getattr(self, "__notes__", ()) if note not in self._advice]
        self._advice = tuple(self.advice())
        if notes := [*others, *self._advice]:
            self.__notes__ = notes
        elif hasattr(self, "__notes__"):
            del self.__notes__

    @property
    def phrase(self) -> str:
        """The text of the error, with the commands that it names."""
        return self.message

    def advice(self) -> Iterator[str]:
        """Yield the lines that a traceback shows below the message: the place, and what to do."""
        if self.location is not None:
            yield f"where: {self.location}"
        if self.remedy is not None:
            yield f"do: {self.remedy}"
            if (words := in_python(self.remedy)) is not None:
                yield f"in Python: {words}"

    def as_fault(self) -> Fault:
        """Return the error as a value that can be stored, printed or sent."""
        return Fault(
            self.message,
            location=self.location,
            remedy=self.remedy,
            code=self.code,
            details=self.details,
        )


def retryable_codes() -> frozenset[str]:
    """Return the codes of all errors after which the same work may succeed when it is tried again."""
    pending: list[type[LakewrightError]] = [LakewrightError]
    found = set()
    while pending:
        error = pending.pop()
        pending += error.__subclasses__()
        if error.is_retryable:
            found.add(error.code)
    return frozenset(found)
