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
    from lakewright.api import (
        Entity,
        Job,
        LandedSlice,
        Mapping,
        Plan,
        Processing,
        ProcessResult,
        Project,
        ProjectStatus,
        Range,
        Relation,
        RunEvent,
        RunResult,
        Runs,
    )
    from lakewright.bus.manifest import Manifest

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

_PLACES = {"Manifest": "lakewright.bus.manifest"}


def __dir__() -> list[str]:
    return sorted((*__all__, "errors", "testing"))


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(_PLACES.get(name, "lakewright.api")), name)
    raise AttributeError(f"module 'lakewright' has no attribute {name!r}")
