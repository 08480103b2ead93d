"""What can be called in an expression, and what that may ask of the world."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from lakewright.errors import SpecError

__all__ = ["EvaluationContext", "Function", "Functions", "Namespace", "functions"]


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """What helpers may ask of the world; each part is given by whoever loads the project.

    Attributes:
        environ: The process's environment.
        clock: Tells the present instant, in UTC; None where expressions may not ask.
        read_file: Reads a file's text; None where expressions may not.
        secrets: Values that expressions took from the environment or files and that must not be shown;
            grows while expressions are evaluated.
    """

    environ: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], datetime] | None = None
    read_file: Callable[[str], str] | None = None
    secrets: set[str] = field(default_factory=set)

    def now(self) -> datetime:
        """Return the present instant in UTC.

        Raises:
            SpecError: No clock was given.
        """
        if self.clock is None:
            raise SpecError.of("an expression asks for the present time, which isn't known here")
        return self.clock().astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Namespace:
    """An object of expressions that holds functions or properties, such as `LocalDate` or `project`."""

    name: str
    functions: Mapping[str, Function] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        # `$project` is the project's name, as in Flowman.
        return str(self.properties.get("name", self.name))


@dataclass(frozen=True, slots=True)
class Function:
    """A function with the number of arguments it takes; `needs_context` ones get the context first."""

    call: Callable[..., Any]
    least: int
    most: int
    needs_context: bool = False

    @classmethod
    def of(cls, function: Callable[..., Any], *, needs_context: bool = False) -> Function:
        """Return the function with the number of its arguments."""
        parameters = list(inspect.signature(function).parameters.values())[1 if needs_context else 0 :]
        least = sum(parameter.default is inspect.Parameter.empty for parameter in parameters)
        return cls(function, least, len(parameters), needs_context)


Functions: TypeAlias = Mapping[str, Function]


def functions(
    *tables: Mapping[str, Callable[..., Any]], with_context: Mapping[str, Callable[..., Any]] | None = None
) -> Functions:
    """Return the functions of several tables as one; `with_context` ones get the context first."""
    found = {name: Function.of(function) for table in tables for name, function in table.items()}
    return found | {
        name: Function.of(function, needs_context=True) for name, function in (with_context or {}).items()
    }
