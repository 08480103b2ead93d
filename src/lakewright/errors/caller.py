"""Errors that the author of a project, or the caller of a function or command, mends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from lakewright.errors.base import LakewrightError
from lakewright.errors.fault import Fault, Location
from lakewright.errors.phrase import Phrase
from lakewright.errors.surfaces import in_python


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
        super().__init__(first.message, remedy=first.remedy, location=first.location)

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
    ) -> SpecError:
        """Return an error with one fault."""
        return cls([Fault(message, location=location, remedy=remedy, details=details or {})])

    def placed(self, subject: str, location: Location | None) -> SpecError:
        """Return the error with a place for each fault that has none, and with what it is a fault of.

        Args:
            subject: The definition as messages name it, such as `mapping 'orders'`.
            location: Where it is declared; None if that is not known.
        """
        if location is None:
            return self
        return SpecError(
            fault
            if fault.location is not None
            else replace(
                fault,
                location=location,
                message=fault.message if subject in fault.message else f"{subject}: {fault.message}",
            )
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
