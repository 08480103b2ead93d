"""The `rest` hook: an HTTP request for each event that meets its conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator
from pydantic import Field as Declared

from lakewright.run.hooks.call import Call, HttpCall
from lakewright.run.hooks.event import Event
from lakewright.run.hooks.hook import Conditions, Hook, Surroundings, is_meant

__all__ = ["RestHook"]

_Method = Annotated[
    Literal["GET", "POST", "PUT"],
    BeforeValidator(lambda text: text.strip().upper() if isinstance(text, str) else text),
]


class RestHook(Hook):
    """Calls a URL."""

    url: str = Declared(min_length=1, description="What is called; the event's variables are names in it.")
    when: Conditions = Declared(
        default_factory=dict,
        description="Variables of events with patterns of whole values; without any, every event is meant.",
    )
    method: _Method = Declared(default="GET", description="GET, POST or PUT; the latter two send a body.")
    headers: dict[str, str] = Declared(default_factory=dict, description="Headers of the request.")
    body: str | None = Declared(
        default=None, description="What POST and PUT send; the whole event as JSON if not given."
    )

    def calls(self, event: Event, surroundings: Surroundings) -> Iterator[Call]:
        """Yield a request if the event is meant."""
        if not is_meant(event, self.when):
            return
        render = surroundings.render
        body = None
        if self.method != "GET":
            body = event.text() if self.body is None else render(self.body)
        headers = {name: render(value) for name, value in self.headers.items()}
        yield HttpCall(render(self.url), self.method, headers, body)
