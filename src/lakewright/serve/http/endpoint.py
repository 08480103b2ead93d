"""Endpoints of the JSON API: functions, whose signatures say what their requests take.

Routes, the checks of requests and the OpenAPI document follow from them.
"""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from lakewright.serve.http.faults import HttpFault

if TYPE_CHECKING:
    from starlette.requests import Request

    from lakewright.app import App
    from lakewright.serve.http.access import Asker
    from lakewright.serve.http.site import Site


F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def about(description: str, **more: Any) -> Any:
    """Return what describes a parameter in the OpenAPI document, with its limits."""
    return Field(description=description, **more)


Name = Annotated[str, Field(min_length=1)]
EntityName = Annotated[Name, about("The entity.")]
ItemName = Annotated[Name, about("The id of the item, its path, or ENTITY/SLICE.")]
ApplicationName = Annotated[Name, about("The application: name, or name:instance.")]
After = Annotated[
    Sequence[str], about("An application that must have processed an item first; may be repeated.")
]
Limit = Annotated[int, about("The largest number of rows; 100 by default.", ge=1, le=1000)]


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request to an endpoint.

    Attributes:
        app: The project as its files declare it now.
        base_url: The address of the server, as the request names it.
    """

    site: Site
    app: App
    asker: Asker
    base_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """What one method of one path does.

    Attributes:
        path: The path below `/api/v1`, with parameters in braces.
        handle: Returns the JSON document, what has it as `as_json`, or a list of such. The first line of its
            docstring is the endpoint's summary.
        takes: What a request gives: the parameters after the `?` of a GET, else the members of the body.
        form: The name of the document's form, its `schema`; None for lists and objects of names.
        status: The status of its answer.
        changes: Whether it changes something, so that it needs `--allow-actions`.
        media: The media type of its answer.
    """

    method: str
    path: str
    tag: str
    handle: Callable[..., Any]
    takes: type[BaseModel]
    form: str | None = None
    status: int = 200
    changes: bool = False
    media: str = "application/json"

    @property
    def summary(self) -> str:
        """One sentence."""
        return (inspect.getdoc(self.handle) or "").partition("\n")[0]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of what it takes."""
        return self.takes.model_json_schema()

    def arguments(self, request: Request) -> dict[str, Any]:
        """Return the arguments of `handle` that a request gives.

        Raises:
            HttpFault: One is unknown, missing, or not of its type.
        """
        query = request.query_params
        if self.method == "GET":
            lists = self._lists()
            given = {name: query.getlist(name) if name in lists else query[name] for name in query}
            return self._checked(self.takes.model_validate, given)
        if query:
            raise HttpFault(400, "usage", f"there is no parameter {next(iter(query))!r}")
        return self._checked(self.takes.model_validate_json, request.scope["body"] or b"{}")

    def arguments_of_form(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments of `handle` that a form gives; empty fields give none, others are left out.

        Several values of one field are written as a shell would pass them to the command line.

        Raises:
            HttpFault: One is unknown, missing, or not of its type.
        """
        lists = self._lists()
        known = {name: text for name in self.takes.model_fields if (text := form.get(name))}
        given = {name: _split(text) if name in lists else text for name, text in known.items()}
        return self._checked(partial(self.takes.model_validate, strict=False), given)

    def _lists(self) -> set[str]:
        """Return the names of what it takes several values of."""
        return {name for name, each in self.schema["properties"].items() if each.get("type") == "array"}

    def _checked(self, validate: Callable[[T], BaseModel], given: T) -> dict[str, Any]:
        try:
            return dict(validate(given))
        except ValidationError as error:
            raise self._fault(error) from error

    def _fault(self, wrong: ValidationError) -> HttpFault:
        known, first = self.takes.model_fields, wrong.errors(include_url=False)[0]
        if not first["loc"]:
            return HttpFault(400, "usage", f"the body is no JSON object: {first['msg']}")
        name = str(first["loc"][0])
        if name not in known:
            kind = "parameter" if self.method == "GET" else "member of the body"
            said = f"there is no {kind} {name!r}"
            return HttpFault(400, "usage", said, f"Known: {', '.join(known) or 'none'}.")
        is_missing = first["type"] in ("missing", "string_too_short", "too_short")
        said = f"{name!r} is missing" if is_missing else f"{name!r} is wrong: {first['msg']}"
        return HttpFault(400, "usage", said, known[name].description)


class Endpoints(list[Endpoint]):
    """Endpoints, which the functions that it decorates become."""

    def get(self, path: str, tag: str, **more: Any) -> Callable[[F], F]:
        """Return what makes a function the endpoint that reads a path."""
        return self._endpoint("GET", path, tag, more)

    def post(self, path: str, tag: str, *, changes: bool = True, **more: Any) -> Callable[[F], F]:
        """Return what makes a function the endpoint that changes something."""
        return self._endpoint("POST", path, tag, {"changes": changes, **more})

    def _endpoint(self, method: str, path: str, tag: str, more: Mapping[str, Any]) -> Callable[[F], F]:
        def add(handle: F) -> F:
            takes = _parameters(handle, path, is_strict=method != "GET")
            self.append(Endpoint(method=method, path=path, tag=tag, handle=handle, takes=takes, **more))
            return handle

        return add


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise HttpFault(400, "usage", f"{text!r} has a quote that is not closed", "Close it.") from None


def _parameters(handle: Callable[..., Any], path: str, *, is_strict: bool) -> type[BaseModel]:
    """Return the parameters of a function as a model, without the call and those that the path gives."""
    _, *declared = inspect.signature(handle, eval_str=True).parameters.values()
    fields: dict[str, Any] = {
        each.name: (each.annotation, ... if each.default is each.empty else each.default)
        for each in declared
        if f"{{{each.name}}}" not in path
    }
    config = ConfigDict(extra="forbid", strict=is_strict)
    return create_model(handle.__name__.strip("_"), __config__=config, **fields)


PREFIX = "/api/v1"

_FAULT = {
    "type": "object",
    "required": ["code", "message", "remedy", "location"],
    "properties": {
        "code": {"type": "string", "description": "Stable."},
        "message": {"type": "string"},
        "remedy": {"type": ["string", "null"]},
        "location": {"type": ["string", "null"]},
    },
}


def openapi_document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the document that describes the endpoints."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(f"{PREFIX}{endpoint.path}", {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lakewright",
            "version": version("lakewright"),
            "description": "The state of a project, and what an operator can do. Documents are those that "
            "the command line prints with `-o json`.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": _FAULT},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    schema = endpoint.schema
    required = schema.get("required", ())
    given: dict[str, Any] = {}
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    if endpoint.method == "GET":
        parameters += [
            {
                "name": name,
                "in": "query",
                "required": name in required,
                "schema": each,
                "description": each.get("description", ""),
            }
            for name, each in schema["properties"].items()
        ]
    else:
        content = {"application/json": {"schema": schema}}
        given = {"requestBody": {"required": bool(required), "content": content}}
    failed = {"schema": {"$ref": "#/components/schemas/Error"}}
    return {
        "operationId": re.sub(r"\W+", "_", f"{endpoint.method.lower()}{endpoint.path}").strip("_"),
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "parameters": parameters,
        **given,
        "responses": {
            str(endpoint.status): {
                "description": endpoint.form or "See the reference of JSON documents.",
                "content": {endpoint.media: {}},
            },
            "default": {"description": "An error.", "content": {"application/json": failed}},
        },
    }
