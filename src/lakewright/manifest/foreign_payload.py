"""Payloads of other programs: any JSON object, kept as it is except for secrets.

Later steps act on such a payload, so nothing in it is shortened: one that is too large is refused.

Source: `processing-manifest.md`, "Record" (payload) and "Use cases" (pipeline bus).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakewright.errors import UsageError
from lakewright.manifest.payload import LARGEST
from lakewright.manifest.record import FOREIGN
from lakewright.manifest.redaction import Redactor

FOREIGN_SCHEMA = f"{FOREIGN[0]}payload/1"
"""The schema name of a payload that doesn't name its own."""

SELF_DESCRIBING = frozenset({"schema", "data"})
"""The keys of a payload that names its own schema, as Snowplow's do."""


def foreign_payload(content: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Return the payload of a record for the content that a program gives.

    Content of the form `{"schema": "iglu:…", "data": {…}}` names its own schema and is kept in that form.

    Raises:
        UsageError: The content is not a JSON object, or too large.

    Example:
        >>> foreign_payload({"rows": 3}, Redactor())
        {'schema': 'application/payload/1', 'data': {'rows': 3}}
    """
    plain = _plain(content)
    names_schema = str(plain.get("schema")).startswith("iglu:") and isinstance(plain.get("data"), dict)
    if plain.keys() == SELF_DESCRIBING and names_schema:
        return {"schema": plain["schema"], "data": redactor.foreign(plain["data"])}
    return {"schema": FOREIGN_SCHEMA, "data": redactor.foreign(plain)}


def payload_content(payload: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return what a program gave for a payload; None if the payload is not another program's."""
    if payload is None or not str(payload.get("schema")).startswith(FOREIGN):
        return None
    content: Mapping[str, Any] = payload["data"] if payload["schema"] == FOREIGN_SCHEMA else payload
    return content


def parse_payload(text: str | bytes) -> dict[str, Any]:
    """Return the content in the text of a JSON object.

    Raises:
        UsageError: The text is not a JSON object, or too large.
    """
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"the payload isn't JSON: {error}", remedy='Give a JSON object, such as {"rows": 3}.'
        ) from error
    return _plain(content)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} isn't a JSON number")


def _plain(content: object) -> dict[str, Any]:
    if not isinstance(content, Mapping):
        raise UsageError(
            f"the payload is {type(content).__name__}, not an object",
            remedy='Give a JSON object, such as {"rows": 3}.',
        )
    try:
        text = json.dumps(content, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the payload can't be written as JSON: {error}") from error
    if len(text) > LARGEST:
        raise UsageError(
            f"the payload has {len(text):,} characters; at most {LARGEST:,} can be recorded",
            remedy="Record where the details are instead of the details.",
        )
    plain: dict[str, Any] = json.loads(text)
    return plain
