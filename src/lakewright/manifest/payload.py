"""Payloads: what a record carries beside its state, bounded in size whatever it is made of.

Source: `processing-manifest.md`, "Record" (payload); the original refuses some error texts, and the item then
stays locked, so here any text is taken.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from lakewright.errors import Fault, LakewrightError
from lakewright.manifest.record import State

__all__ = ["LARGEST", "LONGEST_TEXT", "LONGEST_TRACE", "bounded", "failure", "payload", "text_of"]

LARGEST = 65_536
"""Characters of a payload's JSON."""

LONGEST_TEXT = 2_048
"""Characters of any text in a payload but a stack trace."""

LONGEST_TRACE = 8_192
"""Characters of a stack trace."""

MOST_MEMBERS = 1_000
"""Members of any list or object in a payload."""

DEEPEST = 20
"""Levels of nesting in a payload."""

KEPT_WHOLE = frozenset(
    {
        "allow_late",
        "counter",
        "delta_version",
        "entity",
        "fingerprint",
        "holds_back",
        "mends",
        "slice",
        "token",
        "watermarks",
    }
)
"""What later runs read from a payload: never cut, and never searched for what may look like a secret."""


def payload(state: State, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload of a record with that state: a schema name, and its content bounded.

    Example:
        >>> payload(State.SKIPPED, {"reason": "sent twice"})
        {'schema': 'lakewright/skipped/1', 'data': {'reason': 'sent twice'}}
    """
    return {"schema": f"lakewright/{state.lower()}/1", "data": bounded(content)}


def failure(
    error: BaseException | Fault,
    *,
    stack_trace: str | None = None,
    holds_back: bool = True,
    **more: Any,
) -> dict[str, Any]:
    """Return the content of a FAILED record for any error at all.

    Its size is bounded later, by `payload`, after secrets are taken out: half a secret would not be known.

    Args:
        error: What went wrong; its text may be missing, endless or broken.
        stack_trace: As the caller has formatted it.
        holds_back: Whether later slices of the entity must wait.
        more: What else to keep, such as the slice's fingerprint.
    """
    return {
        "error": {
            "class": type(error).__name__,
            "code": getattr(error, "code", "unexpected"),
            "message": text_of(error),
            "remedy": getattr(error, "remedy", None),
            "location": str(location) if (location := getattr(error, "location", None)) else None,
        },
        "stack_trace": stack_trace,
        "is_retryable": bool(getattr(error, "is_retryable", False)),
        "holds_back": holds_back,
        **more,
    }


def text_of(error: BaseException | Fault) -> str:
    """Return what an error says, or its class where it says nothing or can't be asked."""
    try:
        text = error.message if isinstance(error, LakewrightError | Fault) else str(error)
    except Exception:  # whatever an error's own code raises, the failure must be recorded
        return type(error).__name__
    return text.strip() or type(error).__name__


def bounded(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return content as JSON that fits a record: texts, lists and, if need be, whole entries are cut.

    What was cut says so; what JSON doesn't know becomes text. Entries that later runs depend on stay whole.
    """
    kept = {name: value if name in KEPT_WHOLE else _trim(value, name) for name, value in content.items()}
    text = json.dumps(kept, default=str)
    plain: dict[str, Any] = json.loads(text)
    return plain if len(text) <= LARGEST else _shortened(plain)


def _shortened(kept: dict[str, Any]) -> dict[str, Any]:
    """Leave out the largest entries of content that is too large."""
    sizes = {name: len(json.dumps(value)) for name, value in kept.items()}
    excess = sum(sizes.values()) - LARGEST
    for name in sorted(sizes.keys() - KEPT_WHOLE, key=lambda name: -sizes[name]):
        if excess <= 0:
            break
        kept[name] = {"omitted": f"{sizes[name]} characters"}
        excess -= sizes[name]
    return kept


def _trim(value: Any, name: str = "", level: int = 0) -> Any:
    if isinstance(value, str):
        return _cut(value, LONGEST_TRACE if name == "stack_trace" else LONGEST_TEXT)
    if value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if level >= DEEPEST or not isinstance(value, Mapping | list | tuple):
        return _cut(_text(value), LONGEST_TEXT)
    if isinstance(value, Mapping):
        members = list(value.items())
        trimmed = {
            _cut(str(key), LONGEST_TEXT): _trim(member, str(key), level + 1)
            for key, member in members[:MOST_MEMBERS]
        }
        return trimmed if len(members) <= MOST_MEMBERS else {**trimmed, "…": _more(len(members))}
    listed = [_trim(member, "", level + 1) for member in value[:MOST_MEMBERS]]
    return listed if len(value) <= MOST_MEMBERS else [*listed, _more(len(value))]


def _text(value: Any) -> str:
    return type(value).__name__ if isinstance(value, Mapping | list | tuple) else str(value)


def _more(count: int) -> str:
    return f"… {count - MOST_MEMBERS} more"


def _cut(text: str, longest: int) -> str:
    """Return the text, or its beginning and end with a note of what is missing between."""
    if len(text) <= longest:
        return text
    note = f"\n… {len(text) - longest} characters left out …\n"
    half = (longest - len(note)) // 2
    return text[:half] + note + text[-half:]
