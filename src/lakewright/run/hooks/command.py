"""The `command` hook: a process for each event that meets its conditions."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator
from pydantic import Field as Declared

from lakewright.run.hooks.call import Call, ProcessCall
from lakewright.run.hooks.event import Event
from lakewright.run.hooks.hook import Conditions, Hook, Surroundings, is_meant

__all__ = ["CommandHook"]


def _words(declared: object) -> object:
    if not isinstance(declared, str):
        return declared
    try:
        return tuple(shlex.split(declared))
    except ValueError as error:
        raise ValueError(f"{declared!r} can't be read as a command: {error}") from None


class CommandHook(Hook):
    """Runs a command, without a shell, in the project's folder.

    It finds the event in variables `LAKEWRIGHT_CATEGORY`, `LAKEWRIGHT_STATUS` and so on, and whole, as JSON,
    on its standard input.
    """

    command: Annotated[tuple[str, ...], BeforeValidator(_words)] = Declared(
        min_length=1, description="Program and arguments: a list, or a line with the quotes of a shell."
    )
    when: Conditions = Declared(
        default_factory=dict,
        description="Variables of events with patterns of whole values; without any, every event is meant.",
    )

    def calls(self, event: Event, surroundings: Surroundings) -> Iterator[Call]:
        """Yield a process if the event is meant."""
        if not is_meant(event, self.when):
            return
        own = {f"LAKEWRIGHT_{name.upper()}": value for name, value in event.variables().items()}
        own["LAKEWRIGHT_PARAMETERS"] = json.dumps(dict(event.parameters))
        own["LAKEWRIGHT_MESSAGE"] = event.error.message if event.error else ""
        arguments = tuple(surroundings.render(word) for word in self.command)
        yield ProcessCall(arguments, {**surroundings.environ, **own}, surroundings.folder, event.text())
