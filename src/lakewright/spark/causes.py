"""Errors of Spark, Delta, JDBC and Java as values: each cause with its condition and parameters.

PySpark gives the condition of the outermost error, and only if that is of one of its own classes. A query
that fails in a task has the condition that matters below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lakewright.spark.jvm import full_text

_DEEPEST = 20
"""Causes that are read of an error."""

_STATE = re.compile(r"\s*SQLSTATE: .*", re.DOTALL)
_END = re.compile(r"\s*(SQLSTATE: \w+)?[\s;.]*((\()?line \d+,? pos \d+(\))?)?;?$")

_BEGIN = re.compile(r"^(?:Caused by|): ", re.MULTILINE)
"""What begins a cause in a stack trace of Java, and in the text of an error of Py4J."""

_STACK = re.compile(r"\n(?:\s+at |\n?JVM stacktrace:)")
_KIND = re.compile(r"\(?((?:[\w$]+\.)*[\w$]+(?:Exception|Error))(?:\)|: |:?$)\s*", re.MULTILINE)
_CONDITION = re.compile(r"^\[([A-Z][A-Z0-9_.]+)\]\s*", re.MULTILINE)
_FRAGMENT = re.compile(r"== SQL[^\n]*==\n(.*?)\n[\s^]*\n", re.DOTALL)

_PARAMETERS = re.compile(
    r"Encountered error while reading file (?P<path>\S+?)\.?(?:\s|$)|"
    r"^Malformed records are detected in record parsing: (?P<badRecord>.*?)\.?\s+Parse Mode|"
    r"^NOT NULL constraint violated for column: (?P<columnName>\S+?)\.?\s*$",
    re.DOTALL,
)
"""Parameters in messages: a server of Spark Connect sends those of the outermost error only."""


_WITHOUT_REASON = ("TASK_WRITE_FAILED",)
"""Conditions that only name the place where something failed; a cause of theirs says why."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One error in a chain of causes.

    Attributes:
        kind: Its class in Java, with its package; empty if unknown.
        condition: The condition of Spark or Delta, such as `FAILED_READ_FILE.NO_HINT`; else empty.
        message: Its message, without condition and SQLSTATE.
        parameters: The parameters of the condition.
        fragments: The texts of the query that it points to.
    """

    kind: str
    condition: str
    message: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    fragments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.kind else self.message

    def has(self, *conditions: str) -> bool:
        """Return whether it has one of these conditions, or a condition below one of them."""
        return any(self.condition == each or self.condition.startswith(f"{each}.") for each in conditions)

    @property
    def said(self) -> str:
        """The first line of its message, after its condition if that has a name."""
        first = self.message.strip().partition("\n")[0] or self.kind
        is_named = self.condition and not self.condition.startswith("_LEGACY")
        return f"[{self.condition}] {first}" if is_named else first


def causes_of(error: BaseException) -> tuple[Cause, ...]:
    """Return an error of Spark and its causes, the innermost last; there is at least one.

    What neither a JVM nor a server of Spark Connect gives is read in the text of the error.
    """
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is not None:
        with suppress(Exception):  # the JVM has exited
            return tuple(_of_java(java))
    outermost, *below = _of_text(full_text(error))
    with suppress(AssertionError):  # PySpark asks a JVM, and there is none
        if java is None and hasattr(error, "getCondition") and error.getCondition():
            outermost = _read(error, outermost.kind, outermost.message)
    return (outermost, *below)


def first_line(error: BaseException) -> str:
    """Return the first line of a message of Spark, without its SQLSTATE and position; never empty."""
    first = str(error).strip().partition("\n")[0]
    return _END.sub("", first) or type(error).__name__


def innermost(causes: Sequence[Cause], *conditions: str) -> Cause | None:
    """Return the innermost cause that has one of the conditions; None if there is none."""
    return next((each for each in reversed(causes) if each.has(*conditions)), None)


def said_of(causes: Sequence[Cause]) -> str:
    """Return what the innermost cause with a condition says that says why, or else the innermost one."""
    telling = (each for each in reversed(causes) if each.condition and not each.has(*_WITHOUT_REASON))
    return next(telling, causes[-1]).said


def raised_text(causes: Sequence[Cause]) -> str:
    """Return the text with which the query itself failed, by `raise_error`; empty if it did not."""
    found = innermost(causes, "USER_RAISED_EXCEPTION", "_LEGACY_ERROR_USER_RAISED_EXCEPTION")
    return "" if found is None else found.parameters.get("errorMessage", found.message)


def _of_java(java: Any) -> Iterator[Cause]:
    from py4j.protocol import Py4JError
    from pyspark.errors.exceptions.captured import UnknownException

    for _ in range(_DEEPEST):
        # PySpark knows how each of its releases asks an error of Java; its constructor would log the error.
        view = UnknownException.__new__(UnknownException)
        view._origin = java
        try:
            yield _read(view, str(java.getClass().getName()), str(java.getMessage() or ""))
        except Py4JError:  # it does not offer all that PySpark asks
            yield next(_of_text(str(java.toString())))
        java = java.getCause()
        if java is None:
            return


def _read(error: Any, kind: str, message: str) -> Cause:
    """Return an error that PySpark can ask as a cause."""
    condition, parameters = error.getCondition(), error.getMessageParameters()
    contexts = (each for each in error.getQueryContext() if each.contextType().name == "SQL")
    fragments = tuple(each.fragment() for each in contexts)
    text = _STATE.sub("", _CONDITION.sub("", message, count=1))
    return Cause(kind, condition or "", text, dict(parameters or {}), fragments)


def _of_text(text: str) -> Iterator[Cause]:
    before, *below = _BEGIN.split(text)
    # Py4J writes the call before the error.
    for section in (
        below if below and before.startswith("An error occurred while calling") else [before, *below]
    ):
        fragment = _FRAGMENT.search(section)
        body = _STACK.split(section)[0].strip()
        kind = _KIND.match(body)
        message = body[kind.end() :] if kind else body
        condition = _CONDITION.search(message)
        if condition is not None:
            message = _STATE.sub("", message[condition.end() :])
        found = _PARAMETERS.search(message) if condition else None
        parameters = {name: value for name, value in (found.groupdict() if found else {}).items() if value}
        yield Cause(
            kind[1] if kind else "",
            condition[1] if condition else "",
            message.strip(),
            parameters,
            (fragment[1].strip(),) if fragment else (),
        )
