"""Plain JSON objects that keep their text, so that a back end doesn't encode them a second time."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lakewright.errors import UsageError
from lakewright.manifest.record import format_instant

if TYPE_CHECKING:
    from pydantic import TypeAdapter


T = TypeVar("T")


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


def json_of(value: Any) -> Any:  # noqa: PLR0911 - a kind of values each
    """Return a value as JSON has it: text for instants, lists for tuples, objects for dataclasses.

    What has an `as_json` is shown by it.

    Example:
        >>> from datetime import UTC
        >>> json_of({"at": datetime(2024, 5, 1, tzinfo=UTC), "names": ("a", "b")})
        {'at': '2024-05-01T00:00:00.000000Z', 'names': ['a', 'b']}
    """
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return format_instant(value)
    if hasattr(value, "as_json") and not isinstance(value, str):  # a phrase is shown with its commands
        return value.as_json()
    if is_dataclass(value):
        return document_of(value)
    if isinstance(value, Mapping):
        return {key: json_of(inner) for key, inner in value.items()}
    if hasattr(value, "_asdict"):
        return json_of(value._asdict())
    return list(map(json_of, value)) if isinstance(value, list | tuple) else value


def document_of(value: Any, *names: str, **more: Any) -> dict[str, Any]:
    """Return a JSON object of some attributes of a value, or of all its fields, and of more values."""
    found = {name: getattr(value, name) for name in names or [each.name for each in fields(value)]}
    return {name: json_of(each) for name, each in (found | more).items()}


def of_json(kind: type[T], value: Any) -> T:
    """Return the dataclass that `json_of` made a value of."""
    adapter: TypeAdapter[T] = _adapter(cast("Any", kind))
    return adapter.validate_python(value)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def is_number(value: object) -> bool:
    """Return whether a value is a number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def finite(value: Any) -> Any:
    """Return a JSON value with infinite numbers and NaN as text, because JSON does not have them."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list) else value


_STRICT = json.JSONEncoder(allow_nan=False)
