"""Functions that expressions can call, and the context that they may use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, TypeAlias

from lakewright.errors import SpecError

__all__ = ["EvaluationContext", "Function", "Functions", "Namespace", "functions"]


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """The access of helpers to environment, clock and files, which the caller of the loader provides.

    Attributes:
        environ: The environment variables.
        clock: Returns the current time in UTC, or None if expressions may not use it.
        read_file: Returns the text of a file, or None if expressions may not read files.
        secrets: Secret values that expressions have read from environment variables and files. Grows while
            expressions are evaluated.
        defaults: Texts that stood in for environment variables that aren't set. They are written in a file
            of the project, so that they are no secrets. Grows likewise.
        zone: The time zone whose date and time `LocalDate` and `LocalDateTime` return.
    """

    environ: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], datetime] | None = None
    read_file: Callable[[str], str] | None = None
    secrets: set[str] = field(default_factory=set)
    defaults: set[str] = field(default_factory=set)
    zone: tzinfo = UTC

    def now(self) -> datetime:
        """Return the current time in UTC.

        Raises:
            SpecError: There is no clock.
        """
        if self.clock is None:
            raise SpecError.of("an expression uses the current time, which is not available here")
        return self.clock().astimezone(UTC)

    def local_now(self) -> datetime:
        """Return the current date and time in the context's time zone, without the zone.

        Raises:
            SpecError: There is no clock.
        """
        return self.now().astimezone(self.zone).replace(tzinfo=None)


@dataclass(frozen=True, slots=True)
class Namespace:
    """An object with functions or properties, such as `LocalDate` or `project`."""

    name: str
    functions: Mapping[str, Function] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        # `$project` renders as the project's name, as in Flowman.
        return str(self.properties.get("name", self.name))


@dataclass(frozen=True, slots=True)
class Function:
    """A function that expressions can call.

    Attributes:
        call: The Python function.
        least: Minimum number of arguments.
        most: Maximum number of arguments.
        needs_context: Whether the context is passed as an additional first argument.
    """

    call: Callable[..., Any]
    least: int
    most: int
    needs_context: bool = False

    @classmethod
    def of(cls, function: Callable[..., Any], *, needs_context: bool = False) -> Function:
        """Return the function, with the number of arguments from its signature."""
        parameters = list(inspect.signature(function).parameters.values())[1 if needs_context else 0 :]
        least = sum(parameter.default is inspect.Parameter.empty for parameter in parameters)
        return cls(function, least, len(parameters), needs_context)


Functions: TypeAlias = Mapping[str, Function]


def functions(
    *tables: Mapping[str, Callable[..., Any]], with_context: Mapping[str, Callable[..., Any]] | None = None
) -> Functions:
    """Return one table with the functions of several. Those in `with_context` receive the context first."""
    found = {name: Function.of(function) for table in tables for name, function in table.items()}
    return found | {
        name: Function.of(function, needs_context=True) for name, function in (with_context or {}).items()
    }
