"""The base class of all errors, and the errors that a project's author or a caller mends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from lakewright.errors.fault import Fault, Location
from lakewright.errors.phrase import Phrase
from lakewright.errors.surfaces import in_python


class LakewrightError(Exception):
    """Base class of all errors that Lakewright raises.

    Attributes:
        code: Identifies the class to programs. It is unique and stable. A `SpecError` about the arguments of
            a job has the code of a `UsageError`, as its faults have.
        message: What happened and where, as a sentence for people.
        remedy: What to do next, in one line, or None. A traceback shows it below the message.
        location: The position in the project's files, or None if unknown.
        subject: What the message says is wrong, such as `mapping 'orders'`; None if it says of what nothing.
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
        subject: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.subject = subject
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
            subject=self.subject,
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


class SpecError(LakewrightError):
    """The project's files, or the arguments of a job, are invalid. One error holds all faults.

    Its code is `usage` if only arguments are wrong.

    Attributes:
        faults: What is wrong.
        warnings: What is probably a mistake, too, and was found beside.

    Example:
        >>> str(SpecError.of("unknown key 'tpye'", location=Location("project.yml", 3)))
        "project.yml:3: unknown key 'tpye'"
    """

    code = "spec"

    def __init__(self, faults: Iterable[Fault], warnings: Iterable[Fault] = ()) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        self.warnings: tuple[Fault, ...] = tuple(warnings)
        first = self.faults[0]
        if all(fault.code == UsageError.code for fault in self.faults):
            self.code = UsageError.code
        super().__init__(first.message, remedy=first.remedy, location=first.location, subject=first.subject)

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Fault, ...], tuple[Fault, ...]]]:
        """Return how pickle makes the error again in another process: with its faults."""
        return type(self), (self.faults, self.warnings)

    @classmethod
    def of(
        cls,
        message: str,
        *,
        location: Location | None = None,
        remedy: str | None = None,
        details: Mapping[str, Any] | None = None,
        subject: str | None = None,
    ) -> SpecError:
        """Return an error with one fault, which is about the subject if one is given."""
        fault = Fault(message, location=location, remedy=remedy, details=details or {})
        return cls([fault if subject is None else fault.about(subject)])

    def placed(self, subject: str, location: Location | None) -> SpecError:
        """Return the error with a place for each fault that has none, and with what it is a fault of.

        Args:
            subject: The definition as messages name it, such as `mapping 'orders'`.
            location: Where it is declared; None if that is not known.
        """
        if location is None:
            return self
        return SpecError(
            fault if fault.location is not None else replace(fault.about(subject), location=location)
            for fault in self.faults
        )

    def advice(self) -> Iterator[str]:
        """Yield what to call in Python; the text of the error has each fault's place and remedy already."""
        for fault in self.faults:
            if fault.remedy is not None and (words := in_python(fault.remedy)) is not None:
                yield f"in Python: {words}"

    @property
    def phrase(self) -> str:
        """All faults, each with its remedy."""
        return Phrase.joined("\n", (fault.phrase for fault in self.faults))

    def __str__(self) -> str:
        return str(self.phrase)


class UsageError(LakewrightError):
    """The arguments are invalid: an unknown name, parameter or combination."""

    code = "usage"


class NotOffered(UsageError):
    """A choice about a subject is not offered, or not any more, so that nothing is decided.

    Attributes:
        details: `choices`: a list of those that are offered now about the subject, and `subjects`: of all
            that can be decided about if there are no such choices.
    """

    code = "not_offered"


class RunFailed(LakewrightError):
    """A run of a job did not succeed. Its result, the history and the manifest have every target's error.

    Attributes:
        details: `run_id`, `status`, and the number of `undone` targets.
    """

    code = "run_failed"


class LakewrightWarning(UserWarning):
    """What a caller of the Python API must know although nothing failed, such as a probable mistake.

    It is issued by Python's `warnings`, and logged too.
    """
