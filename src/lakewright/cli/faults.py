"""How a command fails: the exit code of an error, and its message as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.cli.page import Branch, Span, line, remedy_branches
from lakewright.errors import (
    BackdatedError,
    Fault,
    LakewrightError,
    OperatorError,
    SpecError,
    StoreBusy,
    UsageError,
)

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


def fault_branch(fault: Fault, *, is_warning: bool = False) -> Branch:
    """Return a fault as text: the message, then the location and the remedy below it."""
    title = Span("warning: ", "yellow") if is_warning else Span("error: ", "bold red")
    head, *rest = fault.message.splitlines() or [fault.code]
    return Branch(
        line(title, head),
        (*(Branch(line(text)) for text in rest if text.strip()), *_below(fault)),
    )


def _below(fault: Fault) -> Iterator[Branch]:
    if fault.location is not None:
        yield Branch(line(Span("where: ", "dim"), str(fault.location)))
    yield from remedy_branches(fault.remedy)
