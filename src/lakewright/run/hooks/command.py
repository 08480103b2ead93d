"""The `command` hook: runs a process for each event that meets its conditions."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator
from pydantic import Field as Declared

from lakewright.run.hooks.call import Call, ProcessCall
from lakewright.run.hooks.event import Conditions, Event, Hook, HookContext, matches

__all__ = ["CommandHook"]


def _words(declared: object) -> object:
    if not isinstance(declared, str):
        return declared
    try:
        return tuple(shlex.split(declared))
    except ValueError as error:
        raise ValueError(f"{declared!r} cannot be parsed as a command: {error}") from None


class CommandHook(Hook):
    """Runs a command, without a shell, in the project's folder.

    The command gets the event in environment variables `LAKEWRIGHT_CATEGORY`, `LAKEWRIGHT_STATUS` and so on,
    and the whole event as JSON on its standard input.
    """

    command: Annotated[tuple[str, ...], BeforeValidator(_words)] = Declared(
        min_length=1, description="Program and arguments, as a list or as one line with shell quoting."
    )
    when: Conditions = Declared(
        default_factory=dict,
        description="Regular expressions for variables of the event; without any, all events match.",
    )

    def texts(self) -> Iterator[str]:
        """Yield the program and its arguments."""
        yield from self.command

    def calls(self, event: Event, context: HookContext) -> Iterator[Call]:
        """Yield a process if the event meets the conditions."""
        if not matches(event, self.when):
            return
        own = {f"LAKEWRIGHT_{name.upper()}": value for name, value in event.variables().items()}
        own["LAKEWRIGHT_PARAMETERS"] = json.dumps(dict(event.parameters))
        own["LAKEWRIGHT_MESSAGE"] = event.error.message if event.error else ""
        arguments = tuple(context.render(word) for word in self.command)
        yield ProcessCall(arguments, {**context.environ, **own}, context.folder, event.text())
