"""How a command fails: the exit code of an error, and its message as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lakewright.cli.page import Line, labelled, line
from lakewright.errors import (
    BackdatedError,
    Fault,
    LakewrightError,
    OperatorError,
    SpecError,
    StoreBusy,
    UsageError,
)
from lakewright.errors.fault import BRIEF, Location, remedy_of
from lakewright.errors.phrase import Phrase

WRONG = 2
HELD = 4
FAILED = 1


def exit_code(error: LakewrightError) -> int:
    """Return 2 for errors of the caller or the project's author, 4 for what is held, else 1."""
    # A processing time that is too early is refused before anything is locked or read.
    if isinstance(error, SpecError | UsageError | BackdatedError):
        return WRONG
    return HELD if isinstance(error, OperatorError | StoreBusy) else FAILED


def faults_of(error: LakewrightError) -> tuple[Fault, ...]:
    """Return every fault of an error."""
    return error.faults if isinstance(error, SpecError) else (error.as_fault(),)


def file_fault(error: OSError) -> Fault | None:
    """Return the fault for a file that cannot be read or written; None if the error names none."""
    if error.filename is None or error.strerror is None:
        return None
    is_denied = isinstance(error, PermissionError)
    return Fault(
        f"{error.filename}: {error.strerror}",
        remedy="Give the user who runs Lakewright access to it, or name another place."
        if is_denied
        else "Name a place that exists and that you may write to, or change this one.",
        code="file",
    )


def unexpected(error: BaseException) -> Fault:
    """Return the fault for an unexpected error."""
    return Fault(
        f"{type(error).__name__}: {error}",
        remedy="Run again with -vv for the traceback; if it is a bug in Lakewright, please report it.",
        code="unexpected",
    )


def recorded_fault(error: Mapping[str, Any]) -> Fault:
    """Return the fault of an error that was recorded, or is printed as JSON."""
    location = Location(error["location"]) if error.get("location") else None
    details = {BRIEF: error[BRIEF]} if BRIEF in error else {}
    return Fault(str(error["message"]), location, remedy_of(error), str(error.get("code")), details)


def fault_line(fault: Fault, label: str = "error") -> Line:
    """Return a fault as text: the message, then the location and the remedy below it."""
    return labelled(label, headline(fault), below=fault_details(fault))


def headline(fault: Fault) -> str:
    """Return the first line of a fault's message."""
    return next(iter(fault.message.splitlines()), fault.code)


def fault_details(fault: Fault) -> Iterator[Line]:
    """Yield what stands below the first line of a fault: the other lines, the location and the remedy."""
    yield from map(line, filter(str.strip, fault.message.splitlines()[1:]))
    if fault.location is not None:
        yield labelled("where", str(fault.location))
    yield from remedy_lines(fault.remedy)


def remedy_lines(remedy: str | None) -> Iterator[Line]:
    """Yield what to do about an error, each line of it by itself."""
    for text in Phrase(remedy).lines() if remedy else ():
        yield labelled("do", text)
