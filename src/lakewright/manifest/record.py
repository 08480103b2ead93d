"""Records: immutable rows of an append-only table, from which everything else in the manifest is derived.

Source: `processing-manifest.md`, "Record" and "State".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import Any

MANIFEST_VERSION = "1"
"""The version of the rules by which records are written; each record's author holds it."""


FOREIGN = ("application/", "iglu:")
"""How the schema names of other programs' payloads start; `iglu:` is Snowplow's."""


class State(StrEnum):
    """The state that a record gives its item."""

    NEW = "NEW"
    PROCESSING = "PROCESSING"
    PROCESSED = "PROCESSED"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"
    RESOLVED = "RESOLVED"


@dataclass(frozen=True, slots=True)
class Agent:
    """A program, by name and version; versions are never compared."""

    name: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Application:
    """The agent, and one of its destinations, on whose behalf a record was written.

    An instance of None means every destination of the agent; the name `*` means every agent.
    """

    agent: Agent
    instance_id: str | None = None

    @classmethod
    def named(cls, name: str, instance_id: str | None = None, *, version: str = "") -> Application:
        """Return the application with that name."""
        return cls(Agent(name, version), instance_id)

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.agent.name

    @property
    def key(self) -> tuple[str, str | None]:
        """The identity of an application: its name and instance, without the version."""
        return (self.agent.name, self.instance_id)

    @property
    def is_of_entity(self) -> bool:
        """Whether it processes the slices of an entity; other programs can't have such names."""
        return self.name.startswith("lakewright/")

    def covers(self, other: Application) -> bool:
        """Return whether a record of this application also counts for `other`.

        `*` covers every application. An application without an instance covers all instances of its name, and
        each of them covers it.
        """
        if self.name == "*":
            return True
        either_is_open = self.instance_id is None or other.instance_id is None
        return self.name == other.name and (either_is_open or self.instance_id == other.instance_id)

    def skips(self, other: Application) -> bool:
        """Return whether a skip for this application applies to `other`.

        Unlike with `covers`, a skip for one destination does not apply to the whole agent.
        """
        if self.name == "*":
            return True
        return self.name == other.name and self.instance_id in (None, other.instance_id)

    def __str__(self) -> str:
        return self.name if self.instance_id is None else f"{self.name}:{self.instance_id}"


ANYONE = Application.named("*")
"""The application that means every application."""


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a record: a run of the tool, or an operator."""

    agent: Agent
    manifest_version: str = MANIFEST_VERSION

    @classmethod
    def named(cls, name: str, version: str = "") -> Author:
        """Return the author with that name and the current version of the rules."""
        return cls(Agent(name, version))


@dataclass(frozen=True, slots=True)
class Draft:
    """A record before the back end assigns its sequence and time.

    Attributes:
        timestamp: The time of an imported record; otherwise None, and the back end's clock decides.
        payload: `{"schema": name, "data": {...}}` or None.
    """

    record_id: str
    item_id: str
    state: State
    application: Application
    author: Author
    run_id: str | None = None
    previous_record_id: str | None = None
    payload: Mapping[str, Any] | None = None
    timestamp: datetime | None = None

    def recorded(self, *, sequence: int, now: datetime) -> Record:
        """Return the record with its sequence, and `now` as its time unless the draft has one."""
        return Record(
            record_id=self.record_id,
            item_id=self.item_id,
            state=self.state,
            application=self.application,
            author=self.author,
            run_id=self.run_id,
            previous_record_id=self.previous_record_id,
            payload=self.payload,
            timestamp=self.timestamp or now,
            sequence=sequence,
        )


@dataclass(frozen=True, slots=True)
class Record:
    """One immutable row; records of an item are ordered by `sequence`, never by the clock."""

    record_id: str
    item_id: str
    state: State
    application: Application
    author: Author
    run_id: str | None
    previous_record_id: str | None
    payload: Mapping[str, Any] | None
    timestamp: datetime
    sequence: int

    def copied(self, **changes: Any) -> Draft:
        """Return the draft of a record like this one, at the same time, with other values for some fields."""
        kept = {each.name: getattr(self, each.name) for each in fields(Draft)}
        return Draft(**(kept | changes))

    @property
    def is_foreign(self) -> bool:
        """Whether the payload is another program's, so that its keys have no meaning here."""
        schema = (self.payload or {}).get("schema")
        return isinstance(schema, str) and schema.startswith(FOREIGN)

    @property
    def content(self) -> Mapping[str, Any]:
        """The payload's data; empty if there is no payload or its data is not an object."""
        content = (self.payload or {}).get("data")
        return content if isinstance(content, Mapping) else {}

    def as_json(self) -> dict[str, Any]:
        """Return the record in the form that `export` writes."""
        return {
            "recordId": self.record_id,
            "itemId": self.item_id,
            "application": _application_json(self.application),
            "author": {
                "agent": {"name": self.author.agent.name, "version": self.author.agent.version},
                "manifestVersion": self.author.manifest_version,
            },
            "runId": self.run_id,
            "state": self.state.value,
            "previousRecordId": self.previous_record_id,
            "timestamp": format_instant(self.timestamp),
            "payload": None if self.payload is None else dict(self.payload),
            "sequence": self.sequence,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Record:
        """Return the record of a value that `as_json` returned, or of Snowplow's form with eight keys.

        Raises:
            KeyError, TypeError, ValueError: A key is missing, or a value has the wrong type.
        """
        author = document["author"]
        payload = document["payload"]
        if payload is not None and not isinstance(payload, dict):
            raise ValueError("its payload is neither an object nor null")
        return cls(
            record_id=_text(document["recordId"]),
            item_id=_text(document["itemId"]),
            state=State(document["state"]),
            application=_application_from_json(document["application"]),
            author=Author(_agent_from_json(author["agent"]), _text(author["manifestVersion"])),
            run_id=_text_or_none(document.get("runId")),
            previous_record_id=_text_or_none(document["previousRecordId"]),
            payload=payload,
            timestamp=parse_instant(_text(document["timestamp"])),
            sequence=int(document.get("sequence") or 0),
        )


@lru_cache(maxsize=256)
def format_instant(instant: datetime) -> str:
    """Return an instant as ISO 8601 in UTC with microseconds and `Z`."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_instant(text: str) -> datetime:
    """Return the instant of an ISO 8601 text; without an offset it is UTC.

    Raises:
        ValueError: The text is not ISO 8601.
    """
    instant = datetime.fromisoformat(text)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def parse_instant_in(text: str, zone: tzinfo) -> datetime | None:
    """Return the instant of an ISO 8601 text in UTC, or None if the text has another form.

    Args:
        text: A time with or without an offset; without one it is in `zone`.
        zone: The environment's time zone.

    Example:
        >>> from zoneinfo import ZoneInfo
        >>> parse_instant_in("2025-05-05T12:00:00", ZoneInfo("Europe/Berlin")).isoformat()
        '2025-05-05T10:00:00+00:00'
        >>> parse_instant_in("yesterday", ZoneInfo("UTC")) is None
        True
    """
    try:
        found = datetime.fromisoformat(text.strip())
        return (found.replace(tzinfo=zone) if found.tzinfo is None else found).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _application_json(application: Application) -> dict[str, Any]:
    agent = application.agent
    return {"agent": {"name": agent.name, "version": agent.version}, "instanceId": application.instance_id}


def _application_from_json(document: Mapping[str, Any]) -> Application:
    return Application(_agent_from_json(document["agent"]), _text_or_none(document["instanceId"]))


def _agent_from_json(document: Mapping[str, Any]) -> Agent:
    return Agent(_text(document["name"]), _text(document["version"]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} isn't text")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)
