"""What every hook is: something that answers an event with calls."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator
from pydantic import Field as Declared

from lakewright.run.hooks.call import Call
from lakewright.run.hooks.event import Event
from lakewright.spec.models.base import Named, Texts

__all__ = ["Conditions", "Hook", "Surroundings", "is_meant"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What hooks have besides the event.

    Attributes:
        render: Returns a text with its expressions evaluated, in which the event's variables are names.
        environ: The process's environment.
        folder: The project's.
    """

    render: Callable[[str], str]
    environ: Mapping[str, str]
    folder: Path


class Hook(Named):
    """A hook as declared; texts keep their expressions until there is an event."""

    description: str | None = Declared(default=None, description="What it is for.")

    @abstractmethod
    def calls(self, event: Event, surroundings: Surroundings) -> Iterator[Call]:
        """Yield what is to be called because of an event.

        Raises:
            SpecError: An expression is wrong.
        """


def _patterns(declared: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    for texts in declared.values():
        for text in texts:
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(f"{text!r} is no regular expression: {error}") from None
    return declared


Conditions = Annotated[dict[str, Texts], AfterValidator(_patterns)]
"""Variables of events or parameters of the job, with regular expressions of whole values; one must match."""


def is_meant(event: Event, conditions: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether an event meets all conditions; a variable that it doesn't have meets none."""
    values = {**event.parameters, **event.variables()}
    return all(
        bool(values.get(name)) and any(re.fullmatch(pattern, values[name]) for pattern in patterns)
        for name, patterns in conditions.items()
    )
