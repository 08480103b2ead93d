"""What hooks are told: something of a run has begun or ended, or needs an operator.

| category | begins and ends |
|---|---|
| `run` | the whole run of a job |
| `lifecycle` | one instance of it, with all its phases |
| `job` | one phase of one instance |
| `target` | one target in one phase of one instance |
| `alert` | not at all: a slice has failed, a lock is stale, deletes are braked |

Source: the project files' rules, jobs' `hooks`; categories are Flowman's, `run` and `alert` Lakewright's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lakewright.errors import Fault
from lakewright.manifest.record import format_instant

__all__ = ["RUNNING", "VARIABLES", "Event"]

RUNNING = "RUNNING"
"""The status of what has begun."""

VARIABLES = (
    "category",
    "kind",
    "name",
    "status",
    "project",
    "version",
    "namespace",
    "job",
    "run_id",
    "phase",
    "target",
    "error",
    "alert",
)
"""Names by which hooks speak of an event."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run.

    Attributes:
        category: As in the table above.
        kind: `job`, or the kind of the target.
        name: Of the job or the target.
        status: `RUNNING`, or how it ended.
        parameters: Of the instance, secrets hidden; of a run with several instances none.
        at: When it happened.
        phase: Empty where it is about all of them.
        target: Empty where it is about no single one.
        alert: What an alert is about: `slice_failed`, `delete_brake` or `stale_lock`.
        seconds: How long it took; None for what has only begun.
        details: Reasons, metrics and error of a target.
    """

    category: str
    kind: str
    name: str
    status: str
    project: str
    version: str
    job: str
    run_id: str
    parameters: Mapping[str, str]
    at: datetime
    phase: str = ""
    target: str = ""
    alert: str = ""
    seconds: float | None = None
    error: Fault | None = None
    reasons: tuple[str, ...] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """Return the texts by which hooks speak of the event; empty ones are there too."""
        own = {name: str(getattr(self, name)) for name in VARIABLES if name not in ("error", "namespace")}
        return {**own, "namespace": "default", "error": self.error.code if self.error else ""}

    def as_json(self) -> dict[str, Any]:
        """Return the event as hooks send it."""
        return {
            **self.variables(),
            "parameters": dict(self.parameters),
            "at": format_instant(self.at),
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "reasons": list(self.reasons),
            "metrics": dict(self.metrics),
            "error": self.error.as_json() if self.error else None,
        }

    def text(self) -> str:
        """Return the event as one line of JSON."""
        return json.dumps(self.as_json(), default=str)
