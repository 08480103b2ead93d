"""Endpoints of the JSON API: values from which the routes and the OpenAPI document are made."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright.serve.http.faults import HttpFault

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.serve.http.access import Asker
    from lakewright.serve.http.site import Site

__all__ = ["ApiCall", "Endpoint", "Part", "listed", "required", "text", "whole_number"]

Schema = Mapping[str, Any]

MOST_LISTED = 1000


@dataclass(frozen=True, slots=True)
class Part:
    """A parameter of a request, or a member of its body, with its JSON schema."""

    name: str
    schema: Schema
    description: str
    is_required: bool = False


def text(name: str, description: str) -> Part:
    """Return an optional part that is a text."""
    return Part(name, {"type": "string"}, description)


def required(name: str, description: str) -> Part:
    """Return a part that is a text and must be given."""
    return Part(name, {"type": "string"}, description, is_required=True)


def listed(name: str, description: str, *, is_required: bool = False) -> Part:
    """Return a part that is a list of texts; as a parameter, it is repeated."""
    return Part(name, {"type": "array", "items": {"type": "string"}}, description, is_required)


def whole_number(name: str, description: str) -> Part:
    """Return an optional part that is a positive whole number."""
    return Part(name, {"type": "integer", "minimum": 1, "maximum": MOST_LISTED}, description)


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request to an endpoint.

    Attributes:
        app: The project as its files declare it now.
        path: The parameters in the path.
        query: The parameters after the `?`, each with all its values.
        body: The members of the body.
        base_url: The address of the server, as the request names it.
    """

    site: Site
    app: App
    asker: Asker
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    base_url: str = ""

    def given(self, name: str) -> str | None:
        """Return a parameter, or None."""
        values = self.query.get(name)
        return values[-1] if values else None

    def all_given(self, name: str) -> tuple[str, ...]:
        """Return every value of a parameter."""
        return tuple(self.query.get(name, ()))

    def limit(self, default: int = 100) -> int:
        """Return the number of rows that is asked for."""
        found = self.given("limit")
        return default if found is None else int(found)

    @property
    def reason(self) -> str:
        """Why something is changed."""
        return str(self.body["reason"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """What one method of one path does.

    Attributes:
        path: The path below `/api/v1`, with parameters in braces.
        summary: One sentence.
        handle: Returns the JSON document.
        form: The name of the document's form, its `schema`; None for lists and objects of names.
        query: Its parameters after the `?`.
        body: The members of its body; None if it takes none.
        status: The status of its answer.
        changes: Whether it changes something, so that it needs `--allow-actions`.
        media: The media type of its answer.
    """

    method: str
    path: str
    summary: str
    tag: str
    handle: Callable[[ApiCall], Any]
    form: str | None = None
    query: tuple[Part, ...] = ()
    body: tuple[Part, ...] | None = None
    status: int = 200
    changes: bool = False
    media: str = "application/json"

    def check(self, call: ApiCall) -> None:
        """Raise an error unless the request has what the endpoint takes, and nothing else.

        Raises:
            HttpFault: A part is unknown, missing, or not of its type.
        """
        known = {part.name: part for part in self.query}
        for name, values in call.query.items():
            if name not in known:
                raise _wrong(f"there is no parameter {name!r}", known)
            for value in values:
                _check_text(known[name], value)
        _check_all(self.query, call.query)
        members = {part.name: part for part in self.body or ()}
        for name, value in call.body.items():
            if name not in members:
                raise _wrong(f"there is no member {name!r} in the body", members)
            _check_value(members[name], value)
        _check_all(self.body or (), call.body)


def _check_all(parts: Sequence[Part], given: Mapping[str, Any]) -> None:
    for part in parts:
        if part.is_required and not given.get(part.name):
            raise HttpFault(400, "usage", f"{part.name!r} is missing", part.description)


def _check_text(part: Part, value: str) -> None:
    if part.schema["type"] == "integer":
        is_whole = value.isascii() and value.isdigit() and len(value) <= 6
        if not is_whole or not part.schema["minimum"] <= int(value) <= part.schema["maximum"]:
            low, high = part.schema["minimum"], part.schema["maximum"]
            raise HttpFault(400, "usage", f"{part.name!r} is not a number from {low} to {high}")
    if part.schema["type"] == "boolean" and value not in ("true", "false"):
        raise HttpFault(400, "usage", f"{part.name!r} is neither true nor false")


_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "array": (list,),
    "boolean": (bool,),
    "object": (dict,),
    "integer": (int,),
}


def _check_value(part: Part, value: Any) -> None:
    kind = part.schema["type"]
    is_right = isinstance(value, _TYPES[kind]) and not (kind == "integer" and isinstance(value, bool))
    if kind == "array" and is_right:
        is_right = all(isinstance(member, str) for member in value)
    if not is_right:
        shown = json.dumps(value)[:80]
        raise HttpFault(400, "usage", f"{part.name!r} is not of type {kind}: {shown}", part.description)


def _wrong(message: str, known: Mapping[str, Part]) -> HttpFault:
    return HttpFault(400, "usage", message, f"Known: {', '.join(known) or 'none'}.")
