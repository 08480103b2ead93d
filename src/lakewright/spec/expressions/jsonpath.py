"""The subset of JSONPath that projects use to read a value from a secrets file."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["json_path"]

_STEP = re.compile(
    r"\.(?P<name>[\w-]+)|\[(?P<index>\d{1,6})\]|\[(?P<quote>['\"])(?P<key>[^'\"]*)(?P=quote)\]"
    r"|\[\?\(\s*@\.(?P<field>[\w-]+)\s*==\s*(?P<mark>['\"])(?P<wanted>[^'\"]*)(?P=mark)\s*\)\]"
)


def json_path(text: str, path: str) -> Any:
    """Return the first value at a path such as `$.a[0]` or `$.list[?(@.key=="user")].value`.

    Raises:
        ValueError: The text is not JSON, the path is not supported, or it does not lead to a single value.

    Example:
        >>> json_path('{"a": [{"k": "x", "v": 1}]}', '$.a[?(@.k=="x")].v')
        1
    """
    try:
        found = [json.loads(text)]
    except RecursionError:
        raise ValueError("the JSON is nested too deep") from None
    position = 1
    if not path.startswith("$"):
        raise ValueError(f"{path!r} does not start with $")
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(f"{path!r} is not supported, from {path[position : position + 20]!r} on")
        found = [inner for value in found for inner in _follow(value, step)]
        position = step.end()
    if not found or isinstance(found[0], (dict, list)):
        raise ValueError(f"{path!r} does not lead to a single value")
    return found[0]


def _follow(value: Any, step: re.Match[str]) -> list[Any]:
    if step["index"] is not None:
        return value[int(step["index"]) :][:1] if isinstance(value, list) else []
    if step["field"] is not None:
        items = value if isinstance(value, list) else []
        return [
            item for item in items if isinstance(item, dict) and item.get(step["field"]) == step["wanted"]
        ]
    name = step["name"] if step["name"] is not None else step["key"]
    return [value[name]] if isinstance(value, dict) and name in value else []
