"""The OpenAPI document of the API, made from its endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from lakewright.serve.http.endpoint import Endpoint

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
    schema = endpoint.takes.model_json_schema()
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
