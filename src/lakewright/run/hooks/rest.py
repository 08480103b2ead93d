"""The `rest` hook: sends an HTTP request for each event that meets its conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator
from pydantic import Field as Declared

from lakewright.run.hooks.call import Call, HttpCall
from lakewright.run.hooks.event import Conditions, Event, Hook, HookContext, matches
from lakewright.spec.models.base import upper

__all__ = ["RestHook"]

_Method = Annotated[Literal["GET", "POST", "PUT"], BeforeValidator(upper)]


class RestHook(Hook):
    """Sends an HTTP request."""

    url: str = Declared(min_length=1, description="URL to call; expressions can use the event's variables.")
    when: Conditions = Declared(
        default_factory=dict,
        description="Regular expressions for variables of the event; without any, all events match.",
    )
    method: _Method = Declared(default="GET", description="GET, POST or PUT; POST and PUT send a body.")
    headers: dict[str, str] = Declared(default_factory=dict, description="Headers of the request.")
    body: str | None = Declared(
        default=None, description="Body of POST and PUT; by default the whole event as JSON."
    )

    def texts(self) -> Iterator[str]:
        """Yield the URL, the values of the headers, and the body."""
        yield from (self.url, *self.headers.values())
        if self.body is not None and self.method != "GET":
            yield self.body

    def calls(self, event: Event, context: HookContext) -> Iterator[Call]:
        """Yield a request if the event meets the conditions."""
        if not matches(event, self.when):
            return
        render = context.render
        body = None
        if self.method != "GET":
            body = event.text() if self.body is None else render(self.body)
        headers = {name: render(value) for name, value in self.headers.items()}
        yield HttpCall(render(self.url), self.method, headers, body)
