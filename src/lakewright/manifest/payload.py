"""Drafts of records, and their payloads: JSON in addition to the state, bounded in size for any content.

Payloads of other programs are any JSON objects, kept as they are except for secrets. Later steps act on them,
so nothing in them is shortened: one that is too large is refused.

Source: `processing-manifest.md`, "Record" (payload) and "Use cases" (pipeline bus). The original refuses some
    error texts, and the item then stays locked; here any text is accepted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakewright.errors import Fault, LakewrightError, UsageError
from lakewright.errors.fault import recorded_remedy
from lakewright.manifest.plain_values import json_text, plain
from lakewright.manifest.record import FOREIGN, Application, Author, Draft, State
from lakewright.manifest.redaction import Redactor

MAY_SKIP = "may_skip"
"""Detail of an error, and entry of its record: whether the remedy is also to skip the item."""

PERMITTED_BY = "permitted_by"
"""Detail of an error, and entry of its record: the grant that permits what the error refuses."""

LARGEST = 65_536
"""Maximum characters of a payload's JSON."""

LONGEST_TEXT = 2_048
"""Maximum characters of any text in a payload except a stack trace."""

LONGEST_TRACE = 8_192
"""Maximum characters of a stack trace."""

MOST_MEMBERS = 1_000
"""Maximum number of members of any list or object in a payload."""

DEEPEST = 20
"""Maximum levels of nesting in a payload."""

KEPT_WHOLE = frozenset(
    {
        "allow_late",
        "counter",
        "declared",
        "delta_version",
        "emptied_by",
        "entity",
        "fingerprint",
        "holds_back",
        "mends",
        "processing_time",
        "slice",
        "token",
        "watermarks",
    }
)
"""Entries that later runs read: never shortened, and never searched for secrets, which match by chance."""


def payload(state: State, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload of a record with that state: a schema name and the bounded content.

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
    """Return the content of a FAILED record for any error.

    `payload` bounds its size later, after secrets are removed: a secret that is cut in half is not
        recognised.

    Args:
        error: The error; its text may be missing, very long or fail to format.
        stack_trace: The formatted stack trace.
        holds_back: Whether later slices of the entity must wait.
        more: Further entries, such as the slice's fingerprint.
    """
    details = error.details if isinstance(error, LakewrightError | Fault) else {}
    return {
        "error": {
            "class": type(error).__name__,
            "code": getattr(error, "code", "unexpected"),
            "message": text_of(error),
            **recorded_remedy(getattr(error, "remedy", None)),
            "location": str(location) if (location := getattr(error, "location", None)) else None,
            MAY_SKIP: bool(details.get(MAY_SKIP)),
            PERMITTED_BY: details.get(PERMITTED_BY),
        },
        "stack_trace": stack_trace,
        "is_retryable": bool(getattr(error, "is_retryable", False)),
        "holds_back": holds_back,
        **more,
    }


def text_of(error: BaseException | Fault) -> str:
    """Return the message of an error, or its class if it has no message or the message fails to format."""
    try:
        text = error.message if isinstance(error, LakewrightError | Fault) else str(error)
    except Exception:  # the failure must be recorded even if the error's own code raises
        return type(error).__name__
    return text.strip() or type(error).__name__


def bounded(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return content as JSON that fits in a record; texts, lists and, if necessary, entries are shortened.

    A shortened value says so. Values that JSON cannot hold become text. Entries in `KEPT_WHOLE` stay whole.
    """
    kept = {name: value if name in KEPT_WHOLE else _trim(value, name) for name, value in content.items()}
    text = json.dumps(kept, default=str)
    made: dict[str, Any] = json.loads(text)
    return made if len(text) <= LARGEST else _shortened(made)


def _shortened(kept: dict[str, Any]) -> dict[str, Any]:
    """Replace the largest entries of content that is too large by a note."""
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
    """Return the text, or its beginning and end with a note on the omitted middle."""
    if len(text) <= longest:
        return text
    note = f"\n… {len(text) - longest} characters left out …\n"
    half = (longest - len(note)) // 2
    return text[:half] + note + text[-half:]


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
    given = _plain(content)
    names_schema = str(given.get("schema")).startswith("iglu:") and isinstance(given.get("data"), dict)
    if given.keys() == SELF_DESCRIBING and names_schema:
        return {"schema": given["schema"], "data": redactor.foreign(given["data"])}
    return {"schema": FOREIGN_SCHEMA, "data": redactor.foreign(given)}


def payload_content(payload: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return what a program gave for a payload; None if the payload is not another program's."""
    if payload is None or not str(payload.get("schema")).startswith(FOREIGN):
        return None
    content: Mapping[str, Any] = payload["data"] if payload["schema"] == FOREIGN_SCHEMA else payload
    return content


def parse_payload(text: str | bytes) -> Mapping[str, Any]:
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


def _plain(content: object) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise UsageError(
            f"the payload is {type(content).__name__}, not an object",
            remedy='Give a JSON object, such as {"rows": 3}.',
        )
    made = plain(content)
    if (size := len(json_text(made))) > LARGEST:
        raise UsageError(
            f"the payload has {size:,} characters; at most {LARGEST:,} can be recorded",
            remedy="Record where the details are instead of the details.",
        )
    return made


@dataclass(frozen=True, slots=True)
class RecordDrafter:
    """Drafts records for one author.

    Attributes:
        ids: Returns an id that no record has yet.
        redactor: Removes secrets from payloads.
        trigger: What started the run whose records are drafted, without a person at its command line.
    """

    author: Author
    ids: Callable[[], str]
    redactor: Redactor = field(default_factory=Redactor)
    trigger: str | None = None

    def draft(
        self,
        item_id: str,
        state: State,
        application: Application,
        *,
        content: Mapping[str, Any] | None,
        run_id: str | None = None,
        previous: str | None = None,
        record_id: str | None = None,
        is_foreign: bool = False,
    ) -> Draft:
        """Return the draft of a record; secrets are removed from its content.

        A record of a run names the trigger that started the run, if one did. The size of the content is
        bounded, unless it is another program's: that one is kept as it is, or refused.

        Raises:
            UsageError: Another program's payload is not JSON, or too large.
        """
        content = content or {}
        if run_id is not None and self.trigger is not None and not is_foreign:
            content = {**content, "trigger": self.trigger}
        return Draft(
            record_id=record_id or self.ids(),
            item_id=item_id,
            state=state,
            application=application,
            author=self.author,
            run_id=run_id,
            previous_record_id=previous,
            payload=foreign_payload(content, self.redactor)
            if is_foreign
            else payload(state, {name: self._redacted(name, value) for name, value in content.items()}),
        )

    def _redacted(self, name: str, value: Any) -> Any:
        """Return a value without secrets; values that later runs read are kept unchanged.

        A short password may occur by chance in the name of a slice.
        """
        return value if name in KEPT_WHOLE else self.redactor.value(value)
