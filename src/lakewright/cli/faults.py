"""How a command fails: the exit code that an error stands for, and its words for a person or a machine."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.cli.page import Branch, Span, line
from lakewright.errors import BackdatedError, Fault, LakewrightError, OperatorError, SpecError, UsageError

__all__ = ["exit_code", "fault_branch", "faults_of", "unexpected"]

WRONG = 2
HELD = 4
FAILED = 1


def exit_code(error: LakewrightError) -> int:
    """Return 2 for what the caller or the project's author must mend, 4 for what is held, else 1."""
    # A processing time that lies too early is refused before anything is locked or read.
    if isinstance(error, SpecError | UsageError | BackdatedError):
        return WRONG
    return HELD if isinstance(error, OperatorError) else FAILED


def faults_of(error: LakewrightError) -> tuple[Fault, ...]:
    """Return everything that an error has to say."""
    return error.faults if isinstance(error, SpecError) else (error.as_fault(),)


def unexpected(error: BaseException) -> Fault:
    """Return the fault for an error that nobody foresaw."""
    return Fault(
        f"{type(error).__name__}: {error}",
        remedy="Run again with -vv for the traceback; if it is a defect of Lakewright, please report it.",
        code="unexpected",
    )


def fault_branch(fault: Fault) -> Branch:
    """Return a fault as it is shown: what, then where and what to do below it."""
    head, *rest = fault.message.splitlines() or [fault.code]
    return Branch(
        line(Span("error: ", "bold red"), head),
        (*(Branch(line(text)) for text in rest if text.strip()), *_below(fault)),
    )


def _below(fault: Fault) -> Iterator[Branch]:
    if fault.location is not None:
        yield Branch(line(Span("where: ", "dim"), str(fault.location)))
    if fault.remedy:
        yield Branch(line(Span("do: ", "dim"), fault.remedy))
