"""The OpenAPI document of the API, made from its endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from lakewright.serve.http.endpoint import Endpoint, Part

__all__ = ["PREFIX", "openapi_document"]

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
    named = re.findall(r"{(\w+)}", endpoint.path)
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in named
    ]
    parameters += [
        {
            "name": part.name,
            "in": "query",
            "required": part.is_required,
            "schema": dict(part.schema),
            "description": part.description,
        }
        for part in endpoint.query
    ]
    failed = {"schema": {"$ref": "#/components/schemas/Error"}}
    words = re.sub(r"\W+", "_", f"{endpoint.method.lower()}{endpoint.path}").strip("_")
    return {
        "operationId": words,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "parameters": parameters,
        **({} if endpoint.body is None else {"requestBody": _body(endpoint.body)}),
        "responses": {
            str(endpoint.status): {
                "description": endpoint.form or "See the reference of JSON documents.",
                "content": {endpoint.media: {}},
            },
            "default": {"description": "An error.", "content": {"application/json": failed}},
        },
    }


def _body(parts: Iterable[Part]) -> dict[str, Any]:
    listed = list(parts)
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {part.name: {**part.schema, "description": part.description} for part in listed},
        "required": [part.name for part in listed if part.is_required],
    }
    return {
        "required": any(part.is_required for part in listed),
        "content": {"application/json": {"schema": schema}},
    }
