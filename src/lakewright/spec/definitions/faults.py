"""Conversion of pydantic's validation errors to faults with locations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeVar

from pydantic import ValidationError

from lakewright.errors import Fault, Location
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.reading.parsed_file import texts_in

M = TypeVar("M")

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


def valid_part(raw: Any, validate: Callable[[Any], M]) -> tuple[Any, M] | None:
    """Return what is valid of a declaration, and its model, for checks that its faults would hide.

    The entries of maps that the faults are in are left out. None if the rest is not valid either.
    """
    while raw is not None:
        try:
            return raw, validate(raw)
        except ValidationError as error:
            paths = {tuple(found["loc"]) for found in error.errors(include_url=False)}
            raw = reduce(lambda part, path: None if part is None else _without(part, path), paths, raw)
    return None


def _without(value: Any, path: Sequence[str | int]) -> Any:
    """Return a value without the innermost entry of a map that a path leads to; None if it leads to none."""
    step, rest = (path[0], path[1:]) if path else (None, ())
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        inner = _without(value[step], rest)
        return None if inner is None else [*value[:step], inner, *value[step + 1 :]]
    if not isinstance(value, Mapping) or step not in value:
        return None
    inner = _without(value[step], rest)
    others = {key: each for key, each in value.items() if key != step}
    return others if inner is None else {**value, step: inner}


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
