"""The base class of hooks, which turn events into calls."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator
from pydantic import Field as Declared

from lakewright.connections.connection import Connection
from lakewright.connections.database import Database
from lakewright.run.hooks.call import Call
from lakewright.run.hooks.event import Event
from lakewright.spec.models.base import Named, Texts

__all__ = ["Conditions", "Connect", "Hook", "HookContext", "matches"]


Connect = Callable[[str | Connection], Database]
"""Returns the database that a connection, or its name, means."""


@dataclass(frozen=True, slots=True)
class HookContext:
    """The context in which a hook makes calls for an event.

    Attributes:
        render: Evaluates the expressions in a text; the event's variables are names in them.
        environ: Environment variables of the process.
        folder: The project's folder.
        connect: Returns the database of a connection.
    """

    render: Callable[[str], str]
    environ: Mapping[str, str]
    folder: Path
    connect: Connect


class Hook(Named):
    """A hook; expressions in its texts are evaluated for each event."""

    description: str | None = Declared(default=None, description="Description for people.")

    @abstractmethod
    def texts(self) -> Iterator[str]:
        """Yield the texts whose expressions are evaluated for an event."""

    @abstractmethod
    def calls(self, event: Event, context: HookContext) -> Iterator[Call]:
        """Yield the calls to make for an event.

        Raises:
            SpecError: An expression is invalid.
        """


def _patterns(declared: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    for texts in declared.values():
        for text in texts:
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    return declared


Conditions = Annotated[dict[str, Texts], AfterValidator(_patterns)]
"""Regular expressions for variables of the event or parameters of the job; one must match the whole value."""


def matches(event: Event, conditions: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether an event meets all conditions; an empty or missing variable meets none."""
    values = {**event.parameters, **event.variables()}
    return all(
        bool(values.get(name)) and any(re.fullmatch(pattern, values[name]) for pattern in patterns)
        for name, patterns in conditions.items()
    )
