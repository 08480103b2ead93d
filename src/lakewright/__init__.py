"""Lakewright builds and maintains a data lake that a project declares in YAML and JSON.

These modules are public. A change to what they offer has a line in `CHANGELOG.md`:

- `lakewright`: `Project`, `Entity`, `Job`, `Manifest`, `Mapping`, `Processing`, `Range`, `Relation`; the
  results `LandedSlice`, `Plan`, `ProcessResult`, `ProjectStatus`, `RunEvent`, `RunResult`, `Runs`
- `lakewright.errors`: every error that Lakewright raises, `Fault`, `LakewrightWarning`, `Location`
- `lakewright.testing`: `MemoryStore`

All other modules are internal and may change without notice.

Importing `lakewright` is cheap: Spark, pydantic and database drivers are imported when they are first used.
Its loggers are silent until the program sets up `logging`.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakewright.api.arguments import Range
    from lakewright.api.definitions import Entity, Job, Mapping, Processing, Relation
    from lakewright.api.open_project import RunEvent, Runs
    from lakewright.api.project import Project
    from lakewright.bus.manifest import Manifest
    from lakewright.plan.step import Plan
    from lakewright.run.result import RunResult
    from lakewright.slices.landing import LandedSlice
    from lakewright.slices.result import ProcessResult
    from lakewright.usecases.due.status import ProjectStatus

__all__ = [
    "Entity",
    "Job",
    "LandedSlice",
    "Manifest",
    "Mapping",
    "Plan",
    "ProcessResult",
    "Processing",
    "Project",
    "ProjectStatus",
    "Range",
    "Relation",
    "RunEvent",
    "RunResult",
    "Runs",
]

# Otherwise Python prints warnings of a program that has not set up logging.
logging.getLogger("lakewright").addHandler(logging.NullHandler())

_PLACES = {
    "lakewright.api.arguments": ("Range",),
    "lakewright.api.definitions": ("Entity", "Job", "Mapping", "Processing", "Relation"),
    "lakewright.api.open_project": ("RunEvent", "Runs"),
    "lakewright.api.project": ("Project",),
    "lakewright.bus.manifest": ("Manifest",),
    "lakewright.plan.step": ("Plan",),
    "lakewright.run.result": ("RunResult",),
    "lakewright.slices.landing": ("LandedSlice",),
    "lakewright.slices.result": ("ProcessResult",),
    "lakewright.usecases.due.status": ("ProjectStatus",),
}


def __dir__() -> list[str]:
    return sorted((*__all__, "errors", "testing"))


def __getattr__(name: str) -> Any:
    for place, names in _PLACES.items():
        if name in names:
            return getattr(import_module(place), name)
    raise AttributeError(f"module 'lakewright' has no attribute {name!r}")
