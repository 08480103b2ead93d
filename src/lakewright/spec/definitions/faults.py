"""Conversion of pydantic's validation errors to faults with locations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from lakewright.errors import Fault, Location
from lakewright.spec.expressions.expression import has_expression

__all__ = ["ABOUT", "VALIDATED", "Locate", "fault_about", "faults_of", "holds_expression", "texts_in"]

Locate = Callable[[tuple[str | int, ...]], Location]

ABOUT = "about"
"""Detail of faults in a definition: what messages call the definition, and the message without that."""

VALIDATED = "validated"
"""Detail of faults of a value that a field does not accept: the path of the field."""

_WHOLE = frozenset(("missing", "unknown_key", "unknown_kind", "extra_forbidden", "inconsistent"))
"""Types of errors that do not depend on the values of expressions."""


def faults_of(
    error: ValidationError, subject: str, locate: Locate, *, is_rendered: bool
) -> tuple[Fault, ...]:
    """Return the faults of a validation, without errors that only result from unevaluated expressions.

    Args:
        error: The validation error.
        subject: Name of what was validated, such as `relation 'stations'`.
        locate: Returns the location of a path inside the subject.
        is_rendered: Whether expressions are evaluated already, so that every error counts.
    """
    return tuple(
        _fault(found, subject, locate)
        for found in error.errors(include_url=False)
        if is_rendered or found["type"] in _WHOLE or not holds_expression(found["input"])
    )


def holds_expression(value: Any) -> bool:
    """Return whether any text in a value contains an expression."""
    return any(has_expression(text) for text in texts_in(value))


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a value of maps and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from texts_in(inner)


def _fault(found: Any, subject: str, locate: Locate) -> Fault:
    path = tuple(found["loc"])
    context = found.get("ctx") or {}
    # Validators of a whole model run after those that write their own messages.
    message = str(found["msg"]).removeprefix("Value error, ")
    if found["type"] == "missing" and path:
        message, path = f"{path[-1]!r} is missing", path[:-1]
    elif found["type"] == "unknown_key":
        path = path[:-1]
    inside = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    return fault_about(
        subject,
        Fault(
            f"{inside}: {message}" if inside else message,
            location=locate(tuple(found["loc"])),
            remedy=context.get("remedy"),
            details={} if found["type"] in _WHOLE else {VALIDATED: list(found["loc"])},
        ),
    )


def fault_about(subject: str, fault: Fault) -> Fault:
    """Return a fault with the definition that it is in, such as `relation 'stations'`."""
    about = (subject, fault.message)
    return replace(fault, message=": ".join(about), details={**fault.details, ABOUT: about})
