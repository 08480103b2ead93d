"""Plain JSON objects that keep their text, so that a back end doesn't encode them a second time."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from lakewright.errors import UsageError

__all__ = ["finite", "json_text", "plain"]


class _PlainObject(dict[str, Any]):
    """A JSON object and its text; nobody changes it."""

    __slots__ = ("text",)

    text: str


def plain(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a value as JSON has it: lists instead of tuples, keys of text, and nothing shared with `value`.

    Raises:
        UsageError: JSON can't hold the value.
    """
    try:
        text = _STRICT.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the payload can't be written as JSON: {error}") from error
    made = _PlainObject(json.loads(text))
    made.text = text
    return made


def json_text(value: Mapping[str, Any]) -> str:
    """Return the JSON of a value; of one that `plain` returned, it is there already."""
    return value.text if isinstance(value, _PlainObject) else json.dumps(value)


def finite(value: Any) -> Any:
    """Return a JSON value with infinite numbers and NaN as text, because JSON does not have them."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list) else value


_STRICT = json.JSONEncoder(allow_nan=False)
