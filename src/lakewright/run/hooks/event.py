"""The events that hooks receive: a part of a run has started or finished, or an operator is needed.

| category | what starts and finishes |
|---|---|
| `run` | the whole run of a job |
| `lifecycle` | one instance of the job, with all its phases |
| `job` | one phase of one instance |
| `target` | one target in one phase of one instance |
| `alert` | nothing: a slice failed, changed or is gone, the storage failed, a lock is stale, and so on |

Source: `hooks` of jobs in Flowman's project files. The categories are Flowman's, except `run` and `alert`.

Hooks turn events into calls.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AfterValidator
from pydantic import Field as Declared

from lakewright.connections.connection import Connection
from lakewright.connections.database import Database
from lakewright.errors import Fault, SpecError
from lakewright.manifest.plain_values import document_of
from lakewright.run.hooks.call import Call
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.base import Named, Texts
from lakewright.spec.models.job import Job
from lakewright.spec.reason import Reason, reasons_document

Connect = Callable[[str | Connection], Database]
"""Returns the database that a connection, or its name, means."""


@dataclass(frozen=True, slots=True)
class HookContext:
    """The context in which a hook makes calls for an event.

    Attributes:
        render: Evaluates the expressions in a text; the event's variables are names in them.
        environ: Environment variables of the process.
        folder: The project's folder.
        connect: Returns the database of a connection.
    """

    render: Callable[[str], str]
    environ: Mapping[str, str]
    folder: Path
    connect: Connect


class Hook(Named):
    """A hook; expressions in its texts are evaluated for each event."""

    description: str | None = Declared(default=None, description="Description for people.")

    @abstractmethod
    def texts(self) -> Iterator[str]:
        """Yield the texts whose expressions are evaluated for an event."""

    @abstractmethod
    def calls(self, event: Event, context: HookContext) -> Iterator[Call]:
        """Yield the calls to make for an event.

        Raises:
            SpecError: An expression is invalid.
        """


def _patterns(declared: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    for texts in declared.values():
        for text in texts:
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    return declared


Conditions = Annotated[dict[str, Texts], AfterValidator(_patterns)]
"""Regular expressions for variables of the event or parameters of the job; one must match the whole value."""


def matches(event: Event, conditions: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether an event meets all conditions; an empty or missing variable meets none."""
    values = {**event.parameters, **event.variables()}
    return all(
        bool(values.get(name)) and any(re.fullmatch(pattern, values[name]) for pattern in patterns)
        for name, patterns in conditions.items()
    )


RUNNING = "RUNNING"
"""The status of an event that reports a start."""

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
"""Names of an event's variables."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event in a run.

    Attributes:
        category: A category of the table above.
        kind: `job`, or the kind of the target.
        name: Name of the job or the target.
        status: `RUNNING` at the start, and the resulting status at the end.
        parameters: Parameters of the instance, with secrets hidden; empty for a run with several instances.
        at: When the event happened.
        phase: The phase; empty for events of all phases.
        target: Name of the target; empty for events of several targets.
        alert: Cause of an alert: `slice_failed`, `slices_changed`, `stale_lock` and so on.
        seconds: Duration; None at the start.
        error: The error that a target ended with; of a phase, an instance or a run, that of the first target
            that failed.
        reasons: Why a target ran or was skipped.
        metrics: Metrics of a target.
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
    reasons: tuple[Reason, ...] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """Return the event's variables as text, including empty ones."""
        own = {name: str(getattr(self, name)) for name in VARIABLES if name not in ("error", "namespace")}
        return {**own, "namespace": "default", "error": self.error.code if self.error else ""}

    def as_json(self) -> dict[str, Any]:
        """Return the event as hooks send it, JSON-serializable."""
        return {
            **self.variables(),
            **document_of(self, "parameters", "at", "metrics", "error", **reasons_document(self.reasons)),
            "seconds": None if self.seconds is None else round(self.seconds, 3),
        }

    def text(self) -> str:
        """Return the event as one line of JSON."""
        return json.dumps(self.as_json(), default=str)


METRIC_LABELS = ("category", "kind", "name", "phase", "project", "status", "version")
"""Names that every metric brings for the labels of a board."""


def notification_faults(job: Job, scope: Scope, *, has_measures: bool) -> Iterator[Fault]:
    """Yield a fault for each expression of a job's hooks and metrics that can't be evaluated.

    Args:
        job: The job.
        scope: The names of one of its instances.
        has_measures: Whether the job has measures, whose metrics bring labels that are not known before a
            run; names of a board that nothing declares then count as such labels.
    """
    names = {name: "" for name in VARIABLES if name not in scope.names}
    for number, hook in enumerate(job.hooks, 1):
        where = f"job {job.name!r}: hook {number} ({hook.kind})"
        for text in cast("Hook", hook).texts():
            yield from _faults(where, text, scope.child(names))
    if job.metrics is None:
        return
    labels = {name: "" for name in METRIC_LABELS if name not in scope.names}
    for label, text in job.metrics.texts():
        found = tuple(_faults(f"job {job.name!r}: label {label!r} of its metrics", text, scope.child(labels)))
        yield from (each for each in found if not (has_measures and "unknown_name" in each.details))


def _faults(where: str, text: str, scope: Scope) -> Iterator[Fault]:
    try:
        scope.render(text)
    except SpecError as error:
        for fault in error.faults:
            yield fault.about(where)
